// Datasets: streams of elements on the host, and their transforms (source.h has the sources). An
// element has one component for each named column. Elements are single examples; after batch
// they are batches of examples. Nothing is read before the first element is asked for, except a
// file's header.
//
// Ownership: a transform takes its source over, also when it fails. Freeing the last dataset of
// a chain frees the whole chain. A NULL dataset gives NULL and keeps the first failure, so a
// chain is checked where it is used. A chain has at most 2000 stages in a row (CHOIR_INVALID).
// Errors: a failure that appears only while reading (a damaged file, a function that fails,
// sources of different lengths) is a failure of the element that is asked for. The pass then
// stays failed until the dataset is rewound. CHOIR_NOT_FOUND: a column that does not exist.
// CHOIR_INVALID: impossible counts and sizes.
// Threads: one at a time for each chain.
#pragma once

#include "tensor.h"

CHOIR_C_BEGIN

typedef struct choir_dataset choir_dataset;
typedef struct {
	const char *name;
	choir_dtype dtype;
	choir_shape shape; // of one example; CHOIR_SCALAR for a number
	const void *data; // all examples of a memory dataset, row-major, packed
} choir_column;

// Puts the columns of a and b side by side. No name may be in both. Both have single examples,
// or both have batches of one size. Unequal lengths are CHOIR_INVALID: at once if the lengths
// are known, else when the shorter dataset ends.
choir_dataset *choir_dataset_zip(choir_dataset *a, choir_dataset *b);
// The elements of a, then those of b, which has the same columns. Both have single examples, or
// both have batches.
choir_dataset *choir_dataset_concatenate(choir_dataset *a, choir_dataset *b);
// Converts a column to f32 and multiplies each value by scale. The product is computed in f32
// from u8, bool and f32, and in f64 from i32, i64 and f64. CHOIR_UNSUPPORTED: another dtype.
choir_dataset *choir_dataset_to_float(choir_dataset *d, const char *column, double scale);
// Computes the mean and the population standard deviation of each of the n numbers that an
// example of an f32 column has. Reads d once and rewinds it. CHOIR_INVALID: another n; no
// examples; a dataset without an end.
CHOIR_MUST_CHECK choir_status choir_dataset_moments(
		choir_dataset *d, const char *column, size_t n, float mean[], float deviation[]);
// Subtracts the mean from each of the n numbers of an f32 column, and divides by the deviation
// if that is not 0.
choir_dataset *choir_dataset_standardize(choir_dataset *d, const char *column, size_t n,
		const float mean[], const float deviation[]);
// Flattens the examples of a column: [28, 28] becomes [784], and a scalar becomes [1].
choir_dataset *choir_dataset_flatten(choir_dataset *d, const char *column);

// Functions of the program
//
// They see whole elements: single examples, or whole batches after batch. in and out have one
// component for each column, in the columns' order. A function can see elements whose shape
// varies only before batch (CHOIR_UNSUPPORTED after it). It must give the same result for the
// same element, at any time and on any thread, and keep no state.

// One column of an element.
typedef struct {
	void *data; // row-major, packed; NULL if there are no values
	choir_shape shape; // of this element; after batch it includes the batch axis
	choir_dtype dtype;
	void *internal; // Choir's own
} choir_component;
// Sets the shape of a component that a function writes, for a column whose shape varies, and
// gives data enough memory; the old values are lost. At first each dimension that varies is 0.
// CHOIR_INVALID: the column does not vary in that dimension.
CHOIR_MUST_CHECK choir_status choir_component_resize(
		choir_component *entry, const choir_shape *shape);

// Computes out from in. A failure is the element's failure, with the element's number in the
// pass.
typedef choir_status choir_map_fn(const choir_component in[], choir_component out[], void *user);
typedef struct {
	size_t size;
	// The n columns of out: shapes of single examples, CHOIR_UNKNOWN in dimensions that vary.
	// NULL: as in.
	size_t n;
	const choir_column *columns;
	int threads; // that call fn at the same time, including the reading thread; 0: 1
} choir_map_options;
// Applies fn to each element. The order stays the same for any number of threads. fn may be
// called for elements that are never read, and is not called for elements that are skipped. A
// batch keeps its size.
choir_dataset *choir_dataset_map(
		choir_dataset *d, const choir_map_options *o, choir_map_fn *fn, void *user);
// Keeps the elements for which fn returns true.
typedef bool choir_filter_fn(const choir_component in[], void *user);
choir_dataset *choir_dataset_filter(choir_dataset *d, choir_filter_fn *fn, void *user);

// Makes a dataset of single examples from an element. The stage takes it over and frees it after
// its last example. NULL: a failure, from choir_fail or a constructor.
typedef choir_dataset *choir_interleave_fn(const choir_component in[], void *user);
typedef struct {
	size_t size;
	// The n columns of the datasets that fn makes, as in choir_map_options.
	size_t n;
	const choir_column *columns;
	int64_t cycle_length; // datasets that are read in turn; 0: 1
	int64_t block_length; // examples read from one dataset before the next one's turn; 0: 1
	bool read_ahead; // each open dataset reads ahead on its own thread
	bool files; // fn opens the file that its element names: sharding by file shards the names
} choir_interleave_options;
// Interleaves the examples of the datasets that fn makes from d's examples. When a dataset has
// ended, the next one takes its place at its next turn. The number of d's pass is also theirs,
// so their shuffles change with it.
choir_dataset *choir_dataset_interleave(
		choir_dataset *d, const choir_interleave_options *o, choir_interleave_fn *fn, void *user);
