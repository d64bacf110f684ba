// A dataset is a stream of elements on the host. This header has transforms; source.h has sources.
// An element has one component for each named column. Before choir_dataset_batch it is one
// example, after it a batch. A function that makes a dataset reads only headers of files, unless
// it says otherwise.
//
// Ownership: a transform takes ownership of its input dataset, even if it fails, so free only the
// last dataset of a chain. A transform of NULL returns NULL and keeps the thread's last failure,
// so check only the chain's last call. A chain has at most 2000 stages.
// Errors: the call that asks for an element returns failures of reading. The pass stays failed
// until the dataset is rewound.
// Threads: one at a time for each chain.
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

// Joins the columns of a and b, whose names differ. Both have single examples, or batches of one
// size. CHOIR_INVALID: the lengths differ (if one is unknown, reading fails at the shorter end).
choir_dataset *choir_dataset_zip(choir_dataset *a, choir_dataset *b);
// Gives the elements of a, then of b. Both have the same columns, and single examples or batches.
choir_dataset *choir_dataset_concatenate(choir_dataset *a, choir_dataset *b);
// Converts a column to f32 and multiplies it by scale. The product is computed in f32 for u8, bool
// and f32, and in f64 for i32, i64 and f64. CHOIR_UNSUPPORTED: another dtype.
choir_dataset *choir_dataset_to_float(choir_dataset *d, const char *column, double scale);
// Computes n means and population standard deviations of an f32 column. If n is an example's
// number of elements, mean[i] is element i's. If n is the size of the last axis, mean[i] is
// channel i's at all positions. NaN is left out; of NaN alone, both are 0. Reads d, which is
// finite and not empty, to its end, and rewinds it.
CHOIR_MUST_CHECK choir_status choir_dataset_moments(
		choir_dataset *d, const char *column, size_t n, float mean[], float deviation[]);
// Replaces each number x of an f32 column by (x - mean[i]) / deviation[i], with i as in
// choir_dataset_moments. A deviation of 0 counts as 1.
choir_dataset *choir_dataset_standardize(choir_dataset *d, const char *column, size_t n,
		const float mean[], const float deviation[]);
// Replaces NaN in an f32 column by value[i], with i as in choir_dataset_moments.
choir_dataset *choir_dataset_fill_nan(
		choir_dataset *d, const char *column, size_t n, const float value[]);
// Flattens a column: [28, 28] becomes [784], a scalar [1].
choir_dataset *choir_dataset_flatten(choir_dataset *d, const char *column);

// Random crops and mirroring.
typedef struct {
	size_t size;
	int64_t padding; // zero pixels added on each side before the crop
	int64_t height, width; // of the crop; 0: those of the examples
	bool flip; // mirror half of the examples, left to right
	uint64_t seed;
} choir_augment_options;
// Crops and mirrors images, [height, width] or [height, width, channels] of any dtype. The crop
// must fit into the padded image. Both depend only on the seed, the pass and the example's
// position in d. Place this stage before batch and after a shuffle, which needs no buffer if the
// source has random access.
choir_dataset *choir_dataset_augment_images(
		choir_dataset *d, const char *column, const choir_augment_options *o);

// Functions of the program
//
// in and out have one component for each column, in order. A transform of elements whose shape
// varies comes before batch (else CHOIR_UNSUPPORTED). A function's result depends only on the
// element.

// One column of an element.
typedef struct {
	void *data; // row-major, packed; NULL if empty
	choir_shape shape; // of this element; after batch it includes the batch axis
	choir_dtype dtype;
	void *internal; // Choir's
} choir_component;
// Sets the varying dimensions (first 0) of entry, a component of out, and points entry->data to
// new memory of this shape.
CHOIR_MUST_CHECK choir_status choir_component_resize(
		choir_component *entry, const choir_shape *shape);

// Computes out from in. If it fails, the element fails.
typedef choir_status choir_map_fn(const choir_component in[], choir_component out[], void *user);
typedef struct {
	size_t size;
	// The n columns of out. Shapes are of single examples, with CHOIR_UNKNOWN in varying
	// dimensions. NULL: the columns of in.
	size_t n;
	const choir_column *columns;
	int threads; // that call fn, including the reading thread; 0: 1
} choir_map_options;
// Applies fn to each element, in order, perhaps also to some that are never read. fn cannot change
// a batch's size.
choir_dataset *choir_dataset_map(
		choir_dataset *d, const choir_map_options *o, choir_map_fn *fn, void *user);
// Keeps the elements for which fn returns true.
typedef bool choir_filter_fn(const choir_component in[], void *user);
choir_dataset *choir_dataset_filter(choir_dataset *d, choir_filter_fn *fn, void *user);

// Makes a dataset of single examples from an element. interleave frees it after its last example.
typedef choir_dataset *choir_interleave_fn(const choir_component in[], void *user);
typedef struct {
	size_t size;
	// The columns of the datasets that fn makes, as in choir_map_options.
	size_t n;
	const choir_column *columns;
	int64_t cycle_length; // datasets that are read in turn; 0: 1
	int64_t block_length; // examples in a turn; 0: 1
	bool read_ahead; // each open dataset reads ahead, on its own thread
	bool files; // elements are names of files that fn opens; CHOIR_AUTO_SHARD_FILE divides them
} choir_interleave_options;
// Calls fn for elements of d, and interleaves the examples of the datasets that fn makes. When a
// dataset ends, a new one takes its turn. Shuffles in these datasets depend on d's pass.
choir_dataset *choir_dataset_interleave(
		choir_dataset *d, const choir_interleave_options *o, choir_interleave_fn *fn, void *user);
