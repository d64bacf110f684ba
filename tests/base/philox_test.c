// Random numbers: the published vectors of Philox4x32-10, and what is made of its words.
#include "base/philox.h"
#include "test.h"

#include <math.h>
#include <string.h>

// The known answers that come with Random123, the paper's own implementation.
TEST(test_known_answers)
{
	static const struct {
		uint32_t counter[4], key[2], expected[4];
	} cases[] = {
		{ { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
		{ { UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX }, { UINT32_MAX, UINT32_MAX },
				{ 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
		{ { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 }, { 0xa4093822, 0x299f31d0 },
				{ 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		chi_philox_block block = chi_philox(cases[i].counter, cases[i].key);
		assert_memory_equal(block.word, cases[i].expected, sizeof(block.word));
	}
}

// Each part of a key matters, to its last bit, and the index too.
TEST(test_every_part_matters)
{
	chi_philox_block blocks[9];
	chi_random_key key = { 1, 2, 3, 4 };
	blocks[0] = chi_random_block(&key, 5);
	blocks[1] = chi_random_block(&key, 6);
	blocks[2] = chi_random_block(&key, 5 + (UINT64_C(1) << 63));
	static const chi_random_key others[] = { { 1 | UINT64_C(1) << 63, 2, 3, 4 }, { 0, 2, 3, 4 },
		{ 1, 3, 3, 4 }, { 1, 2 | UINT64_C(1) << 63, 3, 4 }, { 1, 2, 3 | 1u << 31, 4 },
		{ 1, 2, 3, 5 } };
	for (size_t i = 0; i < 6; i++)
		blocks[3 + i] = chi_random_block(&others[i], 5);
	for (size_t i = 0; i < 9; i++)
		for (size_t k = i + 1; k < 9; k++)
			assert_memory_not_equal(&blocks[i], &blocks[k], sizeof(blocks[i]));
	chi_philox_block again = chi_random_block(&key, 5);
	assert_memory_equal(&blocks[0], &again, sizeof(again));
}

TEST(test_uniform_ends)
{
	assert_true(chi_uniform_float(0) == 0);
	assert_true(chi_uniform_float(UINT32_MAX) == 1 - 0x1p-24f);
	assert_true(chi_uniform_float(1u << 31) == 0.5f);
	assert_true(chi_uniform_double(0, 0) == 0);
	assert_true(chi_uniform_double(UINT32_MAX, UINT32_MAX) == 1 - 0x1p-53);
	assert_true(chi_uniform_double(1u << 30, 0) == 0.25);
	assert_true(chi_uniform_double(0, 1u << 11) == 0x1p-53);
}

TEST(test_normal_ends)
{
	double out[2];
	for (unsigned i = 0; i < 16; i++) {
		chi_philox_block block;
		for (unsigned k = 0; k < 4; k++)
			block.word[k] = i >> k & 1 ? UINT32_MAX : 0;
		chi_normal_pair(&block, out);
		assert_true(isfinite(out[0]) && isfinite(out[1]));
	}
	chi_philox_block zero = { { 0, 0, 0, 0 } };
	chi_normal_pair(&zero, out);
	assert_true(out[0] == 0 && out[1] == 0);
	chi_philox_block half = { { 1u << 31, 0, 0, 0 } };
	chi_normal_pair(&half, out); // sqrt(-2 log(1/2)), at angle 0
	assert_true(fabs(out[0] - 1.17741002251547469) < 1e-14 && out[1] == 0);
}

// Mean, variance and fourth moment of many draws; six standard deviations wide, and the draws are
// always the same.
TEST(test_moments)
{
	enum { BLOCKS = 50000 };
	chi_random_key key = { 42, 0, 0, 0 };
	double uniform = 0, sum = 0, square = 0, fourth = 0;
	for (uint64_t i = 0; i < BLOCKS; i++) {
		chi_philox_block block = chi_random_block(&key, i);
		for (int k = 0; k < 4; k++)
			uniform += (double) chi_uniform_float(block.word[k]);
		double z[2];
		chi_normal_pair(&block, z);
		for (int k = 0; k < 2; k++) {
			sum += z[k];
			square += z[k] * z[k];
			fourth += z[k] * z[k] * z[k] * z[k];
		}
	}
	const double n = 2 * BLOCKS;
	assert_true(fabs(uniform / (2 * n) - 0.5) < 6 * sqrt(1. / 12 / (2 * n)));
	assert_true(fabs(sum / n) < 6 * sqrt(1 / n));
	assert_true(fabs(square / n - 1) < 6 * sqrt(2 / n));
	assert_true(fabs(fourth / n - 3) < 6 * sqrt(96 / n));
}
