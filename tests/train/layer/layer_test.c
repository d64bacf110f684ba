// Layers: what they compute, in which frames, what their variables are called, and what is
// refused.
#include "train/problem.h"

#include "base/status.h"
#include "test.h"

#include <math.h>
#include <string.h>

static void assert_near(const choir_tensor *t, size_t n, const double expected[])
{
	if (t == NULL)
		fail_msg("%s", choir_error());
	const float *x = choir_tensor_data(t);
	assert_non_null(x);
	for (size_t i = 0; i < n; i++)
		if (!(fabs((double) x[i] - expected[i]) < 1e-5))
			fail_msg("element %zu is %g, needed %g", i, (double) x[i], expected[i]);
}

static void set_variable(choir_frame *f, choir_variable *v, const float data[])
{
	choir_tensor *t = choir_constant(f, CHOIR_F32, *choir_variable_shape(v), data);
	if (choir_variable_assign(v, t) != CHOIR_OK)
		fail_msg("%s", choir_error());
}

TEST_WITHIN(dense_is_its_formula, scoped_open, scoped_close)
{
	scoped *g = *state;
	static const choir_activation all[] = { CHOIR_LINEAR, CHOIR_RELU, CHOIR_TANH, CHOIR_SIGMOID,
		CHOIR_GELU, CHOIR_GELU_TANH };
	static const char *const name[] = { "a", "b", "c", "d", "e", "f" };
	const float kernel[] = { 1, 2, -1, 0.5f, 0, -2 }, bias[] = { 0.25f, -0.5f };
	const float x[] = { 1, 2, 3, -1, 0, 0.5f };
	for (int i = 0; i < 6; i++) {
		choir_layer *l = choir_dense_new(name[i], 3, 2, all[i]);
		assert_int_equal(choir_layer_variables(l), 2);
		set_variable(g->frame, choir_layer_variable(l, 0), kernel);
		set_variable(g->frame, choir_layer_variable(l, 1), bias);
		double y[4] = { 1 - 2 + 0.25, 2 + 1 - 6 - 0.5, -1 + 0.25, -2 - 1 - 0.5 };
		for (int k = 0; k < 4; k++) {
			const double z = y[k];
			const double gelu = 0.5 * z * (1 + erf(z / sqrt(2)));
			const double approximate =
					0.5 * z * (1 + tanh(sqrt(2 / 3.14159265358979) * (z + 0.044715 * z * z * z)));
			const double values[] = { z, fmax(z, 0), tanh(z), 1 / (1 + exp(-z)), gelu,
				approximate };
			y[k] = values[i];
		}
		choir_tensor *t = choir_borrow(g->frame, CHOIR_F32, CHOIR_SHAPE(2, 3), x);
		assert_near(choir_layer_apply(l, t), 4, y);
	}
}

TEST_WITHIN(conv2d_is_its_formula, scoped_open, scoped_close)
{
	scoped *g = *state;
	choir_layer *l = choir_conv2d_new(
			"conv", 1, 1, 2, CHOIR_OPTIONS(choir_conv_options, .activation = CHOIR_RELU));
	const float kernel[] = { 1, 2, 3, -4 }, bias[] = { 0.5f };
	const float x[] = { 1, 0, 2, 0, 1, 1, 3, 1, 0 };
	set_variable(g->frame, choir_layer_variable(l, 0), kernel);
	set_variable(g->frame, choir_layer_variable(l, 1), bias);
	choir_tensor *t = choir_borrow(g->frame, CHOIR_F32, CHOIR_SHAPE(1, 3, 3, 1), x);
	choir_tensor *y = choir_layer_apply(l, t);
	assert_shape(y, CHOIR_SHAPE(1, 2, 2, 1));
	const double expected[] = { 1 - 4 + 0.5 > 0 ? 1 : 0, 4 + 3 - 4 + 0.5, 2 + 9 - 4 + 0.5,
		1 + 2 + 3 + 0.5 };
	assert_near(y, 4, expected);
}

