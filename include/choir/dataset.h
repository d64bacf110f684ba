// Datasets: named columns on the host, and what can be done to them (source.h is where they
// come from). An element of a dataset is a set of columns: of one example, until batch makes it
// a batch of several. Nothing is read before the first element is asked for, apart from a
// file's header.
//
// Ownership: a transform takes its source over, also when it fails, and freeing the last dataset
// of a chain frees all of it. NULL flows through and keeps the first cause, so a chain is
// checked where it is used. Names of columns are copied. A chain has at most 2000 steps, one above
// the other (CHOIR_INVALID).
// Errors: constructors return NULL, and choir_error says why. What is found out only while
// reading (a damaged file, a function that fails, sources of different lengths) is an error of
// the element that is asked for; the pass then stays failed until the dataset is rewound. A
// column that does not exist is CHOIR_NOT_FOUND, and the text lists those that do. Counts and
// sizes that cannot work are CHOIR_INVALID.
// Threads: one at a time for a chain.
#pragma once

#include "tensor.h"

CHOIR_C_BEGIN

typedef struct choir_dataset choir_dataset;
typedef struct {
	const char *name;
	choir_dtype dtype;
	choir_shape shape; // of one example; CHOIR_SCALAR for a number
	const void *data; // memory dataset: all examples, row-major, packed
} choir_column;

// The columns of both side by side; no name may be in both, and both come in single examples or
// in batches of one size. Unequal lengths are CHOIR_INVALID with both counts: here where they
// are known, else when the shorter ends.
choir_dataset *choir_dataset_zip(choir_dataset *a, choir_dataset *b);
// b behind a. Their columns must be the same: names, dtypes, shapes; and both come in single
// examples or both in batches.
choir_dataset *choir_dataset_concatenate(choir_dataset *a, choir_dataset *b);
// Column becomes f32, every value times scale. The product is made in f32 from u8, bool and f32,
// in f64 from i32, i64 and f64. Other dtypes are CHOIR_UNSUPPORTED.
choir_dataset *choir_dataset_to_float(choir_dataset *d, const char *column, double scale);
// What the numbers of column are like, each place of an example by itself: their mean over a
// pass of d, and their standard deviation (of the examples, not an estimate for others). The
// column is f32 with n numbers in each example; d is read once and begins anew. CHOIR_INVALID:
// another n, no examples, a dataset without an end.
CHOIR_MUST_CHECK choir_status choir_dataset_moments(
		choir_dataset *d, const char *column, size_t n, float mean[], float deviation[]);
// The numbers of column, f32 with n of them in each example, less their mean and divided by
// their deviation, if that is not 0. Measured on the examples that are trained on, and applied
// to all.
choir_dataset *choir_dataset_standardize(choir_dataset *d, const char *column, size_t n,
		const float mean[], const float deviation[]);
// The examples of column lose their shape: [28, 28] becomes [784], a scalar [1].
choir_dataset *choir_dataset_flatten(choir_dataset *d, const char *column);

// Functions of the program. They see whole elements: single examples, or behind batch whole
// batches, one entry a column in the columns' order. An element whose shape varies can be seen
// only before batch (CHOIR_UNSUPPORTED behind it). Functions must give the same for the same
// element, whenever and on whichever thread they are called, and hold no state; user is borrowed
// until the dataset is freed.
typedef struct {
	void *data; // values, row-major, packed; NULL where there are none
	choir_shape shape; // of this element; behind batch with the batch axis
	choir_dtype dtype;
	void *room; // Choir's own
} choir_entry;
// For a function that writes an element: the entry of a column whose shape varies gets this shape,
// and data has room for it; what it held is lost. Such an entry begins with 0 in each dimension
// that varies. CHOIR_INVALID: the column's shape does not vary, or not in that dimension.
CHOIR_MUST_CHECK choir_status choir_entry_resize(choir_entry *entry, const choir_shape *shape);

// Writes out from in. A failure is one of the element, named by its number in the pass.
typedef choir_status choir_map_fn(const choir_entry in[], choir_entry out[], void *user);
typedef struct {
	size_t size;
	// What out's elements are: shapes of single examples, CHOIR_NONE where they vary; data is
	// ignored. NULL: as in.
	size_t n;
	const choir_column *columns;
	int threads; // that call fn at the same time, with the one that reads; 0: 1
} choir_map_options;
// Each element as fn makes it, in order, however many threads there are. fn may be called for
// elements that are never handed out, and is not called for those that are skipped. A batch
// keeps its number of examples. o may be NULL.
choir_dataset *choir_dataset_map(
		choir_dataset *d, const choir_map_options *o, choir_map_fn *fn, void *user);
// The elements for which fn gives true.
typedef bool choir_filter_fn(const choir_entry in[], void *user);
choir_dataset *choir_dataset_filter(choir_dataset *d, choir_filter_fn *fn, void *user);

// Makes a dataset of single examples from an element. NULL: it has failed, with choir_fail or in
// a constructor. It becomes the step's, which frees it at its end.
typedef choir_dataset *choir_dataset_of_fn(const choir_entry in[], void *user);
typedef struct {
	size_t size;
	// What the datasets' elements are, which is checked; shapes as there. NULL: as in.
	size_t n;
	const choir_column *columns;
	int64_t cycle; // so many datasets are read in turn; 0: 1
	int64_t block; // so many examples of one, before it is the next one's turn; 0: 1
	bool read_ahead; // each open dataset reads ahead on a thread of its own
	bool files; // fn opens the file that its element names: sharding by file deals out the names
} choir_interleave_options;
// The examples of the datasets that fn makes of d's examples, mixed in an order that depends on
// nothing but the datasets. One that ends is followed, at its next turn, by the next. Their passes
// are counted as d's are.
choir_dataset *choir_dataset_interleave(
		choir_dataset *d, const choir_interleave_options *o, choir_dataset_of_fn *fn, void *user);
