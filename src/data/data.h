// Datasets as src/input reads them. An element is one example or, after a batch stage, a batch: a
// set of named columns in the caller's host memory.
//
// Columns of a known shape hold packed examples. If a dimension differs between examples
// (CHOIR_UNKNOWN), the column holds one chi_ragged_value per example. The caller owns these
// values; a write enlarges them if necessary. After batch all values of an element have one shape.
//
// A position is the pass and the number of elements delivered; everything else follows from these
// two. Threads: one at a time. In src/data, a function records its failure before it returns false
// or NULL.
#pragma once

#include "base/glob.h"
#include "choir/dataset.h"

enum { CHI_MAX_COLUMNS = 32 };

// One example of a column that varies. All zeros: an empty one.
typedef struct {
	void *data;
	size_t bytes;
	choir_shape shape;
} chi_ragged_value;
// Reserves memory for the shape and drops the old content.
choir_status chi_ragged_value_shape(
		chi_ragged_value *value, choir_dtype dtype, const choir_shape *shape);
choir_status chi_ragged_value_copy(
		chi_ragged_value *to, const chi_ragged_value *from, choir_dtype dtype);
void chi_ragged_value_free(chi_ragged_value *value);
bool chi_shape_varies(const choir_shape *shape);
bool chi_shape_fits(const choir_shape *column, const choir_shape *shape);

// Properties of all elements. Shapes lack the batch axis.
typedef struct {
	size_t n;
	choir_column column[CHI_MAX_COLUMNS]; // no data; names live as long as the dataset
	int64_t batch; // examples of an element at most; 0: single examples
	int64_t global;
	bool full; // no short batches
	int64_t examples; // of a pass; CHOIR_UNKNOWN_CARDINALITY: also infinite
	bool endless;
	// Texts that a column's numbers stand for, owned by the dataset, or NULL.
	const struct chi_categories *categories[CHI_MAX_COLUMNS];
} chi_spec;

// The caller's memory for an element. NULL: the column is not wanted.
typedef struct {
	void *column[CHI_MAX_COLUMNS];
	int64_t capacity; // 1, or at least spec.batch
	int64_t examples; // output
} chi_element;

const chi_spec *chi_dataset_spec(choir_dataset *d);
// Reads the next element. CHOIR_END: the pass has ended. An end or an error repeats until the
// rewind.
choir_status chi_dataset_next(choir_dataset *d, chi_element *e);
// Begins the next pass, which shuffles in another order. The first pass is 0.
choir_status chi_dataset_rewind(choir_dataset *d);
int64_t chi_dataset_pass(const choir_dataset *d);
// Begins a pass and skips elements. Stages that cannot jump read them. CHOIR_INVALID: the pass has
// fewer.
choir_status chi_dataset_seek(choir_dataset *d, int64_t pass, int64_t elements);
// Hashes what decides the order of elements. A position fits only chains of equal signature.
uint64_t chi_dataset_signature(const choir_dataset *d);
// A place in a source's files, for saved positions (seek_index.h).
typedef struct {
	int64_t source; // index among the stages with seek points
	int64_t elements;
	int64_t file, byte; // of the next record
	int64_t files; // chi_seek_index_files up to this file
	int64_t record;
	int64_t dropped, skipped;
} chi_seek_point;
enum { CHI_MAX_SEEK_POINTS = 16 };
// Chooses seek points shortly before the sources' positions. Threads: any.
size_t chi_dataset_seek_index(choir_dataset *d, chi_seek_point point[CHI_MAX_SEEK_POINTS]);
// Adds seek points of another iterator of this chain, before a seek. Those of other files are
// ignored.
choir_status chi_dataset_take_seek_index(choir_dataset *d, size_t n, const chi_seek_point point[]);
// cancel makes reads of d, its sources and the chains they have open fail with CHOIR_CANCELLED,
// also after a rewind. Threads: any. uncancel reverts one cancel while no thread reads; failed
// stages need a rewind.
void chi_dataset_cancel(choir_dataset *d);
void chi_dataset_uncancel(choir_dataset *d);
// Sets count and index of shard stages with a hint, before the first read. CHOIR_INVALID: a
// cache's file holds another worker's share.
bool chi_dataset_has_hint(const choir_dataset *d);
choir_status chi_dataset_shard_hints(choir_dataset *d, int64_t count, int64_t index);
// Keeps every count-th file from index on, before the first read. A failure changes nothing.
// CHOIR_NOT_FOUND: the chain reads no files, or a stage hides them. CHOIR_INVALID: fewer files
// than count, or a cache's file holds another worker's share.
choir_status chi_dataset_shard_files(choir_dataset *d, int64_t count, int64_t index);
// Adds the names of those files, except names that the chain itself reads.
choir_status chi_dataset_list_files(
		const choir_dataset *d, int64_t count, int64_t index, chi_glob *to);
choir_status chi_dataset_all_files(const choir_dataset *d, chi_glob *to);

// Gives examples first .. first+count-1 in place, until d is freed. NULL: not packed in memory.
const void *chi_dataset_peek(choir_dataset *d, size_t column, int64_t first, int64_t count);
