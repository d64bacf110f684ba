// Datasets from inside, for the room that deals their elements out: what a chain of steps
// yields, and how to get it. Elements are sets of named columns in host memory that the caller
// provides; up to batch() an element is one example, after it a batch of at most so many.
// Threads: one at a time, but a step may read ahead on a thread of its own.
#pragma once

#include "choir/dataset.h"

enum { CHI_MAX_COLUMNS = 32 };

// What every element has: names, dtypes, shapes of one example (without the batch axis).
typedef struct {
	size_t n;
	choir_column column[CHI_MAX_COLUMNS]; // data unused; names live as long as the dataset
	int64_t batch; // 0: single examples; else the most examples of an element
	int64_t examples; // of a whole pass, if known; CHOIR_NONE: not known, or for ever
	bool endless; // repeats for ever
} chi_spec;

// Room for an element, filled by next. The caller provides memory for each column: capacity
// examples, packed. A column that is NULL is not wanted and is left out.
typedef struct {
	void *column[CHI_MAX_COLUMNS];
	int64_t capacity; // 1, or at least spec.batch
	int64_t examples; // out: how many there are (a short last batch); 1 without batch
} chi_element;

const chi_spec *chi_dataset_spec(
		choir_dataset *d); // NULL: the chain has failed; the thread knows why
// CHOIR_OK, CHOIR_END at the end of the pass, or an error. Nothing is read before the first next.
// After an end or an error every next gives the same again, until the dataset is rewound; the
// memory of e then holds nothing of use.
choir_status chi_dataset_next(choir_dataset *d, chi_element *e);
// Back to the start; the next pass (shuffles: another order).
choir_status chi_dataset_rewind(choir_dataset *d);

// For sources whose examples already lie in memory, packed: NULL, or column i's examples
// first .. first+count-1 in place, so that no copy is needed. Valid until d is freed.
const void *chi_dataset_peek(choir_dataset *d, size_t column, int64_t first, int64_t count);
