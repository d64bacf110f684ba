// FNV-1a, then SplitMix64's mixer, since FNV's high bits depend little on the last bytes.
#include "base/hash.h"

#include <string.h>

uint64_t chi_hash_mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xBF58476D1CE4E5B9;
	x ^= x >> 27;
	x *= 0x94D049BB133111EB;
	x ^= x >> 31;
	return x;
}

uint64_t chi_hash_bytes(const void *bytes, size_t n)
{
	uint64_t hash = 0xCBF29CE484222325;
	for (const unsigned char *c = bytes; n > 0; c++, n--) {
		hash ^= *c;
		hash *= 0x100000001B3;
	}
	return chi_hash_mix(hash);
}

uint64_t chi_hash_text(const char *text)
{
	return chi_hash_bytes(text, strlen(text));
}
