// The kernels of libchoir-cuda against the CPU's plain kernels, and the kernels that run on the
// host.
#include "choir/extend/cuda.h"
#include "choir/extend/suite.h"
#include "device/cuda_loader.h"
#include "device/device.h"
#include "op/plain/plain.h"
#include "test.h"

#include "open.h"

#include <stdio.h>
#include <string.h>

static void report(const char *check, choir_status result, const char *text, void *user)
{
	if (result != CHOIR_OK)
		printf("%s: %s\n", check, text);
	++*(int *) user;
}

static int run(const char *name, const char *operation)
{
	int checks = 0;
	if (choir_suite_run(CHOIR_OPTIONS(choir_suite_options, .kernels = "gpu:0", .kernel_name = name,
								.operation = operation),
				report, &checks) != CHOIR_OK)
		fail_msg("%s", choir_error());
	return checks;
}

TEST(kernels_of_the_library)
{
	assert_true(run("cuda", NULL) > 320);
}

// Everything else runs on the device, in each dtype for which the CPU has a plain kernel. The
// operations of 16 bits are those of f32.
static const char *const on_host[] = { "top_k", "lstm", "gru", "recurrent_gradient",
	"lstm_gradient", "gru_gradient" };
enum { ON_HOST = sizeof on_host / sizeof on_host[0] };

static bool is_on_host(const char *operation)
{
	for (size_t i = 0; i < ON_HOST; i++)
		if (strcmp(on_host[i], operation) == 0)
			return true;
	return false;
}

static bool is_on_device(const char *operation, int dtype)
{
	const choir_kernel_table *k;
	for (size_t i = 0; (k = chi_cuda_plugin()->kernel(i)) != NULL; i++)
		if (strcmp(k->operation, operation) == 0 && (int) k->dtype == dtype)
			return true;
	return false;
}

static bool is_narrow(const char *operation)
{
	const size_t n = strlen(operation);
	return strncmp(operation, "scatter_", 8) != 0 && strncmp(operation, "chunk_", 6) != 0 &&
			!(n > 7 && strcmp(operation + n - 7, "_update") == 0);
}

TEST(what_runs_on_the_host)
{
	size_t found = 0;
	chi_kernel_list plain;
	for (size_t index = 0; (plain = chi_plain_list(index)).count > 0; index++)
		for (size_t i = 0; i < plain.count; i++) {
			const char *operation = plain.specs[i].operation;
			uint32_t dtypes = plain.specs[i].dtypes;
			if ((dtypes & CHI_F32) != 0 && is_narrow(operation))
				dtypes |= CHI_HALF;
			found += is_on_host(operation);
			for (int dtype = CHOIR_F32; dtype <= CHOIR_BF16; dtype++)
				if ((dtypes >> dtype & 1) != 0 &&
						is_on_device(operation, dtype) == is_on_host(operation))
					fail_msg("%s of %s is%s on the host", operation,
							choir_dtype_name((choir_dtype) dtype),
							is_on_host(operation) ? " not" : "");
		}
	assert_int_equal(found, ON_HOST);
}

TEST(kernels_on_the_host)
{
	for (size_t i = 0; i < ON_HOST; i++)
		assert_true(run("host", on_host[i]) > 0);
	assert_true(run("host", "scatter_add") > 3);
	assert_true(run("host", "conv2d") > 1);
}

enum { VARIABLES = 70, MOST_INPUTS = 4 };

static int64_t elements_of(int variable)
{
	return variable == 40 ? 70000 : 1 + variable * 7 % 300;
}

static size_t inputs_of(const char *update)
{
	static const char *const slots[] = { "sgd", "momentum adagrad lion", "adam rmsprop nadam" };
	char name[32];
	size_t n = 0;
	snprintf(name, sizeof name, "%.*s", (int) (strchr(update, '_') - update), update);
	while (strstr(slots[n], name) == NULL)
		n++;
	return n + 2;
}

