// The byte order of values in files.
#pragma once

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline bool chi_order_differs(bool big_endian)
{
	return big_endian != (__BYTE_ORDER == __BIG_ENDIAN);
}

// width: 1, 2, 4 or 8.
static inline void chi_reverse_bytes(void *values, size_t bytes, size_t width)
{
	unsigned char *p = values;
	for (size_t i = 0; width == 2 && i < bytes; i += 2) {
		uint16_t v;
		memcpy(&v, p + i, sizeof v);
		v = __builtin_bswap16(v);
		memcpy(p + i, &v, sizeof v);
	}
	for (size_t i = 0; width == 4 && i < bytes; i += 4) {
		uint32_t v;
		memcpy(&v, p + i, sizeof v);
		v = __builtin_bswap32(v);
		memcpy(p + i, &v, sizeof v);
	}
	for (size_t i = 0; width == 8 && i < bytes; i += 8) {
		uint64_t v;
		memcpy(&v, p + i, sizeof v);
		v = __builtin_bswap64(v);
		memcpy(p + i, &v, sizeof v);
	}
}
