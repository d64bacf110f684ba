// Slots, kernels and rate are found before the first write. Then each chunk is one kernel call, on
// any thread.
#include "train/optimizer/optimizer.h"

#include "base/alloc.h"
#include "base/memory_copy.h"
#include "base/text.h"
#include "base/thresholds.h"
#include "strategy/variable/create.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// A second optimizer's slots are "w/m_2" and so on.
static choir_variable *new_slot(choir_variable *v, const char *what)
{
	for (int i = 1;; i++) {
		char own[32];
		snprintf(own, sizeof own, i == 1 ? "%s" : "%s_%d", what, i);
		chi_text name = { 0 };
		chi_text_add(&name, "%s/%s", v->name, own);
		if (name.failed) {
			chi_text_free(&name);
			return NULL;
		}
		const bool taken = chi_strategy_find_variable(v->strategy, name.data) != NULL;
		chi_text_free(&name);
		if (!taken)
			return chi_strategy_make_slot(v, own);
	}
}

const char *chi_optimizer_slot(const choir_optimizer *o, int i)
{
	return i < o->kind->slots ? o->kind->slot[i] : "average";
}

// Shards have shards of one slot, saved and found as a whole.
static choir_variable *make_slot(const choir_optimizer *o, choir_variable *v, int index)
{
	const char *what = chi_optimizer_slot(o, index);
	if (v->parent == NULL)
		return new_slot(v, what);
	for (size_t i = 0; i < o->targets; i++) {
		const chi_optimized_variable *t = o->target[i];
		if (t->variable->parent == v->parent && t->slot[index] != NULL)
			return t->slot[index]->parent->shard[v->shard_index];
	}
	choir_variable *slot = new_slot(v->parent, what);
	return slot == NULL ? NULL : slot->shard[v->shard_index];
}

typedef struct {
	choir_update_attributes attributes;
	chi_optimized_variable **item;
	size_t items, capacity;
} state;

static void close_state(void *self)
{
	chi_free(((state *) self)->item);
}

// Kernels with scratch memory are looked up at each call instead.
static choir_status find_kernel(const choir_optimizer *o, chi_optimized_variable *t, int copy)
{
	const choir_variable *v = t->variable;
	choir_device *d = v->copy[copy].device;
	choir_buffer in[CHI_SLOTS + 2];
	const size_t n = (size_t) o->kind->slots + 2;
	for (size_t i = 0; i < n; i++)
		in[i] = (choir_buffer){ v->copy[copy].buffer->memory, v->dtype, { 1, { v->elements } } };
	choir_buffer out = in[0];
	const choir_update_attributes attributes = { 0 };
	choir_kernel_call call = {
		.size = sizeof call,
		.n = n,
		.in = in,
		.out = &out,
		.attributes = &attributes,
		.device = d->self,
	};
	const choir_kernel_table *k = chi_kernel_find(d, &call, o->kind->kernel, v->dtype);
	if (k == NULL)
		return chi_error_prefix("variable \"%s\"", v->name);
	call.user = k->user;
	if (k->scratch == NULL || k->scratch(&call) == 0)
		t->kernel[copy] = k;
	return CHOIR_OK;
}

static bool enlist(choir_optimizer *o, chi_optimized_variable *t)
{
	chi_mutex_lock(&o->lock);
	const bool grown = chi_grow(
			&o->target, &o->target_capacity, o->targets + 1, sizeof(chi_optimized_variable *));
	if (grown)
		o->target[o->targets++] = t;
	chi_mutex_unlock(&o->lock);
	return grown;
}

static chi_optimized_variable *new_target(choir_optimizer *o, choir_variable *v)
{
	chi_optimized_variable *t = chi_alloc(sizeof *t);
	if (t == NULL)
		return NULL;
	t->kernel = chi_alloc_array((size_t) v->copies, sizeof *t->kernel);
	const chi_parameter_group *g =
			chi_groups_find(o, v->parent != NULL ? v->parent->name : v->name);
	t->variable = v;
	t->rate = g == NULL ? 1 : g->rate;
	t->decay = g == NULL ? o->options.weight_decay : g->decay;
	if (t->kernel != NULL && enlist(o, t))
		return t;
	chi_free(t->kernel);
	chi_free(t);
	return NULL;
}

