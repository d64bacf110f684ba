// Each copy writes the bytes of any other copy, wherever they begin and end, and no others.
#include "base/memory_copy.h"
#include "base/alloc.h"
#include "test.h"

#include <string.h>

enum { CAPACITY = 70000, EDGE = 128 };

TEST(test_every_alignment)
{
	static const size_t sizes[] = { 0, 1, 63, 64, 16383, 16384, 16385, 16447, 65536, 65599 };
	unsigned char *from = chi_alloc_aligned(CAPACITY), *to = chi_alloc_aligned(CAPACITY);
	for (size_t i = 0; i < CAPACITY; i++)
		from[i] = (unsigned char) (i * 7 + i / 251);
	for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
		for (size_t shift = 0; shift < EDGE; shift += 9) {
			const size_t at = EDGE + shift, source = EDGE + shift * 5 % EDGE;
			memset(to, 0xa5, CAPACITY);
			chi_copy_nontemporal(to + at, from + source, sizes[k]);
			assert_memory_equal(to + at, from + source, sizes[k]);
			for (size_t i = 0; i < EDGE; i++) { // nothing beside it
				assert_int_equal(to[at - 1 - i], 0xa5);
				assert_int_equal(to[at + sizes[k] + i], 0xa5);
			}
		}
	chi_copy_nontemporal(NULL, NULL, 0);
	chi_free(from);
	chi_free(to);
}

// With and without words that hold several elements.
TEST(test_atomic_sizes)
{
	enum { N = 21, MAX_BYTES = 8 * (N + 2) };
	_Alignas(8) unsigned char from[MAX_BYTES], to[MAX_BYTES];
	for (size_t i = 0; i < MAX_BYTES; i++)
		from[i] = (unsigned char) (i + 1);
	for (size_t size = 1; size <= 8; size *= 2)
		for (size_t skip = 0; skip < 2; skip++)
			for (int64_t n = 0; n <= N; n++) {
				const size_t bytes = (size_t) n * size;
				memset(to, 0, sizeof to);
				chi_copy_atomic(to + skip * size, from + size, n, size);
				assert_memory_equal(to + skip * size, from + size, bytes);
				for (size_t i = 0; i < sizeof to; i++)
					if (i < skip * size || i >= skip * size + bytes)
						assert_int_equal(to[i], 0);
				chi_copy_atomic(to + skip * size, from, n, size);
				assert_memory_equal(to + skip * size, from, bytes);
			}
}
