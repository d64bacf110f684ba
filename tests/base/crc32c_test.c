// CRC-32C: the published vectors, and the processor's instruction against the table at every
// length, place and start.
#include "base/crc32c.h"
#include "base/philox.h"
#include "test.h"

#include <string.h>

enum { MAX = 2000 };

// RFC 3720, appendix B.4, and the check value of the catalogues of checksums.
TEST(test_known_answers)
{
	unsigned char bytes[32];
	memset(bytes, 0, sizeof bytes);
	assert_int_equal(chi_crc32c(0, bytes, 32), 0x8a9136aa);
	memset(bytes, 0xff, sizeof bytes);
	assert_int_equal(chi_crc32c(0, bytes, 32), 0x62a8ab43);
	for (int i = 0; i < 32; i++)
		bytes[i] = (unsigned char) i;
	assert_int_equal(chi_crc32c(0, bytes, 32), 0x46dd794e);
	for (int i = 0; i < 32; i++)
		bytes[i] = (unsigned char) (31 - i);
	assert_int_equal(chi_crc32c(0, bytes, 32), 0x113fdb5c);
	assert_int_equal(chi_crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(chi_crc32c_table(0, "123456789", 9), 0xe3069283);
	assert_int_equal(chi_crc32c(0, NULL, 0), 0);
	assert_int_equal(chi_crc32c_masked("123456789", 9),
			((0xe3069283u >> 15 | 0xe3069283u << 17) + 0xa282ead8u));
}

static void fill(unsigned char bytes[MAX])
{
	static const chi_random_key key = { 6, 0, 0, 0 };
	for (uint64_t i = 0; i < MAX / 16; i++) {
		const chi_philox_block block = chi_random_block(&key, i);
		memcpy(bytes + 16 * i, block.word, sizeof block.word);
	}
}

TEST(test_the_instruction_agrees_with_the_table)
{
	unsigned char bytes[MAX];
	fill(bytes);
	for (size_t start = 0; start < 9; start++)
		for (size_t n = 0; start + n <= MAX; n += n < 800 ? 1 : 97)
			if (chi_crc32c(7, bytes + start, n) != chi_crc32c_table(7, bytes + start, n))
				fail_msg("%zu bytes from %zu", n, start);
}

TEST(test_parts_make_a_whole)
{
	unsigned char bytes[MAX];
	fill(bytes);
	const uint32_t whole = chi_crc32c(0, bytes, MAX);
	for (size_t cut = 0; cut <= MAX; cut += 13) {
		const uint32_t first = chi_crc32c(0, bytes, cut);
		assert_int_equal(chi_crc32c(first, bytes + cut, MAX - cut), whole);
	}
}
