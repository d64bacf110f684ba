// Initial values. Random ones are Philox numbers of the seed and the variable's name, so order and
// place of creation do not matter.
#include "value/initializer.h"

#include "base/hash.h"
#include "base/lock.h"

#include <math.h>
#include <string.h>

// Fans as in Keras: [in, out] for two axes; for filters [.., in, out] times the receptive field; a
// single dimension is both.
static void fans(const choir_shape *shape, double *in, double *out)
{
	double field = 1;
	for (int i = 0; i < shape->rank - 2; i++)
		field *= (double) shape->dim[i];
	if (shape->rank == 0)
		*in = *out = 1;
	else if (shape->rank == 1)
		*in = *out = (double) shape->dim[0];
	else {
		*in = field * (double) shape->dim[shape->rank - 2];
		*out = field * (double) shape->dim[shape->rank - 1];
	}
}

static void store(void *out, choir_dtype dtype, int64_t i, double value)
{
	if (dtype == CHOIR_F64)
		((double *) out)[i] = value;
	else
		((float *) out)[i] = (float) value;
}

static void uniform(const chi_variable_plan *plan, void *out, int64_t n, double limit)
{
	const chi_random_key key = { plan->seed, chi_hash_text(plan->name), 0, 0 };
	for (int64_t i = 0; i < n; i++) {
		const chi_philox_block b = chi_random_block(&key, (uint64_t) i / 2);
		const uint32_t *w = &b.word[2 * (i % 2)];
		store(out, plan->options.dtype, i, limit * (2 * chi_uniform_double(w[0], w[1]) - 1));
	}
}

static void normal(const chi_variable_plan *plan, void *out, int64_t n, double deviation)
{
	const chi_random_key key = { plan->seed, chi_hash_text(plan->name), 0, 0 };
	for (int64_t i = 0; i < n; i += 2) {
		const chi_philox_block b = chi_random_block(&key, (uint64_t) i / 2);
		double pair[2];
		chi_normal_pair(&b, pair);
		store(out, plan->options.dtype, i, deviation * pair[0]);
		if (i + 1 < n)
			store(out, plan->options.dtype, i + 1, deviation * pair[1]);
	}
}

static void ones(choir_dtype dtype, void *out, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		switch (dtype) {
		case CHOIR_F32:
			((float *) out)[i] = 1;
			break;
		case CHOIR_F64:
			((double *) out)[i] = 1;
			break;
		case CHOIR_I32:
			((int32_t *) out)[i] = 1;
			break;
		case CHOIR_I64:
			((int64_t *) out)[i] = 1;
			break;
		case CHOIR_U8:
		case CHOIR_BOOL:
			((uint8_t *) out)[i] = 1;
			break;
		case CHOIR_F16:
			((uint16_t *) out)[i] = 0x3c00;
			break;
		case CHOIR_BF16:
			((uint16_t *) out)[i] = 0x3f80;
			break;
		}
	}
}

choir_status chi_initialize(const chi_variable_plan *plan, void *out)
{
	const choir_variable_options *o = &plan->options;
	const int64_t n = choir_shape_elements(&plan->shape);
	const size_t bytes = (size_t) n * chi_dtype_size(o->dtype);
	double in, fan_out;
	fans(&plan->shape, &in, &fan_out);
	if (o->initial_value != NULL) {
		memcpy(out, o->initial_value, bytes);
		return CHOIR_OK;
	}
	if (o->initializer_fn != NULL) {
		chi_error_clear();
		chi_mutex_check_none_held();
		const choir_status status = o->initializer_fn(out, &plan->shape, o->user);
		if (status == CHOIR_OK)
			return status;
		if (choir_error_status() != status || status == CHOIR_END)
			choir_fail(status == CHOIR_END ? CHOIR_INVALID : status, "the initializer returned %s",
					choir_status_name(status));
		return chi_error_prefix("variable \"%s\"", plan->name);
	}
	if (o->initializer > CHOIR_INITIALIZER_ONES && o->dtype != CHOIR_F32 && o->dtype != CHOIR_F64)
		return choir_fail(CHOIR_INVALID,
				"variable \"%s\": a random initializer needs f32 or f64, not %s", plan->name,
				choir_dtype_name(o->dtype));
	switch (o->initializer) {
	case CHOIR_INITIALIZER_ZEROS:
		memset(out, 0, bytes);
		return CHOIR_OK;
	case CHOIR_INITIALIZER_ONES:
		ones(o->dtype, out, n);
		return CHOIR_OK;
	case CHOIR_INITIALIZER_GLOROT_UNIFORM:
		uniform(plan, out, n, sqrt(6 / (in + fan_out)));
		return CHOIR_OK;
	case CHOIR_INITIALIZER_HE_NORMAL:
		normal(plan, out, n, sqrt(2 / in));
		return CHOIR_OK;
	case CHOIR_INITIALIZER_NORMAL:
		normal(plan, out, n, o->scale == 0 ? 0.05 : o->scale);
		return CHOIR_OK;
	}
	return choir_fail(CHOIR_INVALID, "variable \"%s\": initializer %d is unknown", plan->name,
			(int) o->initializer);
}
