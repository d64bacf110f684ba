// Datasets: named columns on the host, and what can be done to them (source.h is where they come
// from). An element of a dataset is a set of columns: of one example, until batch makes it a batch
// of several. Nothing is read before the first element is asked for, apart from a file's header.
//
// Ownership: a transform takes its source over, also when it fails, and freeing the last dataset
// of a chain frees all of it. NULL flows through and keeps the first cause, so a chain is
// checked where it is used. Names of columns are copied.
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
// Column becomes f32, every value times scale. The product is made in f32 from u8, bool and f32,
// in f64 from i32, i64 and f64. Other dtypes are CHOIR_UNSUPPORTED.
choir_dataset *choir_dataset_to_float(choir_dataset *d, const char *column, double scale);
// The examples of column lose their shape: [28, 28] becomes [784], a scalar [1].
choir_dataset *choir_dataset_flatten(choir_dataset *d, const char *column);

// The rest count elements: single examples, or behind batch whole batches.
// The first so many, or all if there are fewer; 0 is legal.
choir_dataset *choir_dataset_take(choir_dataset *d, int64_t elements);
// All but the first so many.
choir_dataset *choir_dataset_skip(choir_dataset *d, int64_t elements);
// Elements index, index + count, index + 2 count, ... Each shard must get one: a source that has
// some but fewer than count is CHOIR_INVALID in every shard; an empty one is just empty.
choir_dataset *choir_dataset_shard(choir_dataset *d, int64_t count, int64_t index);
// Another order in each pass: a buffer of so many elements is kept full, and the next one is
// drawn from it; a buffer as large as the dataset gives every order the same chance. The order
// depends on seed, the number of the pass and buffer alone. Costs the memory of the buffer,
// except over memory, drawn digits and small gzip files (with any zip, to_float, flatten, take,
// skip, shard between).
choir_dataset *choir_dataset_shuffle(choir_dataset *d, int64_t buffer, uint64_t seed);
// So many passes one after another; CHOIR_NONE: for ever.
choir_dataset *choir_dataset_repeat(choir_dataset *d, int64_t times);
// Batches of size examples; the last of a pass may be smaller. A batch of batches is
// CHOIR_INVALID.
choir_dataset *choir_dataset_batch(choir_dataset *d, int64_t size);
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
