// One step of a chain: a source or a transform. Steps hand on blocks, not single examples, and
// write straight into the memory of whoever asked in the end, so that a block of a file can go
// to its batch in one copy. There are two ways to read. Where every example can be had by its
// number (memory, drawn digits, and maps of those) a step has random access: the core keeps the
// position, and a shuffle needs no buffer. Everything else is a stream: a step keeps its own
// position and is read in order.
#pragma once

#include "base/atomic.h"
#include "base/status.h"
#include "choir/source.h"
#include "data/data.h"

// What kind of step it is. The first six slots are never NULL: the chi_no_ functions below
// stand for what a step cannot do and is never asked for. The core (chi_dataset_read and
// others) is the only caller. In all of them column[i] has room for the examples of column i
// (memory, or cells where the column varies), or is NULL: not wanted; reading with all of them
// NULL is how examples are skipped.
typedef enum {
	CHI_FILES_NONE = 0, // it reads no files, or what it yields is not a matter of its files alone
	CHI_FILES_THROUGH, // all its sources are sharded
	CHI_FILES_HERE, // a source that reads d->files files, one after another
	CHI_FILES_BEFORE // each element of its source becomes the content of a file
} chi_files;

typedef struct {
	const char *name; // "batch", the subject of messages
	// Random access, where d->random: exactly the examples first .. first+count-1, which exist.
	choir_status (*range)(choir_dataset *d, void *const column[], int64_t first, int64_t count);
	// A stream, elsewhere. Of single examples: between 1 and want, in *got. Of batches: one
	// batch; want is at least spec.batch. CHOIR_END: there is nothing more.
	choir_status (*read)(choir_dataset *d, void *const column[], int64_t want, int64_t *got);
	// To the start of the pass d->pass; it brings its sources there with chi_dataset_begin, and
	// nothing but the pass decides what comes.
	choir_status (*rewind)(choir_dataset *d);
	const void *(*peek)(choir_dataset *d, size_t column, int64_t first, int64_t count);
	void (*free)(choir_dataset *d); // what the step holds itself, before its sources are freed
	// The others may be left out.
	bool calls; // functions of the program, which see the thread that reads
	bool varies; // a source whose columns may have dimensions CHOIR_NONE: it writes cells
	bool reorderable; // it makes each example of one and of nothing else, and cannot fail at that
	// Of a stream, right after rewind: to where so many elements, which this pass has, have been
	// handed out. It moves its sources with chi_dataset_pass_over. NULL: the core reads them.
	choir_status (*seek)(choir_dataset *d, int64_t elements);
	// It cannot be tried whether a pass has so many elements: seek goes behind its end and does
	// not notice, or what was read is gone.
	bool blind;
	bool gone; // what was read cannot be had again: there is no place to go back to
	// What else decides which elements come when, as a number: seeds, counts. NULL: only the
	// name.
	uint64_t (*signature)(const choir_dataset *d);
	// How a distribution by files goes through the step to what reads files.
	chi_files files;
	// CHI_FILES_HERE: leaves every count-th of d->files, from index on, before the first read.
	choir_status (*shard_files)(choir_dataset *d, int64_t count, int64_t index);
	// The name of the i-th of them; NULL: there is only one, and nobody asks.
	const char *(*path)(const choir_dataset *d, int64_t i);
	// A step that keeps elements where other workers may find them: from now on those are the
	// share of worker index of count. Before the first read. CHOIR_INVALID: what it found is
	// another's.
	choir_status (*share)(choir_dataset *d, int64_t count, int64_t index);
	// A source that remembers places in its files, or repeat: those, and whether one is of them.
	struct chi_seek_index *(*seek_index)(choir_dataset *d);
	bool (*fits)(const choir_dataset *d, const chi_seek_point *mark);
} chi_stage;

// The head of every step; the core's, apart from what constructors set.
struct choir_dataset {
	const chi_stage *stage;
	choir_dataset *from[2]; // owned; NULL: none
	int depth; // steps below it on the longest way
	chi_spec spec;
	size_t bytes[CHI_MAX_COLUMNS]; // of one example in memory; of a column that varies: of a cell
	int64_t elements; // of a pass: examples, or batches; CHOIR_NONE: not known, or for ever
	bool ragged; // a short batch may come before others
	bool random; // range works
	bool ended; // this pass; a step may set it with its last examples
	bool failed; // this pass, with the failure below
	chi_error failure;
	int64_t position; // of random access: the next example
	int64_t pass; // the number of rewinds
	int64_t files; // of a source with shard_files
	bool shuffles; // a shuffle step
	bool hint; // a shard step whose count and index a distribution gives
	chi_atomic32 cancelled; // by so many other threads: reading stops at the next block
	choir_dataset *outer; // the step that reads this chain without having it in from; NULL: none
	chi_atomic64 dropped, skipped; // a source: rows without a value, and wrong ones, of this pass
	chi_atomic64 delivered; // a source with marks: elements of this pass
	char *names; // owned by a source: the memory of the columns' names
};

// Steps call those below them, so a chain is as deep as a stack of calls: of one that is deeper
// than this, transforms are refused.
enum { CHI_MAX_STAGES = 2000 };
// Makes from the second source of d, which has one. NULL: too deep; both were freed.
choir_dataset *chi_dataset_add_source(choir_dataset *d, choir_dataset *from);

