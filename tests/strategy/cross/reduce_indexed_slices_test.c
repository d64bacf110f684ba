// Slices over replicas: reduced to destinations, in batches with other values, in replicas, in
// each of their forms, and where they cannot go.
#include "strategy/world.h"

#include "base/alloc.h"
#include "base/status.h"
#include "choir/op.h"
#include "tensor/buffer_pool.h"
#include "test.h"

#include <string.h>

enum { TABLE = 6, WIDTH = 2 };

// Replica k has k + 1 rows: row i is i modulo TABLE (a further one of row 0), of k + 1.
static choir_tensor *own_slices(choir_replica *r, choir_dtype dtype)
{
	const int64_t n = choir_replica_id(r) + 1;
	int32_t rows[64];
	for (int64_t i = 0; i < n; i++)
		rows[i] = (int32_t) (i + 1 == n ? 0 : i % TABLE);
	return choir_indexed_slices(choir_fill(r->frame, dtype, CHOIR_SHAPE(n, WIDTH), (double) n),
			choir_constant(r->frame, CHOIR_I32, CHOIR_SHAPE(n), rows), TABLE);
}

static choir_strategy *strategy;
static int replicas;

// The dense sum at row.
static double dense_at(int row)
{
	double sum = 0;
	for (int k = 0; k < replicas; k++)
		for (int i = 0; i <= k; i++)
			sum += (i == k ? 0 : i % TABLE) == row ? k + 1 : 0;
	return sum;
}

static choir_status check_whole(choir_tensor *t, double divisor)
{
	double have[TABLE * WIDTH];
	WORLD_NEED(t != NULL && choir_tensor_shape(t)->dim[0] == TABLE);
	CHOIR_TRY(choir_tensor_to_host(choir_cast(t, CHOIR_F64), have, sizeof have));
	for (int i = 0; i < TABLE * WIDTH; i++) {
		const double error = have[i] - dense_at(i / WIDTH) / divisor;
		WORLD_NEED(error < 1e-5 && error > -1e-5);
	}
	return CHOIR_OK;
}

// The rows stand in the order of replicas, none of them merged.
static choir_status check_concatenated(choir_tensor *t)
{
	int64_t rows[64 * 64], at = 0;
	const int64_t all = (int64_t) replicas * (replicas + 1) / 2;
	WORLD_NEED(choir_tensor_is_slices(t) && choir_slices_rows(t) == TABLE);
	WORLD_NEED(choir_tensor_shape(t)->dim[0] == all);
	CHOIR_TRY(choir_tensor_to_host(choir_slices_indices(t), rows, (size_t) all * sizeof *rows));
	for (int k = 0; k < replicas; k++)
		for (int i = 0; i <= k; i++, at++)
			WORLD_NEED(rows[at] == (i == k ? 0 : i % TABLE));
	return CHOIR_OK;
}

static choir_status check_form(choir_tensor *t, choir_slices_result how)
{
	if (how == CHOIR_SLICES_CONCATENATED)
		return check_concatenated(t);
	const int different = replicas - 1 < TABLE ? (replicas < 2 ? 1 : replicas - 1) : TABLE;
	if (how == CHOIR_SLICES_SMALLEST) // a row of slices takes 16 bytes, of the table 8
		WORLD_NEED(choir_tensor_is_slices(t) == (different * 16 < TABLE * 8));
	else
		WORLD_NEED(choir_tensor_is_slices(t) && choir_tensor_shape(t)->dim[0] == different);
	return CHOIR_OK;
}

static choir_status reduce_all_forms(choir_cross *x, void *user)
{
	(void) user;
	choir_value *v = choir_cross_arg(x, "slices"), *dense = choir_cross_arg(x, "dense");
	choir_value *place = choir_cross_destination(x, "cpu:0,far:3");
	for (int how = CHOIR_SLICES_CONCATENATED; how <= CHOIR_SLICES_SMALLEST; how++)
		for (int op = CHOIR_SUM; op <= CHOIR_MEAN; op++) {
			choir_reduction items[] = { { dense, dense, NULL }, { v, place, NULL },
				{ dense, place, NULL }, { v, v, NULL } };
			CHOIR_TRY(choir_cross_batch_reduce_to(x, (choir_reduce_op) op, 4, items,
					CHOIR_OPTIONS(choir_communication_options, .slices = (choir_slices_result) how,
							.num_packs = 2)));
			for (int i = 1; i < 4; i += 2)
				for (int k = 0; k < choir_value_local_count(items[i].result); k++) {
					choir_tensor *t = choir_value_local(items[i].result, k);
					CHOIR_TRY(check_form(t, (choir_slices_result) how));
					CHOIR_TRY(check_whole(choir_to_dense(t), op == CHOIR_MEAN ? replicas : 1));
				}
			CHOIR_TRY(check_whole(
					choir_value_tensor(items[0].result), op == CHOIR_MEAN ? replicas : 1));
		}
	CHOIR_TRY(check_concatenated(choir_cross_reduce(x, CHOIR_SUM, v, CHOIR_NO_AXIS)));
	return choir_cross_return(x, "sum", choir_cross_reduce_to(x, CHOIR_SUM, v, v));
}

