// Nontemporal stores do not read a line before they overwrite it. Shared memory is copied by
// relaxed atomics.
#include "base/memory_copy.h"
#include "base/atomic.h"
#include "base/thresholds.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)

#include <immintrin.h>

enum { VECTORS = CHI_LINE / sizeof(__m128i) };

static void store_line(__m128i *to, const __m128i *from)
{
	__m128i line[VECTORS];
	for (size_t i = 0; i < VECTORS; i++)
		line[i] = _mm_loadu_si128(from + i);
	for (size_t i = 0; i < VECTORS; i++)
		_mm_stream_si128(to + i, line[i]);
}

void chi_copy_nontemporal(void *to, const void *from, size_t bytes)
{
	if (bytes < CHI_NONTEMPORAL_COPY_BYTES) {
		if (bytes > 0)
			memcpy(to, from, bytes);
		return;
	}
	const size_t head = -(uintptr_t) to % CHI_LINE, lines = (bytes - head) / CHI_LINE;
	memcpy(to, from, head);
	char *p = (char *) to + head;
	const char *q = (const char *) from + head;
	for (size_t i = 0; i < lines; i++, p += CHI_LINE, q += CHI_LINE)
		store_line((__m128i *) (void *) p, (const __m128i *) (const void *) q);
	_mm_sfence();
	memcpy(p, q, bytes - head - lines * CHI_LINE);
}

#else

void chi_copy_nontemporal(void *to, const void *from, size_t bytes)
{
	if (bytes > 0)
		memcpy(to, from, bytes);
}

#endif

// Builtins, because kernels use the same memory without atomics.
#define COPY(type) \
	for (int64_t i = 0; i < n; i++) \
	__atomic_store_n((type *) to + i, __atomic_load_n((const type *) from + i, __ATOMIC_RELAXED), \
			__ATOMIC_RELAXED)

static int64_t copy_words(void *to, const void *from, int64_t n, size_t size)
{
	if (((uintptr_t) to | (uintptr_t) from) % sizeof(uint64_t) != 0)
		return 0;
	const int64_t each = (int64_t) (sizeof(uint64_t) / size), elements = n / each * each;
	n /= each;
	COPY(uint64_t);
	return elements;
}

void chi_copy_atomic(void *to, const void *from, int64_t n, size_t size)
{
	const int64_t done = copy_words(to, from, n, size);
	to = (char *) to + (size_t) done * size;
	from = (const char *) from + (size_t) done * size;
	n -= done;
	switch (size) {
	case 1:
		COPY(uint8_t);
		break;
	case 2:
		COPY(uint16_t);
		break;
	case 4:
		COPY(uint32_t);
		break;
	default:
		COPY(uint64_t);
		break;
	}
}
