// Datasets: streams of elements on the host, and their transforms (source.h has the sources). An
// element has one component for each named column. Elements are single examples, or batches of
// examples after the transform batch. Before the first element is asked for, only headers of
// files are read.
//
// Ownership: a transform takes its source over, also when it fails. Freeing the last dataset of
// a chain frees the whole chain. A transform of NULL gives NULL and keeps the first failure, so
// one check of the whole chain is enough. A chain has at most 2000 stages in a row (else
// CHOIR_INVALID).
// Errors: a failure that appears only while reading (a damaged file, a function that fails,
// sources of different lengths) is a failure of the element that is asked for. The pass then
// stays failed until the dataset is rewound. CHOIR_NOT_FOUND: a column that does not exist.
// CHOIR_INVALID: impossible counts and sizes.
// Threads: one thread at a time may use a chain.
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
// The elements of a, then those of b. Both have the same columns. Both have single examples, or
// both have batches.
choir_dataset *choir_dataset_concatenate(choir_dataset *a, choir_dataset *b);
// Converts a column to f32 and multiplies each value by scale. The product is computed in f32
// from u8, bool and f32, and in f64 from i32, i64 and f64. CHOIR_UNSUPPORTED: another dtype.
choir_dataset *choir_dataset_to_float(choir_dataset *d, const char *column, double scale);
// Computes the mean and the population standard deviation of each of the n numbers that an
// example of an f32 column has. Reads d once and rewinds it. CHOIR_INVALID: an example does not
// have n numbers; d has no examples, or no end.
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
// These functions get whole elements. in and out have one component for each column, in the
// columns' order. If the shape of elements varies, functions are possible only before batch
// (else CHOIR_UNSUPPORTED). A function must give the same result for the same element, at any
// time and on any thread, and keep no state.

// One column of an element.
typedef struct {
	void *data; // row-major, packed; NULL if there are no values
	choir_shape shape; // of this element; after batch it includes the batch axis
	choir_dtype dtype;
	void *internal; // used by Choir only
} choir_component;
// Sets the shape of a component of out, if its column's shape varies, and gives data enough
// memory. The old values are lost. Before the first call, each dimension that varies is 0.
// CHOIR_INVALID: the column does not vary in that dimension.
CHOIR_MUST_CHECK choir_status choir_component_resize(
		choir_component *entry, const choir_shape *shape);

// Computes out from in. If it fails, so does the element; the text has the element's number in
// the pass.
typedef choir_status choir_map_fn(const choir_component in[], choir_component out[], void *user);
typedef struct {
	size_t size;
	// The n columns of out, with shapes of single examples and CHOIR_UNKNOWN in dimensions that
	// vary. NULL: the columns of in.
	size_t n;
	const choir_column *columns;
	int threads; // how many call fn at the same time, including the reading thread; 0: 1
} choir_map_options;
// Applies fn to each element. The order stays the same for any number of threads. fn may be
// called for elements that are never read, and is not called for elements that are skipped. fn
// cannot change the size of a batch.
choir_dataset *choir_dataset_map(
		choir_dataset *d, const choir_map_options *o, choir_map_fn *fn, void *user);
// Keeps the elements for which fn returns true.
typedef bool choir_filter_fn(const choir_component in[], void *user);
choir_dataset *choir_dataset_filter(choir_dataset *d, choir_filter_fn *fn, void *user);

// Makes a dataset of single examples from an element. The interleave stage takes the dataset
// over and frees it after its last example. NULL: a failure, from choir_fail or a constructor.
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
// ended, the next one takes its place at its next turn. Their shuffles use the number of d's
// pass, so each pass has another order.
choir_dataset *choir_dataset_interleave(
		choir_dataset *d, const choir_interleave_options *o, choir_interleave_fn *fn, void *user);
// Like choir_dataset_interleave, but one dataset after the other. o does not set cycle_length or
// block_length.
choir_dataset *choir_dataset_flat_map(
		choir_dataset *d, const choir_interleave_options *o, choir_interleave_fn *fn, void *user);

