// LSTM, GRU, bidirectional and last-time-step layers.
#include "train/layer/layer.h"

#include "base/hash.h"
#include "choir/nn.h"

#include <inttypes.h>
#include <stdint.h>

typedef struct {
	choir_layer layer;
	int64_t in;
} recurrent;

enum { KERNEL, RECURRENT, BIAS, RECURRENT_BIAS };

static bool fits(choir_layer *l, choir_tensor *x)
{
	const recurrent *r = (const recurrent *) l;
	char got[CHI_SHAPE_TEXT];
	if (x->shape.rank == 3 && x->shape.dim[2] == r->in)
		return true;
	chi_layer_fail(l, x, "%s needs [n, timesteps, %" PRId64 "]; the input is %s", l->kind->name,
			r->in, chi_shape_print(&x->shape, got));
	return false;
}

static choir_tensor *own(const choir_layer *l, int index, const choir_tensor *x)
{
	return choir_variable_read(l->variable[index], x->frame);
}

static choir_tensor *apply_lstm(choir_layer *l, choir_tensor *x)
{
	return !fits(l, x)
			? NULL
			: choir_lstm(x, own(l, KERNEL, x), own(l, RECURRENT, x), own(l, BIAS, x), NULL);
}

static choir_tensor *apply_gru(choir_layer *l, choir_tensor *x)
{
	return !fits(l, x) ? NULL
					   : choir_gru(x, own(l, KERNEL, x), own(l, RECURRENT, x), own(l, BIAS, x),
								 own(l, RECURRENT_BIAS, x), NULL);
}

static int describe_recurrence(
		choir_layer *l, chi_export *e, int x, chi_c_function piece, int64_t work, const char *more)
{
	const recurrent *r = (const recurrent *) l;
	choir_shape s = *chi_export_shape(e, x);
	if (s.rank != 2 || s.dim[1] != r->in)
		return chi_export_refuse(
				l, e, x, "%s needs [timesteps, %" PRId64 "]", l->kind->name, r->in);
	const char *weights = chi_export_variable(e, l->variable[RECURRENT]);
	const int gates = chi_export_dense(e, CHOIR_LINEAR, x, l->variable[KERNEL], l->variable[BIAS]);
	if (weights == NULL || more == NULL)
		return CHOIR_NONE;
	s.dim[1] = l->variable[RECURRENT]->shape.dim[0];
	const int y = chi_export_call(e, piece, gates, s, ", %" PRId64 ", %s.at%s%s%s", s.dim[1],
			weights, more[0] == '\0' ? "" : ", ", more, more[0] == '\0' ? "" : ".at");
	return chi_export_work(e, y, work * s.dim[1]);
}

static int describe_lstm(choir_layer *l, chi_export *e, int x)
{
	return describe_recurrence(l, e, x, CHI_C_LSTM, 6, "");
}

static int describe_gru(choir_layer *l, chi_export *e, int x)
{
	return describe_recurrence(
			l, e, x, CHI_C_GRU, 4, chi_export_variable(e, l->variable[RECURRENT_BIAS]));
}

#define RECURRENT_KIND(kind, apply_it, describe_it) \
	{ \
		.name = kind, .image = CHI_IMAGE_ENDED, .sequences = true, .apply = apply_it, \
		.describe = describe_it \
	}
static const chi_layer_kind lstm_kind = RECURRENT_KIND("lstm", apply_lstm, describe_lstm),
							gru_kind = RECURRENT_KIND("gru", apply_gru, describe_gru);

// As in Keras (Jozefowicz, Zaremba, Sutskever 2015).
static choir_status open_forget_gate(void *out, const choir_shape *shape, void *user)
{
	float *bias = out;
	(void) user;
	for (int64_t i = 0; i < shape->dim[0]; i++)
		bias[i] = i / (shape->dim[0] / 4) == 1 ? 1 : 0;
	return CHOIR_OK;
}

static choir_status make_weights(choir_layer *l, int64_t in, int64_t units, int64_t parts)
{
	const choir_variable_options o = { .size = sizeof o,
		.initializer = CHOIR_INITIALIZER_GLOROT_UNIFORM };
	const choir_variable_options open = { .size = sizeof open,
		.initializer_fn = open_forget_gate };
	const choir_shape gates = CHOIR_SHAPE(parts * units);
	CHOIR_TRY(chi_layer_make_variable(l, "kernel", CHOIR_SHAPE(in, parts * units), &o));
	CHOIR_TRY(
			chi_layer_make_variable(l, "recurrent_kernel", CHOIR_SHAPE(units, parts * units), &o));
	if (parts == 4)
		return chi_layer_make_variable(l, "bias", gates, &open);
	CHOIR_TRY(chi_layer_make_variable(l, "bias", gates, NULL));
	return chi_layer_make_variable(l, "recurrent_bias", gates, NULL);
}

static choir_layer *make(
		const chi_layer_kind *kind, const char *name, int64_t in, int64_t units, int64_t parts)
{
	if (chi_layer_check(kind->name, name, true, CHOIR_LINEAR) != CHOIR_OK)
		return NULL;
	if (in < 1 || units < 1 || units > INT64_MAX / parts)
		return chi_fail_null(CHOIR_INVALID,
				"layer \"%s\": %s from %" PRId64 " to %" PRId64 "; both must be 1 or more", name,
				kind->name, in, units);
	recurrent *r = (recurrent *) chi_layer_new(sizeof *r, kind, name);
	if (r == NULL)
		return NULL;
	r->in = in;
	return chi_layer_finish(&r->layer, make_weights(&r->layer, in, units, parts));
}

