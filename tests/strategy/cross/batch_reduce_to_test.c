// Batches of reductions: equal to separate ones whatever packs they travel in, and the options of
// communication, of the strategy and of a call.
#include "strategy/world.h"

#include "base/alloc.h"
#include "base/status.h"
#include "choir/extend/cross_device_ops_table.h"
#include "choir/op.h"
#include "collective/cross_device_ops.h"
#include "collective/oracle.h"
#include "short.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

enum { VALUES = 7, LONGEST = 70000, MAX_JOINED = 64 };

// What a batch is made of: dtypes and sizes in a mixture, one of them empty.
static const choir_dtype dtypes[VALUES] = { CHOIR_F32, CHOIR_I64, CHOIR_F32, CHOIR_F64, CHOIR_F32,
	CHOIR_I32, CHOIR_F32 };
static const int64_t sizes[VALUES] = { 3, 5, LONGEST, 9, 1, 8193, 0 };
static const char *const names[VALUES] = { "a", "b", "c", "d", "e", "f", "g" };

typedef struct {
	choir_reduce_op op;
	const choir_communication_options *options;
} job;

static choir_tensor *own_value(choir_replica *r, int i)
{
	double *all = calloc(LONGEST, sizeof *all);
	const int id = choir_replica_id(r);
	if (sizes[i] < LONGEST)
		oracle_fill(dtypes[i], all, 1, sizes[i], 100 * (uint64_t) id + (uint64_t) i);
	else // quicker, and rounded as well
		for (int k = 0; k < LONGEST; k++)
			((float *) all)[k] = 1.0f / (float) (1 + (k * 7 + id * 13) % 97);
	choir_tensor *t = choir_constant(r->frame, dtypes[i], CHOIR_SHAPE(sizes[i]), all);
	free(all);
	// Of these means have other divisors.
	return i == 2 || i == 4 ? choir_with_count(t, id + i) : t;
}

static choir_status same(choir_value *a, choir_value *b, int i)
{
	static char x[LONGEST * 8], y[LONGEST * 8];
	WORLD_NEED(a != NULL && b != NULL && choir_value_local_count(a) == choir_value_local_count(b));
	for (int k = 0; k < choir_value_local_count(a); k++) {
		choir_tensor *s = choir_value_local(a, k), *t = choir_value_local(b, k);
		const size_t bytes = (size_t) sizes[i] *
				(choir_tensor_dtype(s) == CHOIR_F32 || choir_tensor_dtype(s) == CHOIR_I32 ? 4 : 8);
		WORLD_NEED(choir_tensor_dtype(s) == choir_tensor_dtype(t));
		CHOIR_TRY(choir_tensor_to_host(s, x, bytes));
		CHOIR_TRY(choir_tensor_to_host(t, y, bytes));
		WORLD_NEED(memcmp(x, y, bytes) == 0);
	}
	return CHOIR_OK;
}

static choir_status batch_and_singles(choir_cross *x, void *user)
{
	const job *j = user;
	choir_reduction items[VALUES + 2] = { { 0 } };
	choir_value *place = choir_cross_destination(x, "cpu:0");
	for (int i = 0; i < VALUES; i++) {
		items[i].v = choir_cross_arg(x, names[i]);
		items[i].to = i == 4 ? place : items[i].v;
	}
	items[VALUES] = (choir_reduction){ choir_cross_arg(x, "number"), place, NULL };
	items[VALUES + 1] = (choir_reduction){ items[0].v, items[2].v, NULL };
	CHOIR_TRY(choir_cross_batch_reduce_to(x, j->op, VALUES + 2, items, j->options));
	for (int i = 0; i < VALUES; i++)
		CHOIR_TRY(same(
				items[i].result, choir_cross_reduce_to(x, j->op, items[i].v, items[i].to), i));
	WORLD_NEED((int) choir_tensor_number(choir_value_tensor(items[VALUES].result)) == 0);
	return same(items[VALUES + 1].result, items[0].result, 0);
}

static choir_status give_all(choir_replica *r, void *user)
{
	for (int i = 0; i < VALUES; i++)
		choir_replica_set_arg(r, names[i], own_value(r, i));
	choir_replica_set_arg(r, "number", choir_number(r->frame, 0));
	return choir_replica_merge_call(r, batch_and_singles, user);
}

#define COMMUNICATION(...) CHOIR_OPTIONS(choir_communication_options, __VA_ARGS__)

