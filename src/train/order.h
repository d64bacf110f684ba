// Sorting in place, without memory of its own (qsort of some C libraries allocates).
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Puts n pointers in ascending order: before says whether a is to stand before b. Equal ones come
// in any order.
void chi_order(void **items, size_t n, bool (*before)(const void *a, const void *b));