static chi_optimized_variable *find_target(
		choir_optimizer *o, const choir_variable *v, bool *ready)
{
	chi_optimized_variable *found = NULL;
	chi_mutex_lock(&o->lock);
	for (size_t i = 0; found == NULL && i < o->targets; i++)
		if (o->target[i]->variable == v)
			found = o->target[i];
	*ready = found != NULL && found->ready;
	chi_mutex_unlock(&o->lock);
	return found;
}

// One worker at a time. After a failure the next call continues.
static chi_optimized_variable *complete_target(choir_optimizer *o, choir_variable *v)
{
	bool ready;
	chi_optimized_variable *t = find_target(o, v, &ready);
	if (o->kind->whole && v->parent != NULL)
		return chi_fail_null(CHOIR_UNSUPPORTED,
				"variable \"%s\": %s needs the norm of the whole variable; shards are not "
				"possible",
				v->parent->name, o->kind->name);
	if (t == NULL && (t = new_target(o, v)) == NULL)
		return NULL;
	for (int i = 0; i < o->slots; i++)
		if (t->slot[i] == NULL && (t->slot[i] = make_slot(o, v, i)) == NULL)
			return NULL;
	for (int i = 0; i < v->copies; i++)
		if (t->kernel[i] == NULL && find_kernel(o, t, i) != CHOIR_OK)
			return NULL;
	chi_mutex_lock(&o->lock);
	t->ready = true;
	chi_mutex_unlock(&o->lock);
	return t;
}

chi_optimized_variable *chi_optimized_variable_get(choir_optimizer *o, choir_variable *v)
{
	bool ready;
	chi_optimized_variable *t = find_target(o, v, &ready);
	if (ready)
		return t;
	if (chi_strategy_begin_creation(v->strategy, v->name) != CHOIR_OK)
		return NULL;
	t = complete_target(o, v);
	chi_strategy_end_creation(v->strategy);
	return t;
}

// b(1) to b(t) multiplied. After SETTLED steps b(t) is beta1 in f64.
static double momenta(double beta1, uint64_t t)
{
	enum { SETTLED = 1000 };
	double product = 1;
	for (uint64_t i = 1; i <= t && i <= SETTLED; i++)
		product *= beta1 * (1 - 0.5 * pow(0.96, (double) i));
	return t <= SETTLED ? product : product * pow(beta1, (double) (t - SETTLED));
}

static void set_lamb(choir_update_attributes *a, double t)
{
	a->m_factor = 1 / (1 - pow(a->beta1, t));
	a->v_factor = 1 / (1 - pow(a->beta2, t));
}

static void set_nadam(choir_update_attributes *a, uint64_t t)
{
	const double now = momenta(a->beta1, t), next = momenta(a->beta1, t + 1);
	const double b = a->beta1 * (1 - 0.5 * pow(0.96, (double) t));
	const double b_next = a->beta1 * (1 - 0.5 * pow(0.96, (double) t + 1));
	a->m_factor = b_next / (1 - next);
	a->g_factor = (1 - b) / (1 - now);
	a->v_factor = 1 / (1 - pow(a->beta2, (double) t));
}

static choir_status set_attributes(choir_optimizer *o, choir_update_attributes *a)
{
	const choir_optimizer_options *from = &o->options;
	const uint64_t step = chi_atomic64_load(&o->step);
	*a = (choir_update_attributes){
		.momentum = from->momentum,
		.beta1 = from->beta1,
		.beta2 = from->beta2,
		.epsilon = from->epsilon,
		.decay = from->weight_decay,
		.gradient_scale = 1,
		.nesterov = from->nesterov == CHOIR_ON,
		.rho = from->rho,
		.initial_accumulator = from->initial_accumulator,
	};
	const double t = (double) step + 1;
	a->correction = sqrt(1 - pow(from->beta2, t)) / (1 - pow(from->beta1, t));
	if (strcmp(o->kind->kernel, "nadam_update") == 0)
		set_nadam(a, step + 1);
	if (o->kind->whole)
		set_lamb(a, t);
	CHOIR_TRY(chi_schedule_rate(&o->schedule, chi_optimizer_base_rate(o), step, &a->rate));
	uint64_t bits;
	memcpy(&bits, &a->rate, sizeof bits);
	chi_atomic64_store(&o->rate_bits, bits);
	return CHOIR_OK;
}

static choir_status find_items(choir_optimizer *o, state *now, size_t n, choir_variable *const v[])
{
	for (size_t i = 0; i < n; i++) {
		if (i < now->items && now->item[i]->variable == v[i])
			continue;
		now->items = i;
		now->item[i] = chi_optimized_variable_get(o, v[i]);
		if (now->item[i] == NULL)
			return chi_error_prefix("%s", o->kind->name);
		now->items = i + 1;
	}
	return CHOIR_OK;
}

