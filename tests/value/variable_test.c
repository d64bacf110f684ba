// Variables from inside: how many copies there are, what they begin with, and writing and reading
// them.
#include "value/variable.h"

#include "base/alloc.h"
#include "choir/op.h"
#include "test.h"

#include <math.h>
#include <string.h>

enum { REPLICAS = 5 };

static choir_device *devices[REPLICAS];
static chi_layout layout;

// Two far devices with two and one replica, and two CPUs, which share memory.
static int find_devices(void **state)
{
	static const char *const names[] = { "far:0", "far:0", "cpu:0", "cpu:1", "far:1" };
	(void) state;
	for (int i = 0; i < REPLICAS; i++)
		devices[i] = choir_device_find(names[i]);
	layout = (chi_layout){ REPLICAS, devices };
	return 0;
}

static chi_variable_plan plan_of(choir_dtype dtype, choir_shape shape)
{
	return (chi_variable_plan){ .name = "v",
		.shape = shape,
		.layout = &layout,
		.seed = 3,
		.options = { .size = sizeof(choir_variable_options), .dtype = dtype } };
}

// spec: A6, B4, 2.3
TEST(devices_that_share_memory_share_a_copy)
{
	const chi_variable_plan plan = plan_of(CHOIR_F32, CHOIR_SHAPE(3));
	choir_variable *v = chi_variable_new(&plan);
	static const int copies[] = { 0, 0, 1, 1, 2 };
	assert_int_equal(choir_variable_copies(v), 3);
	assert_memory_equal(v->copy_of_replica, copies, sizeof copies);
	assert_ptr_equal(choir_variable_device(v, 1), devices[2]);
	assert_null(choir_variable_device(v, 3));
	assert_null(choir_variable_device(v, -1));
	assert_int_equal(v->synchronization, CHOIR_SYNCHRONIZATION_ON_WRITE);
	assert_true(v->trainable);
	chi_variable_free(v);
}

// spec: A15, V4, 2.3
TEST(on_read_has_a_part_for_each_replica)
{
	chi_variable_plan plan = plan_of(CHOIR_F32, CHOIR_SHAPE(3));
	plan.options.synchronization = CHOIR_SYNCHRONIZATION_ON_READ;
	choir_variable *v = chi_variable_new(&plan);
	assert_int_equal(choir_variable_copies(v), REPLICAS);
	for (int i = 0; i < REPLICAS; i++) {
		assert_int_equal(v->copy_of_replica[i], i);
		assert_ptr_equal(choir_variable_device(v, i), devices[i]);
	}
	assert_false(v->trainable);
	chi_variable_free(v);
	plan.options.trainable = CHOIR_ON;
	v = chi_variable_new(&plan);
	assert_true(v->trainable);
	chi_variable_free(v);
}

TEST(describing)
{
	chi_variable_plan plan = plan_of(CHOIR_I64, CHOIR_SHAPE(2, 4));
	plan.options.aggregation = CHOIR_AGGREGATION_SUM;
	plan.options.trainable = CHOIR_OFF;
	choir_variable *v = chi_variable_new(&plan);
	choir_variable_options o = { .size = sizeof o };
	assert_int_equal(choir_variable_describe(v, &o), CHOIR_OK);
	assert_int_equal(o.dtype, CHOIR_I64);
	assert_int_equal(o.synchronization, CHOIR_SYNCHRONIZATION_ON_WRITE);
	assert_int_equal(o.aggregation, CHOIR_AGGREGATION_SUM);
	assert_int_equal(o.trainable, CHOIR_OFF);
	assert_int_equal(o.size, sizeof o);
	assert_string_equal(choir_variable_name(v), "v");
	assert_int_equal(choir_variable_shape(v)->dim[1], 4);
	assert_int_equal(choir_variable_describe(NULL, &o), CHOIR_INVALID);
	assert_int_equal(choir_variable_describe(v, NULL), CHOIR_INVALID);
	o.size = 4;
	assert_int_equal(choir_variable_describe(v, &o), CHOIR_INVALID);
	assert_int_equal(choir_variable_copies(NULL), 0);
	assert_string_equal(choir_variable_name(NULL), "");
	assert_null(choir_variable_shape(NULL));
	assert_null(choir_variable_device(NULL, 0));
	assert_null(choir_tensor_variable(NULL));
	chi_variable_free(v);
}

