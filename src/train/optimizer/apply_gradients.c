// Each gradient is checked on arrival, so a failure names the replica and nothing is written. A
// block with a finite sum has no NaN or infinity; others are searched, since finite numbers can
// overflow.
#include "train/optimizer/optimizer.h"

#include "base/lock.h"
#include "base/log.h"
#include "choir/op.h"
#include "op/tape/tape.h"
#include "op/vector.h"
#include "strategy/cross/cross.h"
#include "strategy/replica/merge_call.h"
#include "value/sharded_variable.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { BLOCK = 4096 }; // elements

int64_t chi_first_nonfinite(choir_dtype dtype, const void *data, int64_t n)
{
	const size_t size = chi_dtype_size(dtype);
	for (int64_t first = 0; first < n; first += BLOCK) {
		const int64_t count = n - first < BLOCK ? n - first : BLOCK;
		const char *block = (const char *) data + (size_t) first * size;
		const bool fine = isfinite(chi_vector_sum(dtype, block, count));
		for (int64_t i = first; !fine && i < first + count; i++)
			if (!isfinite(chi_dtype_load(dtype, data, i)))
				return i;
	}
	return CHOIR_NONE;
}

static const char *print_place(const choir_variable *v, int64_t element, char text[CHI_SHAPE_TEXT])
{
	choir_shape at = v->shape;
	for (int i = at.rank; i-- > 0;) {
		at.dim[i] = element % v->shape.dim[i];
		element /= v->shape.dim[i];
	}
	return chi_shape_print(&at, text);
}

// The first of each skipped update or, if updates are applied anyway, the first of all.
static bool is_news(choir_optimizer *o)
{
	const bool skip = o->options.nonfinite == CHOIR_NONFINITE_SKIP;
	const uint32_t now = skip ? (uint32_t) chi_atomic64_load(&o->step) + 1 : 1;
	return chi_atomic32_exchange(&o->warned, now) != now;
}

static choir_status find_nonfinite(
		choir_optimizer *o, const choir_variable *v, const choir_tensor *gradient)
{
	static const char *const outcome[] = { [CHOIR_NONFINITE_ERROR] = "nothing was changed",
		[CHOIR_NONFINITE_SKIP] = "the update is skipped",
		[CHOIR_NONFINITE_IGNORE] = "the update is applied, and later ones are not reported" };
	char where[CHI_SHAPE_TEXT], line[256];
	const int64_t bad = chi_first_nonfinite(v->dtype, gradient->data, v->elements);
	if (bad == CHOIR_NONE)
		return CHOIR_OK;
	snprintf(line, sizeof line,
			"%s: the gradient of \"%.100s\" is %g at %s in update %" PRIu64 "; %s", o->kind->name,
			v->name, chi_dtype_load(v->dtype, gradient->data, bad), print_place(v, bad, where),
			chi_atomic64_load(&o->step) + 1, outcome[o->options.nonfinite]);
	if (o->options.nonfinite == CHOIR_NONFINITE_ERROR)
		return choir_fail(CHOIR_INVALID, "%s", line);
	if (is_news(o))
		chi_log(CHOIR_LOG_WARNING, "%s%s", gradient->frame->prefix, line);
	return CHOIR_OK;
}

// Not if a dynamic scale may make gradients infinite, nor after everything was reported.
static bool looks_at(const choir_optimizer *o)
{
	return o->loss_scale.kind != CHOIR_LOSS_SCALE_DYNAMIC &&
			(o->options.nonfinite != CHOIR_NONFINITE_IGNORE || chi_atomic32_load(&o->warned) == 0);
}

static choir_status check_dtype(const choir_optimizer *o, const choir_variable *v)
{
	if (v->dtype == CHOIR_F32 || v->dtype == CHOIR_F64)
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID, "%s: variable \"%s\" is %s; only f32 and f64 can be updated",
			o->kind->name, v->name, choir_dtype_name(v->dtype));
}

// In host memory. On devices a non-finite element is found later.
static choir_status check_gradient(
		choir_optimizer *o, const choir_variable *v, const choir_tensor *gradient)
{
	CHOIR_TRY(check_dtype(o, v));
	if (!looks_at(o) || chi_is_slices(gradient) || gradient->buffer == NULL ||
			!chi_tensor_memory_device(gradient)->host_memory || gradient->dtype != v->dtype ||
			!chi_shape_equal(&gradient->shape, &v->shape))
		return CHOIR_OK; // the gate sees the sums; misfits are refused later
	return find_nonfinite(o, v, gradient);
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
	if (v != NULL && check_dtype(o, v) != CHOIR_OK)
		return chi_frame_record_error(r->frame);
	if (choir_tensor_is_slices(gradient) && !goes_by_rows(o, v, gradient))
		gradient = choir_to_dense(gradient);
	// the caller searches for bad gradients there
	const bool alone = chi_replica_of(r)->run->isolated;
	if (v != NULL && gradient != NULL && !alone && check_gradient(o, v, gradient) != CHOIR_OK)
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
	if (t == NULL)
		return chi_frame_status(r->frame);
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

static choir_status find_sources(
		const choir_optimizer *o, const choir_tape *tape, choir_tensor ***sources, size_t *n)
{
	choir_frame *f = tape->frame;
	*n = 0;
	*sources = chi_arena_alloc(&f->arena, (tape->n_reads + 1) * sizeof(choir_tensor *));
	if (*sources == NULL)
		return chi_frame_record_error(f);
	for (size_t i = 0; i < tape->n_reads; i++) {
		const choir_variable *v = choir_tensor_variable(tape->reads[i]);
		if (v->trainable && v->shards == 0)
			(*sources)[(*n)++] = tape->reads[i];
	}
	if (*n == 0)
		return chi_frame_fail(f, CHOIR_INVALID,
				"%s: minimize: no trainable variable was read since the tape began",
				o->kind->name);
	return CHOIR_OK;
}

choir_status choir_optimizer_minimize(choir_optimizer *o, choir_tensor *loss, choir_tape *tape)
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
	if (loss == NULL)
		return chi_frame_status(f);
	CHOIR_TRY(find_sources(o, tape, &g.source, &n));
	CHOIR_TRY(chi_tape_backward(tape, loss, n, g.source, give_ready, &g));
	return chi_gradients_apply(o->apply, g.replica);
}

static choir_status check_pair(choir_optimizer *o, choir_cross *x, size_t i,
		choir_variable *const variables[], choir_value *const gradients[])
{
	const choir_variable *v = variables[i];
	const choir_value *g = gradients[i];
	if (v == NULL)
		return chi_frame_fail(x->frame, CHOIR_INVALID,
				"%s: distributed_apply: variable %zu is NULL", o->kind->name, i);
	if (g == NULL)
		return chi_frame_status(x->frame);
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
		if (g->component[k] != NULL && check_gradient(o, v, g->component[k]) != CHOIR_OK)
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
		if (rows->component[k] == NULL && t != NULL) {
			chi_frame_record_error(f);
			return NULL;
		}
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
