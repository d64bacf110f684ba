// The table of kernels: a program's own kernels, scores, what is refused, and when it is too late.
#include "base/alloc.h"
#include "choir/precision.h"
#include "op/given.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int runs[3];

static choir_status run(const choir_kernel_call *call)
{
	const float *in = call->in[0].data;
	float *out = call->out->data;

	runs[*(const int *) call->user]++;
	if (call->in[0].shape.dim[0] == 3)
		return choir_fail(CHOIR_IO, "three is too many");
	for (int64_t i = 0; i < choir_shape_elements(&call->out->shape); i++)
		out[i] = in[i] + 100;
	if (call->scratch)
		memset(call->scratch, 1, 1000);
	return CHOIR_OK;
}

static void *device; // of the last call

static int only_pairs(const choir_kernel_call *call)
{
	device = call->device;
	return call->in[0].shape.dim[0] == 2 ? 1000 : 0;
}

static int always(const choir_kernel_call *call)
{
	(void) call;
	return 5000;
}

static size_t scratch(const choir_kernel_call *call)
{
	(void) call;
	return 1000;
}

// Says nothing of why it fails.
static choir_status fail_mutely(const choir_kernel_call *call)
{
	return *(const choir_status *) call->user;
}

static const choir_status internal = CHOIR_INTERNAL, end = CHOIR_END;
static const int own = 0, later = 1, special = 2;

// As a program would, before its first operation.
static int register_all(void **state)
{
	choir_kernel_table table = { .size = sizeof(table),
		.version = CHOIR_TABLE_VERSION,
		.operation = "test_add_100",
		.kind = "cpu",
		.name = "own",
		.dtype = CHOIR_F32,
		.user = &own,
		.run = run };

	(void) state;
	// Enough others for the table to grow.
	static char names[600][8];
	for (int i = 0; i < 600; i++) {
		choir_kernel_table other = table;
		names[i][0] = 'a', names[i][1] = (char) ('0' + i / 100),
		names[i][2] = (char) ('0' + i / 10 % 10);
		names[i][3] = (char) ('0' + i % 10);
		other.operation = names[i];
		if (choir_register_kernel(&other) != CHOIR_OK)
			return 1;
	}
	if (choir_register_kernel(&table) != CHOIR_OK)
		return 1;
	table.user = &later;
	if (choir_register_kernel(&table) != CHOIR_OK)
		return 1;
	table.user = &special;
	table.score = only_pairs;
	table.scratch = scratch;
	if (choir_register_kernel(&table) != CHOIR_OK)
		return 1;
	for (int a = CHOIR_ARITHMETIC_F32; a <= CHOIR_ARITHMETIC_FP8_E5M2; a++) {
		choir_kernel_table other = table;
		other.name = "other arithmetic";
		other.arithmetic = (choir_arithmetic) a;
		other.score = always;
		if (choir_register_kernel(&other) != CHOIR_OK)
			return 1;
	}
	table.score = NULL;
	table.run = fail_mutely;
	table.operation = "tanh";
	table.user = &end;
	if (choir_register_kernel(&table) != CHOIR_OK)
		return 1;
	table.name = NULL;
	table.scratch = NULL;
	table.operation = "relu_gradient";
	table.user = &internal;
	return choir_register_kernel(&table) != CHOIR_OK;
}

TEST(bad_tables_are_refused)
{
	choir_kernel_table table = { .size = sizeof(table),
		.version = CHOIR_TABLE_VERSION,
		.operation = "x",
		.kind = "cpu",
		.name = "mine",
		.dtype = CHOIR_F32 };

	assert_int_equal(choir_register_kernel(NULL), CHOIR_INVALID);
	assert_int_equal(choir_register_kernel(&table), CHOIR_INVALID);
	assert_text_holds(choir_error(), "kernel mine:*operation");
	table.run = run;
	table.dtype = (choir_dtype) 9;
	assert_int_equal(choir_register_kernel(&table), CHOIR_INVALID);
	table.dtype = CHOIR_F32;
	table.arithmetic = CHOIR_ARITHMETIC_FP8_E5M2 + 1;
	assert_int_equal(choir_register_kernel(&table), CHOIR_INVALID);
	assert_text_holds(choir_error(), "mine*arithmetic 7");
	table.arithmetic = CHOIR_ARITHMETIC_OF_DTYPE;
	table.version = 7;
	assert_int_equal(choir_register_kernel(&table), CHOIR_INVALID);
	assert_text_holds(choir_error(), "7*version");
	table.size = 8;
	assert_int_equal(choir_register_kernel(&table), CHOIR_INVALID);
}

