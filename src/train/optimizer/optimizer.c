// Kinds, their constructor, and their comparison between workers.
#include "train/optimizer/optimizer.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/lock.h"
#include "strategy/worker_sync.h"

#include <inttypes.h>
#include <string.h>

// clang-format off
static const chi_optimizer_kind kinds[] = {
	[CHOIR_SGD] = { "sgd", "sgd_update", .rate = 1e-2, .skips_zeros = true },
	[CHOIR_MOMENTUM] = { "momentum", "momentum_update", .slots = 1, .slot = { "momentum" },
		.rate = 1e-2, .standard_momentum = 0.9, .momentum = true, .nesterov = true },
	[CHOIR_ADAM] = { "adam", "adam_update", .slots = 2, .slot = { "m", "v" },
		.rate = 1e-3, .standard_beta2 = 0.999, .betas = true, .epsilon = true },
	[CHOIR_ADAMW] = { "adamw", "adam_update", .slots = 2, .slot = { "m", "v" },
		.rate = 1e-3, .standard_beta2 = 0.999, .standard_decay = 1e-2, .betas = true,
		.epsilon = true, .decay = true },
	[CHOIR_RMSPROP] = { "rmsprop", "rmsprop_update", .slots = 2, .slot = { "v", "momentum" },
		.rate = 1e-3, .momentum = true, .epsilon = true, .rho = true },
	[CHOIR_NADAM] = { "nadam", "nadam_update", .slots = 2, .slot = { "m", "v" },
		.rate = 1e-3, .standard_beta2 = 0.999, .betas = true, .epsilon = true },
	[CHOIR_ADAGRAD] = { "adagrad", "adagrad_update", .slots = 1, .slot = { "accumulator" },
		.rate = 1e-3, .epsilon = true, .accumulator = true, .skips_zeros = true },
	[CHOIR_LION] = { "lion", "lion_update", .slots = 1, .slot = { "momentum" },
		.rate = 1e-3, .standard_beta2 = 0.99, .betas = true, .decay = true },
	[CHOIR_LAMB] = { "lamb", "lamb_update", .slots = 2, .slot = { "m", "v" },
		.rate = 1e-3, .standard_beta2 = 0.999, .betas = true, .epsilon = true, .decay = true,
		.whole = true },
};
// clang-format on
enum { KINDS = sizeof kinds / sizeof kinds[0] };

void chi_optimizer_free(void *self)
{
	choir_optimizer *o = self;
	chi_gradients_free(o->apply);
	chi_optimized_variables_free(o);
	chi_groups_free(o);
	chi_mutex_destroy(&o->lock);
	chi_free(o);
}

static uint64_t hash_number(uint64_t hash, double x)
{
	uint64_t bits;
	memcpy(&bits, &x, sizeof bits);
	return chi_hash_mix(hash ^ bits);
}

static uint64_t hash_groups(const choir_optimizer *o)
{
	uint64_t hash = o->groups;
	for (size_t i = 0; i < o->groups; i++) {
		const chi_parameter_group *g = &o->group[i];
		const char *pattern = g->names;
		for (size_t k = 0; k < g->patterns; k++, pattern += strlen(pattern) + 1)
			hash = chi_hash_mix(hash ^ chi_hash_text(pattern));
		hash = hash_number(hash_number(hash, g->rate), g->decay);
	}
	return hash;
}

// Messages show these numbers rounded.
static uint64_t hash_numbers(const choir_optimizer *made)
{
	const choir_optimizer_options *o = &made->options;
	const double all[] = { o->learning_rate, o->global_clip_norm, o->weight_decay, o->momentum,
		o->beta1, o->beta2, o->epsilon, o->rho, made->schedule.factor, made->loss_scale.initial,
		made->loss_scale.multiplier, o->initial_accumulator, o->ema_momentum };
	uint64_t hash = 0;
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		hash = hash_number(hash, all[i]);
	return hash;
}

// In parts, since messages show only the beginning.
static choir_status check_consistency(choir_strategy *s, const choir_optimizer *made)
{
	const choir_optimizer_options *o = &made->options;
	const choir_schedule *schedule = &made->schedule;
	const choir_loss_scale *scale = &made->loss_scale;
	CHOIR_TRY(chi_strategy_same(s,
			"optimizer %s, rate %.9g, clip_norm %.9g, weight_decay %.9g, momentum %.9g, "
			"nesterov %d, betas %.9g %.9g, epsilon %.9g, rho %.9g, nonfinite %d, "
			"schedule %d of %lld steps after %lld, factor %.9g",
			made->kind->name, o->learning_rate, o->global_clip_norm, o->weight_decay, o->momentum,
			(int) o->nesterov, o->beta1, o->beta2, o->epsilon, o->rho, (int) o->nonfinite,
			(int) schedule->kind, (long long) schedule->steps, (long long) schedule->warmup,
			schedule->factor));
	CHOIR_TRY(chi_strategy_same(s,
			"optimizer %s, loss scale %s from %.9g, %lld, %.9g, %zu groups of contents "
			"%016" PRIx64,
			made->kind->name, scale->kind == CHOIR_LOSS_SCALE_DYNAMIC ? "dynamic" : "fixed",
			scale->initial, (long long) scale->period, scale->multiplier, made->groups,
			hash_groups(made)));
	return chi_strategy_same(s, "optimizer %s, all digits of its numbers %016" PRIx64,
			made->kind->name, hash_numbers(made));
}