TEST_WITHIN(shapes, scoped_open, scoped_close)
{
	scoped *g = *state;
	choir_frame *f = g->frame;
	choir_tensor *x = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(2, 9, 8, 3), 1);
	choir_tensor *none = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(0, 9, 8, 3), 1);
	choir_layer *same = choir_conv2d_new("same", 3, 5, 3,
			CHOIR_OPTIONS(choir_conv_options, .stride = 2, .padding = CHOIR_PADDING_SAME));
	assert_shape(choir_layer_apply(same, x), CHOIR_SHAPE(2, 5, 4, 5));
	choir_layer *padded = choir_conv2d_new("padded", 3, 5, 3,
			CHOIR_OPTIONS(choir_conv_options, .padding = 1, .activation = CHOIR_GELU));
	assert_shape(choir_layer_apply(padded, x), CHOIR_SHAPE(2, 9, 8, 5));
	assert_shape(choir_layer_apply(padded, none), CHOIR_SHAPE(0, 9, 8, 5));
	assert_shape(choir_layer_apply(choir_max_pool2d_new(2, 0, 0), x), CHOIR_SHAPE(2, 4, 4, 3));
	assert_shape(choir_layer_apply(choir_average_pool2d_new(3, 1, 0), x), CHOIR_SHAPE(2, 7, 6, 3));
	assert_shape(choir_layer_apply(choir_flatten_new(), x), CHOIR_SHAPE(2, 216));
	assert_shape(choir_layer_apply(choir_flatten_new(), none), CHOIR_SHAPE(0, 216));
	assert_shape(choir_layer_apply(choir_dense_new("none", 216, 4, CHOIR_TANH),
						 choir_layer_apply(choir_flatten_new(), none)),
			CHOIR_SHAPE(0, 4));
	assert_int_equal(choir_frame_status(f), CHOIR_OK);
	none = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(0, INT64_C(1) << 40, INT64_C(1) << 40), 1);
	assert_null(choir_layer_apply(choir_flatten_new(), none));
	assert_text_holds(choir_error(), "example");
	assert_int_equal(choir_frame_status(f), CHOIR_INVALID);
	choir_frame_clear(f);
}

TEST_WITHIN(variables, scoped_open, scoped_close)
{
	scoped *g = *state;
	choir_layer *a = choir_conv2d_new("first", 3, 4, 5, NULL);
	choir_layer *b = choir_dense_new("second", 100, 50, CHOIR_LINEAR);
	choir_layer *inner = choir_sequential_new(2, (choir_layer *[]){ choir_flatten_new(), b });
	choir_layer *all =
			choir_sequential_new(3, (choir_layer *[]){ a, inner, choir_max_pool2d_new(2, 2, 0) });
	static const char *const names[] = { "first/kernel", "first/bias", "second/kernel",
		"second/bias" };
	assert_int_equal(choir_layer_variables(all), 4);
	for (int i = 0; i < 4; i++) {
		choir_variable *v = choir_layer_variable(all, i);
		assert_string_equal(choir_variable_name(v), names[i]);
		choir_variable_options o = { .size = sizeof o };
		assert_int_equal(choir_variable_describe(v, &o), CHOIR_OK);
		assert_int_equal(o.trainable, CHOIR_ON);
	}
	assert_null(choir_layer_variable(all, 4));
	assert_failed(choir_error_status(), CHOIR_INVALID, "variable 4");
	assert_null(choir_layer_variable(all, -1));
	assert_int_equal(choir_layer_variables(NULL), 0);
	// Glorot uniform: within its limit, filling it, around zero.
	static float kernel[5000];
	const double limit = sqrt(6.0 / 150);
	double min = 1, max = -1, sum = 0;
	fetch_variable(choir_layer_variable(all, 2), kernel, sizeof kernel);
	for (int i = 0; i < 5000; i++) {
		min = fmin(min, (double) kernel[i]);
		max = fmax(max, (double) kernel[i]);
		sum += (double) kernel[i];
	}
	assert_true(min >= -limit && min < -0.99 * limit && max <= limit && max > 0.99 * limit);
	assert_true(fabs(sum / 5000) < 0.05 * limit);
	(void) g;
}

