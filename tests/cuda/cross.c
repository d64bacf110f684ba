// The suite of cross-device operations on GPUs of the stand-in: the tables of libchoir-cuda, and
// Choir's, which do not know GPUs.
#include "choir/extend/suite.h"
#include "collective/cross_device_ops.h"
#include "collective/suite_memory.h"
#include "device/cuda_loader.h"
#include "short.h"
#include "test.h"

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