// Updates variables that lie one after another in memory, each with its slots and gradient. gate:
// NULL, or that of the update.
static void update(const choir_kernel_table *k, chi_stream *s, char *memory, bool together,
		const double *gate)
{
	choir_update_attributes attributes[2] = {
		{ .rate = 0.1, .decay = 0.01, .gradient_scale = 0.5, .beta1 = 0.9, .beta2 = 0.99 },
		{ .rate = 0.2, .gradient_scale = 2, .epsilon = 1e-3, .correction = 3, .momentum = 0.4 }
	};
	const size_t n = inputs_of(k->operation), size = k->dtype == CHOIR_F32 ? 4 : 8;
	choir_buffer in[VARIABLES][MOST_INPUTS], out[VARIABLES];
	choir_kernel_call call[VARIABLES];
	attributes[0].gate = attributes[1].gate = gate;
	for (int i = 0; i < VARIABLES; i++) {
		for (size_t j = 0; j < n; j++) {
			in[i][j] = (choir_buffer){ memory, k->dtype, { 1, { elements_of(i) } } };
			memory += (size_t) elements_of(i) * size;
		}
		out[i] = in[i][0];
		call[i] = (choir_kernel_call){ .size = sizeof call[i],
			.stream = s->state,
			.n = n,
			.in = in[i],
			.out = &out[i],
			.attributes = &attributes[i > 67],
			.user = k->user,
			.device = s->device->self };
		if (!together)
			assert_int_equal(k->run(&call[i]), CHOIR_OK);
	}
	if (together)
		assert_int_equal(k->run_all(call, VARIABLES), CHOIR_OK);
}

static void compare_updates(const choir_kernel_table *k, chi_stream *s)
{
	enum { BYTES = 90000 * MOST_INPUTS * 8 };
	static char host[3][BYTES];
	for (size_t i = 0; i < BYTES / 4; i++) {
		const float x = 0.1f + (float) (i * 2654435761u % 1000) / 1000;
		memcpy(host[0] + 4 * i, &x, 4); // as f64, too, a positive number
	}
	for (int together = 0; together < 2; together++) {
		void *memory;
		assert_int_equal(chi_device_allocate(s->device, BYTES, &memory), CHOIR_OK);
		assert_int_equal(chi_stream_send(s, memory, host[0], BYTES), CHOIR_OK);
		standin_counts before, now;
		standin_count(&before);
		update(k, s, memory, together == 1, NULL);
		standin_count(&now);
		assert_int_equal(now.kernels - before.kernels, together == 1 ? 4 : VARIABLES);
		assert_int_equal(chi_stream_fetch(s, host[1 + together], memory, BYTES), CHOIR_OK);
		chi_device_release(s->device, memory, BYTES);
	}
	assert_memory_not_equal(host[0], host[1], BYTES);
	assert_memory_equal(host[1], host[2], BYTES);
}

// gate[1] is not 0.
static void refuse_update(const choir_kernel_table *k, chi_stream *s)
{
	enum { BYTES = 90000 * MOST_INPUTS * 8 };
	static char before[BYTES], after[BYTES];
	const double gate[] = { 1, 1, 0, 0 };
	void *memory, *verdict;
	memset(before, 0x3f, BYTES);
	assert_int_equal(chi_device_allocate(s->device, BYTES, &memory), CHOIR_OK);
	assert_int_equal(chi_device_allocate(s->device, sizeof gate, &verdict), CHOIR_OK);
	assert_int_equal(chi_stream_send(s, memory, before, BYTES), CHOIR_OK);
	assert_int_equal(chi_stream_send(s, verdict, gate, sizeof gate), CHOIR_OK);
	update(k, s, memory, true, verdict);
	assert_int_equal(chi_stream_fetch(s, after, memory, BYTES), CHOIR_OK);
	assert_memory_equal(before, after, BYTES);
	chi_device_release(s->device, memory, BYTES);
	chi_device_release(s->device, verdict, sizeof gate);
}

// One launch for each 64 small variables with equal attributes, and one for each large variable.
TEST(updates_of_many_variables)
{
	chi_stream *s = chi_stream_new(choir_device_find("gpu:0"));
	const choir_kernel_table *k;
	int found = 0;
	assert_non_null(s);
	for (size_t i = 0; (k = chi_cuda_plugin()->kernel(i)) != NULL; i++)
		if (k->run_all != NULL && strstr(k->operation, "_update") != NULL && ++found > 0) {
			compare_updates(k, s);
			refuse_update(k, s);
		}
	assert_int_equal(found, 14);
	chi_stream_free(s);
}