static void check_refused(chi_variable_plan plan, const char *text)
{
	choir_fail(CHOIR_INTERNAL, "nothing yet");
	assert_null(chi_variable_new(&plan));
	assert_int_equal(choir_error_status(), CHOIR_INVALID);
	assert_text_holds(choir_error(), text);
}

// spec: E23, M2, M3, 2.3, 2.19
TEST(what_can_never_work_is_refused)
{
	chi_variable_plan plan = plan_of(CHOIR_F32, CHOIR_SHAPE(3));
	plan.name = "";
	check_refused(plan, "name");
	plan.name = NULL;
	check_refused(plan, "name");
	check_refused(plan_of((choir_dtype) 77, CHOIR_SHAPE(3)), "dtype 77");
	check_refused(plan_of(CHOIR_F32, CHOIR_SHAPE(-1)), "[-1]");
	check_refused(plan_of(CHOIR_F32, CHOIR_SHAPE(INT64_MAX, INT64_MAX)), "shape");
	plan = plan_of(CHOIR_F32, CHOIR_SHAPE(3));
	plan.options.synchronization = CHOIR_SYNCHRONIZATION_NONE;
	check_refused(plan, "synchronization");
	plan.options.synchronization = (choir_synchronization) 9;
	check_refused(plan, "synchronization 9");
	plan.options.synchronization = CHOIR_SYNCHRONIZATION_AUTO;
	plan.options.aggregation = (choir_aggregation) 9;
	check_refused(plan, "aggregation 9");
	plan = plan_of(CHOIR_I32, CHOIR_SHAPE(3));
	plan.options.aggregation = CHOIR_AGGREGATION_MEAN;
	check_refused(plan, "MEAN*i32");
	plan = plan_of(CHOIR_I32, CHOIR_SHAPE(3));
	plan.options.initializer = CHOIR_INITIALIZER_GLOROT_UNIFORM;
	check_refused(plan, "initializer");
	plan.options.initializer = (choir_initializer) 42;
	plan.options.dtype = CHOIR_F32;
	check_refused(plan, "initializer 42");
}

static void equal(choir_variable *v, const void *expected)
{
	char got[256];
	for (int i = 0; i < v->copies; i++) {
		assert_int_equal(chi_variable_to_host(v, i, got), CHOIR_OK);
		assert_memory_equal(got, expected, chi_variable_bytes(v));
	}
}

static choir_status count(void *out, const choir_shape *shape, void *user)
{
	for (int64_t i = 0; i < choir_shape_elements(shape); i++)
		((float *) out)[i] = (float) ++*(int *) user;
	return CHOIR_OK;
}

static choir_status refuse(void *out, const choir_shape *shape, void *user)
{
	(void) out, (void) shape;
	const choir_status *status = user;
	return *status == CHOIR_IO ? choir_fail(CHOIR_IO, "no file") : *status;
}

// The function runs once, however many copies there are.
// spec: 2.3
TEST(initial_values)
{
	static const float zeros[3] = { 0 }, ones[3] = { 1, 1, 1 }, given[3] = { 4, 5, 6 };
	static const float counted[3] = { 1, 2, 3 };
	chi_variable_plan plan = plan_of(CHOIR_F32, CHOIR_SHAPE(3));
	choir_variable *v = chi_variable_new(&plan);
	equal(v, zeros);
	chi_variable_free(v);
	plan.options.initializer = CHOIR_INITIALIZER_ONES;
	equal(v = chi_variable_new(&plan), ones);
	chi_variable_free(v);
	plan.options.initial_value = given;
	equal(v = chi_variable_new(&plan), given);
	chi_variable_free(v);
	int calls = 0;
	plan.options.initial_value = NULL;
	plan.options.initializer_fn = count;
	plan.options.user = &calls;
	equal(v = chi_variable_new(&plan), counted);
	assert_int_equal(calls, 3);
	chi_variable_free(v);
}

