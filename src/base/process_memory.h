// Memory of this user's other processes on this host, where the system allows it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
	void *to;
	uint64_t from; // an address in the other process
	size_t bytes;
} chi_process_memory_part;

// False: the process or memory is gone, or may not be read; the targets are undefined.
bool chi_process_memory_read(int64_t pid, const chi_process_memory_part part[], size_t n);

// Other processes see earlier writes before later ones. Each read begins with a fence.
void chi_process_memory_fence(void);

// For tests: this process's reads fail; how many bytes it has read.
void chi_process_memory_refuse(bool refuse);
uint64_t chi_process_memory_bytes(void);
