// Each element has a position in the key's Philox sequence. Dropout's gradient is dropout with the
// same key.
#include "base/philox.h"
#include "op/plain/cast_kernel.h"

#include <math.h>

static chi_random_key key_of(const choir_random_attributes *a)
{
	return (chi_random_key){
		.seed = a->seed, .step = a->step, .replica = a->replica_id, .place = a->place
	};
}

// Keeps elements whose uniform number, a multiple of 2^-24, is at least the rate.
static choir_status run_dropout(const choir_kernel_call *call)
{
	enum { BLOCKS = 256 };
	const choir_random_attributes *attributes = call->attributes;
	const chi_random_key key = key_of(attributes);
	const uint32_t threshold = (uint32_t) ceil(attributes->rate * 0x1p24);
	const choir_buffer *x = &call->in[0];
	const chi_loops *loops = chi_loops_best();
	const int64_t n = chi_elements(x);
	for (int64_t i = 0; i < n; i += BLOCKS * 4) {
		uint32_t words[BLOCKS * 4], counter[4], philox_key[2];
		const int64_t count = n - i < BLOCKS * 4 ? n - i : BLOCKS * 4;
		chi_random_counter(&key, (uint64_t) i / 4, counter, philox_key);
		loops->philox(words, counter, philox_key, (count + 3) / 4);
		loops->real[x->dtype]->dropout(chi_element(call->out, i), chi_element(x, i), words,
				threshold, 1 / (1 - attributes->rate), count);
	}
	return CHOIR_OK;
}

static choir_status run_normal(const choir_kernel_call *call)
{
	const chi_random_key key = key_of(call->attributes);
	const int64_t n = chi_elements(call->out);
	for (int64_t i = 0; i < n; i += 2) {
		const chi_philox_block block = chi_random_block(&key, (uint64_t) (i / 2));
		double pair[2];
		chi_normal_pair(&block, pair);
		chi_narrow(call->out->dtype, chi_element(call->out, i), pair, n - i < 2 ? 1 : 2);
	}
	return CHOIR_OK;
}

static const chi_kernel_spec specs[] = {
	{ "dropout", CHI_REAL, sizeof(choir_random_attributes), run_dropout, NULL, NULL, NULL },
	{ "random_normal", CHI_REAL, sizeof(choir_random_attributes), run_normal, NULL, NULL, NULL },
};
const chi_kernel_list chi_plain_random = { specs, sizeof specs / sizeof specs[0] };