// Which is done behind the pool, with the bits of the order that was asked for.
TEST_WITHIN(relu_before_a_max_pool, scoped_open, scoped_close)
{
	scoped *g = *state;
	choir_layer *conv = choir_conv2d_new(
			"conv", 3, 5, 3, CHOIR_OPTIONS(choir_conv_options, .activation = CHOIR_RELU));
	choir_layer *pool = choir_max_pool2d_new(2, 2, 0);
	choir_layer *both = choir_sequential_new(2, (choir_layer *[]){ conv, pool });
	choir_tensor *x = choir_random_normal(g->frame, CHOIR_F32, CHOIR_SHAPE(2, 9, 9, 3), 4),
				 *gradient;
	static float value[2][2 * 3 * 3 * 5], dx[2][2 * 9 * 9 * 3];
	for (int i = 0; i < 2; i++) {
		const size_t mark = choir_frame_mark(g->frame);
		choir_tape *tape = choir_tape_begin(g->frame);
		choir_tensor *y = i == 0 ? choir_layer_apply(both, x)
								 : choir_layer_apply(pool, choir_layer_apply(conv, x));
		assert_shape(y, CHOIR_SHAPE(2, 3, 3, 5));
		assert_int_equal(choir_tensor_to_host(y, value[i], sizeof value[i]), CHOIR_OK);
		choir_tensor *sum = choir_sum(choir_square(y), CHOIR_ALL_AXES);
		assert_int_equal(choir_tape_gradient(tape, sum, 1, &x, &gradient), CHOIR_OK);
		assert_int_equal(choir_tensor_to_host(gradient, dx[i], sizeof dx[i]), CHOIR_OK);
		choir_frame_rewind(g->frame, mark);
	}
	assert_memory_equal(value[0], value[1], sizeof value[0]);
	assert_memory_equal(dx[0], dx[1], sizeof dx[0]);
	assert_null(
			choir_layer_apply(both, choir_fill(g->frame, CHOIR_F64, CHOIR_SHAPE(2, 9, 9, 3), 1)));
	assert_failed(choir_error_status(), CHOIR_INVALID, "layer \"conv\":*conv2d*f32");
}

TEST_WITHIN(empty_sequential, scoped_open, scoped_close)
{
	scoped *g = *state;
	choir_tensor *x = choir_fill(g->frame, CHOIR_F32, CHOIR_SHAPE(2), 3);
	choir_layer *l = choir_sequential_new(0, NULL);
	assert_ptr_equal(choir_layer_apply(l, x), x);
	assert_int_equal(choir_layer_variables(l), 0);
}

TEST_WITHIN(dropout_looks_at_the_tape, scoped_open, scoped_close)
{
	scoped *g = *state;
	choir_frame *f = g->frame;
	choir_layer *l = choir_dropout_new("drop", 0.5), *other = choir_dropout_new("other", 0.5);
	choir_tensor *x = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(1000), 1);
	assert_ptr_equal(choir_layer_apply(l, x), x);
	choir_tape_begin(f);
	const float *y = choir_tensor_data(choir_layer_apply(l, x));
	const float *z = choir_tensor_data(choir_layer_apply(other, x));
	assert_non_null(y);
	assert_non_null(z);
	int kept = 0, differ = 0;
	for (int i = 0; i < 1000; i++) {
		assert_true(y[i] == 0 || y[i] == 2);
		kept += y[i] != 0;
		differ += y[i] != z[i];
	}
	assert_true(kept > 420 && kept < 580 && differ > 300);
}

#define REFUSED(expression, status, text) \
	do { \
		assert_null(expression); \
		assert_failed(choir_error_status(), status, text); \
	} while (0)

