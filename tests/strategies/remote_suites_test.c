// The public suites (choir/extend/suite.h) on remote devices, whose servers are threads of this
// program: devices, kernels, cross-device operations and strategies.
#include "choir/extend/suite.h"

#include "collective/cross_device_ops.h"
#include "collective/suite_memory.h"
#include "device/remote/remote_device.h"
#include "serve/servers.h"
#include "short.h"
#include "test.h"

#include <stdio.h>

static int start(void **state)
{
	(void) state;
	servers_start();
	return 0;
}

static int stop(void **state)
{
	(void) state;
	suite_forget_streams();
	servers_stop();
	return 0;
}

static void note(const char *check, choir_status result, const char *text, void *user)
{
	if (result != CHOIR_OK)
		print_message("%s: %s\n", check, text);
	++*(int *) user;
}

static int two(void)
{
	return 2;
}

// Devices 0 and 1 are the first two that the process names.
TEST(the_table_passes)
{
	char name[CHI_REMOTE_NAME];
	int index, checks = 0;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(chi_remote_find(servers_device(0, i), name, &index), CHOIR_OK);
		assert_int_equal(index, i);
	}
	choir_device_table t = chi_remote_table;
	t.count = two;
	if (choir_suite_run(CHOIR_OPTIONS(choir_suite_options, .device = &t), note, &checks) !=
			CHOIR_OK)
		fail_msg("%s", choir_error());
	assert_int_equal(checks, 11);
}

TEST(kernels_pass)
{
	int checks = 0;
	if (choir_suite_run(CHOIR_OPTIONS(choir_suite_options, .kernels = servers_device(0, 0),
								.operation = SHORT ? "matmul" : NULL),
				note, &checks) != CHOIR_OK)
		fail_msg("%s", choir_error());
	assert_true(checks > (SHORT ? 3 : 300));
}

static void assert_sums(const choir_cross_device_ops_table *table, const char *members)
{
	int checks = 0;
	if (choir_suite_run(CHOIR_OPTIONS(choir_suite_options, .cross_device_ops = table,
								.members = members, .memory = &suite_memory),
				note, &checks) != CHOIR_OK)
		fail_msg("%s", choir_error());
	assert_int_equal(checks, 15);
}

// Members of one server, of two servers, and with the host.
TEST(cross_device_operations_pass)
{
	static const choir_cross_device_ops_table *const ways[] = { &chi_reduce_to_one_device_table,
		&chi_ring_table, &chi_hierarchical_copy_table };
	char members[512];
	snprintf(members, sizeof members, "%s,cpu:0,%s", servers_pair(0, 0, 0, 1),
			servers_device(1, 0));
	for (int i = 0; i < (SHORT ? 1 : 3); i++)
		assert_sums(ways[i], members);
}

TEST(strategies_pass)
{
	const char *const devices[] = { servers_pair(0, 0, 0, 1), servers_pair(0, 1, 1, 0), NULL };
	static const char *const kinds[] = { "mirrored", "central_storage" };
	for (int i = 0; i < 2; i++) {
		int checks = 0;
		if (choir_suite_run(CHOIR_OPTIONS(choir_suite_options, .strategy = kinds[i],
									.max_replicas = SHORT || i > 0 ? 2 : 3, .devices = devices),
					note, &checks) != CHOIR_OK)
			fail_msg("%s: %s", kinds[i], choir_error());
		assert_true(checks >= 16);
	}
}

TEST_GROUP(start, stop)
