// All kinds of sources and transforms, for tests that combine each with each. Elements are numbers
// in one i64 column "number". A test compares the kinds with the public headers, so that none is
// missing.
#pragma once

#include "choir/source.h"

#include <stddef.h>

enum { KIND_EXAMPLES = 23, KIND_BATCH = 8 }; // of each source; maximum batch size

typedef struct {
	const char *constructor; // choir_... of source.h
	choir_dataset *(*make)(void);
	bool random; // has random access
	bool anywhere; // can seek to any position, also beyond the end
	bool once; // only one reader can read it, once
} source_kind;
extern const source_kind source_kinds[];
extern const size_t source_kind_count;

typedef struct {
	const char *constructor; // choir_dataset_... of dataset.h; NULL: no transform
	choir_dataset *(*make)(choir_dataset *from);
	bool single; // accepts no batches
	bool whole; // needs exactly the examples of its source
	bool batches; // produces batches
} transform_kind;
extern const transform_kind transform_kinds[];
extern const size_t transform_kind_count;

// Waits until no thread fills queues. All datasets with queues must be freed.
void kinds_wait(void);
// Set up and tear down the group of tests.
int kinds_begin(void **state);
int kinds_end(void **state);