TEST(attributes_have_a_size)
{
	assert_int_equal(
			choir_kernel_attribute_bytes("chunk_squares"), sizeof(choir_chunk_squares_attributes));
	assert_int_equal(choir_kernel_attribute_bytes("adam_update"), sizeof(choir_update_attributes));
	assert_int_equal(choir_kernel_attribute_bytes("add"), 0);
	assert_int_equal(choir_kernel_attribute_bytes("no such"), 0);
	assert_int_equal(choir_kernel_attribute_bytes(NULL), 0);
}

// Run before any other operation of this program.
TEST(built_in_kernels_come_with_the_first_lookup)
{
	const choir_kernel_call call = { .size = sizeof(call) };
	choir_device *d = choir_device_find("cpu:0");

	assert_int_equal(setenv("CHOIR_KERNELS", "plian", 1), 0);
	assert_null(chi_kernel_find(d, &call, "relu", CHOIR_F32));
	assert_int_equal(choir_error_status(), CHOIR_INVALID);
	assert_text_holds(choir_error(), "CHOIR_KERNELS:*unknown");
	assert_int_equal(setenv("CHOIR_KERNELS", "plain", 1), 0);
	assert_int_equal(setenv("CHOIR_INSTRUCTION_SET", "mmx", 1), 0);
	assert_null(chi_kernel_find(d, &call, "relu", CHOIR_F32));
	assert_int_equal(choir_error_status(), CHOIR_INVALID);
	assert_text_holds(choir_error(), "CHOIR_INSTRUCTION_SET:*unknown");
	assert_int_equal(unsetenv("CHOIR_INSTRUCTION_SET"), 0);
	bool failed = true;
	for (uint64_t n = 1; failed; n++) {
		chi_alloc_fail(n, false);
		const choir_kernel_table *relu = chi_kernel_find(d, &call, "relu", CHOIR_F32);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(relu == NULL, failed);
		if (failed)
			assert_int_equal(choir_error_status(), CHOIR_NO_MEMORY);
	}
	assert_null(chi_kernel_find(d, &call, "relo", CHOIR_F32));
	assert_text_holds(choir_error(), "relo:*f32");
}

TEST(the_highest_score_wins_and_then_the_first)
{
	const choir_shape one = CHOIR_SHAPE(1), two = CHOIR_SHAPE(2), three = CHOIR_SHAPE(3);
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *x = choir_fill(g.frame, CHOIR_F32, one, 1);
	given_equal(chi_op_kernel(g.frame, "test_add_100", 1, &x, NULL, CHOIR_F32, &one), 1,
			(const double[]){ 101 });
	assert_memory_equal(runs, ((int[]){ 1, 0, 0 }), sizeof(runs));
	x = choir_fill(g.frame, CHOIR_F32, two, 1);
	given_equal(chi_op_kernel(g.frame, "test_add_100", 1, &x, NULL, CHOIR_F32, &two), 2,
			(const double[]){ 101, 101 });
	assert_memory_equal(runs, ((int[]){ 1, 0, 1 }), sizeof(runs));
	x = choir_fill(g.frame, CHOIR_F32, three, 1);
	assert_null(chi_op_kernel(g.frame, "test_add_100", 1, &x, NULL, CHOIR_F32, &three));
	given_failure(&g, CHOIR_IO, "test_add_100:*three");
	given_close(&g);
}

// No precision but TF32's allows it, whatever its score is.
TEST(another_arithmetic_is_used_by_name_or_precision_only)
{
	choir_device *d = choir_device_find("cpu:0");
	float in[2] = { 1, 2 }, out[2];
	const choir_buffer from = { in, CHOIR_F32, CHOIR_SHAPE(2) };
	choir_buffer to = { out, CHOIR_F32, CHOIR_SHAPE(2) };
	const choir_kernel_call call = { .size = sizeof call, .n = 1, .in = &from, .out = &to };
	const choir_kernel_table *best = chi_kernel_find(d, &call, "test_add_100", CHOIR_F32);
	assert_int_equal(best->arithmetic, CHOIR_ARITHMETIC_OF_DTYPE);
	best = chi_kernel_find_named(d, &call, "test_add_100", "other arithmetic", CHOIR_F32);
	assert_int_equal(best->arithmetic, CHOIR_ARITHMETIC_F32);
	best = chi_kernel_find_tf32(d, &call, "test_add_100", CHOIR_F32);
	assert_int_equal(best->arithmetic, CHOIR_ARITHMETIC_TF32);
	assert_null(chi_kernel_find_tf32(d, &call, "test_add_100", CHOIR_F64));
	assert_null(chi_kernel_find_tf32(d, &call, "tanh", CHOIR_F32));
}

