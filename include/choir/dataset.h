// Datasets: streams of elements on the host, and their transforms (source.h has the sources). An
// element has one component for each named column. Elements are single examples, or batches of
// examples after the transform batch. Making a chain reads only headers of files, unless a
// source's comment says otherwise.
//
// Ownership: a transform takes ownership of its source, also after a failure. Freeing the last
// dataset of a chain frees the whole chain. A transform of NULL returns NULL and keeps the first
// failure, so one check of the chain is enough. A chain has at most 2000 stages in a row (else
// CHOIR_INVALID).
// Errors: the call that asks for an element returns failures of reading (a damaged file, a
// function that fails, sources of different lengths). The pass then stays failed until the
// dataset is rewound. CHOIR_NOT_FOUND: a column that does not exist. CHOIR_INVALID: impossible
// counts and sizes.
// Threads: one thread at a time may use a chain.
#pragma once

#include "tensor.h"

CHOIR_C_BEGIN

typedef struct choir_dataset choir_dataset;
// A named column of examples.
typedef struct {
	const char *name;
	choir_dtype dtype;
	choir_shape shape; // of one example; CHOIR_SCALAR for a number
	const void *data; // all examples of a memory dataset, row-major, packed
} choir_column;

// Gives elements with the columns of a and the columns of b. All names must differ. a and b both
// have single examples, or both have batches of one size. Unequal lengths are CHOIR_INVALID: at
// once if the lengths are known, else when the shorter dataset ends.
choir_dataset *choir_dataset_zip(choir_dataset *a, choir_dataset *b);
// Gives the elements of a, then the elements of b. a and b have the same columns. Both have
// single examples, or both have batches.
choir_dataset *choir_dataset_concatenate(choir_dataset *a, choir_dataset *b);
// Converts a column to f32 and multiplies each value by scale. The product is computed in f32
// from u8, bool and f32, and in f64 from i32, i64 and f64. CHOIR_UNSUPPORTED: another dtype.
choir_dataset *choir_dataset_to_float(choir_dataset *d, const char *column, double scale);
// Each example of the f32 column has n numbers. Computes each number's mean and population
// standard deviation over all examples. NaN is left out; both are 0 if there is nothing else.
// If the last axis of an example has n numbers, as the channels of images, number i is number i of
// that axis in all places. Reads d once and rewinds it. CHOIR_INVALID: neither an example nor its
// last axis has n numbers; d has no examples, or no end.
CHOIR_MUST_CHECK choir_status choir_dataset_moments(
		choir_dataset *d, const char *column, size_t n, float mean[], float deviation[]);
// For an f32 column of n numbers: number i becomes (number - mean[i]) / deviation[i]. A
// deviation of 0 counts as 1. If the last axis has n numbers, this holds in all places.
choir_dataset *choir_dataset_standardize(choir_dataset *d, const char *column, size_t n,
		const float mean[], const float deviation[]);
// For an f32 column of n numbers: if number i is NaN, it becomes value[i]. With the means of
// choir_dataset_moments, this imputes missing values (CHOIR_MISSING_NAN).
choir_dataset *choir_dataset_fill_nan(
		choir_dataset *d, const char *column, size_t n, const float value[]);
// Flattens the examples of a column: [28, 28] becomes [784], and a scalar becomes [1].
choir_dataset *choir_dataset_flatten(choir_dataset *d, const char *column);

typedef struct {
	size_t size;
	int64_t padding; // pixels of zeros that are added on each side before the crop
	int64_t height, width; // of the crop; 0: as in the examples
	bool flip; // half of the examples are mirrored, left to right
	uint64_t seed;
} choir_augment_options;
// Augments images, of shape [height, width] or [height, width, channels] and any dtype: cuts out
// a rectangle at a random place, and mirrors it or not. The random numbers depend only on the
// seed, the number of the pass and the position of the example in d. So a training computes the
// same bits on any number of workers. Place this transform behind a shuffle, which then needs no
// buffer if d has random access, and before batch. CHOIR_INVALID: a crop that is larger than the
// padded image; d has batches.
choir_dataset *choir_dataset_augment_images(
		choir_dataset *d, const char *column, const choir_augment_options *o);

