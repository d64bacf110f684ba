// Sorting in place, without memory of its own (qsort of some C libraries allocates).
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Puts an array of n pointers, of whatever type, in ascending order: before says whether what a
// points to is to stand before b's. Equal ones come in any order.
void chi_heap_sort(void *items, size_t n, bool (*before)(const void *a, const void *b));