TEST_WITHIN(refused_when_made, scoped_open, scoped_close)
{
	REFUSED(choir_dense_new(NULL, 1, 1, CHOIR_LINEAR), CHOIR_INVALID, "a dense layer*name");
	REFUSED(choir_dense_new("", 1, 1, CHOIR_LINEAR), CHOIR_INVALID, "a dense layer*name");
	REFUSED(choir_dense_new("d", 0, 1, CHOIR_LINEAR), CHOIR_INVALID,
			"layer \"d\": dense from 0 to 1");
	REFUSED(choir_dense_new("d", 3, -1, CHOIR_LINEAR), CHOIR_INVALID, "dense from 3 to -1");
	REFUSED(choir_dense_new("d", INT64_MAX, 4, CHOIR_LINEAR), CHOIR_INVALID,
			"[9223372036854775807, 4]");
	REFUSED(choir_dense_new("d", 1, 1, (choir_activation) 77), CHOIR_INVALID,
			"activation 77*LINEAR");
	REFUSED(choir_conv2d_new("c", 0, 1, 3, NULL), CHOIR_INVALID, "layer \"c\": conv2d from 0");
	REFUSED(choir_conv2d_new("c", 1, 1, 0, NULL), CHOIR_INVALID, "by 0 pixels");
	REFUSED(choir_conv2d_new("c", 1, 1, 3, CHOIR_OPTIONS(choir_conv_options, .stride = -1)),
			CHOIR_INVALID, "stride*-1");
	REFUSED(choir_conv2d_new("c", 1, 1, 3, CHOIR_OPTIONS(choir_conv_options, .padding = -2)),
			CHOIR_INVALID, "padding*-2");
	REFUSED(choir_conv2d_new("c", 1, 1, 3, &(choir_conv_options){ .size = 1 }), CHOIR_INVALID,
			"the options' size is 1");
	REFUSED(choir_max_pool2d_new(0, 1, 0), CHOIR_INVALID, "max_pool2d of size 0");
	REFUSED(choir_average_pool2d_new(2, -1, 0), CHOIR_INVALID, "stride*-1");
	REFUSED(choir_dropout_new("drop", 1), CHOIR_INVALID, "layer \"drop\":*rate*1;");
	REFUSED(choir_dropout_new("drop", (double) NAN), CHOIR_INVALID, "dropout rate*nan");
	REFUSED(choir_dropout_new(NULL, 0.5), CHOIR_INVALID, "a dropout layer*name");
	REFUSED(choir_sequential_new(2, (choir_layer *[]){ choir_flatten_new(), NULL }), CHOIR_INVALID,
			"sequential: layer 1 is NULL");
	REFUSED(choir_sequential_new(SIZE_MAX, (choir_layer *[]){ NULL }), CHOIR_INVALID, "too large");
	// The reason why a layer is NULL is kept.
	REFUSED(choir_sequential_new(1, (choir_layer *[]){ choir_dense_new("d", -4, 1, CHOIR_RELU) }),
			CHOIR_INVALID, "dense from -4");
}

TEST_WITHIN(names_in_use, scoped_open, scoped_close)
{
	assert_non_null(choir_variable_new("taken/bias", CHOIR_SHAPE(1), NULL));
	REFUSED(choir_dense_new("taken", 2, 3, CHOIR_RELU), CHOIR_INVALID, "\"taken/bias\"");
	// Nothing is left of it.
	assert_non_null(choir_variable_new("taken/kernel", CHOIR_SHAPE(1), NULL));
	assert_non_null(choir_dense_new("free", 2, 3, CHOIR_RELU));
	REFUSED(choir_conv2d_new("free", 2, 3, 3, NULL), CHOIR_INVALID, "\"free/kernel\"");
}