// Functions of the program
//
// These functions get whole elements. in and out have one component for each column, in the
// columns' order. If the shape of elements varies, the transform must come before batch (else
// CHOIR_UNSUPPORTED). A function keeps no state: it must give the same result for the same
// element, at any time and on any thread.

// One column of an element.
typedef struct {
	void *data; // row-major, packed; NULL if there are no values
	choir_shape shape; // of this element; after batch it includes the batch axis
	choir_dtype dtype;
	void *internal; // used by Choir only
} choir_component;
// For a column whose shape varies: sets the shape of a component of out, and gives data enough
// memory. The old values are lost. Before the first call, each dimension that varies is 0.
// CHOIR_INVALID: shape changes a dimension that does not vary.
CHOIR_MUST_CHECK choir_status choir_component_resize(
		choir_component *entry, const choir_shape *shape);

// Computes out from in. If it fails, the element fails, and the text has the element's number in
// the pass.
typedef choir_status choir_map_fn(const choir_component in[], choir_component out[], void *user);
typedef struct {
	size_t size;
	// The n columns of out, with shapes of single examples and CHOIR_UNKNOWN in dimensions that
	// vary. NULL: the columns of in.
	size_t n;
	const choir_column *columns;
	int threads; // number of threads that call fn, including the reading thread; 0: 1
} choir_map_options;
// Applies fn to each element. The order stays the same for any number of threads. fn may be
// called for elements that are never read, but not for elements that a later stage skips. fn
// cannot change the size of a batch.
choir_dataset *choir_dataset_map(
		choir_dataset *d, const choir_map_options *o, choir_map_fn *fn, void *user);
// Keeps the elements for which fn returns true.
typedef bool choir_filter_fn(const choir_component in[], void *user);
choir_dataset *choir_dataset_filter(choir_dataset *d, choir_filter_fn *fn, void *user);

// Makes a dataset of single examples from an element. The interleave stage owns the dataset and
// frees it after its last example. NULL is a failure, with the text of choir_fail or of a
// constructor.
typedef choir_dataset *choir_interleave_fn(const choir_component in[], void *user);
typedef struct {
	size_t size;
	// The n columns of the datasets that fn makes, as in choir_map_options.
	size_t n;
	const choir_column *columns;
	int64_t cycle_length; // datasets that are read in turn; 0: 1
	int64_t block_length; // examples read from one dataset before the next dataset's turn; 0: 1
	bool read_ahead; // each open dataset reads ahead on its own thread
	bool files; // elements are file names that fn opens; sharding by file shards the names
} choir_interleave_options;
// Interleaves the examples of the datasets that fn makes from d's examples. When a dataset ends,
// a new dataset replaces it at its next turn. Shuffles in these datasets use the number of d's
// pass, so each pass has another order.
choir_dataset *choir_dataset_interleave(
		choir_dataset *d, const choir_interleave_options *o, choir_interleave_fn *fn, void *user);
// Like choir_dataset_interleave, but reads one dataset after another. CHOIR_INVALID: o sets
// cycle_length or block_length.
choir_dataset *choir_dataset_flat_map(
		choir_dataset *d, const choir_interleave_options *o, choir_interleave_fn *fn, void *user);

// Keeps the elements of the first complete pass for every later pass, in their order. If path is
// NULL, the cache is in memory. Otherwise it is a file, which appears when the first pass has
// ended. If the file exists already, d's source is not read. After a change of the source's
// data, remove the file: Choir does not detect it. CHOIR_INVALID: d repeats for ever; the file
// was made after other stages, or by a worker with another part of the data. Such workers need
// different paths. CHOIR_CORRUPT: the file is damaged.
choir_dataset *choir_dataset_cache(choir_dataset *d, const char *path);

// Order and batches
//
// Counts and indices are in elements.