choir_status chi_no_range(choir_dataset *d, void *const column[], int64_t first, int64_t count);
choir_status chi_no_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got);
choir_status chi_no_rewind(choir_dataset *d);
const void *chi_no_peek(choir_dataset *d, size_t column, int64_t first, int64_t count);
void chi_no_free(choir_dataset *d);
choir_status chi_rewind_from(choir_dataset *d); // the rewind of a step that keeps no position
// The seek of a step that makes one element of each.
choir_status chi_seek_from(choir_dataset *d, int64_t elements);
// Makes a failure stay: every read until the rewind gives it again.
choir_status chi_dataset_keep_failure(choir_dataset *d, choir_status status);
// What a step returns that got so many examples before it met status: an end or a failure comes
// with the read behind them.
choir_status chi_dataset_got(choir_dataset *d, choir_status status, int64_t got);
// To the start of a pass.
choir_status chi_dataset_begin(choir_dataset *d, int64_t pass);
// A shard step with hint gets its count and index, before anything is read.
void chi_dataset_take_hint(choir_dataset *d, int64_t count, int64_t index);
// Says that a pass has found elements only, though it was read further once.
choir_status chi_dataset_too_short(const choir_dataset *d, int64_t found, int64_t needed);
// Passes over so many elements, which must be there; by seek right after begin.
choir_status chi_dataset_pass_over(choir_dataset *d, int64_t elements);
// Reads from element on up to another, which must be there: what seek ends with.
choir_status chi_dataset_read_over(choir_dataset *d, int64_t from, int64_t to);

// Whether these columns can be (varies: also with dimensions that are not known); what: the
// subject of messages. Gives the bytes of one example of each.
choir_status chi_columns_check(
		const char *what, bool varies, size_t n, const choir_column columns[], size_t bytes[]);
// A source with n columns, checked and named; examples CHOIR_NONE: not known. size: of the step's
// struct, which begins with a choir_dataset. NULL: an error, the subject being step->name.
void *chi_source_new(const chi_stage *step, size_t size, size_t n, const choir_column columns[],
		int64_t examples);
// A transform that yields what from does, for the constructor to change. from is taken over,
// also on failure (it is freed).
void *chi_transform_new(const chi_stage *step, size_t size, choir_dataset *from);
// Gives a transform columns of its own, which may vary; false: recorded.
bool chi_dataset_set_columns(choir_dataset *d, size_t n, const choir_column columns[]);
// Takes off the end of the chain *d a step that is late, where examples are not larger before it.
// NULL: there is none. It is put behind the step that was made instead, which may be NULL: a
// failure, with which it is freed.
choir_dataset *chi_reorder_take(choir_dataset **d);
choir_dataset *chi_reorder_put(choir_dataset *late, choir_dataset *d);
// Whether d is not NULL. If it is, the first cause stays; without one, "what: the dataset is
// NULL".
bool chi_dataset_given(const choir_dataset *d, const char *what);
// Records a failure, frees d and gives NULL: how a transform refuses its arguments.
choir_dataset *chi_refuse(choir_dataset *d, choir_status status, const char *fmt, ...)
		CHOIR_PRINTF(3, 4);
// The number of the column so named, or spec.n. Then chi_refuse_column says which there are.
size_t chi_column_find(const choir_dataset *d, const char *name);
choir_status chi_no_column(const choir_dataset *d, const char *what, const char *name);
choir_dataset *chi_refuse_column(choir_dataset *d, const char *what, const char *name);

// As the slots, with everything checked that is the same for all steps: sticky ends and
// failures, random access through the position, cancelling.
choir_status chi_dataset_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got);
// Reads single examples until want are there or the end has come: fewer only at the end,
// CHOIR_END only instead of none.
choir_status chi_dataset_fill(choir_dataset *d, void *const column[], int64_t want, int64_t *got);
// Skips up to so many elements; *got says how many there were.
choir_status chi_dataset_drop(choir_dataset *d, int64_t elements, int64_t *got);
// Makes reads of d and all its sources, and of chains that these have open, give CHOIR_CANCELLED,
// also behind a begin, which a step may do of its own on the thread that is to stop. Threads: any.
void chi_dataset_cancel(choir_dataset *d);
// Takes back one cancel, once nobody reads. What has met it needs a begin.
void chi_dataset_uncancel(choir_dataset *d);
bool chi_dataset_is_cancelled(const choir_dataset *d);
// Says that outer, which stays for as long as d does, reads d and all its sources: what cancels
// outer cancels them.
void chi_dataset_set_outer(choir_dataset *d, choir_dataset *outer);
// Copies examples of the columns that to wants.
choir_status chi_columns_copy(
		const choir_dataset *d, void *const to[], void *const from[], int64_t examples);
// out[i] = column[i] moved on by so many examples; NULL stays NULL.
void chi_columns_move(const choir_dataset *d, void *const column[], int64_t examples, void *out[]);

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

// Memory for some examples of each column, every column on a cache line of its own.
typedef struct {
	void *memory;
	void *column[CHI_MAX_COLUMNS];
	int64_t examples;
	uint32_t ragged_columns; // bit i: column i varies
} chi_row_buffer;
// False: recorded.
bool chi_row_buffer_new(const choir_dataset *d, int64_t examples, chi_row_buffer *rows);
// Room for more examples, with the first so many kept; rows may be all zeros. On failure nothing
// changes.
bool chi_row_buffer_grow(
		const choir_dataset *d, chi_row_buffer *rows, int64_t kept, int64_t examples);
void chi_row_buffer_free(chi_row_buffer *rows);
// Copies examples of all columns that to wants.
choir_status chi_row_buffer_copy(const choir_dataset *d, void *const to[],
		const chi_row_buffer *from, int64_t first, int64_t examples);
// How many examples of d are worth reading at once: what fits in a core's nearer caches.
int64_t chi_block_examples(const choir_dataset *d);
