// Without allocation, unlike qsort in some C libraries.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Pointers of any type; equal ones in any order.
void chi_heap_sort(void *items, size_t n, bool (*before)(const void *a, const void *b));