// Caches the elements of the first complete pass, in their order, for every later pass. If path
// is NULL they are in memory, else in a file, which appears when that pass has ended. If the
// file exists already, d's source is not read. If the source's data change, remove the file;
// Choir does not detect it. CHOIR_INVALID: d repeats for ever; the file was made after other
// stages, or by another worker that has its own part of the data (then each worker needs its own
// path). CHOIR_CORRUPT: the file is damaged.
choir_dataset *choir_dataset_cache(choir_dataset *d, const char *path);

// Order and batches
//
// These transforms count elements.

// The first elements of d, 0 or more; all if d has fewer.
choir_dataset *choir_dataset_take(choir_dataset *d, int64_t elements);
// All elements after the first ones.
choir_dataset *choir_dataset_skip(choir_dataset *d, int64_t elements);
// Elements index, index + count, index + 2 count, ... CHOIR_INVALID, for the first element of
// every shard: d has some elements, but fewer than count. If count and index are both
// CHOIR_SHARD_HINT, a distribution with the policy HINT (input.h) sets them to the number of
// workers and this worker's index. Without such a distribution the result is all elements.
enum { CHOIR_SHARD_HINT = -3 };
choir_dataset *choir_dataset_shard(choir_dataset *d, int64_t count, int64_t index);
// Shuffles, in another order in each pass. Each element is drawn from a buffer of this many
// elements, which is kept full. With a buffer as large as the dataset, or CHOIR_ALL, all orders
// are equally likely. The order depends only on seed, the number of the pass and buffer. Cost:
// the buffer's memory. No buffer is needed for data in memory, synthetic digits and small gzip
// files, also after zip, concatenate, to_float, flatten, take, skip and shard.
choir_dataset *choir_dataset_shuffle(choir_dataset *d, int64_t buffer, uint64_t seed);
// Shuffles, in the same order in each pass.
choir_dataset *choir_dataset_shuffle_once(choir_dataset *d, int64_t buffer, uint64_t seed);
// Repeats d for this number of passes, or CHOIR_FOREVER.
choir_dataset *choir_dataset_repeat(choir_dataset *d, int64_t times);
// Batches of size examples. drop_remainder drops a smaller batch at the end. CHOIR_INVALID: d
// has batches already; while reading, examples of one batch have different shapes.
choir_dataset *choir_dataset_batch(choir_dataset *d, int64_t size);
choir_dataset *choir_dataset_batch_drop_remainder(choir_dataset *d, int64_t size);
typedef struct {
	size_t size;
	// For each column, the shape to which examples are padded at their ends. A dimension of
	// CHOIR_UNKNOWN means the largest in the batch. A larger example is CHOIR_INVALID. NULL: all
	// are CHOIR_UNKNOWN.
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
// Windows of single examples. Each window is one example of shape [length, ...], or
// [CHOIR_UNKNOWN, ...] if shorter windows at the end are kept. d must not have batches.
choir_dataset *choir_dataset_window(choir_dataset *d, const choir_window_options *o);
// Reads up to batches elements ahead, on a thread that starts when the first element is asked
// for and ends when the dataset is freed. CHOIR_STATE: d was read before a fork, and this is the
// child.
choir_dataset *choir_dataset_prefetch(choir_dataset *d, int batches);

// Getters

size_t choir_dataset_columns(const choir_dataset *d);
// The i-th column. Its shape is that of one example, with CHOIR_UNKNOWN in dimensions that vary.
// Its data is NULL.
const choir_column *choir_dataset_column(const choir_dataset *d, size_t i);
// The largest number of examples in a batch. 0: elements are single examples.
int64_t choir_dataset_batch_size(const choir_dataset *d);
// The number of elements in a pass. UNKNOWN: it can be found only by reading.
enum { CHOIR_UNKNOWN_CARDINALITY = -1, CHOIR_INFINITE_CARDINALITY = -2 };
int64_t choir_dataset_cardinality(const choir_dataset *d);

// Frees the chain and all its sources. If prefetch is calling a function of the program, this
// waits until the function returns.
void choir_dataset_free(choir_dataset *d);

CHOIR_C_END