TEST_WITHIN(refused_when_applied, scoped_open, scoped_close)
{
	scoped *g = *state;
	choir_frame *f = g->frame;
	choir_layer *dense = choir_dense_new("hidden", 784, 10, CHOIR_RELU);
	choir_layer *conv = choir_conv2d_new("conv", 3, 4, 5, NULL);
	const struct {
		choir_layer *layer;
		choir_shape shape;
		const char *text;
	} cases[] = {
		{ dense, CHOIR_SHAPE(32, 10), "layer \"hidden\": dense needs [n, .., 784]*[32, 10]" },
		{ dense, CHOIR_SHAPE(784), "layer \"hidden\": dense needs [n, .., 784]*[784]" },
		{ conv, CHOIR_SHAPE(2, 8, 8, 4),
				"layer \"conv\": conv2d needs [n, h, w, 3]*[2, 8, 8, 4]" },
		{ conv, CHOIR_SHAPE(2, 8, 4, 3), "conv2d*5 by 5*padding 0*[2, 8, 4, 3]" },
		{ choir_max_pool2d_new(3, 1, 0), CHOIR_SHAPE(1, 2, 8, 1), "layer \"max_pool2d\"" },
		{ choir_flatten_new(), CHOIR_SCALAR, "layer \"flatten\":*[n, ...]*scalar" },
		{ choir_sequential_new(1, &dense), CHOIR_SHAPE(1, 2), "layer \"hidden\"" },
		{ NULL, CHOIR_SHAPE(1), "layer" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		choir_tensor *x = choir_fill(f, CHOIR_F32, cases[i].shape, 0);
		chi_error_clear();
		assert_null(choir_layer_apply(cases[i].layer, x));
		assert_int_equal(choir_frame_status(f), CHOIR_INVALID);
		assert_failed(choir_error_status(), CHOIR_INVALID, cases[i].text);
		choir_frame_clear(f);
	}
	assert_null(choir_layer_apply(dense, choir_fill(f, CHOIR_U8, CHOIR_SHAPE(1, 784), 0)));
	assert_failed(choir_error_status(), CHOIR_INVALID, "f32*u8");
	choir_frame_clear(f);
	// NULL keeps the first cause.
	assert_null(choir_layer_apply(
			dense, choir_layer_apply(conv, choir_fill(f, CHOIR_F32, CHOIR_SHAPE(1), 0))));
	assert_int_equal(choir_frame_status(f), CHOIR_INVALID);
	assert_failed(choir_error_status(), CHOIR_INVALID, "\"conv\"");
}

static choir_status apply_foreign(choir_replica *r, void *user)
{
	choir_tensor *x = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(1, 2), 0);
	return choir_layer_apply(user, x) == NULL ? choir_error_status() : CHOIR_OK;
}

TEST(others_layers)
{
	choir_strategy *a = mirrored("cpu:0", 1), *b = mirrored("cpu:0", 1);
	choir_layer *l = NULL;
	CHOIR_SCOPE (a)
		l = choir_dense_new("here", 2, 3, CHOIR_RELU);
	assert_failed(choir_strategy_run(b, apply_foreign, l, NULL, NULL), CHOIR_STATE, "strategies");
	CHOIR_SCOPE (b)
		REFUSED(choir_sequential_new(1, &l), CHOIR_STATE,
				"mixing strategies*\"mirrored\" #*\"mirrored\" #");
	choir_strategy_free(a);
	choir_strategy_free(b);
}

// A layer made by the replicas together is one set of variables.
static choir_status make_and_apply(choir_replica *r, void *user)
{
	choir_layer *l = choir_dense_new("shared", 2, 3, CHOIR_RELU);
	choir_tensor *y = choir_layer_apply(l, choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(1, 2), 1));
	((choir_variable **) user)[choir_replica_id(r)] = choir_layer_variable(l, 0);
	return choir_replica_return(r, "y", y);
}

TEST(made_in_replicas)
{
	choir_strategy *s = mirrored("cpu:0,cpu:1", 3);
	choir_variable *made[3] = { NULL };
	choir_values *results = NULL;
	for (int i = 0; i < 2; i++)
		if (choir_strategy_run(s, make_and_apply, made, NULL, &results) != CHOIR_OK)
			fail_msg("%s", choir_error());
	assert_non_null(made[0]);
	assert_ptr_equal(made[0], made[1]);
	assert_ptr_equal(made[0], made[2]);
	choir_values_free(results);
	choir_strategy_free(s);
}
