// Datasets: streams of elements on the host, and their transforms (source.h has the sources). An
// element has one component for each named column. It is an example, or a batch after the
// transform batch. Making a chain reads only headers of files, unless a comment says otherwise.
//
// Ownership: a transform takes ownership of its source, also after a failure, so freeing the last
// dataset frees the chain. A transform of NULL returns NULL and keeps the first failure, so one
// check is enough. A chain has at most 2000 stages.
// Errors: the call that asks for an element returns failures of reading. The pass stays failed
// until the dataset is rewound. CHOIR_NOT_FOUND: a column that does not exist.
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

// Joins the columns of a and b, which have different names. Both have single examples, or batches
// of one size. Different lengths are CHOIR_INVALID, perhaps when the shorter one ends.
choir_dataset *choir_dataset_zip(choir_dataset *a, choir_dataset *b);
// The elements of a, then those of b, of the same columns: single examples, or batches.
choir_dataset *choir_dataset_concatenate(choir_dataset *a, choir_dataset *b);
// Converts a column to f32, multiplied by scale: computed in f32 from u8, bool and f32, and in f64
// from i32, i64 and f64. CHOIR_UNSUPPORTED: another dtype.
choir_dataset *choir_dataset_to_float(choir_dataset *d, const char *column, double scale);
// Computes the mean and the population standard deviation of each of the n numbers of an f32
// column's examples. NaN is left out; without anything else both are 0. If only the last axis has
// n numbers, as the channels of images, number i is that of the axis in all places. Reads d, which
// has examples and an end, and rewinds it.
CHOIR_MUST_CHECK choir_status choir_dataset_moments(
		choir_dataset *d, const char *column, size_t n, float mean[], float deviation[]);
// Number i of an f32 column becomes (number - mean[i]) / deviation[i], as choir_dataset_moments
// counts. A deviation of 0 counts as 1.
choir_dataset *choir_dataset_standardize(choir_dataset *d, const char *column, size_t n,
		const float mean[], const float deviation[]);
// Replaces NaN in an f32 column: number i becomes value[i], for example choir_dataset_moments'
// mean.
choir_dataset *choir_dataset_fill_nan(
		choir_dataset *d, const char *column, size_t n, const float value[]);
// [28, 28] becomes [784], and a scalar [1].
choir_dataset *choir_dataset_flatten(choir_dataset *d, const char *column);

// Random crops and mirroring.
typedef struct {
	size_t size;
	int64_t padding; // pixels of zeros that are added on each side before the crop
	int64_t height, width; // of the crop; 0: as in the examples
	bool flip; // half of the examples are mirrored, left to right
	uint64_t seed;
} choir_augment_options;
// Crops and mirrors images, [height, width] or [height, width, channels] of any dtype. The numbers
// depend only on the seed, the pass and the example's position in d. Place it before batch and
// after a shuffle, which then perhaps needs no buffer. The crop fits into the padded image.
choir_dataset *choir_dataset_augment_images(
		choir_dataset *d, const char *column, const choir_augment_options *o);

// Functions of the program
//
// in and out have one component for each column, in order. If the shape of elements varies, the
// transform must come before batch (else CHOIR_UNSUPPORTED). A function gives the same result for
// the same element, at any time and on any thread.

// One column of an element.
typedef struct {
	void *data; // row-major, packed; NULL if empty
	choir_shape shape; // of this element; after batch it includes the batch axis
	choir_dtype dtype;
	void *internal; // Choir's
} choir_component;
// Sets the shape of a component of out in dimensions that vary (0 before), and gives data the
// memory. Old values are lost.
CHOIR_MUST_CHECK choir_status choir_component_resize(
		choir_component *entry, const choir_shape *shape);

// Computes out from in. A failure fails the element.
typedef choir_status choir_map_fn(const choir_component in[], choir_component out[], void *user);
typedef struct {
	size_t size;
	// The n columns of out, with shapes of single examples and CHOIR_UNKNOWN in dimensions that
	// vary. NULL: those of in.
	size_t n;
	const choir_column *columns;
	int threads; // threads that call fn, including the reading thread; 0: 1
} choir_map_options;
// Applies fn to each element, in the same order for any number of threads. fn may be called for
// elements that are never read. It cannot change the size of a batch.
choir_dataset *choir_dataset_map(
		choir_dataset *d, const choir_map_options *o, choir_map_fn *fn, void *user);
// Keeps the elements for which fn returns true.
typedef bool choir_filter_fn(const choir_component in[], void *user);
choir_dataset *choir_dataset_filter(choir_dataset *d, choir_filter_fn *fn, void *user);