// Like choir_dataset_interleave, but reads one dataset after another. o sets neither cycle_length
// nor block_length.
choir_dataset *choir_dataset_flat_map(
		choir_dataset *d, const choir_interleave_options *o, choir_interleave_fn *fn, void *user);

// Keeps the elements of the first complete pass for later passes: in memory (path NULL), or in a
// file, which appears when that pass is complete. If the file exists, d is not read, so remove it
// after a change of the data. CHOIR_INVALID: the file is from a chain of other stages or
// arguments, or from another worker's share of the data.
choir_dataset *choir_dataset_cache(choir_dataset *d, const char *path);

// Order and batches
//
// Counts and indices are in elements.

// Keeps the first elements of d, 0 or more.
choir_dataset *choir_dataset_take(choir_dataset *d, int64_t elements);
// Leaves out the first elements of d.
choir_dataset *choir_dataset_skip(choir_dataset *d, int64_t elements);
// Keeps elements index, index + count, index + 2 count, ... CHOIR_INVALID: d has fewer than count
// elements, but is not empty (if their number is unknown, the first read fails). If both are
// CHOIR_SHARD_HINT, the policy CHOIR_AUTO_SHARD_HINT (input.h) sets them to the number of workers
// and this worker's index; other policies keep all elements.
enum { CHOIR_SHARD_HINT = -3 };
choir_dataset *choir_dataset_shard(choir_dataset *d, int64_t count, int64_t index);
// Shuffles d, in another order in each pass. Each element is drawn from a buffer of this size,
// where d's next element takes its place. CHOIR_ALL: all elements, so all orders are equally
// likely. The order depends only on seed, pass and buffer. The buffer needs no memory if d is a
// source with random access, also behind zip, concatenate, to_float, flatten, take, skip and
// shard.
choir_dataset *choir_dataset_shuffle(choir_dataset *d, int64_t buffer, uint64_t seed);
// Shuffles d in the same order in each pass.
choir_dataset *choir_dataset_shuffle_once(choir_dataset *d, int64_t buffer, uint64_t seed);
// Repeats d: a pass of the result is this number of passes over d. CHOIR_FOREVER: an endless pass.
choir_dataset *choir_dataset_repeat(choir_dataset *d, int64_t times);
// Makes batches of this number of examples, which have one shape. The last batch may be smaller;
// choir_dataset_batch_drop_remainder leaves it out.
choir_dataset *choir_dataset_batch(choir_dataset *d, int64_t size);
choir_dataset *choir_dataset_batch_drop_remainder(choir_dataset *d, int64_t size);
typedef struct {
	size_t size;
	// For each column, the shape to which examples are padded at their ends. CHOIR_UNKNOWN becomes
	// the batch's largest dimension. NULL: all are CHOIR_UNKNOWN.
	const choir_shape *padded_shapes;
	const double *padding_values; // for each column; NULL: zeros
	bool drop_remainder;
} choir_padded_batch_options;
// Makes batches of this number of examples, padded to one shape.
choir_dataset *choir_dataset_padded_batch(
		choir_dataset *d, int64_t size, const choir_padded_batch_options *o);
// Splits batches into examples.
choir_dataset *choir_dataset_unbatch(choir_dataset *d);
typedef struct {
	size_t size;
	int64_t length; // examples in a window; at least 1
	int64_t shift; // from the start of a window to the start of the next; 0: .length
	int64_t stride; // from one example of a window to the next; 0: 1
	bool drop_remainder; // drop windows that reach beyond the end
} choir_window_options;
// Makes windows of single examples, each an example [length, ...], or [CHOIR_UNKNOWN, ...] if
// shorter windows at the end are kept.
choir_dataset *choir_dataset_window(choir_dataset *d, const choir_window_options *o);
// Reads up to batches elements ahead on its own thread, from the first read until the dataset is
// freed. CHOIR_STATE: in the child of a fork, d was read before the fork.
choir_dataset *choir_dataset_prefetch(choir_dataset *d, int batches);

// Getters
size_t choir_dataset_columns(const choir_dataset *d);
// The i-th column, without data. Its shape is that of one example, with CHOIR_UNKNOWN in varying
// dimensions.
const choir_column *choir_dataset_column(const choir_dataset *d, size_t i);
// The size of the largest batch; 0: elements are single examples.
int64_t choir_dataset_batch_size(const choir_dataset *d);
// The number of elements in a pass. UNKNOWN: only a complete pass shows it.
enum { CHOIR_UNKNOWN_CARDINALITY = -1, CHOIR_INFINITE_CARDINALITY = -2 };
int64_t choir_dataset_cardinality(const choir_dataset *d);

// Frees the chain. First waits if a thread that reads ahead is in a function of the program.
void choir_dataset_free(choir_dataset *d);

CHOIR_C_END