static choir_status begin(void *user, void *of_update, size_t n, choir_variable *const v[])
{
	choir_optimizer *o = user;
	state *now = of_update;
	if (n == 0)
		return choir_fail(CHOIR_INVALID, "%s: no gradient was given", o->kind->name);
	if (o->swapped)
		return choir_fail(CHOIR_STATE,
				"%s: the averages are in place of the weights; swap them back before an update",
				o->kind->name);
	if (chi_atomic32_load(&o->groups_known) == 0)
		CHOIR_TRY(chi_groups_check(o));
	if (!chi_grow(&now->item, &now->capacity, n, sizeof(chi_optimized_variable *)))
		return CHOIR_NO_MEMORY;
	CHOIR_TRY(find_items(o, now, n, v));
	return set_attributes(o, &now->attributes);
}

static bool skips_zeros(const void *user, const choir_variable *v)
{
	const choir_optimizer *o = user;
	const chi_parameter_group *g =
			chi_groups_find(o, v->parent != NULL ? v->parent->name : v->name);
	return o->kind->skips_zeros && o->options.ema_momentum == 0 &&
			(g == NULL ? o->options.weight_decay : g->decay) == 0;
}

// Sums are examined before the first write, and not gradients on arrival.
static bool gated(const void *user)
{
	const choir_optimizer *o = user;
	return o->kind->whole || o->options.global_clip_norm > 0 ||
			o->options.nonfinite == CHOIR_NONFINITE_SKIP ||
			o->loss_scale.kind == CHOIR_LOSS_SCALE_DYNAMIC || o->scale != 1 ||
			(!o->strategy->all_host && o->options.nonfinite != CHOIR_NONFINITE_IGNORE);
}

static choir_status gate(
		const void *user, double squares, const choir_variable *bad, double *factor, bool *skip)
{
	const choir_optimizer *o = user;
	const double clip = o->options.global_clip_norm, norm = sqrt(squares) / o->scale;
	*factor = 1 / o->scale;
	*skip = false;
	const bool finite = bad == NULL && (clip == 0 || isfinite(norm));
	if (!finite && o->options.nonfinite != CHOIR_NONFINITE_IGNORE) {
		const bool dynamic = o->loss_scale.kind == CHOIR_LOSS_SCALE_DYNAMIC;
		*skip = o->options.nonfinite == CHOIR_NONFINITE_SKIP || (dynamic && o->scale > 1);
		return *skip ? CHOIR_OK
					 : choir_fail(CHOIR_INVALID,
							   "%s: the gradient of \"%s\" is not finite "
							   "in update %" PRIu64 "%s; nothing was changed",
							   o->kind->name, bad == NULL ? "all variables together" : bad->name,
							   chi_atomic64_load(&o->step) + 1,
							   dynamic ? ", although the loss scale is 1, its lowest" : "");
	}
	if (clip > 0 && norm > clip)
		*factor *= clip / norm;
	return CHOIR_OK;
}

static choir_update_gate_attributes gate_attributes(const void *user)
{
	const choir_optimizer *o = user;
	return (choir_update_gate_attributes){ .scale = o->scale,
		.clip = o->options.global_clip_norm,
		.any = o->options.nonfinite == CHOIR_NONFINITE_IGNORE };
}

typedef struct {
	const choir_optimizer *optimizer;
	const chi_optimized_variable *of;
	chi_stream *stream;
	bool relaxed; // other threads change the memory
	size_t n;
	char *memory[CHI_SLOTS + 1]; // of the variable and its slots
	char *mean;
	choir_buffer in[CHI_SLOTS + 2], out;
	choir_update_attributes attributes;
	const choir_kernel_table *kernel;
	choir_kernel_call call;
} update_calls;