TEST(an_initializer_may_fail)
{
	static const choir_status statuses[] = { CHOIR_IO, CHOIR_CORRUPT, CHOIR_END };
	chi_variable_plan plan = plan_of(CHOIR_F32, CHOIR_SHAPE(3));
	plan.options.initializer_fn = refuse;
	for (int i = 0; i < 3; i++) {
		choir_status status = statuses[i];
		plan.options.user = &status;
		choir_fail(CHOIR_TIMEOUT, "an old failure");
		assert_null(chi_variable_new(&plan));
		assert_int_equal(choir_error_status(), i == 2 ? CHOIR_INVALID : status);
		assert_text_holds(choir_error(), "\"v\"");
		assert_non_null(strstr(choir_error(), i == 0 ? "no file" : "initializer returned"));
	}
}

TEST(ones_of_every_dtype)
{
	for (choir_dtype d = CHOIR_F32; d <= CHOIR_BF16; d++) {
		chi_variable_plan plan = plan_of(d, CHOIR_SHAPE(3));
		plan.options.initializer = CHOIR_INITIALIZER_ONES;
		choir_variable *v = chi_variable_new(&plan);
		char host[64];
		assert_int_equal(chi_variable_to_host(v, 0, host), CHOIR_OK);
		for (int i = 0; i < 3; i++)
			assert_float_equal(chi_dtype_load(d, host, i), 1, 0);
		chi_variable_free(v);
	}
}

static void draw(choir_initializer kind, double scale, choir_shape shape, double *out)
{
	chi_variable_plan plan = plan_of(CHOIR_F64, shape);
	plan.options.initializer = kind;
	plan.options.scale = scale;
	choir_variable *v = chi_variable_new(&plan);
	assert_non_null(v);
	assert_int_equal(chi_variable_to_host(v, 0, out), CHOIR_OK);
	chi_variable_free(v);
}

// The deviation and the largest size of numbers in [100, 200], where in is 100 and out 200.
TEST(every_random_initializer)
{
	enum { IN = 100, OUT = 200 };
	static const struct {
		choir_initializer kind;
		double scale, deviation, largest;
	} cases[] = {
		{ CHOIR_INITIALIZER_GLOROT_UNIFORM, 0, 0.0816497, 0.141422 },
		{ CHOIR_INITIALIZER_GLOROT_NORMAL, 0, 0.0816497, 1 },
		{ CHOIR_INITIALIZER_HE_UNIFORM, 0, 0.141421, 0.24495 },
		{ CHOIR_INITIALIZER_HE_NORMAL, 0, 0.141421, 1 },
		{ CHOIR_INITIALIZER_LECUN_UNIFORM, 0, 0.1, 0.173206 },
		{ CHOIR_INITIALIZER_LECUN_NORMAL, 0, 0.1, 1 },
		{ CHOIR_INITIALIZER_UNIFORM, 3, 1.73205, 3 },
		{ CHOIR_INITIALIZER_UNIFORM, 0, 0.0288675, 0.05 },
		{ CHOIR_INITIALIZER_NORMAL, 2, 2, 20 },
		{ CHOIR_INITIALIZER_TRUNCATED_NORMAL, 2, 2 * 0.879626, 4 },
	};
	static double x[IN * OUT];
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		double sum = 0, squares = 0, largest = 0;
		draw(cases[i].kind, cases[i].scale, CHOIR_SHAPE(IN, OUT), x);
		for (int k = 0; k < IN * OUT; k++) {
			sum += x[k];
			squares += x[k] * x[k];
			largest = fmax(largest, fabs(x[k]));
		}
		const double deviation = sqrt(squares / (IN * OUT));
		assert_true(fabs(sum / (IN * OUT)) < 0.03 * deviation);
		assert_true(fabs(deviation / cases[i].deviation - 1) < 0.03);
		assert_true(largest <= cases[i].largest &&
				largest > 0.9 * fmin(cases[i].largest, 3 * deviation));
	}
	draw(CHOIR_INITIALIZER_CONSTANT, -1.5, CHOIR_SHAPE(3), x);
	assert_true(x[0] == -1.5 && x[2] == -1.5);
}

