// What goes wrong with a GPU, on the stand-in: memory, calls that fail, a lost GPU, work that does
// not end, forks, and failures of kernels on the host. Each is one named failure, and nothing
// hangs.
#include <choir/choir.h>

#include "choir/extend/cross_device_ops_table.h"
#include "choir/extend/kernel_table.h"
#include "device/cuda_loader.h"
#include "device/device.h"
#include "short.h"
#include "tensor/tensor.h"
#include "test.h"

#include "open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	OUT_OF_MEMORY = 2,
	UNAVAILABLE = 46,
	ILLEGAL_ADDRESS = 700,
	UNKNOWN = 999,
	BATCH = 4,
	SIDE = 3,
	OUT = 3,
	LARGE = 100 << 20
};

TEST(out_of_memory_says_what_is_free)
{
	void *memory;
	choir_device *d = choir_device_find("gpu:0");
	assert_int_equal(chi_device_allocate(d, (size_t) 1 << 40, &memory), CHOIR_NO_MEMORY);
	assert_text_holds(choir_error(), "gpu:0*1099511627776*4294967296*free");
	// It does not stick.
	assert_int_equal(chi_device_allocate(d, 1000, &memory), CHOIR_OK);
	chi_device_release(d, memory, 1000);
}

// Another process takes all but some bytes. Returns what it took.
static long long take_all_but(int gpu, const char *name, long long bytes)
{
	choir_device_info info = { .size = sizeof info };
	chi_buffer_trim();
	assert_int_equal(choir_device_describe(choir_device_find(name), &info), CHOIR_OK);
	const long long taken = (long long) info.memory_free - bytes;
	standin_take_memory(gpu, taken);
	return taken;
}

TEST(a_full_gpu_releases_unused_memory)
{
	choir_device *d = choir_device_find("gpu:0"), *other = choir_device_find("gpu:1");
	const long long taken = take_all_but(0, "gpu:0", 3 * LARGE);
	chi_buffer *used = chi_buffer_new(d, LARGE), *unused = chi_buffer_new(d, LARGE),
			   *elsewhere = chi_buffer_new(other, LARGE);
	assert_true(used != NULL && unused != NULL && elsewhere != NULL);
	chi_buffer_release(unused);
	chi_buffer_release(elsewhere);
	standin_counts before, now;
	standin_count(&before);
	chi_buffer *larger = chi_buffer_new(d, LARGE + LARGE / 2);
	standin_count(&now);
	if (larger == NULL)
		fail_msg("%s", choir_error());
	assert_int_equal(now.frees - before.frees, 1);
	assert_null(chi_buffer_new(d, LARGE));
	assert_text_holds(choir_error(), "gpu:0*no memory*109051904 bytes*free");
	chi_buffer_release(used);
	chi_buffer_release(larger);
	standin_take_memory(0, -taken);
	chi_buffer_trim();
}

// Memory that an operation of the frame has left is of another size.
TEST(a_full_gpu_waits_for_what_its_frame_left)
{
	enum { SMALLER = 100000, LARGER = 150000 }; // elements
	const long long taken = take_all_but(0, "gpu:0", 4 * (SMALLER + LARGER));
	choir_frame *f = choir_frame_new(choir_device_find("gpu:0"));
	assert_non_null(f);
	choir_tensor *first = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(SMALLER), 1);
	choir_tensor *sum = choir_sum(first, CHOIR_ALL_AXES);
	chi_tensor_drop(first);
	choir_tensor *second = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(LARGER + SMALLER / 2), 2);
	choir_tensor *all = choir_add(sum, choir_sum(second, CHOIR_ALL_AXES));
	const double number = choir_tensor_number(all);
	if (number != SMALLER + 2 * (LARGER + SMALLER / 2))
		fail_msg("%g: %s", number, choir_error());
	choir_frame_free(f);
	standin_take_memory(0, -taken);
	chi_buffer_trim();
}

typedef struct {
	choir_layer *layers;
	choir_optimizer *sgd;
	int lost; // the GPU that is lost in the second step; CHOIR_NONE: none
	long long taken; // bytes of gpu:0 that another process takes in the second step
	int step;
	const char *devices; // NULL: gpu:0,gpu:1
} net;

