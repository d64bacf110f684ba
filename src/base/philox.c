// A round computes two 32-bit products, swaps their halves and mixes them with the key, which
// advances by a Weyl sequence.
#include "base/philox.h"
#include "base/hash.h"

#include <math.h>

enum { ROUNDS = 10 };
static const uint32_t multiplier[2] = { 0xD2511F53, 0xCD9E8D57 };
static const uint32_t weyl[2] = { 0x9E3779B9, 0xBB67AE85 }; // golden ratio; sqrt(3) - 1

chi_philox_block chi_philox(const uint32_t counter[4], const uint32_t key[2])
{
	uint32_t x0 = counter[0], x1 = counter[1], x2 = counter[2], x3 = counter[3];
	uint32_t k0 = key[0], k1 = key[1];
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t p0 = (uint64_t) multiplier[0] * x0;
		uint64_t p1 = (uint64_t) multiplier[1] * x2;
		x0 = (uint32_t) (p1 >> 32) ^ x1 ^ k0;
		x1 = (uint32_t) p1;
		x2 = (uint32_t) (p0 >> 32) ^ x3 ^ k1;
		x3 = (uint32_t) p0;
		k0 += weyl[0];
		k1 += weyl[1];
	}
	return (chi_philox_block){ { x0, x1, x2, x3 } };
}

// Index, place and replica cannot collide. Seed and step are hashed, so that neighbours are
// unrelated.
void chi_random_counter(
		const chi_random_key *key, uint64_t index, uint32_t counter[4], uint32_t words[2])
{
	uint64_t mixed = chi_hash_mix(chi_hash_mix(key->seed) + key->step);
	counter[0] = (uint32_t) index;
	counter[1] = (uint32_t) (index >> 32);
	counter[2] = key->place;
	counter[3] = key->replica;
	words[0] = (uint32_t) mixed;
	words[1] = (uint32_t) (mixed >> 32);
}

chi_philox_block chi_random_block(const chi_random_key *key, uint64_t index)
{
	uint32_t counter[4], words[2];
	chi_random_counter(key, index, counter, words);
	return chi_philox(counter, words);
}

float chi_uniform_float(uint32_t word)
{
	return (float) (word >> 8) * 0x1p-24f;
}

double chi_uniform_double(uint32_t high, uint32_t low)
{
	uint64_t word = (uint64_t) high << 32 | low;
	return (double) (word >> 11) * 0x1p-53;
}

void chi_normal_pair(const chi_philox_block *block, double out[2])
{
	static const double two_pi = 6.283185307179586476925;
	// In (0, 1], so that log is finite.
	double u = 1 - chi_uniform_double(block->word[0], block->word[1]);
	double angle = two_pi * chi_uniform_double(block->word[2], block->word[3]);
	double radius = sqrt(-2 * log(u));
	out[0] = radius * cos(angle);
	out[1] = radius * sin(angle);
}