// q^T q or q q^T is the unit matrix times the square of scale; for filters the last axis is one
// side.
static void is_orthogonal(choir_shape shape, double scale)
{
	static double q[400];
	const int columns = (int) shape.dim[shape.rank - 1];
	const int rows = (int) choir_shape_elements(&shape) / columns;
	const bool by_rows = rows < columns;
	const int n = by_rows ? rows : columns, length = by_rows ? columns : rows;
	draw(CHOIR_INITIALIZER_ORTHOGONAL, scale, shape, q);
	const double gain = scale == 0 ? 1 : scale * scale;
	for (int a = 0; a < n; a++)
		for (int b = 0; b <= a; b++) {
			double dot = 0;
			for (int i = 0; i < length; i++)
				dot += by_rows ? q[a * columns + i] * q[b * columns + i]
							   : q[i * columns + a] * q[i * columns + b];
			assert_true(fabs(dot - (a == b ? gain : 0)) < 1e-12);
		}
}

TEST(orthogonal_matrices)
{
	is_orthogonal(CHOIR_SHAPE(20, 20), 0);
	is_orthogonal(CHOIR_SHAPE(5, 30), 0.5);
	is_orthogonal(CHOIR_SHAPE(3, 3, 4, 7), 2);
	is_orthogonal(CHOIR_SHAPE(6), 0);
}

// Moments of a large draw, and that seed and name alone decide it.
TEST(random_initializers)
{
	enum { N = 40000 };
	static double a[N], b[N];
	static const choir_initializer kinds[] = { CHOIR_INITIALIZER_GLOROT_UNIFORM,
		CHOIR_INITIALIZER_HE_NORMAL, CHOIR_INITIALIZER_NORMAL };
	for (int k = 0; k < 3; k++) {
		chi_variable_plan plan = plan_of(CHOIR_F64, CHOIR_SHAPE(200, 200));
		plan.options.initializer = kinds[k];
		plan.options.scale = 0.3;
		choir_variable *v = chi_variable_new(&plan), *same = chi_variable_new(&plan);
		plan.name = "other";
		choir_variable *other = chi_variable_new(&plan);
		chi_variable_to_host(v, 0, a);
		chi_variable_to_host(same, 2, b);
		assert_memory_equal(a, b, sizeof a);
		chi_variable_to_host(other, 0, b);
		assert_memory_not_equal(a, b, sizeof a);
		double sum = 0, squares = 0, max = 0;
		for (int i = 0; i < N; i++) {
			sum += a[i];
			squares += a[i] * a[i];
			max = fmax(max, fabs(a[i]));
		}
		const double expected = kinds[k] == CHOIR_INITIALIZER_GLOROT_UNIFORM
				? sqrt(6.0 / 400) / sqrt(3)
				: kinds[k] == CHOIR_INITIALIZER_HE_NORMAL ? sqrt(2.0 / 200)
														  : 0.3;
		assert_true(fabs(sum / N) < 4 * expected / sqrt(N));
		assert_true(fabs(sqrt(squares / N) - expected) < 0.02 * expected);
		if (kinds[k] == CHOIR_INITIALIZER_GLOROT_UNIFORM)
			assert_true(max <= sqrt(6.0 / 400));
		chi_variable_free(v);
		chi_variable_free(same);
		chi_variable_free(other);
	}
}

