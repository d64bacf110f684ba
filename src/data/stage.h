// One stage of a chain: a source or a transform. A stage writes blocks of examples straight into
// the final reader's memory. With random access examples are read by number; the core keeps the
// position, and a shuffle needs no buffer. All other stages are streams with their own positions.
#pragma once

#include "base/atomic.h"
#include "base/status.h"
#include "choir/source.h"
#include "data/position.h"
#include "data/rows.h"

// How sharding by files treats a stage.
typedef enum {
	CHI_FILES_NONE = 0, // no files, or its elements depend on more than files
	CHI_FILES_THROUGH, // all its sources are sharded
	CHI_FILES_HERE, // a source of d->files files, one after another
	CHI_FILES_BEFORE // each element of its source names a file
} chi_files;

// The operations of a stage, called by the core only. The first six are never NULL; chi_no_
// functions stand for what a stage cannot do. column[i] has memory for the examples of column i.
// NULL: not wanted. Reading with only NULL skips.
typedef struct {
	const char *name; // for messages, e.g. "batch"
	// With d->random: reads the examples first .. first+count-1, which exist.
	choir_status (*range)(choir_dataset *d, void *const column[], int64_t first, int64_t count);
	// For streams: reads 1 to want examples, or one batch (want is at least spec.batch).
	choir_status (*read)(choir_dataset *d, void *const column[], int64_t want, int64_t *got);
	// Moves to the start of pass d->pass, which alone decides the elements. Moves the sources with
	// chi_dataset_begin.
	choir_status (*rewind)(choir_dataset *d);
	const void *(*peek)(choir_dataset *d, size_t column, int64_t first, int64_t count);
	void (*free)(choir_dataset *d); // its own members, before its sources
	// The rest is optional.
	bool calls; // calls functions of the program, which can observe the thread
	bool varies; // a source whose columns may have ragged values
	bool reorderable; // makes each example from one alone, and cannot fail
	// For streams, right after rewind: passes over elements, which exist. Moves the sources with
	// chi_dataset_pass_over. NULL: the core reads the elements.
	choir_status (*seek)(choir_dataset *d, int64_t elements);
	bool blind; // seek does not notice the end of a pass, or lost data
	bool gone; // data cannot be read twice
	// Hashes the arguments that decide the order of elements. NULL: none.
	uint64_t (*signature)(const choir_dataset *d);
	chi_files files;
	// CHI_FILES_HERE: keeps every count-th file from index on, before the first read.
	choir_status (*shard_files)(choir_dataset *d, int64_t count, int64_t index);
	// NULL: not needed for a single file.
	const char *(*path)(const choir_dataset *d, int64_t i);
	// Tells a stage that stores elements whose share they are, before the first read.
	// CHOIR_INVALID: the store holds another.
	choir_status (*share)(choir_dataset *d, int64_t count, int64_t index);
	// For repeat and sources with seek points: the index, and whether a point fits.
	struct chi_seek_index *(*seek_index)(choir_dataset *d);
	bool (*fits)(const choir_dataset *d, const chi_seek_point *point);
} chi_stage;

// The base of every stage. Constructors set fields; afterwards they belong to the core.
struct choir_dataset {
	const chi_stage *stage;
	choir_dataset *from[2]; // owned
	int depth; // stages on the longest path below it
	chi_spec spec;
	size_t bytes[CHI_MAX_COLUMNS]; // of one example, or of its chi_ragged_value
	int64_t elements; // of a pass: examples, or batches; CHOIR_UNKNOWN_CARDINALITY
	bool ragged; // a short batch may come before others
	bool random;
	bool ended; // this pass; may be set with its last examples
	bool failed;
	chi_error failure;
	int64_t position; // with random access
	int64_t pass;
	int64_t files;
	bool shuffles;
	bool hint; // a shard stage whose count and index a distribution sets
	chi_atomic32 cancelled; // number of cancels
	choir_dataset *outer; // reads this chain without owning it; NULL: none
	chi_atomic64 dropped, skipped; // of a source, this pass: rows without a value; bad rows
	chi_atomic64 delivered; // of a source with seek points, this pass
	char *names;
};

// A deeper chain could overflow the stack, since stages call those below them.
enum { CHI_MAX_STAGES = 2000 };
// Sets the second source of d. NULL: too deep, and both were freed.
choir_dataset *chi_dataset_add_source(choir_dataset *d, choir_dataset *from);

choir_status chi_no_range(choir_dataset *d, void *const column[], int64_t first, int64_t count);
choir_status chi_no_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got);
choir_status chi_no_rewind(choir_dataset *d);
const void *chi_no_peek(choir_dataset *d, size_t column, int64_t first, int64_t count);
void chi_no_free(choir_dataset *d);
// Records a failure that repeats until the rewind.
choir_status chi_dataset_keep_failure(choir_dataset *d, choir_status status);
// Gives the result of a stage that got examples before status. It is CHOIR_OK if there are any;
// then the next read reports status.
choir_status chi_dataset_got(choir_dataset *d, choir_status status, int64_t got);
// Checks columns and computes bytes per example. varies: allows unknown dimensions.
choir_status chi_columns_check(
		const char *what, bool varies, size_t n, const choir_column columns[], size_t bytes[]);
// Makes a source and copies its columns. size: of the stage's struct, with a choir_dataset at its
// beginning.
void *chi_source_new(const chi_stage *stage, size_t size, size_t n, const choir_column columns[],
		int64_t examples);
// Makes a transform like from, for the constructor to change. Owns from, also on failure.
void *chi_transform_new(const chi_stage *stage, size_t size, choir_dataset *from);
// Replaces the columns of a transform; they may vary. False: recorded.
bool chi_dataset_set_columns(choir_dataset *d, size_t n, const choir_column columns[]);
// Checks that d is not NULL. Otherwise records "what: the dataset is NULL", unless another failure
// is recorded.
bool chi_dataset_given(const choir_dataset *d, const char *what);
choir_dataset *chi_refuse(choir_dataset *d, choir_status status, const char *fmt, ...)
		CHOIR_PRINTF(3, 4);
// chi_column_find gives a column's index, or spec.n. The others report a missing column, with the
// known names.
size_t chi_column_find(const choir_dataset *d, const char *name);
choir_status chi_no_column(const choir_dataset *d, const char *what, const char *name);
choir_dataset *chi_refuse_column(choir_dataset *d, const char *what, const char *name);

// Reads from a stage and handles persistent ends and failures, random access, cancelling.
choir_status chi_dataset_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got);
// Reads want single examples. Fewer only at the end; CHOIR_END instead of none.
choir_status chi_dataset_fill(choir_dataset *d, void *const column[], int64_t want, int64_t *got);
// Skips up to elements elements and gives their number.
choir_status chi_dataset_drop(choir_dataset *d, int64_t elements, int64_t *got);
bool chi_dataset_is_cancelled(const choir_dataset *d);
// Makes a cancel of outer cancel d too. outer lives as long as d.
void chi_dataset_set_outer(choir_dataset *d, choir_dataset *outer);
static inline int64_t chi_dataset_unit(const choir_dataset *d)
{
	return d->spec.batch ? d->spec.batch : 1;
}

static inline bool chi_dataset_has_short_batch(const choir_dataset *d)
{
	if (!d->spec.batch)
		return false;
	return !d->spec.full &&
			(d->spec.examples == CHOIR_UNKNOWN_CARDINALITY ||
					d->spec.examples % d->spec.batch != 0);
}
