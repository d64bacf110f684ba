// A memcpy leaves the last megabytes of its target in the caches, and to get them there it reads
// each line before it writes it. Stores that go to memory directly do neither. They are part of
// every x86-64; elsewhere it is memcpy.
#include "base/copy.h"
#include "base/atomic.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)

#include <immintrin.h>

enum {
	SMALL = 16 << 10, // bytes that the nearest cache takes without a loss
	VECTORS = CHI_LINE / sizeof(__m128i)
};

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
	if (bytes < SMALL) {
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
	_mm_sfence(); // in no order with later stores, which may tell of them, until here
	memcpy(p, q, bytes - head - lines * CHI_LINE);
}

#else

void chi_copy_nontemporal(void *to, const void *from, size_t bytes)
{
	if (bytes > 0)
		memcpy(to, from, bytes);
}

#endif
