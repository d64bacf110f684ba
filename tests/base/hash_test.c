// Hashes are those that were published.
#include "base/hash.h"
#include "test.h"

TEST(test_hash)
{
	// The first output of SplitMix64 seeded with 0 is its mixer's value of the golden ratio.
	assert_true(chi_hash_mix(0x9E3779B97F4A7C15) == 0xE220A8397B1DCDAF);
	// FNV-1a of "" and "a", as published, then mixed.
	assert_true(chi_hash_text("") == chi_hash_mix(0xCBF29CE484222325));
	assert_true(chi_hash_text("a") == chi_hash_mix(0xAF63DC4C8601EC8C));
	assert_true(chi_hash_text("w") != chi_hash_text("b"));
	assert_true(chi_hash_bytes("a\0b", 3) != chi_hash_bytes("a\0c", 3));
	assert_true(chi_hash_bytes("ab", 1) == chi_hash_text("a"));
}
