// One stage of a chain: a source or a transform. Stages pass on blocks of examples and write
// straight into the memory of the reader at the end, so a block of a file reaches its batch in
// one copy. There are two ways to read. Where every example can be had by its number (memory,
// drawn digits, maps of those) a stage has random access: the core keeps the position, and a
// shuffle needs no buffer. Everything else is a stream: a stage keeps its own position.
#pragma once

#include "base/atomic.h"
#include "base/status.h"
#include "choir/source.h"
#include "data/position.h"
#include "data/rows.h"

// How a distribution by files goes through a stage to what reads files.
typedef enum {
	CHI_FILES_NONE = 0, // it reads no files, or what it yields is not a matter of its files alone
	CHI_FILES_THROUGH, // all its sources are sharded
	CHI_FILES_HERE, // a source that reads d->files files, one after another
	CHI_FILES_BEFORE // each element of its source becomes the content of a file
} chi_files;

// What a stage can do. The first six slots are never NULL: the chi_no_ functions below stand for
// what a stage cannot do. Only the core (chi_dataset_read and others) calls them. column[i] has
// room for the examples of column i (memory, or ragged values where the column varies) or is
// NULL: not wanted. Reading with all of them NULL skips examples.
typedef struct {
	const char *name; // "batch", the subject of messages
	// Random access, where d->random: exactly the examples first .. first+count-1, which exist.
	choir_status (*range)(choir_dataset *d, void *const column[], int64_t first, int64_t count);
	// A stream, elsewhere: between 1 and want examples, in *got, or one batch (want is at least
	// spec.batch).
	choir_status (*read)(choir_dataset *d, void *const column[], int64_t want, int64_t *got);
	// To the start of the pass d->pass, which alone decides what comes. It brings its sources
	// there with chi_dataset_begin.
	choir_status (*rewind)(choir_dataset *d);
	const void *(*peek)(choir_dataset *d, size_t column, int64_t first, int64_t count);
	void (*free)(choir_dataset *d); // what the stage holds itself, before its sources are freed
	// The others may be left out.
	bool calls; // functions of the program, which see the thread that reads
	bool varies; // a source whose columns may have dimensions CHOIR_NONE: it writes ragged values
	bool reorderable; // it makes each example of one and of nothing else, and cannot fail at that
	// Of a stream, right after rewind: passes over so many elements, which this pass has. It
	// moves its sources with chi_dataset_pass_over. NULL: the core reads them.
	choir_status (*seek)(choir_dataset *d, int64_t elements);
	bool blind; // seek does not notice the end of a pass, or what was read is gone
	bool gone; // what was read cannot be read again: there is no place to go back to
	// A hash of what decides which elements come when: seeds, counts. NULL: only the name does.
	uint64_t (*signature)(const choir_dataset *d);
	chi_files files;
	// CHI_FILES_HERE: leaves every count-th of d->files, from index on, before the first read.
	choir_status (*shard_files)(choir_dataset *d, int64_t count, int64_t index);
	// The name of the i-th of them; NULL: there is only one, and nobody asks.
	const char *(*path)(const choir_dataset *d, int64_t i);
	// Of a stage that keeps elements where other workers may find them, before the first read:
	// they are the share of worker index of count. CHOIR_INVALID: it found another's.
	choir_status (*share)(choir_dataset *d, int64_t count, int64_t index);
	// A source that remembers places in its files, or repeat: those, and whether one is of them.
	struct chi_seek_index *(*seek_index)(choir_dataset *d);
	bool (*fits)(const choir_dataset *d, const chi_seek_point *point);
} chi_stage;

// The head of every stage; the core's, apart from what constructors set.
struct choir_dataset {
	const chi_stage *stage;
	choir_dataset *from[2]; // owned; NULL: none
	int depth; // stages below it on the longest way
	chi_spec spec;
	size_t bytes[CHI_MAX_COLUMNS]; // of one example; of its chi_ragged_value if it varies
	int64_t elements; // of a pass: examples, or batches; CHOIR_NONE: not known, or for ever
	bool ragged; // a short batch may come before others
	bool random; // range works
	bool ended; // this pass; a stage may set it with its last examples
	bool failed; // this pass, with the failure below
	chi_error failure;
	int64_t position; // of random access: the next example
	int64_t pass; // the number of rewinds
	int64_t files; // of a source with shard_files
	bool shuffles; // a shuffle stage
	bool hint; // a shard stage whose count and index a distribution gives
	chi_atomic32 cancelled; // by so many other threads: reading stops at the next block
	choir_dataset *outer; // the stage that reads this chain without having it in from; NULL: none
	chi_atomic64 dropped, skipped; // a source: rows without a value, and wrong ones, of this pass
	chi_atomic64 delivered; // a source with seek points: elements of this pass
	char *names; // owned by a source: the memory of the columns' names
};

