// The public suite of kernels (choir/extend/suite.h) on the kernels of the CPU and of far, and
// kernels that are called by their names.
#include "choir/extend/suite.h"
#include "base/alloc.h"
#include "base/instruction_set.h"
#include "op/fma/fma.h"
#include "op/plain/plain.h"
#include "plain_kernels.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Adds the name of a check to the names, with commas.
static void note(const char *check, choir_status result, const char *text, void *user)
{
	char *names = user;
	assert_int_equal(result == CHOIR_OK, text[0] == '\0');
	snprintf(names + strlen(names), 16384 - strlen(names), ",%s,", check);
}

static const char *run(const char *device, const char *name, choir_status expected)
{
	static char names[16384];
	names[0] = '\0';
	if (choir_suite_run(CHOIR_OPTIONS(choir_suite_options, .kernels = device, .kernel_name = name),
				note, names) != expected)
		fail_msg("%s", choir_error());
	return names;
}

// For each operation and dtype a kernel "bent", whose last element is wrong by a thousandth, or by
// one. Only the test of it lets it score.
static bool bends;

static int bent_score(const choir_kernel_call *call)
{
	(void) call;
	return bends;
}

static size_t bent_scratch(const choir_kernel_call *call)
{
	const chi_kernel_spec *spec = call->user;
	choir_kernel_call c = *call;
	c.user = spec->user;
	return spec->scratch == NULL ? 0 : spec->scratch(&c);
}

static choir_status bent_run(const choir_kernel_call *call)
{
	const chi_kernel_spec *spec = call->user;
	choir_kernel_call c = *call;
	c.user = spec->user;
	const choir_status status = spec->run(&c);
	void *last = chi_element(call->out, chi_elements(call->out) - 1);
	if (call->out->dtype == CHOIR_F32)
		*(float *) last = *(float *) last * 1.001f + 0.001f;
	else if (call->out->dtype == CHOIR_F64)
		*(double *) last = *(double *) last * 1.001 + 0.001;
	else if (chi_dtype_is_half(call->out->dtype))
		*(uint16_t *) last ^= 0x4000; // of the exponent: results may round to a neighbour
	else
		*(unsigned char *) last ^= 1;
	return status;
}

static int register_bent(void **state)
{
	chi_kernel_list list;
	(void) state;
	for (size_t index = 0; (list = chi_plain_list(index)).count > 0; index++)
		for (size_t i = 0; i < list.count; i++)
			for (choir_dtype dtype = CHOIR_F32; dtype <= CHOIR_BF16; dtype++) {
				const choir_kernel_table table = { .size = sizeof table,
					.version = CHOIR_TABLE_VERSION,
					.operation = list.specs[i].operation,
					.kind = "cpu",
					.name = "bent",
					.dtype = dtype,
					.user = &list.specs[i],
					.score = bent_score,
					.scratch = bent_scratch,
					.run = bent_run };
				if ((list.specs[i].dtypes >> dtype & 1) != 0 &&
						choir_register_kernel(&table) != CHOIR_OK)
					return 1;
			}
	return 0;
}

static void expect_failure(const char *check, choir_status result, const char *text, void *user)
{
	(void) text;
	if (result == CHOIR_OK && strncmp(check, "a bad index", 11) != 0)
		fail_msg("%s: no failure is found", check);
	++*(int *) user;
}

TEST(a_wrong_element_of_any_kernel_is_found)
{
	int checks = 0;
	bends = true;
	assert_int_equal(choir_suite_run(CHOIR_OPTIONS(choir_suite_options, .kernels = "cpu:0",
											 .kernel_name = "bent"),
							 expect_failure, &checks),
			CHOIR_INTERNAL);
	bends = false;
	assert_true(checks > 300);
}

// Also: the suite has each operation that has a plain kernel.
TEST(plain_kernels_pass)
{
	const char *names = run("cpu:0", "plain", CHOIR_OK);
	chi_kernel_list list;
	for (size_t index = 0; (list = chi_plain_list(index)).count > 0; index++)
		for (size_t i = 0; i < list.count; i++)
			for (choir_dtype dtype = CHOIR_F32; dtype <= CHOIR_BF16; dtype++) {
				char check[80];
				snprintf(check, sizeof check, ",%s of %s,", list.specs[i].operation,
						choir_dtype_name(dtype));
				if ((list.specs[i].dtypes >> dtype & 1) != 0 && strstr(names, check) == NULL)
					fail_msg("%s is not checked", check);
			}
}

