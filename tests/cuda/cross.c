// The suite of cross-device operations on GPUs of the stand-in: the tables of libchoir-cuda, and
// Choir's, which do not know GPUs.
#include "choir/extend/suite.h"
#include "collective/cross_device_ops.h"
#include "collective/suite_memory.h"
#include "device/cuda_loader.h"
#include "short.h"
#include "tensor/buffer_pool.h"
#include "test.h"

#include "standin.h"

#include <stdio.h>
#include <string.h>

static void run(const choir_cross_device_ops_table *table, const char *members)
{
	int checks = 0;
	if (choir_suite_run(CHOIR_OPTIONS(choir_suite_options, .cross_device_ops = table,
								.members = members, .memory = &suite_memory),
				suite_note, &checks) != CHOIR_OK)
		fail_msg("%s", choir_error());
	assert_true(checks > 10);
	suite_forget_streams();
}

TEST(over_peer_access)
{
	const choir_cross_device_ops_table *peer = chi_cuda_plugin()->cross_device_ops(0);
	assert_string_equal(peer->name, "peer");
	run(peer, "gpu:0,gpu:1");
	if (!SHORT)
		run(peer, "gpu:0,gpu:1,gpu:2");
}

TEST(by_nccl)
{
	const choir_cross_device_ops_table *nccl = chi_cuda_plugin()->cross_device_ops(1);
	assert_string_equal(nccl->name, "nccl");
	run(nccl, "gpu:0,gpu:1,gpu:2");
}

TEST(through_the_host)
{
	run(&chi_ring_table, "gpu:0,gpu:1,gpu:2");
	if (!SHORT)
		run(&chi_hierarchical_copy_table, "cpu:0,gpu:0,gpu:1");
	run(&chi_reduce_to_one_device_table, "gpu:0,cpu:0");
}

enum { GPUS = 2, BYTES = 4 << 20 };

// Sums by NCCL, for which each GPU needs memory for the parts of the other one.
static choir_status sum_by_nccl(
		chi_communicator *g, chi_stream *const stream[], chi_buffer *memory[])
{
	choir_partial_sum part[GPUS];
	choir_collective c[GPUS];
	uint64_t request[GPUS];
	choir_status status = CHOIR_OK;
	for (int i = 0; i < GPUS; i++) {
		part[i] = (choir_partial_sum){ i, i + 1, memory[i]->memory };
		c[i] = (choir_collective){ .size = sizeof c[i],
			.name = "sum",
			.kind = CHOIR_ALL_REDUCE,
			.dtype = CHOIR_F32,
			.elements = BYTES / 4,
			.divisor = 1,
			.n = 1,
			.partial_sums = &part[i],
			.stream = stream[i]->state,
			.result = memory[GPUS + i]->memory };
		CHOIR_TRY(chi_communicator_join(g, i, &c[i], &request[i]));
	}
	for (int i = 0; i < GPUS; i++) {
		const choir_status own = chi_communicator_wait(g, i, request[i], 20);
		status = status == CHOIR_OK ? own : status;
	}
	return status;
}

// Without and with unused memory in the pool of a full GPU.
TEST(a_sum_on_a_full_gpu)
{
	choir_device *devices[GPUS] = { choir_device_find("gpu:0"), choir_device_find("gpu:1") };
	chi_buffer *memory[2 * GPUS], *unused;
	chi_stream *stream[GPUS];
	for (int i = 0; i < 2 * GPUS; i++) {
		chi_stream *s = chi_stream_new(devices[i % GPUS]);
		memory[i] = chi_buffer_new(devices[i % GPUS], BYTES);
		assert_true(s != NULL && memory[i] != NULL);
		assert_int_equal(chi_stream_fill(s, memory[i]->memory, 0, BYTES), CHOIR_OK);
		assert_int_equal(chi_stream_wait(s), CHOIR_OK);
		chi_stream_free(s);
	}
	for (int i = 0; i < GPUS; i++)
		stream[i] = chi_stream_new(devices[i]);
	for (int has_unused = 0; has_unused < 2; has_unused++) {
		chi_communicator g = { 0 };
		choir_device_info info = { .size = sizeof info };
		assert_int_equal(chi_communicator_open(&g, GPUS, GPUS, devices, "nccl"), CHOIR_OK);
		chi_buffer_trim();
		if (has_unused) {
			assert_non_null(unused = chi_buffer_new(devices[0], 4 * BYTES));
			chi_buffer_release(unused);
		}
		assert_int_equal(choir_device_describe(devices[0], &info), CHOIR_OK);
		standin_take_memory(0, (long long) info.memory_free - 1000);
		const choir_status status = sum_by_nccl(&g, stream, memory);
		standin_take_memory(0, 1000 - (long long) info.memory_free);
		if (status != (has_unused ? CHOIR_OK : CHOIR_NO_MEMORY))
			fail_msg("%s: %s", choir_status_name(status), choir_error());
		if (!has_unused)
			assert_text_holds(choir_error(), "gpu:0*no memory*bytes");
		chi_communicator_close(&g);
	}
	for (int i = 0; i < 2 * GPUS; i++)
		chi_buffer_release(memory[i]);
	for (int i = 0; i < GPUS; i++)
		chi_stream_free(stream[i]);
}
