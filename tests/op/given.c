// Random tensors of random shapes, and assertions that say what was wrong.
#include "op/given.h"
#include "test.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void given_open(given *g, const char *device, uint64_t seed)
{
	choir_device *d = choir_device_find(device);

	assert_non_null(d);
	*g = (given){ .frame = choir_frame_new(d), .key = { .seed = seed } };
	assert_non_null(g->frame);
}

void given_close(given *g)
{
	choir_frame_free(g->frame);
}

int64_t given_size(given *g, int64_t min, int64_t max)
{
	const chi_philox_block block = chi_random_block(&g->key, g->drawn++);
	return min + (int64_t) (block.word[0] % (uint64_t) (max - min + 1));
}

choir_shape given_shape(given *g, int min_rank, int max_rank, int64_t max_size)
{
	choir_shape shape = { .rank = (int) given_size(g, min_rank, max_rank) };
	for (int i = 0; i < shape.rank; i++)
		shape.dim[i] = given_size(g, 1, max_size);
	return shape;
}

static choir_tensor *draw(given *g, choir_shape shape, bool positive)
{
	const int64_t n = choir_shape_elements(&shape);
	double *values = calloc((size_t) n + 1, sizeof(*values)), pair[2];

	assert_non_null(values);
	for (int64_t i = 0; i < n; i++) {
		const chi_philox_block block = chi_random_block(&g->key, g->drawn++);
		chi_normal_pair(&block, pair);
		values[i] = positive ? 0.5 + pair[0] * pair[0] : pair[0];
	}
	choir_tensor *t = choir_constant(g->frame, CHOIR_F64, shape, values);
	free(values);
	assert_non_null(t);
	return t;
}

choir_tensor *given_normal(given *g, choir_shape shape)
{
	return draw(g, shape, false);
}

choir_tensor *given_positive(given *g, choir_shape shape)
{
	return draw(g, shape, true);
}

choir_tensor *given_labels(given *g, int64_t n, int64_t classes)
{
	int32_t labels[64] = { 0 };

	assert_true(n <= 64);
	for (int64_t i = 0; i < n; i++)
		labels[i] = (int32_t) given_size(g, 0, classes - 1);
	choir_tensor *t = choir_constant(g->frame, CHOIR_I32, CHOIR_SHAPE(n), labels);
	assert_non_null(t);
	return t;
}

void given_check(
		given *g, size_t n, choir_tensor *const inputs[], choir_formula_fn *fn, void *user)
{
	const choir_status status = choir_check_gradient(n, inputs, 0, fn, user);
	if (status != CHOIR_OK)
		fail_msg("%s", choir_error());
	assert_int_equal(choir_frame_status(g->frame), CHOIR_OK);
}

void given_failure(given *g, choir_status status, const char *text)
{
	assert_string_not_equal(choir_error(), "");
	if (!text_holds(choir_error(), text))
		fail_msg("'%s' is not in '%s'", text, choir_error());
	assert_int_equal(choir_error_status(), status);
	assert_int_equal(choir_frame_status(g->frame), status);
	choir_frame_clear(g->frame);
	assert_int_equal(choir_frame_status(g->frame), CHOIR_OK);
}

void given_equal(const choir_tensor *t, size_t n, const double expected[])
{
	char text[512];

	assert_non_null(t);
	assert_int_equal(choir_shape_elements(choir_tensor_shape(t)), n);
	void *data = calloc(n + 1, 8);
	assert_non_null(data);
	assert_int_equal(choir_tensor_to_host(t, data, chi_tensor_bytes(t)), CHOIR_OK);
	for (size_t i = 0; i < n; i++) {
		const double found = chi_dtype_load(choir_tensor_dtype(t), data, (int64_t) i);
		const bool same = found == expected[i] || (isnan(found) && isnan(expected[i]));
		if (!same && !(fabs(found - expected[i]) < 1e-6)) {
			choir_tensor_print(t, text, sizeof(text));
			fail_msg("element %zu is %g, expected %g: %s", i, found, expected[i], text);
		}
	}
	free(data);
}
