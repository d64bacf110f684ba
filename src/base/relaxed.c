// The compilers' relaxed atomics, on memory that was not declared atomic because at other times
// kernels compute on it.
#include "base/relaxed.h"

#define COPY(type) \
	for (int64_t i = 0; i < n; i++) \
	__atomic_store_n((type *) to + i, __atomic_load_n((const type *) from + i, __ATOMIC_RELAXED), \
			__ATOMIC_RELAXED)

void chi_relaxed_copy(void *to, const void *from, int64_t n, size_t size)
{
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
