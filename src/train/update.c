// What an optimizer does with summed gradients. Before the first write: slots, kernels and the
// rate; then slices, on whatever thread and device, each one call of a kernel that was found
// beforehand.
#include "train/optimizer.h"

#include "base/alloc.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

// Slots are not shared between optimizers: the second one of a variable gets "w/m_2" and so on.
static choir_variable *make_slot(choir_variable *v, const char *what)
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

// The kernel for copy, if it can be called without more ado.
static choir_status find_kernel(const choir_optimizer *o, chi_target *t, int copy)
{
	const choir_variable *v = t->variable;
	choir_device *d = v->copy[copy].device;
	choir_buffer in[CHI_SLOTS + 2];
	const size_t n = (size_t) o->kind->slots + 2;
	for (size_t i = 0; i < n; i++)
		in[i] = (choir_buffer){ v->copy[copy].buffer->memory, v->dtype, { 1, { v->elements } } };
	choir_buffer out = in[0];
	choir_kernel_call call = { .size = sizeof call, .n = n, .in = in, .out = &out,
		.attributes = &o->attributes };
	const choir_kernel_table *k = chi_kernel_find(d, &call, o->kind->kernel, v->dtype);
	if (k == NULL)
		return chi_error_prefix("variable \"%s\"", v->name);
	call.user = k->user;
	t->kernel[copy] = k->scratch != NULL && k->scratch(&call) > 0 ? NULL : k;
	return CHOIR_OK;
}

// Enters v in the list of targets with nothing done yet.
static chi_target *new_target(choir_optimizer *o, choir_variable *v)
{
	void *array = o->target;
	const bool grown = chi_grow(&array, &o->target_room, o->targets + 1, sizeof(chi_target *));
	o->target = array;
	chi_target *t = grown ? chi_alloc(sizeof *t) : NULL;
	if (t == NULL)
		return NULL;
	t->kernel = chi_alloc_array((size_t) v->copies, sizeof *t->kernel);
	if (t->kernel == NULL) {
		chi_free(t);
		return NULL;
	}
	const chi_parameter_group *g = chi_groups_find(o, v->name);
	t->variable = v;
	t->rate = g == NULL ? 1 : g->rate;
	t->decay = g == NULL ? o->options.weight_decay : g->decay;
	o->target[o->targets++] = t;
	return t;
}

static chi_target *find_target(const choir_optimizer *o, size_t item, const choir_variable *v)
{
	if (item < o->items && o->item[item]->variable == v)
		return o->item[item]; // as in the update before
	for (size_t i = 0; i < o->targets; i++)
		if (o->target[i]->variable == v)
			return o->target[i];
	return NULL;
}

// The target of v, made if it is new. What is lacking after a failure is made the next time.
static chi_target *get_target(choir_optimizer *o, size_t item, choir_variable *v)
{
	chi_target *t = find_target(o, item, v);
	if (t == NULL && (t = new_target(o, v)) == NULL)
		return NULL;
	for (int i = 0; i < o->kind->slots; i++)
		if (t->slot[i] == NULL && (t->slot[i] = make_slot(v, o->kind->slot[i])) == NULL)
			return NULL;
	for (int i = 0; i < v->copies; i++)
		if (t->kernel[i] == NULL && find_kernel(o, t, i) != CHOIR_OK)
			return NULL;
	return t;
}

static choir_status set_attributes(choir_optimizer *o)
{
	const choir_optimizer_options *from = &o->options;
	choir_update_attributes *a = &o->attributes;
	*a = (choir_update_attributes){
		.momentum = from->momentum,
		.beta1 = from->beta1,
		.beta2 = from->beta2,
		.epsilon = from->epsilon,
		.decay = from->weight_decay,
		.gradient_scale = 1,
		.nesterov = from->nesterov == CHOIR_ON,
		.rho = from->rho,
	};
	const double t = (double) o->step + 1;
	a->correction = sqrt(1 - pow(from->beta2, t)) / (1 - pow(from->beta1, t));
	return chi_schedule_rate(&o->schedule, from->rate, o->step, &a->rate);
}

