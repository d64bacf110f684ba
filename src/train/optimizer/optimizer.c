// Optimizers: kinds, their constructor, their comparison between workers, and the calls with
// gradients.
#include "train/optimizer/optimizer.h"

#include "base/hash.h"
#include "op/tape/tape.h"
#include "strategy/cross/cross.h"
#include "strategy/replica/merge_call.h"
#include "strategy/worker_sync.h"
#include "value/shard_rows.h"

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
		made->loss_scale.multiplier, o->initial_accumulator, o->ema_momentum,
		made->schedule.power };
	uint64_t hash = 0;
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		hash = hash_number(hash, all[i]);
	return hash;
}

// In parts: messages show only the beginning.
static choir_status check_consistency(choir_strategy *s, const choir_optimizer *made)
{
	const choir_optimizer_options *o = &made->options;
	const choir_schedule *schedule = &made->schedule;
	const choir_loss_scale *scale = &made->loss_scale;
	CHOIR_TRY(chi_strategy_same(s,
			"optimizer %s, rate %.9g, clip_norm %.9g, weight_decay %.9g, momentum %.9g, "
			"nesterov %d",
			made->kind->name, o->learning_rate, o->global_clip_norm, o->weight_decay, o->momentum,
			(int) o->nesterov));
	CHOIR_TRY(chi_strategy_same(s,
			"optimizer %s, betas %.9g %.9g, epsilon %.9g, rho %.9g, nonfinite %d",
			made->kind->name, o->beta1, o->beta2, o->epsilon, o->rho, (int) o->nonfinite));
	CHOIR_TRY(
			chi_strategy_same(s, "optimizer %s, schedule %d of %lld steps after %lld, factor %.9g",
					made->kind->name, (int) schedule->kind, (long long) schedule->steps,
					(long long) schedule->warmup, schedule->factor));
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
	if ((unsigned) kind >= KINDS)
		return chi_fail_null(CHOIR_INVALID,
				"optimizer: kind %d is unknown; known: CHOIR_SGD, CHOIR_MOMENTUM, CHOIR_ADAM, "
				"CHOIR_ADAMW, CHOIR_RMSPROP, CHOIR_NADAM, CHOIR_ADAGRAD, CHOIR_LION and "
				"CHOIR_LAMB",
				(int) kind);
	if (chi_optimizer_resolve(&kinds[kind], options, &all, &schedule) != CHOIR_OK ||
			chi_loss_scale_resolve(all.loss_scale, &scale) != CHOIR_OK)
		return NULL;
	if (scale.kind == CHOIR_LOSS_SCALE_DYNAMIC && all.nonfinite == CHOIR_NONFINITE_IGNORE)
		return chi_fail_null(CHOIR_INVALID,
				"optimizer: nonfinite is CHOIR_NONFINITE_IGNORE, but a "
				"dynamic loss scale skips such updates; choose another");
	if (scale.kind == CHOIR_LOSS_SCALE_DYNAMIC && s->concurrency != CHI_EXCLUSIVE)
		return chi_fail_null(CHOIR_UNSUPPORTED,
				"optimizer: a dynamic loss scale for %d workers is not "
				"possible, since each would change it for the others; use a fixed one",
				s->workers);
	if (s->concurrency == CHI_LOCK_FREE && (kinds[kind].whole || all.ema_momentum > 0))
		return chi_fail_null(CHOIR_UNSUPPORTED,
				"optimizer: %s is not possible with lock-free workers; let them lock variables",
				kinds[kind].whole ? kinds[kind].name : "ema_momentum");
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

static bool fits(const choir_variable *v, const choir_tensor *t)
{
	return t != NULL && t->buffer != NULL && t->dtype == v->dtype &&
			chi_shape_equal(&t->shape, &v->shape);
}

// Slices that are not finite are made dense and reported there.
static bool goes_by_rows(
		const choir_optimizer *o, const choir_variable *v, const choir_tensor *gradient)
{
	return v != NULL && chi_gradients_take_sparse(o->apply, v) && gradient->dtype == v->dtype &&
			chi_tensor_check_any(gradient) == CHOIR_OK &&
			chi_first_nonfinite(v->dtype, gradient->data,
					choir_shape_elements(&gradient->shape)) == CHOIR_NONE;
}

choir_status choir_optimizer_add_gradient(
		choir_optimizer *o, choir_replica *r, choir_variable *v, choir_tensor *gradient)
{
	CHOIR_TRY(chi_optimizer_check_replica(o, r));
	const choir_strategy *s = o->strategy;
	if (s->watch != NULL && v != NULL && gradient != NULL) {
		chi_mutex_check_none_held();
		s->watch(r, v, gradient, s->watch_user);
	}
	if (v != NULL && chi_optimizer_check_dtype(o, v) != CHOIR_OK)
		return chi_frame_record_error(r->frame);
	if (choir_tensor_is_slices(gradient) && !goes_by_rows(o, v, gradient))
		gradient = choir_to_dense(gradient);
	// the caller searches for bad gradients there
	const bool alone = chi_replica_of(r)->run->isolated;
	if (v != NULL && gradient != NULL && !alone &&
			chi_optimizer_check_gradient(o, v, gradient) != CHOIR_OK)
		return chi_frame_record_error(r->frame);
	if (v != NULL && v->shards > 0 && fits(v, gradient)) {
		for (int i = 0; i < v->shards; i++)
			CHOIR_TRY(chi_gradients_add(
					o->apply, r, v->shard[i], chi_shard_rows(v->shard[i], gradient)));
		return CHOIR_OK;
	}
	return chi_gradients_add(o->apply, r, v, gradient);
}

choir_status choir_optimizer_add_gradient_memory(choir_optimizer *o, choir_replica *r,
		choir_variable *v, const void *gradient, size_t bytes)
{
	CHOIR_TRY(chi_optimizer_check_replica(o, r));
	CHOIR_TRY(chi_replica_check(r, o->kind->name));
	if (v == NULL)
		return chi_frame_fail(r->frame, CHOIR_INVALID, "%s: the variable is NULL", o->kind->name);
	if (bytes != chi_variable_bytes(v))
		return chi_frame_fail(r->frame, CHOIR_INVALID,
				"%s: the gradient of \"%s\" has %zu bytes, the variable %zu", o->kind->name,
				v->name, bytes, chi_variable_bytes(v));
	if (gradient == NULL && bytes > 0)
		return chi_frame_fail(r->frame, CHOIR_INVALID, "%s: the gradient of \"%s\" is NULL",
				o->kind->name, v->name);
	choir_tensor *t = choir_borrow(r->frame, v->dtype, v->shape, gradient);
	CHOIR_TRY(chi_frame_made(r->frame, t));
	t->borrowed = false;
	const choir_status status = choir_optimizer_add_gradient(o, r, v, t);
	chi_tensor_drop(t);
	return status;
}

choir_status choir_optimizer_apply_gradients(choir_optimizer *o, choir_replica *r)
{
	CHOIR_TRY(chi_optimizer_check_replica(o, r));
	return chi_gradients_apply(o->apply, r);
}

typedef struct {
	choir_optimizer *optimizer;
	choir_replica *replica;
	choir_tensor **source;
} giving;

static choir_status give_ready(void *user, size_t index, choir_tensor *gradient)
{
	const giving *g = user;
	return choir_optimizer_add_gradient(
			g->optimizer, g->replica, choir_tensor_variable(g->source[index]), gradient);
}

// NULL: all.
typedef struct {
	size_t n;
	choir_variable *const *variable;
} chosen;

static bool is_chosen(const chosen *c, const choir_variable *v)
{
	size_t i = 0;
	while (c != NULL && i < c->n && c->variable[i] != v && c->variable[i] != v->parent)
		i++;
	return c == NULL || i < c->n;
}

static choir_status find_sources(const choir_optimizer *o, const choir_tape *tape, const chosen *c,
		choir_tensor ***sources, size_t *n)
{
	choir_frame *f = tape->frame;
	*n = 0;
	*sources = chi_arena_alloc(&f->arena, (tape->n_reads + 1) * sizeof(choir_tensor *));
	if (*sources == NULL)
		return chi_frame_record_error(f);
	for (size_t i = 0; i < tape->n_reads; i++) {
		const choir_variable *v = choir_tensor_variable(tape->reads[i]);
		if (v->trainable && v->shards == 0 && is_chosen(c, v))
			(*sources)[(*n)++] = tape->reads[i];
	}
	if (*n == 0 && c != NULL)
		return chi_frame_fail(f, CHOIR_INVALID,
				"%s: minimize_variables: of %zu variables, no trainable one was read since the "
				"tape "
				"began; one is needed",
				o->kind->name, c->n);
	if (*n == 0)
		return chi_frame_fail(f, CHOIR_INVALID,
				"%s: minimize: no trainable variable was read since the tape began",
				o->kind->name);
	return CHOIR_OK;
}

static choir_status minimize(
		choir_optimizer *o, choir_tensor *loss, choir_tape *tape, const chosen *c)
{
	if (tape == NULL || loss == NULL)
		return chi_frame_status(tape != NULL ? tape->frame : choir_tensor_frame(loss));
	choir_frame *f = tape->frame;
	giving g = { .optimizer = o, .replica = choir_frame_replica(f) };
	size_t n;
	char text[CHI_SHAPE_TEXT];
	if (g.replica == NULL)
		return chi_frame_fail(f, CHOIR_STATE,
				"minimize: this frame does not belong to a replica; use "
				"the frame of the replica, or of choir_replica_current()");
	CHOIR_TRY(chi_optimizer_check_replica(o, g.replica));
	if (loss->shape.rank != 0)
		return chi_frame_fail(f, CHOIR_INVALID,
				"%s: minimize: the loss is %s; a scalar is "
				"needed, as from choir_replica_average_loss",
				o->kind->name, chi_shape_print(&loss->shape, text));
	loss = choir_optimizer_scale_loss(o, g.replica, loss);
	CHOIR_TRY(chi_frame_made(f, loss));
	CHOIR_TRY(find_sources(o, tape, c, &g.source, &n));
	CHOIR_TRY(chi_tape_backward(tape, loss, n, g.source, give_ready, &g));
	return chi_gradients_apply(o->apply, g.replica);
}

choir_status choir_optimizer_minimize(choir_optimizer *o, choir_tensor *loss, choir_tape *tape)
{
	return minimize(o, loss, tape, NULL);
}

choir_status choir_optimizer_minimize_variables(choir_optimizer *o, choir_tensor *loss,
		choir_tape *tape, size_t n, choir_variable *const variables[])
{
	for (size_t i = 0; i < n; i++)
		if (variables == NULL || variables[i] == NULL)
			return chi_frame_fail(tape != NULL ? tape->frame : choir_tensor_frame(loss),
					CHOIR_INVALID, "minimize_variables: variable %zu of %zu is NULL", i, n);
	return minimize(o, loss, tape, &(chosen){ n, variables });
}

static choir_status check_pair(choir_optimizer *o, choir_cross *x, size_t i,
		choir_variable *const variables[], choir_value *const gradients[])
{
	const choir_variable *v = variables[i];
	const choir_value *g = gradients[i];
	if (v == NULL)
		return chi_frame_fail(x->frame, CHOIR_INVALID,
				"%s: distributed_apply: variable %zu is NULL", o->kind->name, i);
	CHOIR_TRY(chi_frame_made(x->frame, g));
	if (g->component == NULL)
		return chi_frame_fail(x->frame, CHOIR_INVALID,
				"%s: distributed_apply: the gradient of \"%s\" is %s; tensors are needed",
				o->kind->name, v->name,
				g->kind == CHOIR_VALUE_DESTINATION ? "a destination" : "a variable");
	for (size_t k = 0; k < i; k++)
		if (variables[k] == v)
			return chi_frame_fail(x->frame, CHOIR_INVALID,
					"%s: distributed_apply: the gradient of "
					"\"%s\" was given twice",
					o->kind->name, v->name);
	if (chi_value_materialize(gradients[i]) != CHOIR_OK)
		return choir_error_status();
	for (int k = 0; k < g->count; k++)
		if (g->component[k] != NULL &&
				chi_optimizer_check_gradient(o, v, g->component[k]) != CHOIR_OK)
			return chi_frame_record_error(x->frame);
	return CHOIR_OK;
}

typedef struct {
	size_t n;
	choir_variable *const *variable;
	choir_value *const *gradient;
} pairs;

static choir_value *rows_of(choir_frame *f, const choir_variable *shard, const choir_value *g)
{
	choir_value *rows = chi_value_new(f, g->kind, g->count);
	for (int k = 0; rows != NULL && k < g->count; k++) {
		choir_tensor *t = g->component[k];
		rows->device[k] = g->device[k];
		// A misfit is refused by its shape later.
		rows->component[k] = t != NULL && fits(shard->parent, t) ? chi_shard_rows(shard, t) : t;
		if (rows->component[k] == NULL && t != NULL)
			return chi_frame_record_null(f);
	}
	return rows;
}

static choir_status split_pairs(choir_frame *f, pairs *p)
{
	size_t n = p->n;
	for (size_t i = 0; i < p->n; i++)
		n += (size_t) p->variable[i]->shards;
	if (n == p->n)
		return CHOIR_OK;
	choir_variable **variable = chi_arena_alloc(&f->arena, n * sizeof(choir_variable *));
	choir_value **gradient = chi_arena_alloc(&f->arena, n * sizeof(choir_value *));
	if (variable == NULL || gradient == NULL)
		return chi_frame_record_error(f);
	n = 0;
	for (size_t i = 0; i < p->n; i++) {
		choir_variable *v = p->variable[i];
		if (v->shards == 0) {
			variable[n] = v;
			gradient[n++] = p->gradient[i];
		}
		for (int k = 0; k < v->shards; k++) {
			variable[n] = v->shard[k];
			gradient[n] = rows_of(f, v->shard[k], p->gradient[i]);
			if (gradient[n++] == NULL)
				return chi_frame_status(f);
		}
	}
	*p = (pairs){ n, variable, gradient };
	return CHOIR_OK;
}

choir_status choir_optimizer_distributed_apply(choir_optimizer *o, choir_cross *x, size_t n,
		choir_variable *const variables[], choir_value *const gradients[])
{
	if (o == NULL)
		return choir_fail(CHOIR_INVALID, "optimizer: it is NULL");
	CHOIR_TRY(chi_cross_check(x, o->kind->name));
	if (choir_cross_strategy(x)->owner != o->strategy)
		return chi_frame_fail(x->frame, CHOIR_STATE,
				"%s: mixing strategies: the optimizer belongs to %s, this context to %s",
				o->kind->name, o->strategy->label, choir_cross_strategy(x)->label);
	for (size_t i = 0; i < n; i++)
		CHOIR_TRY(check_pair(o, x, i, variables, gradients));
	pairs all = { .variable = variables, .gradient = gradients, .n = n };
	CHOIR_TRY(split_pairs(x->frame, &all));
	return chi_gradients_apply_now(o->apply, x, all.n, all.variable, all.gradient);
}
