// Datasets as src/input reads them. An element is one example or, after a batch stage, a batch:
// named columns in the caller's host memory. Columns of a known shape hold packed examples, others
// (CHOIR_UNKNOWN dimensions) a chi_ragged_value per example, which the caller owns and a write
// enlarges. After batch all values have one shape. A position is the pass and the number of
// elements delivered, which decide all else. In src/data, a function records its failure before it
// returns false or NULL. Threads: one at a time.
#pragma once

#include "base/glob.h"
#include "choir/dataset.h"

enum { CHI_MAX_COLUMNS = 32 };

// All zeros: an empty one.
typedef struct {
	void *data;
	size_t bytes;
	choir_shape shape;
} chi_ragged_value;
choir_status chi_ragged_value_shape(
		chi_ragged_value *value, choir_dtype dtype, const choir_shape *shape);
choir_status chi_ragged_value_copy(
		chi_ragged_value *to, const chi_ragged_value *from, choir_dtype dtype);
void chi_ragged_value_free(chi_ragged_value *value);
bool chi_shape_varies(const choir_shape *shape);
bool chi_shape_fits(const choir_shape *column, const choir_shape *shape);

// Shapes lack the batch axis.
typedef struct {
	size_t n;
	choir_column column[CHI_MAX_COLUMNS]; // names live as long as the dataset
	int64_t batch; // largest; 0: single examples
	int64_t global;
	bool full; // no short batches
	int64_t examples; // of a pass; CHOIR_UNKNOWN_CARDINALITY: also infinite
	bool endless;
	// Or NULL.
	const struct chi_categories *categories[CHI_MAX_COLUMNS];
} chi_spec;

// The caller's; NULL: not wanted.
typedef struct {
	void *column[CHI_MAX_COLUMNS];
	int64_t capacity;
	int64_t examples;
} chi_element;

const chi_spec *chi_dataset_spec(choir_dataset *d);
// An end or an error repeats until the rewind.
choir_status chi_dataset_next(choir_dataset *d, chi_element *e);
// Each pass shuffles in another order.
choir_status chi_dataset_rewind(choir_dataset *d);
int64_t chi_dataset_pass(const choir_dataset *d);
// Begins a pass and skips elements. CHOIR_INVALID: the pass has fewer.
choir_status chi_dataset_seek(choir_dataset *d, int64_t pass, int64_t elements);
// A position fits only chains of equal signature.
uint64_t chi_dataset_signature(const choir_dataset *d);
// A place in files (seek_index.h).
typedef struct {
	int64_t source;
	int64_t elements;
	int64_t file, byte;
	int64_t files; // hash of the names up to this file
	int64_t record;
	int64_t dropped, skipped;
} chi_seek_point;
enum { CHI_MAX_SEEK_POINTS = 16 };
// Shortly before the sources' positions. Threads: any.
size_t chi_dataset_seek_index(choir_dataset *d, chi_seek_point point[CHI_MAX_SEEK_POINTS]);
// Adds another iterator's points before a seek; ignores those of other files.
choir_status chi_dataset_take_seek_index(choir_dataset *d, size_t n, const chi_seek_point point[]);
// Reads of d and its sources then fail with CHOIR_CANCELLED, even after a rewind. Threads: any.
// uncancel reverts one cancel while no thread reads; failed stages need a rewind.
void chi_dataset_cancel(choir_dataset *d);
void chi_dataset_uncancel(choir_dataset *d);
// Before the first read. CHOIR_INVALID: a cache's file holds another worker's share.
bool chi_dataset_has_hint(const choir_dataset *d);
choir_status chi_dataset_shard_hints(choir_dataset *d, int64_t count, int64_t index);
// Keeps every count-th file from index on, before the first read. A failure changes nothing.
// CHOIR_NOT_FOUND: no files, or hidden ones. CHOIR_INVALID: too few files, or a cache's file holds
// another share.
choir_status chi_dataset_shard_files(choir_dataset *d, int64_t count, int64_t index);
// Except those that the chain itself reads.
choir_status chi_dataset_list_files(
		const choir_dataset *d, int64_t count, int64_t index, chi_glob *to);
choir_status chi_dataset_all_files(const choir_dataset *d, chi_glob *to);

// Examples first .. first+count-1 in place, until d is freed. NULL: not packed in memory.
const void *chi_dataset_peek(choir_dataset *d, size_t column, int64_t first, int64_t count);