static choir_strategy *strategy;
static int replicas;

static void pack_in_every_way(void)
{
	const choir_communication_options *const ways[] = { NULL, COMMUNICATION(.num_packs = 1),
		COMMUNICATION(.num_packs = 3), COMMUNICATION(.num_packs = 200),
		COMMUNICATION(.bytes_per_pack = 1), COMMUNICATION(.bytes_per_pack = 40000),
		COMMUNICATION(.bytes_per_pack = 1 << 30, .timeout = 5),
		COMMUNICATION(.implementation = "ring"),
		COMMUNICATION(.implementation = "hierarchical_copy", .num_packs = 2),
		COMMUNICATION(.implementation = "reduce_to_one_device", .bytes_per_pack = 16),
		COMMUNICATION(.implementation = "auto", .timeout = CHOIR_FOREVER) };
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
		for (int op = CHOIR_SUM + (SERIAL_STRIDE > 1 && i % 2); op <= CHOIR_MEAN;
				op += SERIAL_STRIDE) {
			job j = { (choir_reduce_op) op, ways[i] };
			world_ok(choir_strategy_run(strategy, give_all, &j, NULL, NULL));
		}
}

// spec: A36, C20, D2, 2.8, 2.9, M17, M18
TEST(batches_are_separate_calls)
{
	world_on_every_deal(&strategy, &replicas, 1, pack_in_every_way);
}

// A way that remembers what was joined with, and is otherwise "direct".
static int64_t joined[MAX_JOINED];
static size_t n_joined;

static choir_status spy_join(void *self, int member, const choir_collective *c, uint64_t *request)
{
	if (member == 0 && n_joined < MAX_JOINED)
		joined[n_joined++] = c->elements;
	return chi_direct_table.join(self, member, c, request);
}

static double waited; // what the last wait of the first member was given
static bool too_late;

static choir_status spy_wait(void *self, int member, uint64_t request, double seconds)
{
	if (member == 0)
		waited = seconds;
	if (too_late)
		return choir_fail(CHOIR_TIMEOUT, "too late");
	return chi_direct_table.wait(self, member, request, seconds);
}

static choir_cross_device_ops_table spy_table(const char *name)
{
	choir_cross_device_ops_table t = chi_direct_table;
	t.name = name;
	t.join = spy_join;
	t.wait = spy_wait;
	t.score = chi_reduce_to_one_device_table.score; // only by name
	return t;
}

static choir_status reduce_ten(choir_cross *x, void *user)
{
	const choir_communication_options *o = user;
	choir_reduction items[] = { { choir_cross_arg(x, "one"), NULL, NULL },
		{ choir_cross_arg(x, "four"), NULL, NULL }, { choir_cross_arg(x, "five"), NULL, NULL } };
	for (int i = 0; i < 3; i++)
		items[i].to = items[i].v;
	return choir_cross_batch_reduce_to(x, CHOIR_SUM, 3, items, o);
}

static choir_status give_ten(choir_replica *r, void *user)
{
	choir_replica_set_arg(r, "one", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(1), 1));
	choir_replica_set_arg(r, "four", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2, 2), 1));
	choir_replica_set_arg(r, "five", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(5), 1));
	return choir_replica_merge_call(r, reduce_ten, user);
}

static void travels_as(choir_strategy *s, const choir_communication_options *o, size_t n,
		const int64_t elements[])
{
	n_joined = 0;
	world_ok(choir_strategy_run(s, give_ten, (void *) (uintptr_t) o, NULL, NULL));
	assert_int_equal(n_joined, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(joined[i], elements[i]);
}

// 10 elements in 3 packs are 3, 3 and 4; what the call says wins over the strategy, in both.
// spec: D2, 2.9
TEST(packs_are_what_travels)
{
	const choir_cross_device_ops_table spy = spy_table("spy");
	world_ok(choir_register_cross_device_ops(&spy));
	choir_strategy *plain = choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
			.devices = "cpu:0,cpu:1", .replicas = 3, .cross_device_ops = "spy"));
	choir_strategy *packs = choir_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .devices = "cpu:0,cpu:1", .replicas = 3,
					.communication = COMMUNICATION(.implementation = "spy", .num_packs = 3)));
	assert_non_null(plain);
	assert_non_null(packs);
	const int64_t each[] = { 1, 4, 5 }, thirds[] = { 3, 3, 4 }, all[] = { 10 };
	travels_as(plain, NULL, 3, each);
	travels_as(plain, COMMUNICATION(.num_packs = 3), 3, thirds);
	travels_as(plain, COMMUNICATION(.bytes_per_pack = 20), 1, all); // 20 is not larger
	travels_as(plain, COMMUNICATION(.bytes_per_pack = 3), 3, each);
	travels_as(plain, COMMUNICATION(.bytes_per_pack = 4), 2, (const int64_t[]){ 5, 5 });
	travels_as(packs, NULL, 3, thirds);
	travels_as(packs, COMMUNICATION(.num_packs = 1), 1, all);
	travels_as(packs, COMMUNICATION(.bytes_per_pack = 3), 3, each);
	travels_as(packs, COMMUNICATION(.implementation = "direct"), 0, NULL);
	choir_strategy *copy = choir_strategy_copy_new(packs);
	assert_non_null(copy);
	travels_as(copy, NULL, 3, thirds);
	choir_strategy_free(copy);
	choir_strategy_free(plain);
	choir_strategy_free(packs);
}