// The same, one dataset behind the other; o without cycle and block.
choir_dataset *choir_dataset_flat_map(
		choir_dataset *d, const choir_interleave_options *o, choir_dataset_of_fn *fn, void *user);

// Keeps the elements of the first pass that is read to its end, and hands the same ones out in
// every later pass: a shuffle before it is in the same order each time. path NULL: in memory.
// Else in a file, which appears when that pass has ended, is used if it is there already, also by
// a later program, and then d's source is not read. CHOIR_INVALID: d repeats for ever; the file
// was made behind other steps; or it is of another worker, where each reads a part of its own (by
// file, or by a hint), for which a path of its own for each worker is needed. Which data were
// behind the steps is not looked at otherwise: remove the file when they change. CHOIR_CORRUPT,
// with the file and the byte: it is damaged.
choir_dataset *choir_dataset_cache(choir_dataset *d, const char *path);

// The rest count elements: single examples, or behind batch whole batches.
// The first so many, or all if there are fewer; 0 is legal.
choir_dataset *choir_dataset_take(choir_dataset *d, int64_t elements);
// All but the first so many.
choir_dataset *choir_dataset_skip(choir_dataset *d, int64_t elements);
// Elements index, index + count, index + 2 count, ... Each shard must get one: a source that has
// some but fewer than count is CHOIR_INVALID in every shard, before its first element; an empty
// one is just empty.
// Both CHOIR_SHARD_HINT: a distribution with the policy HINT puts in its workers and its worker,
// and without one it is all elements (input.h).
enum { CHOIR_SHARD_HINT = -3 };
choir_dataset *choir_dataset_shard(choir_dataset *d, int64_t count, int64_t index);
// Another order in each pass: a buffer of so many elements is kept full, and the next one is
// drawn from it; a buffer as large as the dataset, or CHOIR_NONE, gives every order the same
// chance. The order depends on seed, the number of the pass and buffer alone. Costs the memory of
// the buffer, except over memory, drawn digits and small gzip files (with any zip, concatenate,
// to_float, flatten, take, skip, shard between). A to_float, flatten or standardize in front of
// it, or in front of a take, skip or shard, is done behind it where examples are not larger
// before them.
choir_dataset *choir_dataset_shuffle(choir_dataset *d, int64_t buffer, uint64_t seed);
// The same order in each pass.
choir_dataset *choir_dataset_shuffle_once(choir_dataset *d, int64_t buffer, uint64_t seed);
// So many passes one after another; CHOIR_NONE: for ever.
choir_dataset *choir_dataset_repeat(choir_dataset *d, int64_t times);
// Batches of size examples; the last of a pass may be smaller, or is left out. A batch of batches
// is CHOIR_INVALID, and so are, when they are read, examples of different shapes in one batch.
choir_dataset *choir_dataset_batch(choir_dataset *d, int64_t size);
choir_dataset *choir_dataset_batch_drop_remainder(choir_dataset *d, int64_t size);
typedef struct {
	size_t size;
	// For each column the shape of an example to fill up to, behind its end; CHOIR_NONE: to the
	// largest of the batch. An example that is larger is CHOIR_INVALID. NULL: all CHOIR_NONE.
	const choir_shape *shapes;
	const double *values; // for each column what is filled up with; NULL: zeros
	bool drop_remainder;
} choir_padded_options;
// Batches of examples whose shape varies, made alike; other columns as by batch. o may be NULL.
choir_dataset *choir_dataset_padded_batch(
		choir_dataset *d, int64_t size, const choir_padded_options *o);
// Single examples again.
choir_dataset *choir_dataset_unbatch(choir_dataset *d);
typedef struct {
	size_t size;
	int64_t length; // examples of a window
	int64_t shift; // examples from a window's first to the next window's; 0: length
	int64_t stride; // examples from one of a window to its next; 0: 1
	bool drop_remainder; // a window that reaches over the end is left out
} choir_window_options;
// Windows of neighbouring single examples. Each is one example, of shape [length, ...], so batch
// comes behind it; with those at the end, that are shorter, kept, the shape is [CHOIR_NONE, ...].
choir_dataset *choir_dataset_window(choir_dataset *d, const choir_window_options *o);
// Reads up to so many elements ahead on a thread of its own, which starts with the first element
// and ends with the dataset. Order, end and errors are the same as without. In a child after a
// fork: CHOIR_STATE, if it was read from before.
choir_dataset *choir_dataset_prefetch(choir_dataset *d, int batches);

// What the elements are. A dataset that is NULL has no columns, no batch and no elements.
size_t choir_dataset_columns(const choir_dataset *d);
// The i-th column: its name, its dtype, and the shape of one example, without the batch axis, in
// which a dimension that differs from example to example is CHOIR_NONE. data is NULL. It is the
// dataset's, and lives as long. NULL: there is no i-th.
const choir_column *choir_dataset_column(const choir_dataset *d, size_t i);
// 0: elements are single examples; else they are batches of at most so many.
int64_t choir_dataset_batch_size(const choir_dataset *d);
// How many elements a pass has; CHOIR_NONE: that shows only by reading; CHOIR_ENDLESS.
enum { CHOIR_ENDLESS = -2 };
int64_t choir_dataset_cardinality(const choir_dataset *d);

// The chain and all its sources; NULL is fine. Waits for a function of the program that is being
// called by prefetch.
void choir_dataset_free(choir_dataset *d);

CHOIR_C_END
