// Random values are Philox numbers of the seed and the variable's name, whatever the order and
// place of creation.
#include "value/initializer.h"

#include "base/alloc.h"
#include "base/hash.h"

#include <math.h>
#include <string.h>

// As in Keras: [in, out] for two axes; for filters [.., in, out] times the receptive field; a
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

// Numbers beyond two deviations are drawn again, with the attempt in the key.
static void truncated(const chi_variable_plan *plan, void *out, int64_t n, double deviation)
{
	for (int64_t i = 0; i < n; i++) {
		double pair[2] = { 3, 3 };
		chi_random_key key = { plan->seed, chi_hash_text(plan->name), 0, 0 };
		for (; fabs(pair[0]) > 2; key.place++) {
			const chi_philox_block b = chi_random_block(&key, (uint64_t) i);
			chi_normal_pair(&b, pair);
		}
		store(out, plan->options.dtype, i, deviation * pair[0]);
	}
}

// Subtracts from row k its parts along earlier rows, twice because of rounding, and scales it to
// length 1 (Gram and Schmidt; Giraud et al. 2005).
static void orthonormalize(double *rows, int64_t k, int64_t length)
{
	double *row = rows + k * length, squares = 0;
	for (int64_t pass = 0; pass < 2 * k; pass++) {
		const double *before = rows + pass % k * length;
		double dot = 0;
		for (int64_t i = 0; i < length; i++)
			dot += before[i] * row[i];
		for (int64_t i = 0; i < length; i++)
			row[i] -= dot * before[i];
	}
	for (int64_t i = 0; i < length; i++)
		squares += row[i] * row[i];
	for (int64_t i = 0; i < length; i++)
		row[i] /= sqrt(squares);
}

static choir_status orthogonal(const chi_variable_plan *plan, void *out, int64_t n, double scale)
{
	const choir_shape *shape = &plan->shape;
	const int64_t columns = shape->rank > 0 ? shape->dim[shape->rank - 1] : 1;
	const int64_t rows = columns > 0 ? n / columns : 0;
	const int64_t fewer = rows < columns ? rows : columns, more = rows < columns ? columns : rows;
	chi_variable_plan wide = *plan;
	double *vectors = chi_alloc_array((size_t) n + 1, sizeof *vectors);
	CHOIR_TRY(chi_made(vectors));
	wide.options.dtype = CHOIR_F64;
	normal(&wide, vectors, n, 1);
	for (int64_t k = 0; k < fewer; k++)
		orthonormalize(vectors, k, more);
	for (int64_t i = 0; i < n; i++) {
		const int64_t row = i / columns, column = i % columns;
		const double value =
				rows < columns ? vectors[row * more + column] : vectors[column * more + row];
		store(out, plan->options.dtype, i, scale * value);
	}
	chi_free(vectors);
	return CHOIR_OK;
}

static void fill(choir_dtype dtype, void *out, int64_t n, double value)
{
	for (int64_t i = 0; i < n; i++)
		chi_dtype_store(dtype, out, i, value);
}

bool chi_initializer_is_random(const choir_variable_options *o)
{
	return o->initial_value == NULL && o->initializer_fn == NULL &&
			o->initializer > CHOIR_INITIALIZER_ONES && o->initializer < CHOIR_INITIALIZER_CONSTANT;
}

static choir_status initialize_real(const chi_variable_plan *plan, void *out, int64_t n)
{
	const choir_variable_options *o = &plan->options;
	const double scale = o->scale == 0 ? 0.05 : o->scale;
	double in, fan_out;
	fans(&plan->shape, &in, &fan_out);
	switch (o->initializer) {
	case CHOIR_INITIALIZER_GLOROT_UNIFORM:
		uniform(plan, out, n, sqrt(6 / (in + fan_out)));
		return CHOIR_OK;
	case CHOIR_INITIALIZER_GLOROT_NORMAL:
		normal(plan, out, n, sqrt(2 / (in + fan_out)));
		return CHOIR_OK;
	case CHOIR_INITIALIZER_HE_UNIFORM:
		uniform(plan, out, n, sqrt(6 / in));
		return CHOIR_OK;
	case CHOIR_INITIALIZER_HE_NORMAL:
		normal(plan, out, n, sqrt(2 / in));
		return CHOIR_OK;
	case CHOIR_INITIALIZER_LECUN_UNIFORM:
		uniform(plan, out, n, sqrt(3 / in));
		return CHOIR_OK;
	case CHOIR_INITIALIZER_LECUN_NORMAL:
		normal(plan, out, n, sqrt(1 / in));
		return CHOIR_OK;
	case CHOIR_INITIALIZER_NORMAL:
		normal(plan, out, n, scale);
		return CHOIR_OK;
	case CHOIR_INITIALIZER_UNIFORM:
		uniform(plan, out, n, scale);
		return CHOIR_OK;
	case CHOIR_INITIALIZER_TRUNCATED_NORMAL:
		truncated(plan, out, n, scale);
		return CHOIR_OK;
	case CHOIR_INITIALIZER_ORTHOGONAL:
		return orthogonal(plan, out, n, o->scale == 0 ? 1 : o->scale);
	case CHOIR_INITIALIZER_CONSTANT:
		fill(o->dtype, out, n, o->scale);
		return CHOIR_OK;
	default:
		return choir_fail(CHOIR_INVALID, "variable \"%s\": initializer %d is unknown", plan->name,
				(int) o->initializer);
	}
}

choir_status chi_initialize(const chi_variable_plan *plan, void *out)
{
	const choir_variable_options *o = &plan->options;
	const int64_t n = choir_shape_elements(&plan->shape);
	const size_t bytes = (size_t) n * chi_dtype_size(o->dtype);
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
				"variable \"%s\": this initializer needs f32 or f64, not %s", plan->name,
				choir_dtype_name(o->dtype));
	if (o->initializer == CHOIR_INITIALIZER_ZEROS)
		memset(out, 0, bytes);
	else if (o->initializer == CHOIR_INITIALIZER_ONES)
		fill(o->dtype, out, n, 1);
	else
		return initialize_real(plan, out, n);
	return CHOIR_OK;
}