TEST(other_kernels_of_the_cpu_pass)
{
	const char *which = getenv("CHOIR_KERNELS");
	const bool plain = which != NULL && strcmp(which, "plain") == 0;
	bool onednn = false, fma = false, winograd = false;
#ifdef CHI_HAS_ONEDNN
	onednn = !plain;
#endif
#ifdef CHI_HAS_FMA_KERNELS
	fma = !plain && chi_fma_best() != NULL;
#endif
#ifdef CHI_HAS_X86_KERNELS
	winograd = !plain && chi_instruction_set_use() >= CHI_INSTRUCTION_SET_AVX2;
#endif
	const char *names = run("cpu:0", "onednn", onednn ? CHOIR_OK : CHOIR_NOT_FOUND);
	assert_int_equal(strstr(names, ",conv2d_gradient_filter of f32,") != NULL, onednn);
	names = run("cpu:0", "fma", fma ? CHOIR_OK : CHOIR_NOT_FOUND);
	assert_int_equal(strstr(names, ",attention_gradient of f32,") != NULL, fma);
	names = run("cpu:0", "winograd", winograd ? CHOIR_OK : CHOIR_NOT_FOUND);
	assert_int_equal(strstr(names, ",conv2d_gradient_filter of f32,") != NULL, winograd);
}

// One operation of each kind: a call on far changes threads many times.
TEST(far_kernels_pass)
{
	static const char *const operations[] = { "tanh", "matmul", "softmax_cross_entropy",
		"adam_update" };
	for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
		const choir_suite_options o = {
			.size = sizeof o, .kernels = "far:0", .operation = operations[i]
		};
		char names[16384] = "";
		if (choir_suite_run(&o, note, names) != CHOIR_OK)
			fail_msg("%s", choir_error());
		assert_text_holds(names, operations[i]);
	}
}

TEST(unknown_kernels_are_refused)
{
	(void) run("cpu:0", "cublas", CHOIR_NOT_FOUND);
	assert_text_holds(choir_error(), "cpu:0*cublas");
	(void) run("tpu:0", NULL, CHOIR_NOT_FOUND);
	assert_text_holds(choir_error(), "tpu");
}

static choir_kernel_call call_of(size_t n, const choir_buffer in[], choir_buffer *out)
{
	return (choir_kernel_call){ .size = sizeof(choir_kernel_call), .n = n, .in = in, .out = out };
}

TEST(a_kernel_may_write_an_input)
{
	for (int far = 0; far < 2; far++) {
		_Alignas(64) float w[] = { 1, 2 }, g[] = { 10, 20 };
		choir_buffer in[] = { { w, CHOIR_F32, CHOIR_SHAPE(2) }, { g, CHOIR_F32, CHOIR_SHAPE(2) } };
		choir_kernel_call call = call_of(2, in, &in[0]);
		const choir_update_attributes a = { .rate = 0.5, .gradient_scale = 1 };
		call.attributes = &a;
		assert_int_equal(choir_kernel_run(choir_device_find(far ? "far:0" : "cpu:0"), "sgd_update",
								 NULL, &call),
				CHOIR_OK);
		assert_true(w[0] == -4.0f && w[1] == -8.0f && g[0] == 10.0f);
	}
}

static void assert_refused(
		choir_device *d, const char *operation, const choir_kernel_call *call, const char *facts)
{
	assert_int_equal(choir_kernel_run(d, operation, NULL, call), CHOIR_INVALID);
	assert_text_holds(choir_error(), facts);
}

TEST(bad_calls_are_refused)
{
	float x[2] = { 1, 2 }, y[2];
	choir_device *cpu = choir_device_find("cpu:0");
	choir_buffer in = { x, CHOIR_F32, CHOIR_SHAPE(2) }, out = { y, CHOIR_F32, CHOIR_SHAPE(2) };
	choir_kernel_call call = call_of(1, &in, &out);
	assert_int_equal(choir_kernel_run(cpu, "tanh", "cublas", &call), CHOIR_UNSUPPORTED);
	assert_text_holds(choir_error(), "tanh*cublas*f32*cpu");
	assert_int_equal(choir_kernel_run(cpu, "tanx", NULL, &call), CHOIR_UNSUPPORTED);
	assert_refused(NULL, "tanh", &call, "device");
	assert_refused(cpu, NULL, &call, "operation");
	assert_refused(cpu, "tanh", NULL, "tanh*0 bytes");
	call.n = 9;
	assert_refused(cpu, "tanh", &call, "9 inputs*8");
	call.n = 1;
	in.shape.dim[0] = -1;
	assert_refused(cpu, "tanh", &call, "an input*0 bytes");
	in.shape.dim[0] = 2;
	out.data = NULL;
	assert_refused(cpu, "tanh", &call, "out*without data");
	out.data = y;
	in.dtype = (choir_dtype) 99;
	assert_refused(cpu, "tanh", &call, "dtype 99");
}

TEST(every_allocation_of_a_call_may_fail)
{
	float x[2] = { 1, 2 }, y[2];
	choir_buffer in = { x, CHOIR_F32, CHOIR_SHAPE(2) }, out = { y, CHOIR_F32, CHOIR_SHAPE(2) };
	const choir_kernel_call call = call_of(1, &in, &out);
	choir_device *d = choir_device_find("far:0");
	assert_int_equal(choir_kernel_run(d, "tanh", NULL, &call), CHOIR_OK);
	bool failed = true;
	for (uint64_t n = 1; failed; n++) {
		chi_alloc_fail(n, false);
		const choir_status status = choir_kernel_run(d, "tanh", NULL, &call);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
	}
}

TEST_GROUP(register_bent, NULL)