TEST(kernels_run_on_buffers)
{
	choir_device *d = choir_device_find("cpu:0");
	chi_stream *stream = chi_stream_new(d);
	float in[2] = { 1, 2 }, out[2];
	const choir_buffer from = { in, CHOIR_F32, CHOIR_SHAPE(2) };
	choir_buffer to = { out, CHOIR_F32, CHOIR_SHAPE(2) };

	assert_int_equal(chi_kernel_run(stream, "test_add_100", 1, &from, &to, NULL), CHOIR_OK);
	assert_true(out[0] == 101 && out[1] == 102);
	assert_ptr_equal(device, choir_device_self(d));
	assert_int_equal(chi_buffer_in_use(d), 0); // the scratch memory is back
	assert_int_equal(chi_kernel_run(stream, "nothing", 1, &from, &to, NULL), CHOIR_UNSUPPORTED);
	chi_stream_free(stream);
}

TEST(those_that_fail_without_a_text_fail)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *x = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(2), 3), *gradient;
	choir_fail(CHOIR_NOT_FOUND, "older");
	assert_null(choir_tanh(x));
	given_failure(&g, CHOIR_INVALID, "tanh:*CHOIR_END");
	for (int older = 0; older < 2; older++) {
		choir_tape *tape = choir_tape_begin(g.frame);
		x = choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(2), 3);
		choir_tensor *y = choir_relu(x);
		chi_error_clear();
		if (older)
			choir_fail(CHOIR_NOT_FOUND, "older");
		assert_int_equal(choir_tape_gradient(tape, y, 1, &x, &gradient), CHOIR_INTERNAL);
		given_failure(&g, CHOIR_INTERNAL, "relu_gradient:*CHOIR_INTERNAL");
	}
	// Calls that work leave the older failure alone.
	choir_fail(CHOIR_NOT_FOUND, "older");
	assert_non_null(choir_relu(choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(2), 3)));
	assert_text_holds(choir_error(), "older");
	assert_int_equal(choir_error_status(), CHOIR_NOT_FOUND);
	given_close(&g);
}

TEST(after_the_first_operation_of_a_kind_it_is_too_late)
{
	choir_kernel_table table = { .size = sizeof(table),
		.version = CHOIR_TABLE_VERSION,
		.operation = "relu",
		.kind = "cpu",
		.name = "mine",
		.dtype = CHOIR_F32,
		.run = run };

	assert_int_equal(choir_register_kernel(&table), CHOIR_STATE);
	assert_string_equal(choir_error(),
			"kernel mine for relu: is registered too late; operations have run already on cpu");
	// Kernels of other kinds may come later, until one of them has been looked up.
	table.kind = "later";
	uint64_t failures = 0;
	for (bool failed = true; failed; failures += failed) {
		chi_alloc_fail(failures + 1, false);
		const choir_status status = choir_register_kernel(&table);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
	}
	assert_true(failures >= 2);
	table.operation = "tanh";
	assert_int_equal(choir_register_kernel(&table), CHOIR_OK);
	table.dtype = CHOIR_F16;
	assert_int_equal(choir_register_kernel(&table), CHOIR_OK);
	table.dtype = CHOIR_F32;
	const choir_device_table kind = { .kind = "later" };
	choir_device of_kind = { .table = &kind };
	const choir_kernel_call call = { .size = sizeof(call) };
	assert_string_equal(chi_kernel_find(&of_kind, &call, "tanh", CHOIR_F32)->name, "mine");
	assert_true(choir_precision_is_narrow(CHOIR_PRECISION_MIXED_F16, "tanh", &of_kind));
	assert_false(choir_precision_is_narrow(CHOIR_PRECISION_MIXED_BF16, "tanh", &of_kind));
	assert_null(chi_kernel_find(&of_kind, &call, "tanh", CHOIR_F64));
	assert_text_holds(choir_error(), "tanh:*later*f32");
	assert_int_equal(choir_register_kernel(&table), CHOIR_STATE);
	assert_text_holds(choir_error(), "too late*later");
	// A kind without kernels stays open.
	const choir_device_table empty = { .kind = "empty" };
	of_kind.table = &empty;
	assert_null(chi_kernel_find(&of_kind, &call, "tanh", CHOIR_F32));
	assert_text_holds(choir_error(), "empty*nothing");
	table.kind = "empty";
	assert_int_equal(choir_register_kernel(&table), CHOIR_OK);
	assert_non_null(chi_kernel_find(&of_kind, &call, "tanh", CHOIR_F32));
}

TEST_GROUP(register_all, NULL)

// The processor's flags, unless the environment forbids some.
TEST(bf16_instructions_are_those_of_the_processor)
{
	static char flags[1 << 14];
	FILE *f = fopen("/proc/cpuinfo", "r");
	if (f == NULL || getenv("ONEDNN_MAX_CPU_ISA") != NULL)
		skip();
	flags[fread(flags, 1, sizeof flags - 1, f)] = '\0';
	fclose(f);
	const char *found = chi_kernel_bf16_instructions();
	assert_int_equal(strcmp(found, "none") == 0, !chi_kernel_has_native_bf16());
	if (strcmp(found, "none") != 0)
		assert_int_equal(strcmp(found, "AMX") == 0, strstr(flags, " amx_bf16") != NULL);
}
