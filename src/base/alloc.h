// The one door to the heap. Everything Choir allocates goes through it, so that tests can count
// allocations and let the n-th one fail. A failure records CHOIR_NO_MEMORY on the calling thread.
// Threads: any.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// At least bytes (0 counts as 1), zeroed, aligned for any type; NULL after a failure was recorded.
void *chi_alloc(size_t bytes);
// count * size bytes, the product checked.
void *chi_alloc_array(size_t count, size_t size);
// Not zeroed, aligned to 64 bytes; freed by chi_free as well.
void *chi_alloc_aligned(size_t bytes);
// As chi_alloc_array, but aligned to lines of the cache, for what has members that are.
void *chi_alloc_lines(size_t count, size_t size);
// Memory that is kept from call to call, aligned to 64 bytes; begins zeroed, ends with chi_free.
// chi_scratch_reserve makes it one of at least so many bytes; another piece lacks what was in the
// one before. Where there is room nothing is written, so that others may use it meanwhile. False:
// a failure, and there is none.
typedef struct {
	char *memory;
	size_t capacity;
} chi_scratch;
bool chi_scratch_reserve(chi_scratch *scratch, size_t bytes);
// As realloc; new memory is not zeroed. On failure p stays as it was.
void *chi_realloc(void *p, size_t bytes);
// Grows an array (of elements of size bytes) to hold at least need elements, doubling *room;
// pointer is the address of the pointer to it, of whatever type that is. On failure nothing
// changes and false is returned.
bool chi_grow(void *pointer, size_t *capacity, size_t need, size_t size);
char *chi_strdup(const char *text);
void chi_free(void *p); // NULL is fine

// For tests: allocations so far (chi_alloc*, chi_realloc) by all threads.
uint64_t chi_alloc_count(void);
uint64_t chi_alloc_bytes(void); // asked for by them
// Lets the n-th allocation from now fail (1: the next); and all after it if persistent. 0: none.
// Where other threads allocate at this moment, it is the first from about the n-th on.
void chi_alloc_fail(uint64_t n, bool persistent);
// Whether the failure asked for has happened since it was asked for.
bool chi_alloc_failed(void);