// Stages call those below them, so a deeper chain could overflow the stack: it is refused.
enum { CHI_MAX_STAGES = 2000 };
// Makes from the second source of d, which has one. NULL: too deep; both were freed.
choir_dataset *chi_dataset_add_source(choir_dataset *d, choir_dataset *from);

choir_status chi_no_range(choir_dataset *d, void *const column[], int64_t first, int64_t count);
choir_status chi_no_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got);
choir_status chi_no_rewind(choir_dataset *d);
const void *chi_no_peek(choir_dataset *d, size_t column, int64_t first, int64_t count);
void chi_no_free(choir_dataset *d);
// Makes a failure stay: every read until the rewind gives it again.
choir_status chi_dataset_keep_failure(choir_dataset *d, choir_status status);
// What a stage returns that got so many examples before status: an end or a failure is reported
// by the next read.
choir_status chi_dataset_got(choir_dataset *d, choir_status status, int64_t got);
// Checks columns (varies: their dimensions may be unknown) and gives the bytes of one example of
// each. what: the subject of messages.
choir_status chi_columns_check(
		const char *what, bool varies, size_t n, const choir_column columns[], size_t bytes[]);
// A source with n columns, which are checked and copied. size: of the stage's struct, which
// begins with a choir_dataset. examples: CHOIR_NONE if not known.
void *chi_source_new(const chi_stage *stage, size_t size, size_t n, const choir_column columns[],
		int64_t examples);
// A transform that yields what from does, for the constructor to change. It owns from, which a
// failure frees.
void *chi_transform_new(const chi_stage *stage, size_t size, choir_dataset *from);
// Gives a transform columns of its own, which may vary; false: recorded.
bool chi_dataset_set_columns(choir_dataset *d, size_t n, const choir_column columns[]);
// Whether d is not NULL. If it is and nothing is recorded, records "what: the dataset is NULL".
bool chi_dataset_given(const choir_dataset *d, const char *what);
// Records a failure, frees d and gives NULL: how a transform refuses its arguments.
choir_dataset *chi_refuse(choir_dataset *d, choir_status status, const char *fmt, ...)
		CHOIR_PRINTF(3, 4);
// The index of a column; spec.n: there is none of this name. The other two list the names there
// are.
size_t chi_column_find(const choir_dataset *d, const char *name);
choir_status chi_no_column(const choir_dataset *d, const char *what, const char *name);
choir_dataset *chi_refuse_column(choir_dataset *d, const char *what, const char *name);

// Reads by the stage's slots, and does what is the same for all: ends and failures that stay,
// random access by position, cancelling.
choir_status chi_dataset_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got);
// Reads want single examples: fewer only at the end, CHOIR_END instead of none.
choir_status chi_dataset_fill(choir_dataset *d, void *const column[], int64_t want, int64_t *got);
// Skips up to so many elements; *got says how many there were.
choir_status chi_dataset_drop(choir_dataset *d, int64_t elements, int64_t *got);
bool chi_dataset_is_cancelled(const choir_dataset *d);
// outer, which lives as long as d, reads d and all its sources: what cancels outer cancels them.
void chi_dataset_set_outer(choir_dataset *d, choir_dataset *outer);
// Examples of the largest element: 1, or the batch.
static inline int64_t chi_dataset_unit(const choir_dataset *d)
{
	return d->spec.batch ? d->spec.batch : 1;
}

// Whether one of the batches may have fewer examples than the others.
static inline bool chi_dataset_has_short_batch(const choir_dataset *d)
{
	if (!d->spec.batch)
		return false;
	return !d->spec.full &&
			(d->spec.examples == CHOIR_NONE || d->spec.examples % d->spec.batch != 0);
}