static choir_status give_slices(choir_replica *r, void *user)
{
	choir_replica_set_arg(r, "slices", own_slices(r, CHOIR_F32));
	choir_replica_set_arg(r, "dense", choir_to_dense(own_slices(r, CHOIR_F32)));
	CHOIR_TRY(choir_replica_merge_call(r, reduce_all_forms, user));
	CHOIR_TRY(check_concatenated(choir_replica_result(r, "sum")));
	CHOIR_TRY(
			check_concatenated(choir_replica_all_reduce(r, CHOIR_SUM, own_slices(r, CHOIR_I32))));
	// Means of integers are floating, and not truncated.
	choir_tensor *mean = choir_replica_all_reduce(r, CHOIR_MEAN, own_slices(r, CHOIR_I32));
	WORLD_NEED(choir_tensor_dtype(mean) == CHOIR_F64);
	CHOIR_TRY(check_whole(choir_to_dense(mean), replicas));
	return choir_replica_return(r, "slices", own_slices(r, CHOIR_F32));
}

static void reduce_everywhere(void)
{
	choir_values *results = NULL;
	world_ok(choir_strategy_run(strategy, give_slices, NULL, NULL, &results));
	choir_value *v = choir_values_find(results, "slices");
	for (int i = 0; i < replicas; i++)
		assert_int_equal(choir_tensor_shape(choir_value_local(v, i))->dim[0], i + 1);
	world_ok(check_concatenated(choir_strategy_reduce(strategy, CHOIR_SUM, v, CHOIR_NO_AXIS)));
	if (replicas > 1) { // rows differ: a sum along them has no meaning
		assert_null(choir_strategy_reduce(strategy, CHOIR_SUM, v, CHOIR_AXIS(0)));
		world_failed(choir_error_status(), CHOIR_UNSUPPORTED, "slices of [6, 2]", NULL);
	}
	choir_values_free(results);
}

// spec: A32, A36, 2.9, M17, M22
TEST(slices_are_reduced)
{
	world_on_every_deal(&strategy, &replicas, 1, reduce_everywhere);
}

typedef struct {
	int how;
	bool in_replica;
} misuse;

static choir_status use_wrongly(choir_cross *x, void *user)
{
	const misuse *m = user;
	choir_value *v = choir_cross_arg(x, "v");
	if (m->how == 0)
		choir_cross_gather(x, v, 0);
	else
		choir_cross_reduce_to(x, CHOIR_SUM, v, v);
	return CHOIR_OK;
}

static choir_status give_wrongly(choir_replica *r, void *user)
{
	const misuse *m = user;
	const bool one = choir_replica_id(r) == 1;
	choir_tensor *t = own_slices(r, m->how == 2 && one ? CHOIR_F64 : CHOIR_F32);
	if (m->how == 1 && one)
		t = choir_to_dense(t);
	if (m->how == 3 && one)
		t = choir_indexed_slices(choir_slices_values(t), choir_slices_indices(t), TABLE + 1);
	if (m->how == 4 && !one)
		t = choir_to_dense(t);
	if (m->how == 0 && m->in_replica)
		choir_replica_all_gather(r, t, 0);
	choir_replica_set_arg(r, "v", t);
	return choir_replica_merge_call(r, use_wrongly, user);
}

// spec: D8, E38, E40, M19, 2.19
TEST(where_they_cannot_go)
{
	static const char *const texts[] = { "gather: *slices",
		"replica 0 has slices of f32 [6, 2], replica 1 a tensor", "replica 1 slices of f64 [6, 2]",
		"replica 1 slices of f32 [7, 2]", "replica 0 has a tensor, replica 1 slices" };
	static const char *const devices[] = { "cpu:0,cpu:1", "far:0,far:1" };
	for (int i = 0; i < 2; i++) {
		choir_strategy *s = world_new(2, devices[i], 0);
		for (int how = 0; how < 5; how++)
			for (int in_replica = 0; in_replica < (how == 0 ? 2 : 1); in_replica++) {
				misuse m = { how, in_replica == 1 };
				world_failed(choir_strategy_run(s, give_wrongly, &m, NULL, NULL),
						how == 0 ? CHOIR_UNSUPPORTED : CHOIR_INVALID, texts[how], NULL);
			}
		world_works(s);
		choir_strategy_free(s);
	}
}

static choir_values *results;

static choir_status return_slices(choir_replica *r, void *user)
{
	(void) user;
	return choir_replica_return(r, "v", own_slices(r, CHOIR_F32));
}

TEST(allocations_may_fail)
{
	static const char *const devices[] = { "cpu:0,cpu:1", "far:0,far:1" };
	for (int i = 0; i < 2; i++) {
		choir_strategy *s = world_new(3, devices[i], 0);
		world_ok(choir_strategy_run(s, return_slices, NULL, NULL, &results));
		choir_cross *x = choir_strategy_cross(s);
		choir_value *v = choir_values_find(results, "v");
		bool failed = true;
		for (uint64_t n = 1; failed; n++) {
			choir_reduction items[] = { { v, v, NULL } };
			chi_buffer_trim();
			chi_alloc_fail(n, false);
			const choir_status status = choir_cross_batch_reduce_to(x, CHOIR_MEAN, 1, items,
					CHOIR_OPTIONS(choir_communication_options, .slices = CHOIR_SLICES_SMALLEST));
			failed = chi_alloc_failed();
			chi_alloc_fail(0, false);
			assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
			choir_frame_clear(x->frame);
		}
		choir_values_free(results);
		results = NULL;
		choir_strategy_free(s);
	}
}

TEST_BEFORE(world_watch)