static double waits_for(choir_strategy *s, const choir_communication_options *o)
{
	world_ok(choir_strategy_run(s, give_ten, (void *) (uintptr_t) o, NULL, NULL));
	return waited;
}

// The call's time-out, else the communication's, else the strategy's; and who is too late spoils
// nothing for the next.
// spec: D2, E43, M21
TEST(time_outs)
{
	choir_strategy *s = choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
			.devices = "cpu:0,cpu:1", .timeout = 7, .cross_device_ops = "spy"));
	choir_strategy *t = choir_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .devices = "cpu:0,cpu:1", .timeout = 7,
					.communication = COMMUNICATION(.implementation = "spy", .timeout = 3)));
	assert_non_null(s);
	assert_non_null(t);
	assert_true(waits_for(s, NULL) == 7);
	assert_true(waits_for(s, COMMUNICATION(.timeout = 5)) == 5);
	assert_true(waits_for(t, NULL) == 3);
	assert_true(waits_for(t, COMMUNICATION(.timeout = CHOIR_FOREVER)) == CHOIR_FOREVER);
	too_late = true;
	world_failed(choir_strategy_run(s, give_ten, (void *) (uintptr_t) COMMUNICATION(.timeout = 5),
						 NULL, NULL),
			CHOIR_TIMEOUT, "too late", NULL);
	too_late = false;
	assert_true(waits_for(s, NULL) == 7);
	world_works(s);
	choir_strategy_free(s);
	choir_strategy_free(t);
}

// The options that cannot be, with what is said of them.
typedef struct {
	choir_communication_options options;
	choir_status status;
	const char *text;
} refusal;

#define REFUSED(status, text, ...) \
	{ \
		{ .size = sizeof(choir_communication_options), __VA_ARGS__ }, status, text \
	}
static const refusal refusals[] = {
	REFUSED(CHOIR_INVALID, "bytes_per_pack*-1", .bytes_per_pack = -1),
	REFUSED(CHOIR_INVALID, "num_packs*-2", .num_packs = -2),
	REFUSED(CHOIR_INVALID, "bytes_per_pack*8*num_packs*2", .bytes_per_pack = 8, .num_packs = 2),
	REFUSED(CHOIR_INVALID, "timeout*-3", .timeout = -3),
	REFUSED(CHOIR_NOT_FOUND, "\"nccl\":*direct", .implementation = "nccl"),
	{ { .size = 5 }, CHOIR_INVALID, "the options' size is 5" },
};

// spec: D2, E27, 2.19
TEST(options_that_cannot_be)
{
	choir_strategy *s = world_new(2, "cpu:0,cpu:1", 0);
	for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
		const refusal *f = &refusals[i];
		world_failed(choir_strategy_run(s, give_ten, (void *) (uintptr_t) &f->options, NULL, NULL),
				f->status, f->text, NULL);
		assert_null(choir_mirrored_strategy_new(
				CHOIR_OPTIONS(choir_strategy_options, .communication = &f->options)));
		world_failed(choir_error_status(), f->status, f->text, NULL);
	}
	world_works(s);
	choir_strategy_free(s);
}

// spec: B10, E26, 2.19
TEST(two_words_for_one_thing)
{
	assert_null(choir_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .cross_device_ops = "direct",
					.communication = COMMUNICATION(.implementation = "ring"))));
	world_failed(choir_error_status(), CHOIR_INVALID, "\"direct\"", "\"ring\"");
}