static choir_status train_step(choir_replica *r, void *user)
{
	net *n = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *x = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(BATCH, SIDE, SIDE, 1), 0.5);
	choir_tensor *labels = choir_fill(r->frame, CHOIR_I32, CHOIR_SHAPE(BATCH), 1);
	choir_tensor *losses =
			choir_sparse_softmax_cross_entropy(labels, choir_layer_apply(n->layers, x));
	if (n->lost != CHOIR_NONE && n->step == 1)
		standin_lose(n->lost, ILLEGAL_ADDRESS);
	if (n->taken > 0 && n->step == 1 && choir_replica_id(r) == 0) {
		standin_take_memory(0, n->taken);
		choir_tensor *large = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(LARGE), 1);
		const choir_status status = large == NULL ? choir_error_status() : CHOIR_OK;
		standin_take_memory(0, -n->taken);
		CHOIR_TRY(status);
	}
	return choir_optimizer_minimize(n->sgd, choir_replica_average_loss(r, losses), tape);
}

static choir_status make_and_train(net *n, choir_strategy **s)
{
	*s = choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
			.devices = n->devices != NULL ? n->devices : "gpu:0,gpu:1", .replicas = 3, .seed = 7,
			.timeout = 10));
	if (*s == NULL)
		return choir_error_status();
	CHOIR_SCOPE (*s) {
		choir_layer *layers[] = { choir_conv2d_new("conv", 1, 2, 2, NULL), choir_flatten_new(),
			choir_dense_new("out", (SIDE - 1) * (SIDE - 1) * 2, OUT, CHOIR_LINEAR) };
		n->layers = choir_sequential_new(3, layers);
		n->sgd = choir_optimizer_new(CHOIR_SGD, NULL);
	}
	if (n->layers == NULL || n->sgd == NULL)
		return choir_error_status();
	for (n->step = 0; n->step < 2; n->step++)
		CHOIR_TRY(choir_strategy_run(*s, train_step, n, NULL, NULL));
	return CHOIR_OK;
}

TEST(a_lost_gpu_ends_the_run)
{
	for (int gpu = 0; gpu < 2; gpu++) {
		net n = { .lost = gpu };
		choir_strategy *s;
		assert_int_not_equal(make_and_train(&n, &s), CHOIR_OK);
		char name[16];
		snprintf(name, sizeof name, "gpu:%d", gpu);
		assert_text_holds(choir_error(), name);
		assert_text_holds(choir_error(), "lost*cudaErrorIllegalAddress");
		// It stays so for this strategy. Other GPUs go on.
		assert_int_not_equal(choir_strategy_run(s, train_step, &n, NULL, NULL), CHOIR_OK);
		assert_true(choir_error()[0] != '\0' && strchr(choir_error(), '\n') == NULL);
		choir_strategy_free(s);
		net on = { .lost = CHOIR_NONE, .devices = gpu == 0 ? "gpu:1,gpu:2" : "gpu:0,gpu:2" };
		if (make_and_train(&on, &s) != CHOIR_OK)
			fail_msg("%s", choir_error());
		choir_strategy_free(s);
		standin_revive(gpu);
	}
}

// GPU 0 is the thread's current one.
TEST(a_lost_gpu_leaves_peer_access_to_others)
{
	choir_device *devices[] = { choir_device_find("gpu:1"), choir_device_find("gpu:2") };
	const choir_group group = { .members = 2, .devices = devices, .replicas = 2 };
	standin_lose(0, ILLEGAL_ADDRESS);
	const int score = chi_cuda_plugin()->cross_device_ops(0)->score(&group, CHOIR_ALL_REDUCE, 1);
	standin_revive(0);
	assert_true(score > 0);
}