choir_layer *choir_lstm_new(const char *name, int64_t in, int64_t units)
{
	return make(&lstm_kind, name, in, units, 4);
}

choir_layer *choir_gru_new(const char *name, int64_t in, int64_t units)
{
	return make(&gru_kind, name, in, units, 3);
}

typedef struct {
	choir_layer layer;
	choir_layer *forward, *backward;
} bidirectional;

static choir_tensor *reversed(choir_tensor *x)
{
	return x == NULL || x->frame->lengths == NULL ? choir_flip(x, 1)
												  : choir_reverse_sequence(x, x->frame->lengths);
}

static choir_tensor *apply_both(choir_layer *l, choir_tensor *x)
{
	const bidirectional *b = (const bidirectional *) l;
	char text[2][CHI_SHAPE_TEXT];
	if (x->shape.rank < 3)
		return chi_layer_fail(l, x, "needs [n, timesteps, ..]; the input is %s",
				chi_shape_print(&x->shape, text[0]));
	choir_tensor *lengths = x->frame->lengths;
	choir_tensor *ahead = choir_layer_apply(b->forward, x);
	x->frame->lengths = lengths; // which a last time step takes away
	choir_tensor *back = ahead == NULL ? NULL : choir_layer_apply(b->backward, reversed(x));
	if (back == NULL)
		return NULL;
	const choir_shape *s = &ahead->shape, *other = &back->shape;
	if (s->rank < x->shape.rank && other->rank == s->rank) // without the axis of time
		return choir_concat(2, (choir_tensor *const[]){ ahead, back }, -1);
	if (s->rank != x->shape.rank || other->rank != s->rank || other->dim[1] != s->dim[1])
		return chi_layer_fail(l, x,
				"the layers return %s and %s; both must return as many time steps, or none",
				chi_shape_print(s, text[0]), chi_shape_print(other, text[1]));
	return choir_concat(2, (choir_tensor *const[]){ ahead, reversed(back) }, -1);
}

static choir_variable *variable_of_both(choir_layer *l, int index)
{
	const bidirectional *b = (const bidirectional *) l;
	const int first = b->forward->variables;
	return index < first ? choir_layer_variable(b->forward, index)
						 : choir_layer_variable(b->backward, index - first);
}

static const chi_layer_kind bidirectional_kind = { .name = "bidirectional",
	.image = CHI_IMAGE_ENDED,
	.sequences = true,
	.apply = apply_both,
	.variable = variable_of_both };

choir_layer *choir_bidirectional_new(choir_layer *forward, choir_layer *backward)
{
	choir_layer *const layers[] = { forward, backward };
	if (chi_layer_check_inside("bidirectional", 2, layers) != CHOIR_OK)
		return NULL;
	bidirectional *b = (bidirectional *) chi_layer_new(sizeof *b, &bidirectional_kind, NULL);
	if (b == NULL)
		return NULL;
	b->forward = forward;
	b->backward = backward;
	b->layer.variables = forward->variables + backward->variables;
	chi_layer_set(&b->layer, "contents %016llx",
			(unsigned long long) chi_hash_mix(
					chi_layer_hash(forward) + 3 * chi_layer_hash(backward)));
	return chi_layer_finish_around(&b->layer, 2, layers, CHOIR_OK);
}

static choir_tensor *apply_last(choir_layer *l, choir_tensor *x)
{
	char got[CHI_SHAPE_TEXT];
	if (x->shape.rank < 2 || x->shape.dim[1] < 1)
		return chi_layer_fail(l, x,
				"needs [n, timesteps, ..] with 1 timestep or more; the input is %s",
				chi_shape_print(&x->shape, got));
	choir_tensor *lengths = x->frame->lengths;
	if (lengths != NULL) {
		x->frame->lengths = NULL;
		return choir_last_timestep(x, lengths);
	}
	choir_tensor *last = choir_slice(x, 1, x->shape.dim[1] - 1, 1);
	choir_shape shape = { x->shape.rank - 1, { x->shape.dim[0] } };
	for (int i = 1; i < shape.rank; i++)
		shape.dim[i] = x->shape.dim[i + 1];
	return last == NULL ? NULL : choir_reshape(last, shape);
}

static int describe_last(choir_layer *l, chi_export *e, int x)
{
	const choir_shape *s = chi_export_shape(e, x);
	if (s->rank != 2)
		return chi_export_refuse(l, e, x, "needs [timesteps, width]");
	return chi_export_call(
			e, CHI_C_LAST_PLACE, x, CHOIR_SHAPE(s->dim[1]), ", %" PRId64, s->dim[1]);
}

static const chi_layer_kind last_kind = RECURRENT_KIND("last_place", apply_last, describe_last);

choir_layer *choir_last_timestep_new(void)
{
	return chi_layer_finish(chi_layer_new(sizeof(choir_layer), &last_kind, NULL), CHOIR_OK);
}
