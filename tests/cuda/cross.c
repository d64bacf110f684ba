// The suite of cross-device operations on GPUs of the stand-in: the tables of libchoir-cuda, and
// Choir's, which do not know GPUs.
#include "choir/extend/suite.h"
#include "collective/cross_device_ops.h"
#include "device/cuda_loader.h"
#include "short.h"
#include "test.h"

#include <string.h>

// One stream for each device that a suite has used.
static chi_stream *streams[8];

static chi_stream *stream_of(choir_device *d)
{
	for (int i = 0;; i++) {
		if (streams[i] == NULL)
			streams[i] = chi_stream_new(d);
		if (streams[i] == NULL || streams[i]->device == d)
			return streams[i];
	}
}

static void forget_streams(void)
{
	for (int i = 0; streams[i] != NULL; i++)
		chi_stream_free(streams[i]);
	memset(streams, 0, sizeof streams);
}

static void *state_of(choir_device *d)
{
	const chi_stream *s = stream_of(d);
	return s == NULL ? NULL : s->state;
}

static void *allocate(choir_device *d, size_t bytes)
{
	void *memory;
	return chi_device_allocate(d, bytes, &memory) == CHOIR_OK ? memory : NULL;
}

static choir_status copy(choir_device *d, void *to, const void *from, size_t bytes)
{
	CHOIR_TRY(chi_stream_copy(stream_of(d), to, from, bytes));
	return chi_stream_wait(stream_of(d));
}

static void report(const char *check, choir_status result, const char *text, void *user)
{
	if (result != CHOIR_OK)
		print_error("%s: %s\n", check, text);
	++*(int *) user;
}

static void run(const choir_cross_device_ops_table *table, const char *members)
{
	static const choir_suite_memory there = { sizeof there, state_of, allocate, chi_device_release,
		copy };
	int checks = 0;
	if (choir_suite_run(CHOIR_OPTIONS(choir_suite_options, .cross_device_ops = table,
								.members = members, .memory = &there),
				report, &checks) != CHOIR_OK)
		fail_msg("%s", choir_error());
	assert_true(checks > 10);
	forget_streams();
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
