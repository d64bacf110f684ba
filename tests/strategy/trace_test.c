// Spans of merge calls, collectives and updates: who waited for whom, and whose scalars count.
#include "strategy/world.h"
#include "trace/scratch_directory.h"
#include "trace/record.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/processors.h"
#include "choir/op.h"
#include "test.h"

#include <string.h>
#include <unistd.h>

static record r;
static const double SLOW = 0.15; // seconds: more than a busy machine keeps a thread waiting
static chi_atomic32 others_are_there;

// Comes late, as seen by a replica that has just said that it is there.
static void be_slow(void)
{
	while (chi_atomic32_load(&others_are_there) == 0)
		;
	const double end = chi_clock_now() + SLOW;
	while (chi_clock_now() < end)
		;
}

static double waited(int replica)
{
	return record_seconds(&r, replica, CHOIR_TRACE_WAIT);
}

// The replica or worker that ended the longest wait of a replica.
static const char *came_last(int replica)
{
	const kept_span *longest = NULL;
	for (int i = 0; i < r.n; i++) {
		const choir_trace_span *s = &r.span[i].shown;
		if (s->track == replica && s->category == CHOIR_TRACE_WAIT &&
				(longest == NULL || s->own > longest->shown.own))
			longest = &r.span[i];
	}
	return longest == NULL ? "" : longest->last;
}

static choir_status small_sums(choir_replica *replica, void *user)
{
	(void) user;
	if (choir_replica_id(replica) == 1)
		be_slow();
	else
		chi_atomic32_store(&others_are_there, 1);
	WORLD_NEED(choir_replica_all_reduce(replica, CHOIR_SUM,
					   choir_fill(replica->frame, CHOIR_F32, CHOIR_SHAPE(4), 1)) != NULL);
	WORLD_NEED(choir_replica_all_reduce(replica, CHOIR_SUM,
					   choir_fill(replica->frame, CHOIR_F32, CHOIR_SHAPE(8192), 1)) != NULL);
	return CHOIR_OK;
}

// Replica 0 waits for replica 1, in the small sum, which needs no meeting, as in any other.
TEST(waits)
{
	choir_strategy *s = world_new(2, "cpu:0,cpu:1", 0);
	world_ok(choir_strategy_run(s, small_sums, NULL, NULL, NULL));
	record_start(&r, 0);
	chi_atomic32_store(&others_are_there, 0);
	world_ok(choir_strategy_run(s, small_sums, NULL, NULL, NULL));
	record_stop();
	for (int replica = 0; replica < 2; replica++)
		assert_int_equal(record_count(&r, replica, "replica"), 1);
	assert_true(waited(0) > SLOW / 10);
	assert_string_equal(came_last(0), "replica 1");
	assert_true(record_find(&r, 0, "all_reduce", 0)->shown.category == CHOIR_TRACE_REDUCE);
	const int meetings =
			chi_processor_count() < 2 ? 2 : 1; // small sums want a processor for each device
	assert_int_equal(record_count(&r, CHOIR_TRACE_COMMUNICATION, "all_reduce"), meetings);
	choir_strategy_free(s);
}

static choir_status add_one(choir_update *u, void *user)
{
	(void) user;
	return choir_variable_assign_add(
			choir_update_variable(u), choir_fill(u->frame, CHOIR_F32, CHOIR_SHAPE(3), 1));
}

static choir_status merge(choir_cross *x, void *user)
{
	choir_tensor *sum = choir_cross_reduce(x, CHOIR_SUM, choir_cross_arg(x, "x"), CHOIR_NO_AXIS);
	WORLD_NEED(sum != NULL);
	return choir_cross_update(x, user, NULL, add_one, NULL);
}

static choir_status call_merge(choir_replica *replica, void *user)
{
	if (choir_replica_id(replica) == 0)
		be_slow();
	else if (choir_replica_id(replica) == 2)
		chi_atomic32_store(&others_are_there, 1);
	CHOIR_TRY(choir_replica_set_arg(
			replica, "x", choir_fill(replica->frame, CHOIR_F32, CHOIR_SHAPE(9), 1)));
	return choir_replica_merge_call(replica, merge, user);
}

