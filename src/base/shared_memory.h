// Memory that several processes use.
#pragma once

#include <stddef.h>

// Shared by a descriptor; begins zeroed.
int chi_shared_memory(size_t bytes); // -1: CHOIR_IO
void *chi_shared_map(int fd, size_t bytes); // NULL: not such memory, or of another size
void chi_shared_unmap(void *memory, size_t bytes);
