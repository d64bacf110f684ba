// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3, SC
// 2011). A function of counter and key, so nothing depends on threads or order.
#pragma once

#include <stdint.h>

typedef struct {
	uint32_t word[4];
} chi_philox_block;

chi_philox_block chi_philox(const uint32_t counter[4], const uint32_t key[2]);

// What a draw is keyed by: docs/decisions/0013. place is the draw's number in the program.
typedef struct {
	uint64_t seed;
	uint64_t step;
	uint32_t replica;
	uint32_t place;
} chi_random_key;

// What the index-th block of a key is made from, for loops that make many: the next block has the
// next counter[0] and counter[1], a 64-bit number.
void chi_random_counter(
		const chi_random_key *key, uint64_t index, uint32_t counter[4], uint32_t words[2]);
// The index-th block of four words of a key.
chi_philox_block chi_random_block(const chi_random_key *key, uint64_t index);
// 24 bits to [0, 1), and 53 bits to [0, 1).
float chi_uniform_float(uint32_t word);
double chi_uniform_double(uint32_t high, uint32_t low);
// Two standard normal numbers (Box and Muller 1958) from four words.
void chi_normal_pair(const chi_philox_block *block, double out[2]);
