// What makes an update happen once: a server marks each change that a closure has made, until the
// closure is finished, and refuses workers that the coordinator has given up. A closure that runs
// again makes the same changes in the same order, by their ordinals; those with a mark are left
// out. A state machine without threads and clock.
#pragma once

#include "base/fields.h"

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
void chi_marks_remove(chi_marks *m, uint64_t closure, uint64_t ordinal); // it was not made
// The closure is finished: no worker has it, and none will get it.
void chi_marks_forget(chi_marks *m, uint64_t closure);
// The coordinator has given this incarnation of a worker up.
choir_status chi_marks_fence(chi_marks *m, uint64_t incarnation);
bool chi_marks_fenced(const chi_marks *m, uint64_t incarnation);