// Each permanent error of CUDA gives one line with its name, and the first cause stays.
TEST(permanent_errors)
{
	static const struct {
		int code;
		const char *device, *text;
	} errors[] = {
		{ 201, "gpu:4", "gpu:4*lost*cudaErrorDeviceUninitialized*reset" },
		{ 214, "gpu:5", "gpu:5*lost*cudaErrorECCUncorrectable" },
		{ 700, "gpu:6", "gpu:6*lost*cudaErrorIllegalAddress" },
		{ 709, "gpu:7", "gpu:7*lost*cudaErrorContextIsDestroyed*reset" },
		{ 719, "gpu:8", "gpu:8*lost*cudaErrorLaunchFailure" },
	};
	for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
		choir_device *d = choir_device_find(errors[i].device);
		chi_stream *s = chi_stream_new(d);
		void *memory;
		assert_non_null(s);
		for (int again = 0; again < 2; again++) {
			standin_lose(4 + (int) i, again == 0 ? errors[i].code : ILLEGAL_ADDRESS);
			assert_int_equal(chi_device_allocate(d, 100, &memory), CHOIR_IO);
			assert_text_holds(choir_error(), errors[i].text);
			assert_null(strchr(choir_error(), '\n'));
		}
		chi_stream_free(s);
		standin_revive(4 + (int) i);
	}
}

// Another process has the GPU alone, or it was reset. Later the GPU can be used.
TEST(a_gpu_that_is_not_there_for_us)
{
	standin_fail("cudaSetDevice", 2, UNAVAILABLE);
	assert_null(choir_device_find("gpu:3"));
	assert_text_holds(choir_error(), "gpu:3*cudaErrorDevicesUnavailable*another process");
	standin_fail("cudaSetDevice", 2, OUT_OF_MEMORY); // for its context
	assert_null(choir_device_find("gpu:3"));
	assert_text_holds(choir_error(), "gpu:3*cudaErrorMemoryAllocation");
	standin_fail(NULL, 0, 0);
	assert_non_null(choir_device_find("gpu:3"));
}

// Another process fills the GPU in the middle of a step: the run fails, and the next one works.
TEST(out_of_memory_in_a_step)
{
	net n = { .lost = CHOIR_NONE, .taken = (long long) 4000 << 20 };
	choir_strategy *s;
	assert_int_equal(make_and_train(&n, &s), CHOIR_NO_MEMORY);
	assert_text_holds(choir_error(), "gpu:0*no memory*bytes*free");
	n.taken = 0;
	if (choir_strategy_run(s, train_step, &n, NULL, NULL) != CHOIR_OK)
		fail_msg("%s", choir_error());
	choir_strategy_free(s);
}

// No memory at each allocation in turn: unused memory makes up for it, or the run says it. Memory
// that queued work uses stays.
TEST(each_allocation_fails)
{
	uint64_t expected = 0;
	int survived = 0, failed = 0;
	bool more = true;
	for (unsigned n = 0; more; n += SHORT ? 3 : 1) {
		net of = { .lost = CHOIR_NONE };
		choir_strategy *s;
		chi_buffer_trim();
		standin_fail("cudaMalloc", n, OUT_OF_MEMORY);
		const choir_status status = make_and_train(&of, &s);
		const uint64_t hash = choir_strategy_hash(s);
		expected = n == 0 ? hash : expected;
		if (status == CHOIR_OK && hash != expected)
			fail_msg("allocation %u: other weights", n);
		if (status != CHOIR_OK)
			assert_text_holds(choir_error(), "gpu:*no memory*bytes*free");
		more = n == 0 || standin_failed();
		standin_fail(NULL, 0, 0);
		survived += n > 0 && more && status == CHOIR_OK;
		failed += status != CHOIR_OK;
		choir_strategy_free(s);
	}
	assert_true(survived > 0 && failed > 0);
}

// Each call of CUDA fails in turn: every 11th one, or those that CHOIR_CUDA_STRIDE chooses.
TEST(each_call_of_cuda_fails)
{
	const char *asked = getenv("CHOIR_CUDA_STRIDE");
	const unsigned stride = asked != NULL ? (unsigned) atoi(asked) : SHORT ? 53 : 11;
	unsigned n = 1, ended = 0;
	assert_true(stride > 0);
	for (bool failed = true; failed; n += stride) {
		net of = { .lost = CHOIR_NONE };
		choir_strategy *s;
		standin_fail(NULL, n, n % 2 == 0 ? UNKNOWN : OUT_OF_MEMORY);
		const choir_status status = make_and_train(&of, &s);
		failed = standin_failed();
		standin_fail(NULL, 0, 0);
		if (!failed && status != CHOIR_OK)
			fail_msg("call %u: %s", n, choir_error());
		if (status != CHOIR_OK && choir_error()[0] == '\0')
			fail_msg("call %u: %s without a text", n, choir_status_name(status));
		ended += status != CHOIR_OK;
		choir_strategy_free(s);
	}
	assert_true(ended > (SHORT ? 3 : 15));
}

