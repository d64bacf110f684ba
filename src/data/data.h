// Datasets from inside, for the room that deals their elements out: what a chain of stages
// yields, how to get it, and how to go on where another iterator stood. Elements are sets of
// named columns in host memory that the caller provides; up to batch() an element is one
// example, after it a batch of at most so many.
//
// A column whose shape is known has memory for its examples, packed. A column with a dimension
// that differs from example to example (CHOIR_NONE) has a chi_ragged_value for each example
// instead, which is the caller's and grows as it is written to. Behind batch the values of one
// element all have the same shape.
//
// Where an iterator stands is two numbers: the pass, and how many elements of it were handed
// out. Everything else (the orders of shuffles above all) follows from them, so whoever goes
// there gets exactly what would have come next. Threads: one at a time, but a stage may read
// ahead on a thread of its own.
#pragma once

#include "base/glob.h"
#include "choir/dataset.h"

enum { CHI_MAX_COLUMNS = 32 };

// One example of a column that varies: its own memory, and its shape, without CHOIR_NONE. All
// zeros is an empty one. bytes may exceed what the shape needs.
typedef struct {
	void *data;
	size_t bytes;
	choir_shape shape;
} chi_ragged_value;
// Gives the value this shape and room for it; what it held is lost, its memory is used again.
choir_status chi_ragged_value_shape(
		chi_ragged_value *value, choir_dtype dtype, const choir_shape *shape);
choir_status chi_ragged_value_copy(
		chi_ragged_value *to, const chi_ragged_value *from, choir_dtype dtype);
void chi_ragged_value_free(chi_ragged_value *value);
// Whether examples of this shape can differ in it: memory for them is ragged values.
bool chi_shape_varies(const choir_shape *shape);
// Whether an example of a column can have this shape.
bool chi_shape_fits(const choir_shape *column, const choir_shape *shape);

// What every element has: names, dtypes, shapes of one example (without the batch axis).
typedef struct {
	size_t n;
	choir_column column[CHI_MAX_COLUMNS]; // data unused; names live as long as the dataset
	int64_t batch; // 0: single examples; else the most examples of an element
	// The global batch that a distribution finds by looking at the stages: that of a batch stage
	// if all stages behind it keep it. CHOIR_NONE: one did not, so that nobody can say.
	int64_t global;
	bool full; // of batches: no one has fewer examples than batch
	int64_t examples; // of a whole pass, if known; CHOIR_NONE: not known, or for ever
	bool endless; // repeats for ever
	// The texts behind the numbers of a column; NULL: it has none. They live as long as the
	// dataset.
	const struct chi_categories *categories[CHI_MAX_COLUMNS];
} chi_spec;

// Room for an element, filled by next. The caller provides memory for each column: capacity
// examples, packed. A column that is NULL is not wanted and is left out.
typedef struct {
	void *column[CHI_MAX_COLUMNS]; // examples, or ragged values
	int64_t capacity; // 1, or at least spec.batch
	int64_t examples; // out: how many there are (a short last batch); 1 without batch
} chi_element;

const chi_spec *chi_dataset_spec(
		choir_dataset *d); // NULL: the chain has failed; the thread knows why
// CHOIR_OK, CHOIR_END at the end of the pass, or an error. Nothing is read before the first
// next. After an end or an error every next gives the same again, until the dataset is rewound;
// the memory of e then holds nothing of use.
choir_status chi_dataset_next(choir_dataset *d, chi_element *e);
// Back to the start; the next pass (shuffles: another order). The first pass is number 0.
choir_status chi_dataset_rewind(choir_dataset *d);
int64_t chi_dataset_pass(const choir_dataset *d);
// To where so many elements of a pass have been handed out. Sources and stages that can go there;
// those that cannot (filters, shuffles of streams, functions) read what lies before once more.
// CHOIR_INVALID: the pass has fewer elements, so this is not the dataset it was.
choir_status chi_dataset_seek(choir_dataset *d, int64_t pass, int64_t elements);
// A number for the chain: its stages, their arguments as far as they decide what comes when, and
// the columns. An iterator is put back only where it came from.
uint64_t chi_dataset_signature(const choir_dataset *d);
// A place in the files of a source: where so many elements of a pass had been handed out. Of
// numbers only, so that a saved position can hold it (seek_index.h).
typedef struct {
	int64_t source; // of the chain's stages that have seek points
	int64_t elements;
	int64_t file, byte; // which of the source's files, and where in it the next record begins
	int64_t files; // by chi_seek_index_files: that file and those before it
	int64_t record; // its number in the file
	int64_t dropped, skipped; // before it
} chi_seek_point;
enum { CHI_MAX_SEEK_POINTS = 16 };
// Seek points close before where the chain's sources stand; how many there are. Threads: any, if
// d is not freed meanwhile.
size_t chi_dataset_seek_index(choir_dataset *d, chi_seek_point point[CHI_MAX_SEEK_POINTS]);
// Gives sources the seek points of another iterator of the same chain, before a seek. Those that
// are of other files are passed over.
choir_status chi_dataset_take_seek_index(choir_dataset *d, size_t n, const chi_seek_point point[]);
// Makes reads of d and all its sources, and of chains that these have open, give CHOIR_CANCELLED,
// also after a begin, which a stage may do on the thread that is to stop. Threads: any.
void chi_dataset_cancel(choir_dataset *d);
// Takes back one cancel, once nobody reads. What has met it needs a begin.
void chi_dataset_uncancel(choir_dataset *d);
// Whether there are shard stages with a hint in the chain.
bool chi_dataset_has_hint(const choir_dataset *d);
// Gives those this count and index, before anything is read. CHOIR_INVALID: a cache's file holds
// the share of another worker.
choir_status chi_dataset_shard_hints(choir_dataset *d, int64_t count, int64_t index);
// Leaves only every count-th of the files that the chain reads, from index on, to be called
// before anything is read. CHOIR_NOT_FOUND: it reads no files, or by a stage that hides them;
// CHOIR_INVALID: there are fewer files than count, or a cache's file holds the share of another
// worker. On failure it reads what it did before.
choir_status chi_dataset_shard_files(choir_dataset *d, int64_t count, int64_t index);
// Adds the names of those files, as far as they are known: those that the chain reads the names
// of are not.
choir_status chi_dataset_list_files(
		const choir_dataset *d, int64_t count, int64_t index, chi_glob *to);
// Adds the names of all files that sources of the chain read, whatever lies behind them.
choir_status chi_dataset_all_files(const choir_dataset *d, chi_glob *to);

// For sources whose examples already lie in memory, packed: NULL, or column i's examples
// first .. first+count-1 in place, so that no copy is needed. Valid until d is freed.
const void *chi_dataset_peek(choir_dataset *d, size_t column, int64_t first, int64_t count);
