// The compilers' relaxed atomics, on memory that was not declared atomic because at other times
// kernels compute on it.
#include "base/relaxed.h"

#define COPY(type) \
	for (int64_t i = 0; i < n; i++) \
	__atomic_store_n((type *) to + i, __atomic_load_n((const type *) from + i, __ATOMIC_RELAXED), \
			__ATOMIC_RELAXED)

// Small elements are copied by words where both sides allow it: a word that is whole has whole
// elements.
static int64_t copy_words(void *to, const void *from, int64_t n, size_t size)
{
	if (((uintptr_t) to | (uintptr_t) from) % sizeof(uint64_t) != 0)
		return 0;
	const int64_t each = (int64_t) (sizeof(uint64_t) / size), elements = n / each * each;
	n /= each;
	COPY(uint64_t);
	return elements;
}

void chi_copy_relaxed(void *to, const void *from, int64_t n, size_t size)
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