// Frames from which values are written: on the host, and on a device that shares memory with none.
static void check_writes(const char *device)
{
	choir_frame *f = choir_frame_new(choir_device_find(device));
	const chi_variable_plan plan = plan_of(CHOIR_F32, CHOIR_SHAPE(3));
	choir_variable *v = chi_variable_new(&plan);
	static const float sevens[3] = { 7, 7, 7 }, twos[3] = { 2, 2, 2 }, tens[3] = { 10, 10, 10 };
	for (int i = 0; i < v->copies; i++)
		assert_int_equal(
				chi_variable_write(v, i, CHI_ASSIGN, choir_fill(f, CHOIR_F32, CHOIR_SHAPE(3), 7)),
				CHOIR_OK);
	chi_stream_wait(f->stream);
	equal(v, sevens);
	for (int i = 0; i < v->copies; i++)
		assert_int_equal(chi_variable_write(v, i, CHI_ASSIGN, choir_number(f, 2)), CHOIR_OK);
	chi_stream_wait(f->stream);
	equal(v, twos);
	for (int i = 0; i < v->copies; i++) {
		choir_frame *own = choir_frame_new(v->copy[i].device);
		assert_int_equal(chi_variable_write(v, i, CHI_ASSIGN_ADD, choir_number(own, 9)), CHOIR_OK);
		assert_int_equal(chi_variable_write(v, i, CHI_ASSIGN_SUB,
								 choir_fill(own, CHOIR_F32, CHOIR_SHAPE(3), 1)),
				CHOIR_OK);
		choir_frame_free(own);
	}
	equal(v, tens);
	choir_frame_free(f);
	chi_variable_free(v);
}

TEST(writing)
{
	check_writes("cpu:0");
	check_writes("far:3");
}

TEST(what_does_not_fit_is_refused)
{
	choir_frame *f = choir_frame_new(NULL);
	const chi_variable_plan plan = plan_of(CHOIR_I32, CHOIR_SHAPE(3));
	choir_variable *v = chi_variable_new(&plan);
	assert_int_equal(
			chi_variable_write(v, 1, CHI_ASSIGN, choir_fill(f, CHOIR_I32, CHOIR_SHAPE(2), 1)),
			CHOIR_INVALID);
	assert_text_holds(choir_error(), "\"v\":*[2]*[3]");
	choir_frame_clear(f);
	assert_int_equal(
			chi_variable_write(v, 1, CHI_ASSIGN, choir_fill(f, CHOIR_F32, CHOIR_SHAPE(3), 1)),
			CHOIR_INVALID);
	assert_text_holds(choir_error(), "f32*i32");
	choir_frame_clear(f);
	assert_int_equal(chi_variable_write(v, 1, CHI_ASSIGN, choir_number(f, 1.5)), CHOIR_INVALID);
	assert_text_holds(choir_error(), "fill:*1.5*i32");
	assert_int_equal(choir_frame_status(f), CHOIR_INVALID);
	choir_frame_free(f);
	chi_variable_free(v);
}

TEST(a_read_remembers_its_version)
{
	choir_frame *f = choir_frame_new(NULL);
	const chi_variable_plan plan = plan_of(CHOIR_F32, CHOIR_SHAPE(3));
	choir_variable *v = chi_variable_new(&plan);
	choir_tensor *read = chi_variable_alias(v, 1, f);
	assert_ptr_equal(choir_tensor_variable(read), v);
	assert_int_equal(chi_tensor_check(read), CHOIR_OK);
	chi_variable_bump_version(v, 0); // another copy
	assert_int_equal(chi_tensor_check(read), CHOIR_OK);
	assert_int_equal(chi_variable_write(v, 1, CHI_ASSIGN, choir_number(f, 1)), CHOIR_OK);
	assert_int_equal(chi_tensor_check(read), CHOIR_STATE);
	assert_text_holds(choir_error(), "v:*changed");
	choir_frame_free(f);
	chi_variable_free(v);
}

// spec: 2.4
TEST(undefined_until_assigned)
{
	choir_frame *f = choir_frame_new(NULL);
	const chi_variable_plan plan = plan_of(CHOIR_F32, CHOIR_SHAPE(3));
	choir_variable *v = chi_variable_new(&plan);
	chi_variable_undefine(v);
	assert_null(chi_variable_alias(v, 1, f));
	assert_int_equal(choir_error_status(), CHOIR_STATE);
	assert_text_holds(choir_error(), "\"v\":*failed");
	choir_frame_clear(f);
	assert_int_equal(chi_variable_write(v, 1, CHI_ASSIGN, choir_number(f, 1)), CHOIR_OK);
	assert_non_null(chi_variable_alias(v, 1, f));
	assert_null(chi_variable_alias(v, 0, f)); // not assigned
	choir_frame_clear(f);
	assert_int_equal(chi_variable_write(v, 0, CHI_ASSIGN_ADD, choir_number(f, 1)), CHOIR_STATE);
	choir_frame_clear(f);
	const float host[3] = { 0 };
	assert_int_equal(chi_variable_from_host(v, host), CHOIR_OK);
	assert_non_null(chi_variable_alias(v, 0, f));
	choir_frame_free(f);
	chi_variable_free(v);
}