static choir_optimizer *make(
		choir_strategy *s, choir_optimizer_kind kind, const choir_optimizer_options *options)
{
	choir_optimizer_options all;
	choir_schedule schedule;
	choir_loss_scale scale;
	if ((unsigned) kind >= KINDS) {
		choir_fail(CHOIR_INVALID,
				"optimizer: kind %d is unknown; known: CHOIR_SGD, CHOIR_MOMENTUM, CHOIR_ADAM, "
				"CHOIR_ADAMW, CHOIR_RMSPROP, CHOIR_NADAM, CHOIR_ADAGRAD, CHOIR_LION and "
				"CHOIR_LAMB",
				(int) kind);
		return NULL;
	}
	if (chi_optimizer_resolve(&kinds[kind], options, &all, &schedule) != CHOIR_OK ||
			chi_loss_scale_resolve(all.loss_scale, &scale) != CHOIR_OK)
		return NULL;
	if (scale.kind == CHOIR_LOSS_SCALE_DYNAMIC && all.nonfinite == CHOIR_NONFINITE_IGNORE) {
		choir_fail(CHOIR_INVALID,
				"optimizer: nonfinite is CHOIR_NONFINITE_IGNORE, but a "
				"dynamic loss scale skips such updates; choose another");
		return NULL;
	}
	if (scale.kind == CHOIR_LOSS_SCALE_DYNAMIC && s->concurrency != CHI_EXCLUSIVE) {
		choir_fail(CHOIR_UNSUPPORTED,
				"optimizer: a dynamic loss scale for %d workers is not "
				"possible, since each would change it for the others; use a fixed one",
				s->workers);
		return NULL;
	}
	if (s->concurrency == CHI_LOCK_FREE && (kinds[kind].whole || all.ema_momentum > 0)) {
		choir_fail(CHOIR_UNSUPPORTED,
				"optimizer: %s is not possible with lock-free workers; let them lock variables",
				kinds[kind].whole ? kinds[kind].name : "ema_momentum");
		return NULL;
	}
	choir_optimizer *o = chi_alloc(sizeof *o);
	if (o == NULL)
		return NULL;
	o->strategy = s->owner;
	chi_mutex_init(&o->lock, CHI_RANK_OPTIMIZER, "optimizer");
	o->kind = &kinds[kind];
	o->options = all;
	o->slots = kinds[kind].slots + (all.ema_momentum > 0);
	o->options.schedule = NULL;
	o->options.loss_scale = NULL;
	o->options.groups = NULL;
	o->schedule = schedule;
	o->loss_scale = scale;
	o->scale = scale.initial;
	chi_update_table(o);
	if (chi_groups_make(o, &all) != CHOIR_OK || check_consistency(s, o) != CHOIR_OK ||
			(o->apply = chi_gradients_new(s->owner, &o->table, o)) == NULL) {
		chi_optimizer_free(o);
		return NULL;
	}
	return chi_strategy_own_stateful(s, &chi_optimizer_state, o) == CHOIR_OK ? o : NULL;
}

choir_optimizer *choir_optimizer_new(
		choir_optimizer_kind kind, const choir_optimizer_options *options)
{
	choir_strategy *s = choir_strategy_current();
	if (s == NULL || chi_strategy_check(s) != CHOIR_OK ||
			chi_context_need_cross(s, "making an optimizer") != CHOIR_OK)
		return NULL;
	choir_optimizer *o = make(s, kind, options);
	if (o == NULL) // other workers wait to compare theirs
		chi_strategy_abort(s, choir_error_status());
	return o;
}

choir_status chi_optimizer_check_replica(const choir_optimizer *o, const choir_replica *r)
{
	if (o == NULL)
		return choir_fail(CHOIR_INVALID, "optimizer: is NULL");
	if (r == NULL)
		return choir_fail(CHOIR_INVALID, "%s: the replica is NULL", o->kind->name);
	if (choir_replica_strategy(r)->owner != o->strategy)
		return chi_frame_fail(r->frame, CHOIR_STATE,
				"%s: mixing strategies: the optimizer belongs to %s, this replica to %s",
				o->kind->name, o->strategy->label, choir_replica_strategy(r)->label);
	return CHOIR_OK;
}
