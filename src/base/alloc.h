// All of Choir's memory: tests count allocations and make them fail. A failure records
// CHOIR_NO_MEMORY and returns NULL or false. Threads: any.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Zeroed; 0 bytes count as 1.
void *chi_alloc(size_t bytes);
void *chi_alloc_array(size_t count, size_t size);
// Aligned to 64 bytes, not zeroed.
void *chi_alloc_aligned(size_t bytes);
// Zeroed, aligned to cache lines.
void *chi_alloc_lines(size_t count, size_t size);
// Scratch memory begins zeroed, is aligned to 64 bytes, and ends with chi_free(memory). Growth
// discards the contents; without growth others may use it. After a failure it is empty.
typedef struct {
	char *memory;
	size_t capacity;
} chi_scratch;
bool chi_scratch_reserve(chi_scratch *scratch, size_t bytes);
// Added memory is not zeroed.
void *chi_realloc(void *p, size_t bytes);
// Doubles *capacity up to need. pointer: the address of the array's pointer. A failure changes
// nothing.
bool chi_grow(void *pointer, size_t *capacity, size_t need, size_t size);
char *chi_strdup(const char *text);
void chi_free(void *p);

uint64_t chi_alloc_count(void);
uint64_t chi_alloc_bytes(void);
// For tests: the n-th next allocation fails (0: none) and, if persistent, all later ones.
void chi_alloc_fail(uint64_t n, bool persistent);
bool chi_alloc_failed(void);
