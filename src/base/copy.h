// Copies of what nobody looks at soon.
#pragma once

#include <stddef.h>

// As memcpy; but what is large is written past the caches, which keep what is in them, and at the
// memory's speed: no line of to is read before it is overwritten.
void chi_copy_nontemporal(void *to, const void *from, size_t bytes);
