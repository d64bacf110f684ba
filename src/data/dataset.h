// A stage writes blocks of examples into the reader's memory. With random access it reads examples
// by number, at the core's position; streams keep their own.
#pragma once

#include "base/atomic.h"
#include "base/status.h"
#include "choir/source.h"
#include "data/position.h"
#include "data/row_buffer.h"

// How sharding by files treats it.
typedef enum {
	CHI_FILES_THROUGH = 0, // as its sources; without any it has no files
	CHI_FILES_HERE, // reads d->files in turn
	CHI_FILES_BEFORE // its source's elements name files
} chi_files;

// range or read is set. column[i] is memory for examples, or NULL.
typedef struct {
	const char *name;
	// With d->random: examples first .. first+count-1, which exist.
	choir_status (*range)(choir_dataset *d, void *const column[], int64_t first, int64_t count);
	// Streams: 1 to want examples, or one batch.
	choir_status (*read)(choir_dataset *d, void *const column[], int64_t want, int64_t *got);
	// Starts pass d->pass, which alone decides the elements. Moves sources with chi_dataset_begin.
	choir_status (*rewind)(choir_dataset *d);
	const void *(*peek)(choir_dataset *d, size_t column, int64_t first, int64_t count);
	void (*free)(choir_dataset *d);
	bool calls; // a function of the program, which can observe the thread
	bool varies; // has ragged columns
	bool reorderable; // makes each example from one, and cannot fail
	// Right after rewind: skips elements, which exist. Moves sources by chi_dataset_pass_over.
	// NULL: they are read.
	choir_status (*seek)(choir_dataset *d, int64_t elements);
	bool blind; // seek misses the pass's end, or lost data
	bool gone; // data cannot be read twice
	uint64_t (*signature)(const choir_dataset *d);
	chi_files files;
	// As chi_dataset_shard_files. NULL: one file.
	choir_status (*shard_files)(choir_dataset *d, int64_t count, int64_t index);
	const char *(*path)(const choir_dataset *d, int64_t i);
	// For stores of elements: whose. CHOIR_INVALID: another share.
	choir_status (*share)(choir_dataset *d, int64_t count, int64_t index);
	struct chi_seek_index *(*seek_index)(choir_dataset *d);
	bool (*fits)(const choir_dataset *d, const chi_seek_point *point);
} chi_stage;

// The constructor sets these; then they are the core's.
struct choir_dataset {
	const chi_stage *stage;
	choir_dataset *from[2];
	int depth;
	chi_spec spec;
	size_t bytes[CHI_MAX_COLUMNS];
	int64_t elements;
	bool ragged;
	bool random;
	bool ended; // may come with the last examples
	bool failed;
	chi_error failure;
	int64_t position;
	int64_t pass;
	int64_t files;
	chi_glob *paths;
	struct chi_places *places;
	bool shuffles;
	bool hint;
	chi_atomic32 cancelled;
	choir_dataset *outer; // reads this chain without owning it
	chi_atomic64 dropped, skipped;
	chi_atomic64 delivered;
	chi_row_buffer rows; // the stage's, like memory; the core frees them
	void *memory;
	char *names;
};

// Limits recursion.
enum { CHI_MAX_STAGES = 2000 };
// NULL: too deep; both are freed.
choir_dataset *chi_dataset_add_source(choir_dataset *d, choir_dataset *from);

choir_status chi_paths_shard(choir_dataset *d, int64_t count, int64_t index);
const char *chi_paths_at(const choir_dataset *d, int64_t i);
choir_status chi_dataset_keep_failure(choir_dataset *d, choir_status status);
// A stage got examples before status: CHOIR_OK if got > 0, and the next read reports status.
choir_status chi_dataset_got(choir_dataset *d, choir_status status, int64_t got);
// Computes bytes. varies: allows unknown dimensions.
choir_status chi_columns_check(
		const char *what, bool varies, size_t n, const choir_column columns[], size_t bytes[]);
// size: of its struct, which begins with a choir_dataset.
void *chi_source_new(const chi_stage *stage, size_t size, size_t n, const choir_column columns[],
		int64_t examples);
// Like from, which it owns, also on failure.
void *chi_transform_new(const chi_stage *stage, size_t size, choir_dataset *from);
bool chi_dataset_set_columns(choir_dataset *d, size_t n, const choir_column columns[]);
// Not NULL; records it, unless a failure is recorded.
bool chi_dataset_given(const choir_dataset *d, const char *what);
void *chi_dataset_discard(choir_dataset *d); // frees d; NULL
void *chi_refuse(choir_dataset *d, choir_status status, const char *fmt, ...) CHOIR_PRINTF(3, 4);
// An index, or spec.n. The others report a missing column.
size_t chi_column_find(const choir_dataset *d, const char *name);
choir_status chi_no_column(const choir_dataset *d, const char *what, const char *name);
choir_dataset *chi_refuse_column(choir_dataset *d, const char *what, const char *name);

// Handles random access, cancelling, and persistent ends and failures.
choir_status chi_dataset_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got);
// Fewer only at the end. CHOIR_END: none.
choir_status chi_dataset_fill(choir_dataset *d, void *const column[], int64_t want, int64_t *got);
// *got: their number.
choir_status chi_dataset_drop(choir_dataset *d, int64_t elements, int64_t *got);
bool chi_dataset_is_cancelled(const choir_dataset *d);
// A cancel of outer, which lives as long, cancels d.
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
