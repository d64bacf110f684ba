// Each update happens once (0092): a server remembers a closure's changes until it is finished. A
// closure that runs again makes the same changes in the same order: known ones are skipped. A
// state machine without threads and clock.
#pragma once

#include "base/serialization.h"

typedef struct {
	uint64_t closure, ordinal; // closure 0: unused
} chi_change;

typedef struct {
	chi_change *change; // an open-addressed hash table
	size_t n, capacity; // capacity: a power of two
	uint64_t *fenced; // incarnations
	size_t fences, fence_capacity;
} chi_exactly_once;

void chi_exactly_once_free(chi_exactly_once *m);
bool chi_exactly_once_have(const chi_exactly_once *m, uint64_t closure, uint64_t ordinal);
choir_status chi_exactly_once_add(chi_exactly_once *m, uint64_t closure, uint64_t ordinal);
void chi_exactly_once_remove(
		chi_exactly_once *m, uint64_t closure, uint64_t ordinal); // the change was not made
void chi_exactly_once_forget(chi_exactly_once *m, uint64_t closure);
// The coordinator considers this incarnation of a worker lost.
choir_status chi_exactly_once_fence(chi_exactly_once *m, uint64_t incarnation);
bool chi_exactly_once_fenced(const chi_exactly_once *m, uint64_t incarnation);
