// Gradients are checked for NaN and infinity on arrival, so a failure names the replica and
// nothing is written. A block with a finite sum has none; others are searched, since finite
// numbers can overflow.
#include "train/optimizer/optimizer.h"

#include "base/log.h"
#include "op/vector.h"

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

// The first of each skipped update or, if updates are applied, of all.
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

choir_status chi_optimizer_check_dtype(const choir_optimizer *o, const choir_variable *v)
{
	if (v->dtype == CHOIR_F32 || v->dtype == CHOIR_F64)
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID, "%s: variable \"%s\" is %s; only f32 and f64 can be updated",
			o->kind->name, v->name, choir_dtype_name(v->dtype));
}

choir_status chi_optimizer_check_gradient(
		choir_optimizer *o, const choir_variable *v, const choir_tensor *gradient)
{
	CHOIR_TRY(chi_optimizer_check_dtype(o, v));
	if (!looks_at(o) || chi_is_slices(gradient) || gradient->buffer == NULL ||
			!chi_tensor_memory_device(gradient)->host_memory || gradient->dtype != v->dtype ||
			!chi_shape_equal(&gradient->shape, &v->shape))
		return CHOIR_OK; // the gate sees the sums; misfits are refused later
	return find_nonfinite(o, v, gradient);
}
