// Sequences of different lengths, by other operations: padding is behind the time steps, so only
// reversals and last time steps depend on lengths, and masks clear it.
#include "base/size.h"
#include "op/nn/nn.h"

#include <inttypes.h>

static choir_status infer_lengths(chi_result *r)
{
	const choir_tensor *lengths = r->in[1];
	const choir_dtype d = lengths->dtype;
	char text[CHI_SHAPE_TEXT];

	if ((d != CHOIR_U8 && d != CHOIR_I32 && d != CHOIR_I64) || lengths->shape.rank != 1)
		return choir_fail(CHOIR_INVALID, "they are %s %s; u8, i32 or i64 [n] is needed",
				choir_dtype_name(d), chi_shape_print(&lengths->shape, text));
	r->dtype = CHOIR_I64;
	r->shape = lengths->shape;
	return CHOIR_OK;
}

// Takes rows of 0, 1, .. t, so the kernel checks the lengths.
static const chi_op lengths_op = {
	.name = "gather", .label = "lengths of sequences", .infer = infer_lengths
};

// In i64 [n].
static choir_tensor *checked(choir_tensor *lengths, int64_t t)
{
	choir_tensor *const in[] = { chi_count_up(lengths->frame, t + 1), lengths };

	return chi_op_call(&lengths_op, lengths->frame, 2, in, NULL);
}

static bool fits(const char *name, const choir_tensor *x, const choir_tensor *lengths)
{
	const choir_shape *s = x ? &x->shape : NULL;
	char text[2][CHI_SHAPE_TEXT];
	int64_t all;

	if (!x || !lengths) {
		chi_frame_null_argument(choir_tensor_frame(x ? x : lengths), name);
		return false;
	}
	if (s->rank >= 2 && lengths->shape.rank == 1 && lengths->shape.dim[0] == s->dim[0] &&
			s->dim[1] < INT64_MAX && chi_int64_multiply(s->dim[0], s->dim[1], &all))
		return true;
	chi_frame_fail_null(x->frame, CHOIR_INVALID,
			"%s: sequences %s and lengths %s do not fit; [n, timesteps, ..] and [n] are needed",
			name, chi_shape_print(s, text[0]), chi_shape_print(&lengths->shape, text[1]));
	return false;
}

static choir_tensor *column(choir_tensor *t)
{
	return t ? choir_reshape(t, CHOIR_SHAPE(t->shape.dim[0], 1)) : NULL;
}

static choir_tensor *integer(choir_frame *f, int64_t value)
{
	return choir_number(f, (double) value);
}

choir_tensor *chi_time_steps(choir_tensor *x)
{
	if (!x)
		return NULL;
	choir_shape flat = { x->shape.rank - 1, { x->shape.dim[0] * x->shape.dim[1] } };
	for (int i = 1; i < flat.rank; i++)
		flat.dim[i] = x->shape.dim[i + 1];
	return choir_reshape(x, flat);
}

// Time steps of x by their numbers in the batch.
static choir_tensor *take(choir_tensor *x, choir_tensor *numbers)
{
	return numbers ? choir_gather(chi_time_steps(x), numbers) : NULL;
}

// The number in the batch of each sequence's first time step: [n, 1].
static choir_tensor *firsts(const choir_tensor *x)
{
	return column(choir_multiply(
			chi_count_up(x->frame, x->shape.dim[0]), integer(x->frame, x->shape.dim[1])));
}

choir_tensor *choir_sequence_mask(choir_tensor *lengths, int64_t t)
{
	if (!lengths)
		return chi_frame_null_argument(NULL, "sequence_mask");
	if (t < 0 || t == INT64_MAX)
		return chi_frame_fail_null(lengths->frame, CHOIR_INVALID,
				"sequence_mask: %" PRId64 " time steps; 0 or more are needed", t);
	choir_tensor *all = checked(lengths, t);
	return all ? choir_less(chi_count_up(all->frame, t), column(all)) : NULL;
}

// x where mask [n, k] is true, else 0.
static choir_tensor *keep(choir_tensor *x, choir_tensor *mask, int axes)
{
	choir_shape shape = { x ? x->shape.rank : 0, { 0 } };

	if (!x || !mask)
		return NULL;
	for (int i = 0; i < shape.rank; i++)
		shape.dim[i] = i < axes ? mask->shape.dim[i] : 1;
	return choir_where(choir_reshape(mask, shape), x, choir_number(x->frame, 0));
}

choir_tensor *choir_zero_padding(choir_tensor *x, choir_tensor *lengths)
{
	if (!fits("zero_padding", x, lengths))
		return NULL;
	return keep(x, choir_sequence_mask(lengths, x->shape.dim[1]), 2);
}

choir_tensor *choir_reverse_sequence(choir_tensor *x, choir_tensor *lengths)
{
	if (!fits("reverse_sequence", x, lengths))
		return NULL;
	const int64_t t = x->shape.dim[1];
	choir_tensor *step = chi_count_up(x->frame, t);
	choir_tensor *back = choir_subtract(
			column(choir_subtract(checked(lengths, t), integer(x->frame, 1))), step);
	choir_tensor *from =
			choir_where(choir_less(back, integer(x->frame, 0)), step, back); // padding stays
	return take(x, choir_add(firsts(x), from));
}

choir_tensor *choir_last_timestep(choir_tensor *x, choir_tensor *lengths)
{
	if (!fits("last_timestep", x, lengths))
		return NULL;
	if (x->shape.dim[1] == 0)
		return chi_frame_fail_null(x->frame, CHOIR_INVALID,
				"last_timestep: the sequences have no time steps; 1 or more are needed");
	choir_tensor *all = checked(lengths, x->shape.dim[1]);
	choir_tensor *one = integer(x->frame, 1), *n = choir_maximum(all, one);
	choir_tensor *at = n ? choir_reshape(firsts(x), n->shape) : NULL;
	choir_tensor *last = take(x, choir_add(at, choir_subtract(n, one)));
	return keep(last, choir_greater_equal(all, one), 1);
}