// Keeps the first elements of d, or all if d has fewer. elements is 0 or more.
choir_dataset *choir_dataset_take(choir_dataset *d, int64_t elements);
// Leaves out the first elements of d.
choir_dataset *choir_dataset_skip(choir_dataset *d, int64_t elements);
// Keeps elements index, index + count, index + 2 count, ... CHOIR_INVALID: d has some elements,
// but fewer than count. If only reading shows this, every shard fails at its first read. If
// count and index are both CHOIR_SHARD_HINT, a distribution with the policy HINT (input.h) sets
// them to the number of workers and this worker's index. Without this policy all elements are
// kept.
enum { CHOIR_SHARD_HINT = -3 };
choir_dataset *choir_dataset_shard(choir_dataset *d, int64_t count, int64_t index);
// Shuffles d, in another order in each pass. Each element is drawn from a buffer of buffer
// elements, which is then filled again. With a buffer as large as the dataset, or CHOIR_ALL, all
// orders are equally likely. The order depends only on seed, the number of the pass and buffer.
// Cost: the buffer's memory. Data in memory, synthetic digits and small gzip files need no
// buffer, also after zip, concatenate, to_float, flatten, take, skip and shard.
choir_dataset *choir_dataset_shuffle(choir_dataset *d, int64_t buffer, uint64_t seed);
// Shuffles d, in the same order in each pass.
choir_dataset *choir_dataset_shuffle_once(choir_dataset *d, int64_t buffer, uint64_t seed);
// Reads d for times passes, or without end (CHOIR_FOREVER).
choir_dataset *choir_dataset_repeat(choir_dataset *d, int64_t times);
// Makes batches of size examples. drop_remainder drops a smaller batch at the end.
// CHOIR_INVALID: d has batches already; examples of one batch have different shapes (found while
// reading).
choir_dataset *choir_dataset_batch(choir_dataset *d, int64_t size);
choir_dataset *choir_dataset_batch_drop_remainder(choir_dataset *d, int64_t size);
typedef struct {
	size_t size;
	// For each column, the shape to which examples are padded at their ends. A dimension of
	// CHOIR_UNKNOWN means the largest in the batch. A larger example is CHOIR_INVALID. NULL: all
	// dimensions are CHOIR_UNKNOWN.
	const choir_shape *padded_shapes;
	const double *padding_values; // for each column; NULL: zeros
	bool drop_remainder;
} choir_padded_batch_options;
// Makes batches of examples whose shapes vary, and pads them to one shape.
choir_dataset *choir_dataset_padded_batch(
		choir_dataset *d, int64_t size, const choir_padded_batch_options *o);
choir_dataset *choir_dataset_unbatch(choir_dataset *d);
typedef struct {
	size_t size;
	int64_t length; // examples in a window; at least 1
	int64_t shift; // from the start of a window to the start of the next; 0: length
	int64_t stride; // from one example of a window to the next; 0: 1
	bool drop_remainder; // drops windows that reach beyond the end
} choir_window_options;
// Makes windows of single examples; d must not have batches. Each window is one example of shape
// [length, ...]. If shorter windows at the end are kept, the shape is [CHOIR_UNKNOWN, ...].
choir_dataset *choir_dataset_window(choir_dataset *d, const choir_window_options *o);
// Reads up to batches elements ahead, on a thread that starts when the first element is asked
// for and ends when the dataset is freed. CHOIR_STATE: a child process reads a d that was read
// before the fork.
choir_dataset *choir_dataset_prefetch(choir_dataset *d, int batches);

// Getters

// The number of columns of d.
size_t choir_dataset_columns(const choir_dataset *d);
// The i-th column. Its shape is that of one example, with CHOIR_UNKNOWN in dimensions that vary.
// Its data is NULL.
const choir_column *choir_dataset_column(const choir_dataset *d, size_t i);
// The largest number of examples in a batch. 0: elements are single examples.
int64_t choir_dataset_batch_size(const choir_dataset *d);
// The number of elements in a pass. UNKNOWN: only reading can find it.
enum { CHOIR_UNKNOWN_CARDINALITY = -1, CHOIR_INFINITE_CARDINALITY = -2 };
int64_t choir_dataset_cardinality(const choir_dataset *d);

// Frees the chain and all its sources. If prefetch is calling a function of the program, this
// waits until the function returns.
void choir_dataset_free(choir_dataset *d);

CHOIR_C_END
