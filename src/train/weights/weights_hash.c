// A hash of names, dtypes, shapes and bytes of all weights.
#include "choir/weights.h"

#include "base/hash.h"
#include "strategy/context.h"
#include "train/weights/weights.h"

#include <string.h>

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
	const char *from = data;
	for (uint64_t word; bytes > 0; from += sizeof word) {
		const size_t n = bytes < sizeof word ? bytes : sizeof word;
		word = 0;
		memcpy(&word, from, n);
		hash = chi_hash_mix(hash ^ word);
		bytes -= n;
	}
	return hash;
}

static choir_status hash_weight(
		const choir_variable *v, const void *data, size_t bytes, void *user)
{
	uint64_t *hash = user;
	*hash = chi_hash_mix(*hash ^ chi_hash_text(v->name));
	*hash = chi_hash_mix(*hash ^ ((uint64_t) v->dtype << 8 | (uint64_t) v->shape.rank));
	for (int i = 0; i < v->shape.rank; i++)
		*hash = chi_hash_mix(*hash ^ (uint64_t) v->shape.dim[i]);
	*hash = hash_bytes(*hash, data, bytes);
	return CHOIR_OK;
}

uint64_t choir_strategy_hash(choir_strategy *s)
{
	chi_weights w;
	uint64_t hash = 0;
	if (chi_strategy_check(s) != CHOIR_OK || chi_context_need_cross(s, "hash") != CHOIR_OK)
		return 0;
	choir_status status = chi_weights_collect(s, "hash", &w);
	if (status == CHOIR_OK)
		status = chi_weights_each(&w, hash_weight, &hash);
	chi_weights_free(&w);
	if (chi_strategy_abort(s, status) != CHOIR_OK)
		return 0;
	return hash == 0 ? 1 : hash;
}