TEST(merges)
{
	choir_strategy *s = world_new(3, "cpu:0,cpu:1", 0);
	choir_variable *v = world_variable(s, "weights", CHOIR_SHAPE(3), NULL);
	chi_atomic32_store(&others_are_there, 0);
	record_start(&r, 0);
	world_ok(choir_strategy_run(s, call_merge, v, NULL, NULL));
	record_stop();
	int functions = 0, updates = 0;
	for (int replica = 0; replica < 3; replica++) {
		functions += record_count(&r, replica, "merge function");
		updates += record_count(&r, replica, "weights");
	}
	assert_int_equal(functions, 1);
	assert_int_equal(updates, 1);
	const kept_span *wait = record_find(&r, 2, "merge call with x", 0);
	assert_non_null(wait);
	assert_int_equal(wait->shown.category, CHOIR_TRACE_WAIT);
	assert_true(waited(2) > SLOW / 10);
	assert_string_equal(came_last(2), "replica 1"); // which cpu:0 runs after replica 0
	choir_strategy_free(s);
}

static choir_status fail_late(choir_replica *replica, void *user)
{
	(void) user;
	if (choir_replica_id(replica) == 1)
		return choir_fail(CHOIR_INVALID, "on purpose");
	CHOIR_TRY(choir_replica_set_arg(
			replica, "x", choir_fill(replica->frame, CHOIR_F32, CHOIR_SHAPE(1), 1)));
	return choir_replica_merge_call(replica, merge, NULL);
}

// A run that fails leaves whole spans as well, and its failure is the run's own.
TEST(failures)
{
	choir_strategy *s = world_new(2, "cpu:0,cpu:1", 0);
	record_start(&r, 0);
	world_failed(choir_strategy_run(s, fail_late, NULL, NULL, NULL), CHOIR_INVALID, "replica 1",
			"on purpose");
	world_ok(choir_strategy_run(s, small_sums, NULL, NULL, NULL));
	record_stop();
	for (int replica = 0; replica < 2; replica++)
		for (int i = 0; i < 2; i++)
			assert_int_equal(
					record_find(&r, replica, "replica", i)->shown.depth, replica == 0 ? 1 : 0);
	choir_strategy_free(s);
}

static choir_status say_who(choir_cross *x, void *user)
{
	(void) x;
	(void) user;
	choir_trace_scalar("merged", 1, 1);
	return CHOIR_OK;
}

static choir_status say_id(choir_replica *replica, void *user)
{
	char tag[32];
	(void) user;
	snprintf(tag, sizeof tag, "from replica %d", choir_replica_id(replica));
	choir_trace_scalar(tag, 1, 1);
	return choir_replica_merge_call(replica, say_who, NULL);
}

// How often text is in the only file of folder, which is removed.
static int count_in_file(const char *directory, const char *texts[3], int counts[3])
{
	char name[256], path[300], content[4096] = "";
	const int files = directory_entries(directory, name);
	snprintf(path, sizeof path, "%s/%s", directory, name);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	const size_t n = fread(content, 1, sizeof content, f);
	fclose(f);
	unlink(path);
	memset(counts, 0, 3 * sizeof counts[0]);
	for (int i = 0; i < 3; i++)
		for (size_t at = 0; at + strlen(texts[i]) <= n; at++)
			counts[i] += memcmp(content + at, texts[i], strlen(texts[i])) == 0;
	return files;
}

// In a replica only replica 0 is heard; a merge function, on whatever thread, speaks for all.
// spec: D28
TEST_WITHIN(only_replica_0, directory_enter, directory_leave)
{
	const char *texts[3] = { "from replica 0", "from replica", "merged" };
	int counts[3];
	choir_strategy *s = world_new(3, "cpu:0,cpu:1", 0);
	world_ok(choir_trace_start(NULL, CHOIR_OPTIONS(choir_trace_options, .log = "traced_scalars")));
	world_ok(choir_strategy_run(s, say_id, NULL, NULL, NULL));
	world_ok(choir_trace_stop());
	assert_int_equal(count_in_file("traced_scalars", texts, counts), 1);
	assert_int_equal(counts[0], 1);
	assert_int_equal(counts[1], 1);
	assert_int_equal(counts[2], 1);
	choir_strategy_free(s);
}

TEST_BEFORE(world_watch)
