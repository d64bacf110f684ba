// Every kind of source and transform there is, for tests that put each behind each: elements are
// numbers in one i64 column "number". A test counts the kinds against the public headers, so that
// none is forgotten.
#pragma once

#include "choir/source.h"

#include <stddef.h>

enum { KIND_EXAMPLES = 23, KIND_BATCH = 8 }; // examples of each source; the most of a batch

typedef struct {
	const char *constructor; // choir_... of source.h
	choir_dataset *(*make)(void);
	bool random; // its examples can be had by their numbers
	bool anywhere; // goes to any place, also behind its end
	bool once; // what was read is gone: only its first pass can be read, by one reader
} source_kind;
extern const source_kind source_kinds[];
extern const size_t source_kind_count;

typedef struct {
	const char *constructor; // choir_dataset_... of dataset.h; NULL: nothing is done
	choir_dataset *(*make)(choir_dataset *from);
	bool single; // takes no batches
	bool whole; // needs all examples of its source, no more and no fewer
	bool batches; // gives them
} transform_kind;
extern const transform_kind transform_kinds[];
extern const size_t transform_kind_count;

// Waits until nobody fills queues any more; all datasets of queues are freed.
void kinds_wait(void);
// Before the first test and behind the last one.
int kinds_begin(void **state);
int kinds_end(void **state);
