// Random numbers: Philox4x32-10 as kernel_table.h defines it. Dropout gives the CPU's bits; normal
// numbers differ in the last bits, because CUDA's log, sin and cos are not those of the C library.
#include "launch.h"

#include <cmath>

namespace choir_cuda
{

struct philox {
	uint32_t key[2], place, replica;
	__device__ void block(uint64_t j, uint32_t word[4]) const
	{
		uint32_t key0 = key[0], key1 = key[1];
		word[0] = (uint32_t) j;
		word[1] = (uint32_t) (j >> 32);
		word[2] = place;
		word[3] = replica;
		for (int round = 0; round < 10; round++) {
			const uint64_t p0 = (uint64_t) 0xD2511F53u * word[0];
			const uint64_t p1 = (uint64_t) 0xCD9E8D57u * word[2];
			word[0] = (uint32_t) (p1 >> 32) ^ word[1] ^ key0;
			word[2] = (uint32_t) (p0 >> 32) ^ word[3] ^ key1;
			word[1] = (uint32_t) p1;
			word[3] = (uint32_t) p0;
			key0 += 0x9E3779B9u;
			key1 += 0xBB67AE85u;
		}
	}
};

static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xBF58476D1CE4E5B9u;
	x ^= x >> 27;
	x *= 0x94D049BB133111EBu;
	return x ^ x >> 31;
}

static philox philox_of(const choir_kernel_call *c)
{
	const auto *a = attributes<choir_random_attributes>(c);
	const uint64_t key = mix(mix(a->seed) + a->step);
	return { { (uint32_t) key, (uint32_t) (key >> 32) }, a->place, a->replica_id };
}

// A thread takes a block of four words.
template <class T>
__global__ void dropout_kernel(
		const T *x, T *out, int64_t n, philox p, uint32_t threshold, real<T> kept_by)
{
	EACH (block, (n + 3) / 4) {
		uint32_t word[4];
		p.block((uint64_t) block, word);
		for (int64_t i = block * 4; i < n && i < block * 4 + 4; i++)
			out[i] = word[i % 4] >> 8 >= threshold ? (T) ((real<T>) x[i] * kept_by) : (T) 0;
	}
}

KERNEL(dropout)
{
	const double rate = attributes<choir_random_attributes>(c)->rate;
	const int64_t n = elements(*c->out);
	const uint32_t threshold = (uint32_t) ceil(rate * 16777216.0);
	return launch_each(c, (n + 3) / 4, dropout_kernel<T>, given<T>(c, 0), made<T>(c), n,
			philox_of(c), threshold, (real<T>) (1 / (1 - rate)));
}

__device__ inline double uniform(uint32_t a, uint32_t b)
{
	return (double) (((uint64_t) a << 32 | b) >> 11) * (1.0 / 9007199254740992.0);
}

template <class T> __global__ void normal_kernel(T *out, int64_t n, philox p)
{
	EACH (pair, (n + 1) / 2) {
		uint32_t w[4];
		p.block((uint64_t) pair, w);
		const double size = sqrt(-2 * log(1 - uniform(w[0], w[1])));
		const double turn = 2 * 3.14159265358979323846 * uniform(w[2], w[3]);
		out[2 * pair] = (T) (size * cos(turn));
		if (2 * pair + 1 < n)
			out[2 * pair + 1] = (T) (size * sin(turn));
	}
}

KERNEL(random_normal)
{
	const int64_t n = elements(*c->out);
	return launch_each(c, (n + 1) / 2, normal_kernel<T>, made<T>(c), n, philox_of(c));
}

static const kernel kernels[] = {
	{ "dropout", FLOATS, run_float<dropout> },
	{ "random_normal", FLOATS, run_float<random_normal> },
};
const kernel_list random_kernels = list_of(kernels);

} // namespace choir_cuda
