// Upsampling by a whole factor, axis by axis.
#include "base/size.h"
#include "op/nn/nn.h"

#include <inttypes.h>

// [outer, n, rest].
static choir_shape around(const choir_tensor *x, int axis)
{
	choir_shape s = CHOIR_SHAPE(1, x->shape.dim[axis], 1);
	for (int i = 0; i < x->shape.rank; i++)
		if (i != axis)
			s.dim[i < axis ? 0 : 2] *= x->shape.dim[i];
	return s;
}

static choir_tensor *repeat(choir_tensor *x, int64_t factor)
{
	const int64_t *s = x->shape.dim;
	choir_tensor *y = choir_reshape(x, CHOIR_SHAPE(s[0], s[1], 1, s[2]));
	return y ? choir_broadcast_to(y, CHOIR_SHAPE(s[0], s[1], factor, s[2])) : NULL;
}

// [n factor, n], of the elements around a place.
static choir_tensor *weights(choir_tensor *x, int64_t n, int64_t factor)
{
	choir_frame *f = x->frame;
	float *w = chi_arena_alloc(&f->arena, (size_t) (n * factor * n) * sizeof *w);

	if (!w)
		return chi_frame_record_null(f);
	for (int64_t i = 0; i < n * factor; i++) {
		// the centre of element i, in x
		const double at = ((double) i + 0.5) / (double) factor - 0.5;
		const int64_t below = at < 0 ? 0 : (int64_t) at;
		const int64_t above = below + 1 < n ? below + 1 : below;
		const double part = at < 0 ? 0 : at - (double) below;
		w[i * n + below] += (float) (1 - part);
		w[i * n + above] += (float) part;
	}
	choir_tensor *t = choir_constant(f, CHOIR_F32, CHOIR_SHAPE(n * factor, n), w);
	return t ? choir_cast(t, x->dtype) : NULL;
}

static choir_tensor *enlarge(choir_tensor *x, int axis, int64_t factor, bool linear)
{
	choir_shape s = x->shape;
	choir_tensor *flat = choir_reshape(x, around(x, axis));

	s.dim[axis] *= factor;
	if (flat)
		flat = linear ? choir_einsum("ph,ohr->opr", weights(x, x->shape.dim[axis], factor), flat)
					  : repeat(flat, factor);
	return flat ? choir_reshape(flat, s) : NULL;
}

choir_tensor *choir_upsample(choir_tensor *x, int64_t factor, choir_interpolation interpolation)
{
	char text[CHI_SHAPE_TEXT];

	if (!x)
		return chi_frame_null_argument(NULL, "upsample");
	choir_shape s = x->shape;
	bool fits = s.rank >= 3 && factor >= 1 && (unsigned) interpolation <= CHOIR_BILINEAR;
	for (int i = 1; i < s.rank - 1 && fits; i++)
		fits = chi_int64_multiply(s.dim[i], factor, &s.dim[i]);
	if (!fits || choir_shape_elements(&s) == CHOIR_NONE)
		return chi_frame_fail_null(x->frame, CHOIR_INVALID,
				"upsample: %s by %" PRId64 ", interpolation %d; [n, .., c], a factor of 1 or more "
				"and NEAREST or BILINEAR are needed",
				chi_shape_print(&x->shape, text), factor, (int) interpolation);
	for (int i = 1, rank = s.rank; x && factor > 1 && i < rank - 1; i++)
		x = enlarge(x, i, factor, interpolation == CHOIR_BILINEAR);
	return x;
}
