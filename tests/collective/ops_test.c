// The public suite of cross-device operations (choir/extend/suite.h) on every table: on memory
// that is shared, on memory that is not, on a mixture, and a table from outside. And allocations
// that fail.
#include "choir/extend/suite.h"
#include "base/alloc.h"
#include "collective/cross_device_ops.h"
#include "collective/suite_memory.h"
#include "collective/toy.h"
#include "tensor/buffer_pool.h"
#include "short.h"
#include "test.h"

enum { CHECKS = 15 };

static void assert_passes(
		const choir_cross_device_ops_table *table, const char *members, bool on_host)
{
	int checks = 0;
	if (choir_suite_run(CHOIR_OPTIONS(choir_suite_options, .cross_device_ops = table,
								.members = members, .memory = on_host ? NULL : &suite_memory),
				suite_note, &checks) != CHOIR_OK)
		fail_msg("%s", choir_error());
	assert_int_equal(checks, CHECKS);
}

static const choir_cross_device_ops_table *const ways[] = { &chi_reduce_to_one_device_table,
	&chi_ring_table, &chi_hierarchical_copy_table };

// spec: C7, C14, M15, M20, 2.8, 2.9
TEST(members_with_host_memory)
{
	assert_passes(&chi_direct_table, "cpu:0,cpu:1,cpu:2,cpu:3", true);
	for (int i = 0; i < (SHORT ? 1 : 3); i++)
		assert_passes(ways[i], NULL, true);
	assert_passes(&toy_ops, NULL, true);
}

TEST(members_with_their_own_memory)
{
	for (int i = 0; i < 3; i++) {
		if (!SHORT || i == 0)
			assert_passes(ways[i], "far:0,far:1,far:2", false);
		assert_passes(ways[i], "cpu:0,far:0,cpu:1,far:1", false);
	}
	suite_forget_streams();
}

static choir_status suite_of(const choir_cross_device_ops_table *table, const char *members)
{
	return choir_suite_run(
			CHOIR_OPTIONS(choir_suite_options, .cross_device_ops = table, .members = members),
			NULL, NULL);
}

TEST(wrong_subjects_are_refused)
{
	choir_cross_device_ops_table t = toy_ops;
	t.reset = NULL;
	assert_int_equal(suite_of(&t, NULL), CHOIR_INVALID);
	assert_text_holds(choir_error(), "\"toy\"*slot reset");
	t.version = 9;
	assert_int_equal(suite_of(&t, NULL), CHOIR_INVALID);
	assert_text_holds(choir_error(), "version 9*version 1");
	assert_int_equal(suite_of(&toy_ops, ""), CHOIR_INVALID);
	assert_text_holds(choir_error(), ".members");
	assert_int_equal(suite_of(&toy_ops, "cpu:0,cpu:1,cpu:2,cpu:3,cpu:4"), CHOIR_INVALID);
	assert_text_holds(choir_error(), "4 devices");
	assert_int_equal(
			choir_suite_run(CHOIR_OPTIONS(choir_suite_options, .cross_device_ops = &toy_ops,
									.memory = &(choir_suite_memory){ .size = 3 }),
					NULL, NULL),
			CHOIR_INVALID);
	assert_text_holds(choir_error(), ".memory of 3");
	assert_int_equal(suite_of(&toy_ops, "cpu:0,tpu:1"), CHOIR_NOT_FOUND);
	assert_text_holds(choir_error(), "tpu:1");
}

// Three members, each with a partial sum and a result, and the memory of both.
enum { MEMBERS = 3, ELEMENTS = 30000 };
typedef struct {
	chi_communicator communicator;
	chi_buffer *part[MEMBERS], *result[MEMBERS];
	choir_device *device[MEMBERS];
	bool in_stream;
} group;

static choir_status meet(group *g)
{
	choir_collective c[MEMBERS];
	choir_partial_sum part[MEMBERS];
	uint64_t request[MEMBERS];
	choir_status status = CHOIR_OK;
	for (int i = 0; status == CHOIR_OK && i < MEMBERS; i++) {
		part[i] = (choir_partial_sum){ i, i + 1, g->part[i]->memory };
		c[i] = (choir_collective){ .size = sizeof c[i],
			.name = "sum",
			.kind = CHOIR_ALL_REDUCE,
			.elements = ELEMENTS,
			.divisor = 3,
			.n = 1,
			.partial_sums = &part[i],
			.stream = suite_stream_of(g->device[i])->state,
			.result = g->result[i]->memory,
			.in_stream = g->in_stream };
		status = chi_communicator_join(&g->communicator, i, &c[i], &request[i]);
	}
	for (int i = 0; i < MEMBERS && status == CHOIR_OK; i++)
		status = chi_communicator_wait(&g->communicator, i, request[i], 20);
	for (int i = 0; g->in_stream && i < MEMBERS; i++) {
		const choir_status waited = chi_stream_wait(suite_stream_of(g->device[i]));
		status = status == CHOIR_OK ? waited : status;
	}
	if (status != CHOIR_OK)
		chi_communicator_abort(&g->communicator);
	return status;
}

// Opens a group, which meets, and meets again after a failure. The n-th allocation fails.
static bool fails(const char *name, group *g, uint64_t n)
{
	chi_buffer_trim();
	chi_alloc_fail(n, false);
	choir_status status =
			chi_communicator_open(&g->communicator, MEMBERS, MEMBERS, g->device, name);
	const bool opened = status == CHOIR_OK;
	if (opened)
		status = meet(g);
	const bool failed = chi_alloc_failed();
	chi_alloc_fail(0, false);
	assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
	if (failed)
		assert_string_not_equal(choir_error(), "");
	if (failed && opened) {
		chi_communicator_reset(&g->communicator);
		assert_int_equal(meet(g), CHOIR_OK);
	}
	chi_communicator_close(&g->communicator);
	return failed;
}

TEST(every_allocation_may_fail)
{
	static const char *const names[] = { "direct", "reduce_to_one_device", "ring",
		"hierarchical_copy" };
	static const char *const devices[][MEMBERS] = { { "cpu:0", "cpu:1", "cpu:2" },
		{ "far:0", "far:1", "far:2" }, { "cpu:0", "far:0", "far:1" } };
	for (int d = 0; d < 3; d++) {
		group g = { .communicator = { .self = NULL } };
		for (int i = 0; i < MEMBERS; i++) {
			g.device[i] = choir_device_find(devices[d][i]);
			assert_non_null(g.part[i] = chi_buffer_new(g.device[i], ELEMENTS * sizeof(float)));
			assert_non_null(g.result[i] = chi_buffer_new(g.device[i], ELEMENTS * sizeof(float)));
			assert_non_null(suite_stream_of(g.device[i]));
		}
		for (int k = d == 0 ? 0 : 1; k < 4; k++) // "direct" needs host memory
			for (int in_stream = 0; in_stream < (d == 0 ? 1 : 2); in_stream++) {
				uint64_t n = 1;
				g.in_stream = in_stream != 0;
				while (fails(names[k], &g, n))
					n += n < 10 ? 1 : STRIDE;
				assert_true(n > 2);
			}
		for (int i = 0; i < MEMBERS; i++) {
			chi_buffer_release(g.part[i]);
			chi_buffer_release(g.result[i]);
		}
	}
	suite_forget_streams();
}
