// Counted allocations; a test can make one fail.
#include "base/alloc.h"
#include "base/atomic.h"
#include "base/size.h"
#include "base/status.h"
#include "choir/status.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BUFFER_ALIGNMENT = CHI_LINE, HUGE_PAGE = 2 << 20 };

enum { NONE, ONE, ALL };

static struct {
	chi_atomic64 count, bytes;
	chi_atomic64 first;
	chi_atomic32 fails;
	chi_atomic32 failed;
} heap;

static void *out_of_memory(size_t bytes)
{
	choir_fail(CHOIR_NO_MEMORY, "out of memory: %zu bytes", bytes);
	return NULL;
}

// False: a test's failure, or more than PTRDIFF_MAX bytes, where sanitizers end the program.
static bool admit(size_t bytes)
{
	uint64_t number = chi_atomic64_add(&heap.count, 1) + 1;
	chi_atomic64_add(&heap.bytes, bytes);
	const uint32_t fails = chi_atomic32_load(&heap.fails);
	if (fails != NONE && number >= chi_atomic64_load(&heap.first) &&
			(fails == ALL || chi_atomic32_change(&heap.fails, ONE, NONE))) {
		chi_atomic32_store(&heap.failed, 1);
		return false;
	}
	return bytes <= PTRDIFF_MAX;
}

void *chi_alloc(size_t bytes)
{
	void *p = admit(bytes) ? calloc(1, bytes ? bytes : 1) : NULL;
	return p ? p : out_of_memory(bytes);
}

void *chi_alloc_array(size_t count, size_t size)
{
	size_t bytes;
	if (chi_size_multiply(count, size, &bytes))
		return chi_alloc(bytes);
	choir_fail(CHOIR_NO_MEMORY, "out of memory: %zu times %zu bytes", count, size);
	return NULL;
}

// Huge pages speed up sums (decision 0070). The system may refuse them.
static void *alloc_huge(size_t rounded)
{
	void *p;
	if (posix_memalign(&p, HUGE_PAGE, rounded) != 0)
		return NULL;
	(void) madvise(p, rounded / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
	return p;
}

void *chi_alloc_aligned(size_t bytes)
{
	size_t rounded;
	void *p = NULL;
	if (admit(bytes) && chi_size_round_up(bytes ? bytes : 1, BUFFER_ALIGNMENT, &rounded))
		p = rounded < HUGE_PAGE ? aligned_alloc(BUFFER_ALIGNMENT, rounded) : alloc_huge(rounded);
	return p ? p : out_of_memory(bytes);
}

bool chi_scratch_reserve(chi_scratch *scratch, size_t bytes)
{
	if (scratch->memory != NULL && bytes <= scratch->capacity)
		return true;
	chi_free(scratch->memory);
	scratch->memory = chi_alloc_aligned(bytes);
	scratch->capacity = scratch->memory == NULL ? 0 : bytes;
	return scratch->memory != NULL;
}

void *chi_alloc_lines(size_t count, size_t size)
{
	size_t bytes;
	if (!chi_size_multiply(count, size, &bytes))
		return chi_fail_null(CHOIR_NO_MEMORY, "out of memory: %zu times %zu bytes", count, size);
	void *p = chi_alloc_aligned(bytes);
	return p ? memset(p, 0, bytes) : NULL;
}

void *chi_realloc(void *p, size_t bytes)
{
	void *moved = admit(bytes) ? realloc(p, bytes ? bytes : 1) : NULL;
	return moved ? moved : out_of_memory(bytes);
}

bool chi_grow(void *pointer, size_t *capacity, size_t need, size_t size)
{
	void *array;
	if (need <= *capacity)
		return true;
	size_t wanted = *capacity < 4 ? 8 : *capacity;
	if (*capacity >= 4 && !chi_size_multiply(*capacity, 2, &wanted))
		wanted = need;
	if (wanted < need)
		wanted = need;
	size_t bytes;
	if (!chi_size_multiply(wanted, size, &bytes)) {
		choir_fail(CHOIR_NO_MEMORY, "out of memory: %zu times %zu bytes", wanted, size);
		return false;
	}
	memcpy(&array, pointer, sizeof array);
	void *p = chi_realloc(array, bytes);
	if (!p)
		return false;
	memcpy(pointer, &p, sizeof p);
	*capacity = wanted;
	return true;
}

char *chi_strdup(const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = chi_alloc(bytes);
	if (copy)
		memcpy(copy, text, bytes);
	return copy;
}

void chi_free(void *p)
{
	free(p);
}

uint64_t chi_alloc_bytes(void)
{
	return chi_atomic64_load(&heap.bytes);
}

uint64_t chi_alloc_count(void)
{
	return chi_atomic64_load(&heap.count);
}

void chi_alloc_fail(uint64_t n, bool persistent)
{
	chi_atomic32_store(&heap.fails, NONE);
	chi_atomic32_store(&heap.failed, 0);
	if (n == 0)
		return;
	chi_atomic64_store(&heap.first, chi_atomic64_load(&heap.count) + n);
	chi_atomic32_store(&heap.fails, persistent ? ALL : ONE);
}

bool chi_alloc_failed(void)
{
	return chi_atomic32_load(&heap.failed) != 0;
}
