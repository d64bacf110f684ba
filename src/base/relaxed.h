// Host memory that several threads read and write at the same time with no lock, element by
// element: each element is whole, and nothing is said of the order between elements.
#pragma once

#include <stddef.h>
#include <stdint.h>

// n elements of size 1, 2, 4 or 8 bytes. Either may be the memory that is shared.
void chi_copy_relaxed(void *to, const void *from, int64_t n, size_t size);