TEST(work_that_does_not_end_is_named)
{
	choir_frame *f = choir_frame_new(choir_device_find("gpu:0"));
	assert_non_null(f);
	choir_tensor *a = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(3, 3), 1);
	assert_int_equal(
			choir_tensor_to_host(choir_sum(a, CHOIR_ALL_AXES), &(float){ 0 }, 4), CHOIR_OK);
	standin_pause(1);
	chi_stream_set_timeout(0.2);
	choir_tensor *product = choir_matmul(a, a, CHOIR_TRANSPOSED_NONE);
	assert_non_null(product);
	float out[9];
	assert_int_equal(choir_tensor_to_host(product, out, sizeof out), CHOIR_TIMEOUT);
	assert_text_holds(choir_error(), "gpu:0*matmul*0.2");
	chi_stream_set_timeout(60);
	standin_pause(0);
	choir_frame_free(f);
}

// The run names the GPU. After the work has ended all the same, the next run works.
TEST(a_run_whose_work_does_not_end)
{
	net n = { .lost = CHOIR_NONE };
	choir_strategy *s;
	assert_int_equal(make_and_train(&n, &s), CHOIR_OK);
	standin_pause(1);
	chi_stream_set_timeout(0.2);
	assert_int_equal(choir_strategy_run(s, train_step, &n, NULL, NULL), CHOIR_TIMEOUT);
	assert_text_holds(choir_error(), "gpu:*0.2");
	assert_null(strchr(choir_error(), '\n'));
	chi_stream_set_timeout(60);
	standin_pause(0);
	if (choir_strategy_run(s, train_step, &n, NULL, NULL) != CHOIR_OK)
		fail_msg("%s", choir_error());
	choir_strategy_free(s);
}

TEST(a_child_of_a_fork_cannot_use_gpus)
{
	choir_device *d = choir_device_find("gpu:0");
	net n = { .lost = CHOIR_NONE };
	choir_strategy *s;
	assert_int_equal(make_and_train(&n, &s), CHOIR_OK);
	fflush(stdout);
	const pid_t child = fork();
	if (child == 0) {
		void *memory;
		bool fails = chi_device_allocate(d, 100, &memory) == CHOIR_STATE &&
				strstr(choir_error(), "fork") != NULL && chi_stream_new(d) == NULL;
		fails = choir_strategy_run(s, train_step, &n, NULL, NULL) == CHOIR_STATE &&
				strstr(choir_error(), "fork") != NULL && fails;
		choir_strategy_free(s);
		_exit(fails ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	if (choir_strategy_run(s, train_step, &n, NULL, NULL) != CHOIR_OK)
		fail_msg("%s", choir_error());
	choir_strategy_free(s);
}

// The wait that follows returns the failure, and the stream goes on.
TEST(a_kernel_on_the_host_fails)
{
	float rows[] = { 1, 2, 3, 4 }, out[4];
	int32_t indices[] = { 1, 7 };
	choir_buffer in[] = { { .data = rows, .dtype = CHOIR_F32, .shape = CHOIR_SHAPE(2, 2) },
		{ .data = indices, .dtype = CHOIR_I32, .shape = CHOIR_SHAPE(2) } };
	choir_buffer to = { .data = out, .dtype = CHOIR_F32, .shape = CHOIR_SHAPE(2, 2) };
	const choir_kernel_call call = { .size = sizeof call, .n = 2, .in = in, .out = &to };
	choir_device *d = choir_device_find("gpu:0");
	assert_int_equal(choir_kernel_run(d, "gather", "host", &call), CHOIR_INVALID);
	assert_text_holds(choir_error(), "7*1");
	indices[1] = 0;
	assert_int_equal(choir_kernel_run(d, "gather", "host", &call), CHOIR_OK);
	assert_true(out[0] == 3 && out[1] == 4 && out[2] == 1 && out[3] == 2);
}