// Makes a dataset of single examples from an element; interleave frees it after its last example.
typedef choir_dataset *choir_interleave_fn(const choir_component in[], void *user);
typedef struct {
	size_t size;
	// As in choir_map_options, for the datasets that fn makes.
	size_t n;
	const choir_column *columns;
	int64_t cycle_length; // datasets read in turn; 0: 1
	int64_t block_length; // examples of a turn; 0: 1
	bool read_ahead; // each open dataset reads ahead on its own thread
	bool files; // elements are file names that fn opens; sharding by file shards the names
} choir_interleave_options;
// Interleaves the examples of the datasets that fn makes from d's. When one ends, a new one
// replaces it at its next turn. Shuffles in them use the number of d's pass.
choir_dataset *choir_dataset_interleave(
		choir_dataset *d, const choir_interleave_options *o, choir_interleave_fn *fn, void *user);
// Reads one dataset after another, without cycle_length and block_length.
choir_dataset *choir_dataset_flat_map(
		choir_dataset *d, const choir_interleave_options *o, choir_interleave_fn *fn, void *user);

// Keeps the elements of the first complete pass for later ones: in memory, or in the file path,
// which appears at its end. If the file exists, d's source is not read: remove the file after a
// change of the data. CHOIR_INVALID: the file was made after other stages, or from another part of
// the data.
choir_dataset *choir_dataset_cache(choir_dataset *d, const char *path);

// Order and batches
//
// Counts and indices are in elements.

// The first elements (0 or more) of d.
choir_dataset *choir_dataset_take(choir_dataset *d, int64_t elements);
// d without its first elements.
choir_dataset *choir_dataset_skip(choir_dataset *d, int64_t elements);
// Keeps elements index, index + count, index + 2 count, ... CHOIR_INVALID: d has elements, but
// fewer than count; perhaps at the first read. If both are CHOIR_SHARD_HINT, a distribution with
// the policy HINT (input.h) sets them to the number of workers and this worker's index; else all
// elements are kept.
enum { CHOIR_SHARD_HINT = -3 };
choir_dataset *choir_dataset_shard(choir_dataset *d, int64_t count, int64_t index);
// Shuffles d, in another order in each pass: each element is drawn from a buffer, which is then
// filled again; with CHOIR_ALL all orders are equally likely. The order depends only on seed, pass
// and buffer. Sources with random access need no memory for it, also after zip, concatenate,
// to_float, flatten, take, skip and shard.
choir_dataset *choir_dataset_shuffle(choir_dataset *d, int64_t buffer, uint64_t seed);
// The same order in each pass.
choir_dataset *choir_dataset_shuffle_once(choir_dataset *d, int64_t buffer, uint64_t seed);
// Reads d for times passes (CHOIR_FOREVER: without end).
choir_dataset *choir_dataset_repeat(choir_dataset *d, int64_t times);
// Makes batches of size examples of one shape, the last one perhaps smaller or dropped.
choir_dataset *choir_dataset_batch(choir_dataset *d, int64_t size);
choir_dataset *choir_dataset_batch_drop_remainder(choir_dataset *d, int64_t size);
typedef struct {
	size_t size;
	// For each column, the shape to which examples are padded at their ends; CHOIR_UNKNOWN: the
	// largest in the batch. NULL: all are CHOIR_UNKNOWN.
	const choir_shape *padded_shapes;
	const double *padding_values; // for each column; NULL: zeros
	bool drop_remainder;
} choir_padded_batch_options;
// Pads examples to one shape.
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
// Makes windows of single examples; each is one example of shape [length, ...], or [CHOIR_UNKNOWN,
// ...] if shorter windows at the end are kept.
choir_dataset *choir_dataset_window(choir_dataset *d, const choir_window_options *o);
// Reads up to batches elements ahead, on a thread from the first read to the free. CHOIR_STATE: it
// was read before a fork.
choir_dataset *choir_dataset_prefetch(choir_dataset *d, int batches);

// Getters

// The number of columns.
size_t choir_dataset_columns(const choir_dataset *d);
// Its shape is that of one example, with CHOIR_UNKNOWN in dimensions that vary; data is NULL.
const choir_column *choir_dataset_column(const choir_dataset *d, size_t i);
// The largest batch. 0: single examples.
int64_t choir_dataset_batch_size(const choir_dataset *d);
// Elements in a pass. UNKNOWN: only reading can find it.
enum { CHOIR_UNKNOWN_CARDINALITY = -1, CHOIR_INFINITE_CARDINALITY = -2 };
int64_t choir_dataset_cardinality(const choir_dataset *d);

// Frees the chain, after a function of the program that prefetch is calling has returned.
void choir_dataset_free(choir_dataset *d);

CHOIR_C_END
