// Counts all memory allocations of a program and its libraries, and prints the number at the end.
// tools/bench-heap compiles it and preloads it; it is not part of the build.
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

static atomic_ulong calls;

// glibc's own functions, exported under these names for this use.
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size)
{
	atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
	return __libc_calloc(count, size);
}

void *realloc(void *p, size_t size)
{
	atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
	return __libc_realloc(p, size);
}

void *memalign(size_t alignment, size_t size)
{
	atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
	return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
	*out = memalign(alignment, size);
	return *out == NULL ? ENOMEM : 0;
}

__attribute__((destructor)) static void say(void)
{
	fprintf(stderr, "allocations %lu\n", atomic_load(&calls));
}
