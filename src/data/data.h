// Datasets from inside, for the room that distributes their elements. An element is a set of
// named columns in host memory of the caller: one example, or after a batch stage a batch of at
// most so many.
//
// A column of a known shape has memory for packed examples. A column with a dimension that
// differs from example to example (CHOIR_NONE) has a chi_ragged_value for each, which is the
// caller's and grows as it is written to. After batch the values of one element have one shape.
//
// The position of an iterator is the pass and the number of elements handed out. All else follows
// from these, the orders of shuffles too. Threads: one at a time; a stage may read ahead on a
// thread of its own.
#pragma once

#include "base/glob.h"
#include "choir/dataset.h"

enum { CHI_MAX_COLUMNS = 32 };

// One example of a column that varies. All zeros is an empty one. bytes may exceed what the
// shape, which has no CHOIR_NONE, needs.
typedef struct {
	void *data;
	size_t bytes;
	choir_shape shape;
} chi_ragged_value;
// Gives the value this shape, and memory for it. What it held is lost.
choir_status chi_ragged_value_shape(
		chi_ragged_value *value, choir_dtype dtype, const choir_shape *shape);
choir_status chi_ragged_value_copy(
		chi_ragged_value *to, const chi_ragged_value *from, choir_dtype dtype);
void chi_ragged_value_free(chi_ragged_value *value);
// Whether a column of this shape holds ragged values.
bool chi_shape_varies(const choir_shape *shape);
// Whether an example of a column can have this shape.
bool chi_shape_fits(const choir_shape *column, const choir_shape *shape);

// What every element has: names, dtypes, shapes of one example (without the batch axis).
typedef struct {
	size_t n;
	choir_column column[CHI_MAX_COLUMNS]; // data unused; names live as long as the dataset
	int64_t batch; // 0: single examples; else the most examples of an element
	int64_t global; // batch of a batch stage that later stages keep; CHOIR_NONE: unknown
	bool full; // of batches: no one has fewer examples than batch
	int64_t examples; // of a whole pass, if known; CHOIR_NONE: not known, or for ever
	bool endless; // repeats for ever
	// The texts that a column's numbers stand for; NULL: it has none. They are the dataset's.
	const struct chi_categories *categories[CHI_MAX_COLUMNS];
} chi_spec;

// Memory of the caller for an element, capacity examples a column. NULL: the column is not
// wanted.
typedef struct {
	void *column[CHI_MAX_COLUMNS]; // examples, or ragged values
	int64_t capacity; // 1, or at least spec.batch
	int64_t examples; // out: how many there are (a short last batch); 1 without batch
} chi_element;

// NULL: making the chain failed, which is recorded.
const chi_spec *chi_dataset_spec(choir_dataset *d);
// CHOIR_END at the end of the pass. Nothing is read before the first next. An end or an error
// comes again with every next until the dataset is rewound; e then holds nothing of use.
choir_status chi_dataset_next(choir_dataset *d, chi_element *e);
// Begins the next pass, in which shuffles have another order. The first pass is number 0.
choir_status chi_dataset_rewind(choir_dataset *d);
int64_t chi_dataset_pass(const choir_dataset *d);
// Goes to where so many elements of a pass have been handed out. Stages that cannot jump
// (filters, shuffles of streams, functions) read what lies before. CHOIR_INVALID: the pass has
// fewer elements.
choir_status chi_dataset_seek(choir_dataset *d, int64_t pass, int64_t elements);
// A hash of the stages, of the arguments that decide what comes when, and of the columns. A
// position is restored only in a chain of the same signature.
uint64_t chi_dataset_signature(const choir_dataset *d);
// A place in a source's files after so many elements of a pass (seek_index.h). Of numbers only,
// so that a saved position can hold it.
typedef struct {
	int64_t source; // of the chain's stages that have seek points
	int64_t elements;
	int64_t file, byte; // which of the source's files, and where in it the next record begins
	int64_t files; // by chi_seek_index_files: that file and those before it
	int64_t record; // its number in the file
	int64_t dropped, skipped; // before it
} chi_seek_point;
enum { CHI_MAX_SEEK_POINTS = 16 };
// Seek points close before the positions of the chain's sources, and their number. Threads: any.
size_t chi_dataset_seek_index(choir_dataset *d, chi_seek_point point[CHI_MAX_SEEK_POINTS]);
// Gives sources the seek points of another iterator of this chain, before a seek. Points of other
// files are left out.
choir_status chi_dataset_take_seek_index(choir_dataset *d, size_t n, const chi_seek_point point[]);
// Reads of d, of its sources and of the chains that these have open fail with CHOIR_CANCELLED
// until uncancel, also after a begin. Threads: any. uncancel takes back one cancel while nobody
// reads; what has failed needs a begin.
void chi_dataset_cancel(choir_dataset *d);
void chi_dataset_uncancel(choir_dataset *d);
// Whether the chain has shard stages with a hint. shard_hints gives these their count and index,
// before the first read. CHOIR_INVALID: a cache's file holds the share of another worker.
bool chi_dataset_has_hint(const choir_dataset *d);
choir_status chi_dataset_shard_hints(choir_dataset *d, int64_t count, int64_t index);
// Leaves every count-th of the chain's files, from index on; before the first read. A failure
// changes nothing. CHOIR_NOT_FOUND: the chain reads no files, or a stage hides them.
// CHOIR_INVALID: there are fewer files than count, or a cache's file holds the share of another
// worker.
choir_status chi_dataset_shard_files(choir_dataset *d, int64_t count, int64_t index);
// Adds the names of those files. Not known are files whose names the chain reads.
choir_status chi_dataset_list_files(
		const choir_dataset *d, int64_t count, int64_t index, chi_glob *to);
// Adds the names of the files of all sources of the chain.
choir_status chi_dataset_all_files(const choir_dataset *d, chi_glob *to);

// The examples first .. first+count-1 of a column in place, until d is freed. NULL: they do not
// lie packed in memory.
const void *chi_dataset_peek(choir_dataset *d, size_t column, int64_t first, int64_t count);