static void open_calls(update_calls *c, const choir_optimizer *o, const state *now, size_t index,
		const choir_variable *v, int copy, chi_stream *stream)
{
	const chi_optimized_variable *t = now->item[index];
	const choir_buffer part = { NULL, v->dtype, { 1, { 0 } } };
	c->optimizer = o;
	c->of = t;
	c->stream = stream;
	c->relaxed = v->concurrency == CHI_LOCK_FREE;
	c->n = 0;
	c->memory[c->n++] = v->copy[copy].buffer->memory;
	for (int i = 0; i < o->kind->slots; i++)
		c->memory[c->n++] = t->slot[i]->copy[copy].buffer->memory;
	c->mean = NULL;
	if (o->slots > o->kind->slots)
		c->mean = t->slot[o->slots - 1]->copy[copy].buffer->memory;
	c->n++;
	for (size_t i = 0; i < c->n; i++)
		c->in[i] = part;
	c->attributes = now->attributes;
	c->attributes.rate *= t->rate;
	c->attributes.decay = t->decay;
	c->kernel = t->kernel[copy];
	if (c->kernel == NULL)
		return;
	c->call = (choir_kernel_call){ .size = sizeof c->call,
		.stream = stream->state,
		.n = c->n,
		.in = c->in,
		.out = &c->out,
		.attributes = &c->attributes,
		.user = c->kernel->user,
		.device = stream->device->self };
}

static choir_status call_kernel(update_calls *c)
{
	c->out = c->in[0];
	return c->kernel != NULL ? c->kernel->run(&c->call)
							 : chi_kernel_run(c->stream, c->optimizer->kind->kernel, c->n, c->in,
									   &c->out, &c->attributes);
}

static choir_status update_relaxed(update_calls *c, size_t offset, int64_t all, char *gradient)
{
	enum { PIECE = 512 };
	double scratch[CHI_SLOTS + 1][PIECE];
	const size_t size = chi_dtype_size(c->in[0].dtype);
	for (int64_t at = 0; at < all; at += PIECE) {
		const int64_t count = all - at < PIECE ? all - at : PIECE;
		const size_t begin = offset + (size_t) at * size;
		for (size_t i = 0; i < c->n; i++)
			c->in[i].shape.dim[0] = count;
		for (size_t i = 0; i + 1 < c->n; i++) {
			chi_copy_atomic(scratch[i], c->memory[i] + begin, count, size);
			c->in[i].data = scratch[i];
		}
		c->in[c->n - 1].data = gradient + (size_t) at * size;
		CHOIR_TRY(call_kernel(c));
		for (size_t i = 0; i + 1 < c->n; i++)
			chi_copy_atomic(c->memory[i] + begin, scratch[i], count, size);
	}
	return CHOIR_OK;
}

static void set_part(update_calls *c, int64_t first, int64_t count, const void *gradient)
{
	const size_t offset = (size_t) first * chi_dtype_size(c->in[0].dtype);
	for (size_t i = 0; i < c->n; i++) {
		c->in[i].data = i + 1 < c->n ? c->memory[i] + offset
									 : (void *) (uintptr_t) gradient; // nothing writes to it
		c->in[i].shape.dim[0] = count;
	}
	c->out = c->in[0];
}

static choir_status update_part(
		update_calls *c, int64_t first, int64_t count, const void *gradient)
{
	if (c->relaxed)
		return update_relaxed(c, (size_t) first * chi_dtype_size(c->in[0].dtype), count,
				(void *) (uintptr_t) gradient);
	set_part(c, first, count, gradient);
	return call_kernel(c);
}

// average += (1 - momentum) (w - average): "sgd" with a decay.
static choir_status average(const update_calls *c, int64_t first, int64_t count)
{
	const choir_optimizer *o = c->optimizer;
	const choir_dtype dtype = c->in[0].dtype;
	const size_t offset = (size_t) first * chi_dtype_size(dtype);
	const bool first_update = chi_atomic32_load(&c->of->averaged) == 0;
	const double take = first_update ? 1 : 1 - o->options.ema_momentum;
	const choir_update_attributes a = { .rate = -take, .decay = -1, .gradient_scale = 1 };
	const choir_buffer in[] = { { c->mean + offset, dtype, { 1, { count } } },
		{ c->memory[0] + offset, dtype, { 1, { count } } } };
	choir_buffer out = in[0];
	return chi_kernel_run(c->stream, "sgd_update", 2, in, &out, &a);
}

static void take_chunk(update_calls *c, const chi_gradient_chunk *chunk)
{
	c->attributes.gradient_scale = chunk->factor;
	c->attributes.gate = chunk->gate;
}

static choir_status slice(void *user, const void *of_update, size_t index, choir_variable *v,
		int copy, const chi_gradient_chunk *chunk, chi_stream *stream)
{
	update_calls c;
	if (chunk->count == 0)
		return CHOIR_OK;
	open_calls(&c, user, of_update, index, v, copy, stream);
	take_chunk(&c, chunk);
	CHOIR_TRY(update_part(&c, chunk->first, chunk->count, chunk->data));
	return c.mean != NULL ? average(&c, chunk->first, chunk->count) : CHOIR_OK;
}