static choir_status begin(void *user, size_t n, choir_variable *const v[])
{
	choir_optimizer *o = user;
	if (n == 0)
		return choir_fail(CHOIR_INVALID, "%s: no gradient was given", o->kind->name);
	void *array = o->item;
	const bool grown = chi_grow(&array, &o->item_room, n, sizeof(chi_target *));
	o->item = array;
	if (!grown)
		return CHOIR_NO_MEMORY;
	for (size_t i = 0; i < n; i++) {
		chi_target *t = get_target(o, i, v[i]);
		if (t == NULL)
			return chi_error_prefix("%s", o->kind->name);
		o->item[i] = t;
		if (i >= o->items)
			o->items = i + 1;
	}
	return set_attributes(o);
}

// Sums that are kept can be looked at before the first write; elsewhere gradients were looked at
// when they were given.
static bool gated(const void *user)
{
	const choir_optimizer *o = user;
	return o->options.clip_norm > 0 || o->options.skip_nonfinite == CHOIR_ON ||
			o->loss_scale.kind == CHOIR_LOSS_SCALE_DYNAMIC || o->scale != 1 ||
			!o->strategy->all_host;
}

static choir_status gate(
		const void *user, double squares, const choir_variable *bad, double *factor, bool *skip)
{
	const choir_optimizer *o = user;
	const double clip = o->options.clip_norm, norm = sqrt(squares) / o->scale;
	*factor = 1 / o->scale;
	*skip = false;
	if (bad != NULL || (clip > 0 && !isfinite(norm))) {
		*skip = o->options.skip_nonfinite == CHOIR_ON ||
				o->loss_scale.kind == CHOIR_LOSS_SCALE_DYNAMIC;
		return *skip ? CHOIR_OK
					 : choir_fail(CHOIR_INVALID,
							   "%s: the gradient of \"%s\" is not finite "
							   "at step %" PRIu64 "; nothing was changed",
							   o->kind->name, bad == NULL ? "all variables together" : bad->name,
							   o->step);
	}
	if (clip > 0 && norm > clip)
		*factor *= clip / norm;
	return CHOIR_OK;
}

static choir_status slice(void *user, size_t index, choir_variable *v, int copy, int64_t first,
		int64_t count, const void *gradient, double factor, chi_stream *stream)
{
	const choir_optimizer *o = user;
	const chi_target *t = o->item[index];
	const size_t offset = (size_t) first * chi_dtype_size(v->dtype);
	const choir_shape shape = { 1, { count } };
	choir_buffer in[CHI_SLOTS + 2];
	size_t n = 0;
	if (count == 0)
		return CHOIR_OK;
	in[n++] = (choir_buffer){ (char *) v->copy[copy].buffer->memory + offset, v->dtype, shape };
	for (int i = 0; i < o->kind->slots; i++)
		in[n++] = (choir_buffer){ (char *) t->slot[i]->copy[copy].buffer->memory + offset,
			v->dtype, shape };
	in[n++] = (choir_buffer){ (void *) (uintptr_t) gradient, v->dtype, shape };
	choir_buffer out = in[0];
	choir_update_attributes attributes = o->attributes;
	attributes.rate *= t->rate;
	attributes.decay = t->decay;
	attributes.gradient_scale = factor;
	const choir_kernel_table *k = t->kernel[copy];
	if (k == NULL)
		return chi_kernel_run(stream, o->kind->kernel, n, in, &out, &attributes);
	const choir_kernel_call call = { .size = sizeof call,
		.stream = stream->state,
		.n = n,
		.in = in,
		.out = &out,
		.attributes = &attributes,
		.user = k->user };
	return k->run(&call);
}

static void end(void *user, bool applied)
{
	choir_optimizer *o = user;
	if (applied)
		o->step++;
	chi_loss_scale_move(o, applied);
}

void chi_update_table(choir_optimizer *o)
{
	o->table = (chi_apply_table){ .name = o->kind->name, .begin = begin, .gated = gated,
		.gate = gate, .slice = slice, .end = end };
}

void chi_update_free_targets(choir_optimizer *o)
{
	for (size_t i = 0; i < o->targets; i++) {
		chi_free(o->target[i]->kernel);
		chi_free(o->target[i]);
	}
	chi_free(o->target);
	chi_free(o->item);
}
