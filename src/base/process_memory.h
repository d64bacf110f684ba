// Memory of other processes of this user on this host, where the system lets them be read.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
	void *to;
	uint64_t from; // an address in the other process
	size_t bytes;
} chi_process_memory_part;

// False: the process has ended, has no such memory, or may not be read. The targets are then
// undefined.
bool chi_process_memory_read(int64_t pid, const chi_process_memory_part part[], size_t n);

// Other processes see what was written before it before what is written after it. Each read begins
// with one.
void chi_process_memory_fence(void);

// For tests: all reads of this process fail; how many bytes it has read.
void chi_process_memory_refuse(bool refuse);
uint64_t chi_process_memory_bytes(void);