// Kernels that take lists get the calls of successive variables. Averages come after.
static choir_status slices(void *user, const void *of_update, size_t n,
		const chi_gradient_write w[], chi_stream *stream)
{
	enum { MAX_CALLS = 32 };
	update_calls c[MAX_CALLS];
	choir_kernel_call call[MAX_CALLS];
	for (size_t i = 0, count; i < n; i += count) {
		for (count = 0; i + count < n && count < MAX_CALLS; count++) {
			const chi_gradient_write *next = &w[i + count];
			update_calls *own = &c[count];
			open_calls(own, user, of_update, next->index, next->variable, next->copy, stream);
			if (own->kernel == NULL || own->kernel->run_all == NULL ||
					own->kernel != c[0].kernel || next->chunk.count == 0)
				break;
			take_chunk(own, &next->chunk);
			set_part(own, next->chunk.first, next->chunk.count, next->chunk.data);
			call[count] = own->call;
		}
		if (count > 0)
			CHOIR_TRY(c[0].kernel->run_all(call, count));
		for (size_t k = 0; k < count; k++)
			if (c[k].mean != NULL)
				CHOIR_TRY(average(&c[k], w[i + k].chunk.first, w[i + k].chunk.count));
		if (count == 0) {
			const chi_gradient_write *own = &w[i];
			CHOIR_TRY(slice(
					user, of_update, own->index, own->variable, own->copy, &own->chunk, stream));
			count = 1;
		}
	}
	return CHOIR_OK;
}

static void fetch_row(
		const update_calls *c, const chi_gradient_rows *rows, int64_t k, size_t bytes)
{
	if (k >= rows->n)
		return;
	const char *at = c->memory[0] + (size_t) rows->row[k] * bytes;
	for (size_t i = 0; i < bytes && i < CHI_FETCHED_ROW_BYTES; i += CHI_LINE)
		chi_fetch_to_write(at + i);
}

static choir_status slice_rows(void *user, const void *of_update, size_t index, choir_variable *v,
		const chi_gradient_rows *rows, chi_stream *stream)
{
	const size_t bytes = (size_t) rows->width * chi_dtype_size(v->dtype);
	update_calls c;
	open_calls(&c, user, of_update, index, v, 0, stream);
	for (int64_t k = 0, next; k < rows->n && rows->width > 0; k = next) {
		for (next = k + 1; next < rows->n && rows->row[next] == rows->row[next - 1] + 1;)
			next++;
		for (int64_t i = k; i < next; i++)
			fetch_row(&c, rows, i + CHI_FETCHED_ROWS, bytes);
		CHOIR_TRY(update_part(&c, rows->row[k] * rows->width, (next - k) * rows->width,
				(const char *) rows->values + (size_t) k * bytes));
	}
	return CHOIR_OK;
}

static void touch_slots(const choir_optimizer *o, const chi_optimized_variable *t)
{
	for (int i = 0; i < o->slots; i++)
		for (int k = 0; k < t->slot[i]->copies; k++)
			chi_variable_bump_version(t->slot[i], k);
}

static void end(void *user, const void *of_update, bool applied)
{
	choir_optimizer *o = user;
	const state *now = of_update;
	for (size_t i = 0; applied && i < now->items; i++) {
		touch_slots(o, now->item[i]);
		chi_atomic32_store(&now->item[i]->averaged, 1);
	}
	if (applied)
		chi_atomic64_add(&o->step, 1);
	if (o->loss_scale.kind == CHOIR_LOSS_SCALE_DYNAMIC)
		chi_loss_scale_move(o, applied);
}

void chi_update_table(choir_optimizer *o)
{
	o->table = (chi_gradients_table){ .name = o->kind->name,
		.state_size = sizeof(state),
		.close = close_state,
		.begin = begin,
		.skips_zeros = skips_zeros,
		.whole = o->kind->whole,
		.gated = gated,
		.gate = gate,
		// The kernel of averages would take the gate's factor for its own.
		.gate_attributes = o->slots > o->kind->slots ? NULL : gate_attributes,
		.chunk = slice,
		.chunks = slices,
		.rows = slice_rows,
		.end = end };
}

void chi_optimized_variables_free(choir_optimizer *o)
{
	for (size_t i = 0; i < o->targets; i++) {
		chi_free(o->target[i]->kernel);
		chi_free(o->target[i]);
	}
	chi_free(o->target);
}