TEST(a_view_reaches_other_devices)
{
	choir_frame *f = choir_frame_new(NULL);
	const float host[3] = { 1, 2, 3 };
	chi_variable_plan plan = plan_of(CHOIR_F32, CHOIR_SHAPE(3));
	plan.options.initial_value = host;
	choir_variable *v = chi_variable_new(&plan);
	for (int i = 0; i < v->copies; i++) {
		choir_tensor *t = chi_variable_view(v, i, f);
		assert_memory_equal(choir_tensor_data(t), host, sizeof host);
		assert_int_equal(choir_tensor_data(t) == v->copy[i].buffer->memory, i == 1);
	}
	choir_frame_free(f);
	chi_variable_free(v);
}

TEST(wrapped_memory_is_the_host_copy)
{
	float memory[3] = { 1, 2, 3 };
	chi_variable_plan plan = plan_of(CHOIR_F32, CHOIR_SHAPE(3));
	plan.wrap = memory;
	choir_variable *v = chi_variable_new(&plan);
	assert_ptr_equal(v->copy[1].buffer->memory, memory);
	equal(v, memory);
	choir_frame *f = choir_frame_new(NULL);
	chi_variable_write(v, 1, CHI_ASSIGN, choir_number(f, 8));
	assert_float_equal(memory[2], 8, 0);
	choir_frame_free(f);
	chi_variable_free(v);
	assert_float_equal(memory[0], 8, 0);
}

TEST(wrapped_memory_without_a_host_copy)
{
	float memory[3] = { 1, 2, 3 };
	const chi_layout far = { 2, devices };
	chi_variable_plan plan = plan_of(CHOIR_F32, CHOIR_SHAPE(3));
	plan.wrap = memory;
	plan.layout = &far;
	choir_variable *v = chi_variable_new(&plan);
	assert_int_equal(v->copies, 1);
	equal(v, memory);
	assert_int_equal(chi_variable_unwrap(v), CHOIR_OK);
	assert_float_equal(memory[1], 2, 0);
	choir_frame *f = choir_frame_new(devices[0]);
	chi_variable_write(v, 0, CHI_ASSIGN, choir_number(f, 8));
	chi_stream_wait(f->stream);
	assert_int_equal(chi_variable_unwrap(v), CHOIR_OK);
	assert_float_equal(memory[1], 8, 0);
	choir_frame_free(f);
	chi_variable_free(v);
}

TEST(empty_variables)
{
	const chi_variable_plan plan = plan_of(CHOIR_F32, CHOIR_SHAPE(0, 4));
	choir_variable *v = chi_variable_new(&plan);
	assert_non_null(v);
	assert_int_equal(chi_variable_bytes(v), 0);
	choir_frame *f = choir_frame_new(NULL);
	for (int i = 0; i < v->copies; i++)
		assert_int_equal(chi_variable_write(v, i, CHI_ASSIGN, choir_number(f, 1)), CHOIR_OK);
	choir_frame_free(f);
	chi_variable_free(v);
}

TEST(allocations_may_fail)
{
	for (uint64_t n = 1;; n++) {
		const chi_variable_plan plan = plan_of(CHOIR_F32, CHOIR_SHAPE(3));
		chi_buffer_trim();
		chi_alloc_fail(n, false);
		choir_variable *v = chi_variable_new(&plan);
		const bool failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(v == NULL, failed);
		chi_variable_free(v);
		if (!failed)
			break;
		assert_int_equal(choir_error_status(), CHOIR_NO_MEMORY);
		assert_string_not_equal(choir_error(), "");
	}
}

TEST_GROUP(find_devices, NULL)
