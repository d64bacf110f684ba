// Each update happens once (0092): a server remembers a closure's changes until the closure is
// finished. A closure that runs again makes the same changes in the same order, and the server
// skips those that it remembers. A state machine without threads and clock.
#pragma once

#include "base/serialization.h"

typedef struct {
	uint64_t closure, ordinal; // closure 0: unused
} chi_mark;

typedef struct {
	chi_mark *mark; // an open-addressed hash table
	size_t n, capacity; // capacity: a power of two
	uint64_t *fenced; // incarnations
	size_t fences, fence_capacity;
} chi_marks;

void chi_marks_free(chi_marks *m);
bool chi_marks_have(const chi_marks *m, uint64_t closure, uint64_t ordinal);
choir_status chi_marks_add(chi_marks *m, uint64_t closure, uint64_t ordinal);
void chi_marks_remove(chi_marks *m, uint64_t closure, uint64_t ordinal); // the change was not made
void chi_marks_forget(chi_marks *m, uint64_t closure);
// The coordinator considers this incarnation of a worker lost.
choir_status chi_marks_fence(chi_marks *m, uint64_t incarnation);
bool chi_marks_fenced(const chi_marks *m, uint64_t incarnation);
