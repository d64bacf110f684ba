// Copies that bypass the caches, and copies of memory that other threads use.
#pragma once

#include <stddef.h>
#include <stdint.h>

// For a large target that is not read soon.
void chi_copy_nontemporal(void *to, const void *from, size_t bytes);

// Elements of 1, 2, 4 or 8 bytes, each whole, while other threads use them.
void chi_copy_atomic(void *to, const void *from, int64_t n, size_t size);
