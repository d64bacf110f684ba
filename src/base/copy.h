// Copies that bypass the caches, and copies of memory that other threads use at the same time.
#pragma once

#include <stddef.h>
#include <stdint.h>

// As memcpy, for a target that is not read soon. A large copy bypasses the caches, which keep what
// they hold, and runs at the memory's speed: no line of to is read before it is overwritten.
void chi_copy_nontemporal(void *to, const void *from, size_t bytes);

// Copies n elements of size 1, 2, 4 or 8 bytes of host memory that several threads read and write
// at the same time without a lock: from, to or both. Each element is whole; their order is not
// defined.
void chi_copy_atomic(void *to, const void *from, int64_t n, size_t size);
