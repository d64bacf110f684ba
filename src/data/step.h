// One step of a chain: a source or a transform. Steps hand on blocks, not single examples, and
// write straight into the memory of whoever asked in the end, so that a block of a file can go
// to its batch in one copy. There are two ways to read. Where every example can be had by its
// number (memory, drawn digits, and maps of those) a step has random access: the core keeps the
// position, and a shuffle needs no buffer. Everything else is a stream: a step keeps its own
// position and is read in order.
#pragma once

#include "base/atomic.h"
#include "base/error.h"
#include "choir/source.h"
#include "data/dataset.h"

// What kind of step it is. No slot is NULL: the chi_no_ functions below stand for what a step
// cannot do and is never asked for. The core (chi_dataset_read and others) is the only caller.
// In all of them column[i] has room for the examples of column i, or is NULL: not wanted;
// reading with all of them NULL is how examples are skipped.
typedef struct {
	const char *name; // "batch", the subject of messages
	// Random access, where d->random: exactly the examples first .. first+count-1, which exist.
	choir_status (*range)(choir_dataset *d, void *const column[], int64_t first, int64_t count);
	// A stream, elsewhere. Of single examples: between 1 and want, in *got. Of batches: one batch;
	// want is at least spec.batch. CHOIR_END: there is nothing more.
	choir_status (*read)(choir_dataset *d, void *const column[], int64_t want, int64_t *got);
	// Back to the start; it rewinds its sources with chi_dataset_rewind.
	choir_status (*rewind)(choir_dataset *d);
	const void *(*peek)(choir_dataset *d, size_t column, int64_t first, int64_t count);
	void (*free)(choir_dataset *d); // what the step holds itself, before its sources are freed
} chi_step;

// The head of every step; the core's, apart from what constructors set.
struct choir_dataset {
	const chi_step *step;
	choir_dataset *from[2]; // owned; NULL: none
	chi_spec spec;
	size_t bytes[CHI_MAX_COLUMNS]; // of one example
	int64_t elements; // of a pass: examples, or batches; CHOIR_NONE: not known, or for ever
	bool ragged; // a short batch may come before others
	bool random; // range works
	bool ended; // this pass; a step may set it with its last examples
	bool failed; // this pass, with the failure below
	chi_error failure;
	int64_t position; // of random access: the next example
	chi_atomic32 cancelled; // set by another thread: reading stops at the next block
	char *names; // owned by a source: the memory of the columns' names
};

choir_status chi_no_range(choir_dataset *d, void *const column[], int64_t first, int64_t count);
choir_status chi_no_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got);
choir_status chi_no_rewind(choir_dataset *d);
const void *chi_no_peek(choir_dataset *d, size_t column, int64_t first, int64_t count);
void chi_no_free(choir_dataset *d);
choir_status chi_rewind_from(choir_dataset *d); // the rewind of a step that keeps no position

// A source with n columns, checked and named; examples CHOIR_NONE: not known. size: of the step's
// struct, which begins with a choir_dataset. NULL: an error, the subject being step->name.
void *chi_source_new(const chi_step *step, size_t size, size_t n, const choir_column columns[],
		int64_t examples);
// A transform that yields what from does, for the constructor to change. from is taken over, also
// on failure (it is freed).
void *chi_transform_new(const chi_step *step, size_t size, choir_dataset *from);
// Whether d is not NULL. If it is, the first cause stays; without one, "what: the dataset is
// NULL".
bool chi_dataset_given(const choir_dataset *d, const char *what);
// Records a failure, frees d and gives NULL: how a transform refuses its arguments.
choir_dataset *chi_refuse(choir_dataset *d, choir_status status, const char *fmt, ...)
		CHOIR_PRINTF(3, 4);
// The number of the column so named, or spec.n. Then chi_refuse_column says which there are.
size_t chi_column_find(const choir_dataset *d, const char *name);
choir_dataset *chi_refuse_column(choir_dataset *d, const char *what, const char *name);

// As the slots, with everything checked that is the same for all steps: sticky ends and failures,
// random access through the position, cancelling.
choir_status chi_dataset_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got);
// Reads single examples until want are there or the end has come: fewer only at the end,
// CHOIR_END only instead of none.
choir_status chi_dataset_fill(choir_dataset *d, void *const column[], int64_t want, int64_t *got);
// Skips up to so many elements; *got says how many there were.
choir_status chi_dataset_drop(choir_dataset *d, int64_t elements, int64_t *got);
// Makes reads of d and all its sources give CHOIR_CANCELLED until they are rewound. Threads: any.
void chi_dataset_cancel(choir_dataset *d);
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
	return d->spec.examples == CHOIR_NONE || d->spec.examples % d->spec.batch != 0;
}

// Memory for some examples of each column, every column on a cache line of its own.
typedef struct {
	void *memory;
	void *column[CHI_MAX_COLUMNS];
} chi_rows;
bool chi_rows_new(const choir_dataset *d, int64_t examples, chi_rows *rows); // false: recorded
void chi_rows_free(chi_rows *rows);
// Copies examples of all columns that to wants.
void chi_rows_copy(const choir_dataset *d, void *const to[], const chi_rows *from, int64_t first,
		int64_t examples);
// How many examples of d are worth reading at once: what fits in a core's nearer caches.
int64_t chi_block_examples(const choir_dataset *d);