// Like interleave, but one dataset after the other. o has no cycle and no block.
choir_dataset *choir_dataset_flat_map(
		choir_dataset *d, const choir_interleave_options *o, choir_interleave_fn *fn, void *user);

// Caches the elements of the first complete pass for every later pass, also their order. path
// NULL: in memory. Otherwise in a file, which appears when that pass has ended. If the file
// exists already, d's source is not read. A change of the source's data is not detected: remove
// the file then. CHOIR_INVALID: d repeats for ever; the file was made after other stages, or by
// another worker with its own part of the data (each worker then needs its own path).
// CHOIR_CORRUPT: the file is damaged.
choir_dataset *choir_dataset_cache(choir_dataset *d, const char *path);

// Order and batches
//
// These count elements: single examples, or whole batches after batch.

// The first elements of d, 0 or more; all if d has fewer.
choir_dataset *choir_dataset_take(choir_dataset *d, int64_t elements);
// All elements after the first ones.
choir_dataset *choir_dataset_skip(choir_dataset *d, int64_t elements);
// Elements index, index + count, index + 2 count, ... A source that has some elements but fewer
// than count is CHOIR_INVALID in every shard, before its first element. If count and index are
// both CHOIR_SHARD_HINT, a distribution with the policy HINT (input.h) sets them to its number
// of workers and its worker. Without such a distribution the result is all elements.
enum { CHOIR_SHARD_HINT = -3 };
choir_dataset *choir_dataset_shard(choir_dataset *d, int64_t count, int64_t index);
// Shuffles, in another order in each pass: draws each element from a buffer, which is kept full.
// With a buffer as large as the dataset, or CHOIR_ALL, all orders are equally likely. The order
// depends only on seed, the number of the pass and buffer. Cost: the memory of the buffer. It
// needs none over data in memory, synthetic digits and small gzip files, also with zip,
// concatenate, to_float, flatten, take, skip and shard between.
choir_dataset *choir_dataset_shuffle(choir_dataset *d, int64_t buffer, uint64_t seed);
// Shuffles, in the same order in each pass.
choir_dataset *choir_dataset_shuffle_once(choir_dataset *d, int64_t buffer, uint64_t seed);
// Repeats d: times passes, or CHOIR_FOREVER.
choir_dataset *choir_dataset_repeat(choir_dataset *d, int64_t times);
// Batches of size examples; drop_remainder drops a smaller one at the end. CHOIR_INVALID: d has
// batches already; or, while reading, examples of different shapes in one batch.
choir_dataset *choir_dataset_batch(choir_dataset *d, int64_t size);
choir_dataset *choir_dataset_batch_drop_remainder(choir_dataset *d, int64_t size);
typedef struct {
	size_t size;
	// For each column, the shape to which examples are padded at their ends; CHOIR_UNKNOWN: the
	// largest of the batch. A larger example is CHOIR_INVALID. NULL: all CHOIR_UNKNOWN.
	const choir_shape *padded_shapes;
	const double *padding_values; // for each column; NULL: zeros
	bool drop_remainder;
} choir_padded_batch_options;
// Batches of examples whose shape varies, padded to one shape.
choir_dataset *choir_dataset_padded_batch(
		choir_dataset *d, int64_t size, const choir_padded_batch_options *o);
choir_dataset *choir_dataset_unbatch(choir_dataset *d);
typedef struct {
	size_t size;
	int64_t length; // examples in a window; at least 1
	int64_t shift; // from the start of a window to that of the next; 0: length
	int64_t stride; // from one example of a window to the next; 0: 1
	bool drop_remainder; // drops windows that reach beyond the end
} choir_window_options;
// Windows of single examples. Each is one example, of shape [length, ...], or [CHOIR_UNKNOWN,
// ...] if shorter windows at the end are kept; batch comes after window.
choir_dataset *choir_dataset_window(choir_dataset *d, const choir_window_options *o);
// Reads up to batches elements ahead, on a thread that starts with the first element and ends
// with the dataset. CHOIR_STATE: in the child of a fork, if d was read before it.
choir_dataset *choir_dataset_prefetch(choir_dataset *d, int batches);

// Getters

size_t choir_dataset_columns(const choir_dataset *d);
// The i-th column, with the shape of one example without the batch axis, CHOIR_UNKNOWN in
// dimensions that vary. data is NULL.
const choir_column *choir_dataset_column(const choir_dataset *d, size_t i);
// The largest number of examples in a batch. 0: elements are single examples.
int64_t choir_dataset_batch_size(const choir_dataset *d);
// The number of elements in a pass. UNKNOWN: until it is read.
enum { CHOIR_UNKNOWN_CARDINALITY = -1, CHOIR_INFINITE_CARDINALITY = -2 };
int64_t choir_dataset_cardinality(const choir_dataset *d);

// Frees the chain and all its sources. If prefetch is calling a function of the program, it
// waits for that call.
void choir_dataset_free(choir_dataset *d);

CHOIR_C_END
