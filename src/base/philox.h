// Philox4x32-10. Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3, SC 2011.
#pragma once

#include <stdint.h>

typedef struct {
	uint32_t word[4];
} chi_philox_block;

chi_philox_block chi_philox(const uint32_t counter[4], const uint32_t key[2]);

// docs/decisions/0013; place is the draw's number in the program.
typedef struct {
	uint64_t seed;
	uint64_t step;
	uint32_t replica;
	uint32_t place;
} chi_random_key;

// Of the index-th block. The next one has the next 64-bit number in counter[0] and counter[1].
void chi_random_counter(
		const chi_random_key *key, uint64_t index, uint32_t counter[4], uint32_t words[2]);
chi_philox_block chi_random_block(const chi_random_key *key, uint64_t index);
float chi_uniform_float(uint32_t word);
double chi_uniform_double(uint32_t high, uint32_t low);
// Standard normal (Box and Muller 1958).
void chi_normal_pair(const chi_philox_block *block, double out[2]);