static choir_status batch_with_a_bad_one(choir_cross *x, void *user)
{
	choir_value *one = choir_cross_arg(x, "one"), *bad = choir_cross_arg(x, "uneven");
	choir_value *place = choir_cross_destination(x, "cpu:0");
	choir_reduction items[] = { { one, one, place }, { bad, bad, place } };
	const choir_status status =
			choir_cross_batch_reduce_to(x, CHOIR_SUM, 2, items, COMMUNICATION(.num_packs = 1));
	*(bool *) user = items[0].result == NULL && items[1].result == NULL;
	return status;
}

static choir_status give_bad_one(choir_replica *r, void *user)
{
	choir_replica_set_arg(r, "one", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(1), 1));
	choir_replica_set_arg(
			r, "uneven", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(choir_replica_id(r) + 1), 1));
	return choir_replica_merge_call(r, batch_with_a_bad_one, user);
}

// spec: E40, 2.8
TEST(one_that_cannot_be_spoils_all)
{
	choir_strategy *s = world_new(2, "cpu:0,cpu:1", 0);
	bool untouched = false;
	world_failed(choir_strategy_run(s, give_bad_one, &untouched, NULL, NULL), CHOIR_INVALID,
			"replica 0 has f32 [1], replica 1 f32 [2]", NULL);
	assert_true(untouched);
	world_works(s);
	choir_strategy_free(s);
}

static choir_values *rows;

static choir_status return_two(choir_replica *r, void *user)
{
	(void) user;
	choir_replica_return(r, "x", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(3), 1));
	return choir_replica_return(r, "y", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(4), 2));
}

TEST(allocations_may_fail)
{
	static const char *const devices[] = { "cpu:0,cpu:1", "far:0,far:1" };
	for (int i = 0; i < 2; i++) {
		choir_strategy *s = world_new(5, devices[i], 0);
		world_ok(choir_strategy_run(s, return_two, NULL, NULL, &rows));
		choir_cross *x = choir_strategy_cross(s);
		choir_value *a = choir_values_find(rows, "x"), *b = choir_values_find(rows, "y");
		bool failed = true;
		for (uint64_t n = 1; failed; n++) {
			choir_reduction items[] = { { a, a, NULL }, { b, a, NULL } };
			chi_alloc_fail(n, false);
			const choir_status status = choir_cross_batch_reduce_to(x, CHOIR_SUM, 2, items,
					COMMUNICATION(.num_packs = 2, .implementation = "ring"));
			failed = chi_alloc_failed();
			chi_alloc_fail(0, false);
			assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
			choir_frame_clear(x->frame);
		}
		world_works(s);
		choir_values_free(rows);
		rows = NULL;
		choir_strategy_free(s);
	}
}

static choir_status add_equal_rows(choir_strategy *group, int worker, void *user)
{
	(void) worker;
	(void) user;
	const int64_t at[2] = { 3, 3 };
	choir_cross *x = choir_strategy_cross(group);
	choir_values *set = choir_values_new(group);
	WORLD_NEED(set != NULL);
	choir_frame *f = choir_values_frame(set);
	choir_tensor *repeated = choir_indexed_slices(choir_fill(f, CHOIR_F32, CHOIR_SHAPE(2, 2), 1),
			choir_constant(f, CHOIR_I64, CHOIR_SHAPE(2), at), 8);
	WORLD_NEED(choir_values_set_local(set, "repeated", 0, repeated) == CHOIR_OK);
	choir_value *given = choir_values_find(set, "repeated");
	choir_tensor *sum = choir_value_local(choir_cross_reduce_to(x, CHOIR_SUM, given, given), 0);
	WORLD_NEED(sum != NULL && choir_tensor_shape(choir_slices_values(sum))->dim[0] == 1);
	choir_values_free(set);
	return CHOIR_OK;
}

// What the strategy was told of communication holds for all workers of a parameter server.
TEST(workers_communicate_alike)
{
	choir_strategy *s = choir_parameter_server_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
			.devices = "cpu:0", .workers = 2, .replicas = 2,
			.communication =
					CHOIR_OPTIONS(choir_communication_options, .slices = CHOIR_SLICES_MERGED)));
	assert_non_null(s);
	assert_int_equal(choir_strategy_run_workers(s, add_equal_rows, NULL), CHOIR_OK);
	choir_strategy_free(s);
}

TEST_BEFORE(world_watch)
