// Sums, gathers and broadcasts inside replicas, and their gradients.
#include "choir/op.h"
#include "choir/tape.h"

#include "collective/oracle.h"
#include "strategy/world.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX = 8 };

typedef struct {
	choir_dtype dtype;
	int64_t elements;
	choir_reduce_op op;
	const void *all; // values of the replicas
	int rounds;
} sum;

static choir_status sum_own(choir_replica *r, void *user)
{
	const sum *s = user;
	const size_t bytes = (size_t) s->elements * oracle_size(s->dtype);
	choir_tensor *x = choir_constant(r->frame, s->dtype, CHOIR_SHAPE(s->elements),
			(const char *) s->all + (size_t) choir_replica_id(r) * bytes);
	choir_tensor *y = NULL;
	for (int i = 0; i < s->rounds; i++)
		y = choir_replica_all_reduce(r, s->op, x);
	return choir_replica_return(r, "y", y);
}

static void check_sum(choir_strategy *strategy, const sum *s, const void *expected)
{
	const size_t bytes = (size_t) s->elements * oracle_size(s->dtype);
	choir_values *results = NULL;
	char *got = malloc(bytes + 1);
	world_ok(choir_strategy_run(strategy, sum_own, (void *) (uintptr_t) s, NULL, &results));
	for (int i = 0; i < choir_strategy_replicas(strategy); i++) {
		world_ok(choir_tensor_to_host(
				choir_value_local(choir_values_find(results, "y"), i), got, bytes));
		assert_memory_equal(got, expected, bytes);
	}
	free(got);
	choir_values_free(results);
}

// The number of replicas alone decides the bits, for all dtypes, and sizes of every way that there
// is.
// spec: A22, C27, A32
TEST(sums_have_the_bits_of_the_tree)
{
	static const choir_dtype dtypes[] = { CHOIR_F32, CHOIR_F64, CHOIR_I32, CHOIR_I64, CHOIR_U8 };
	static const int64_t sizes[] = { 0, 1, 500, 5000, 40000 };
	for (int i = 0; i < world_deal_count; i++) {
		const int n = world_deals[i].replicas;
		choir_strategy *strategy = world_new(n, world_deals[i].devices, 0);
		for (size_t d = 0; d < 5; d++)
			for (size_t k = 0; k < 5; k++) {
				const size_t bytes = (size_t) sizes[k] * oracle_size(dtypes[d]);
				void *all = malloc(bytes * (size_t) n + 1), *expected = malloc(bytes + 1);
				oracle_fill(dtypes[d], all, n, sizes[k], d + 10 * k);
				for (int64_t e = 0; dtypes[d] == CHOIR_U8 && e < n * sizes[k]; e++)
					((uint8_t *) all)[e] = (uint8_t) (((uint8_t *) all)[e] / n); // the sum fits
				oracle_sum(dtypes[d], all, 0, n, sizes[k], expected);
				check_sum(strategy, &(sum){ dtypes[d], sizes[k], CHOIR_SUM, all, 3 }, expected);
				if (dtypes[d] <= CHOIR_F64) {
					oracle_divide(dtypes[d], expected, n, sizes[k]);
					check_sum(
							strategy, &(sum){ dtypes[d], sizes[k], CHOIR_MEAN, all, 1 }, expected);
				}
				free(all);
				free(expected);
			}
		choir_strategy_free(strategy);
	}
}

static choir_status mean_of_integers(choir_replica *r, void *user)
{
	(void) user;
	const int id = choir_replica_id(r);
	choir_tensor *i = choir_replica_all_reduce(
			r, CHOIR_MEAN, choir_fill(r->frame, CHOIR_I32, CHOIR_SHAPE(2), id));
	choir_tensor *u = choir_replica_all_reduce(
			r, CHOIR_MEAN, choir_fill(r->frame, CHOIR_U8, CHOIR_SHAPE(2), 250));
	const double mean = (choir_replica_count(r) - 1) / 2.0;
	WORLD_NEED(choir_tensor_dtype(i) == CHOIR_F64);
	WORLD_NEED(choir_tensor_dtype(u) == CHOIR_F32);
	WORLD_NEED(choir_tensor_number(choir_sum(i, CHOIR_ALL_AXES)) == 2 * mean);
	WORLD_NEED(choir_tensor_number(choir_sum(u, CHOIR_ALL_AXES)) == 500); // not wrapped
	return CHOIR_OK;
}

// spec: M15
TEST(integers_have_floating_means)
{
	for (int i = 0; i < world_deal_count; i++) {
		choir_strategy *s = world_new(world_deals[i].replicas, world_deals[i].devices, 0);
		world_ok(choir_strategy_run(s, mean_of_integers, NULL, NULL, NULL));
		choir_strategy_free(s);
	}
}

// How many replicas count: all, none, or all but one.
static choir_status count(choir_replica *r, void *user)
{
	const int how = *(int *) user, id = choir_replica_id(r);
	choir_tensor *x = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), 10 * id);
	if (how == 1 || (how == 2 && id != 0))
		x = choir_with_count(x, id);
	choir_tensor *y = choir_replica_all_reduce(r, CHOIR_MEAN, x);
	return choir_replica_return(r, "y", choir_sum(y, CHOIR_ALL_AXES));
}

// spec: 2.8
TEST(means_divide_by_counts)
{
	for (int i = 0; i < world_deal_count; i++) {
		const int n = world_deals[i].replicas;
		choir_strategy *s = world_new(n, world_deals[i].devices, 0);
		choir_values *results = NULL;
		int how = 0;
		world_ok(choir_strategy_run(s, count, &how, NULL, &results));
		assert_float_equal(
				(float) world_number_of(results, "y", n - 1), 10 * (float) (n - 1), 1e-4f);
		how = 1;
		world_ok(choir_strategy_run(s, count, &how, NULL, &results));
		const double y = world_number_of(results, "y", 0);
		if (n == 1)
			assert_true(isnan(y)); // no examples at all: 0 / 0
		else
			assert_float_equal((float) y, 20, 1e-4f); // 10 for each that was counted, twice
		how = 2;
		if (n > 1)
			world_failed(choir_strategy_run(s, count, &how, NULL, &results), CHOIR_STATE,
					"with a count", "replica 0 is in all_reduce, mean of f32 [2]");
		world_works(s);
		choir_values_free(results);
		choir_strategy_free(s);
	}
}

static choir_status reduce_batch(choir_replica *r, void *user)
{
	(void) user;
	const int n = choir_replica_count(r);
	choir_tensor *in[3] = { choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(3), 1),
		choir_fill(r->frame, CHOIR_I64, CHOIR_SHAPE(2, 2), 2), choir_number(r->frame, 4) },
				 *out[3];
	CHOIR_TRY(choir_replica_batch_all_reduce(r, CHOIR_SUM, 3, in, out));
	static const int expected[] = { 3, 8, 4 };
	for (int i = 0; i < 3; i++)
		WORLD_NEED(
				(int) choir_tensor_number(choir_sum(out[i], CHOIR_ALL_AXES)) == n * expected[i]);
	in[1] = NULL;
	WORLD_NEED(choir_replica_batch_all_reduce(r, CHOIR_SUM, 3, in, out) != CHOIR_OK);
	choir_frame_clear(r->frame);
	return CHOIR_OK;
}

// What a batch gives has the bits of separate calls, also its gradients; the list may be input and
// output. Here what each replica got, one behind another.
enum { BATCH = 6, KEPT = 1 << 17 };
typedef struct {
	choir_reduce_op op;
	bool together;
	unsigned char (*kept)[KEPT];
} batching;

static choir_status keep(choir_tensor *t, unsigned char **to)
{
	const choir_shape *shape = choir_tensor_shape(t);
	*(*to)++ = (unsigned char) (shape == NULL ? 99 : shape->rank);
	const size_t bytes = (size_t) choir_shape_elements(shape) * oracle_size(choir_tensor_dtype(t));
	CHOIR_TRY(choir_tensor_to_host(t, *to, bytes));
	*to += bytes;
	return CHOIR_OK;
}

static choir_status reduce_either_way(choir_replica *r, void *user)
{
	const batching *b = user;
	choir_frame *f = r->frame;
	const double id = choir_replica_id(r);
	choir_tape *tape = choir_tape_begin(f);
	choir_tensor *x = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(2, 3), 0.1 + id / 3);
	choir_tensor *t[BATCH] = { x, choir_fill(f, CHOIR_F64, CHOIR_SHAPE(3), id / 7),
		choir_fill(f, CHOIR_F32, CHOIR_SCALAR, 5 + id / 9),
		choir_fill(f, CHOIR_F32, CHOIR_SHAPE(0, 2), 1),
		choir_fill(f, CHOIR_F32, CHOIR_SHAPE(20000), id), choir_square(x) };
	if (b->together)
		CHOIR_TRY(choir_replica_batch_all_reduce(r, b->op, BATCH, t, t));
	else
		for (int i = 0; i < BATCH; i++)
			t[i] = choir_replica_all_reduce(r, b->op, t[i]);
	unsigned char *to = b->kept[choir_replica_id(r)];
	for (int i = 0; i < BATCH; i++)
		CHOIR_TRY(keep(t[i], &to));
	choir_tensor *loss = choir_add(
			choir_sum(t[0], CHOIR_ALL_AXES), choir_sum(choir_square(t[5]), CHOIR_ALL_AXES));
	CHOIR_TRY(choir_tape_gradient(tape, loss, 1, &x, &t[0]));
	return keep(t[0], &to);
}

// As many elements, in other shapes.
static choir_status reduce_other_shapes(choir_replica *r, void *user)
{
	(void) user;
	const int odd = choir_replica_id(r) == choir_replica_count(r) - 1;
	choir_tensor *in[2] = { choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(3 - odd), 1),
		choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2 + odd), 1) };
	return choir_replica_batch_all_reduce(r, CHOIR_SUM, 2, in, in);
}

// spec: A32, M17
TEST(batches_have_the_bits_of_separate_calls)
{
	static unsigned char kept[2][MAX][KEPT];
	for (int i = 0; i < world_deal_count; i++) {
		choir_strategy *s = world_new(world_deals[i].replicas, world_deals[i].devices, 0);
		for (choir_reduce_op op = CHOIR_SUM; op <= CHOIR_MEAN; op++) {
			batching b[2] = { { op, false, kept[0] }, { op, true, kept[1] } };
			for (int k = 0; k < 2; k++)
				world_ok(choir_strategy_run(s, reduce_either_way, &b[k], NULL, NULL));
			assert_memory_equal(kept[0], kept[1], sizeof kept[0]);
		}
		if (world_deals[i].replicas > 1)
			world_failed(choir_strategy_run(s, reduce_other_shapes, NULL, NULL, NULL), CHOIR_STATE,
					"all_reduce of [3], [2] of f32 [5]", "all_reduce of [2], [3] of f32 [5]");
		world_works(s);
		choir_strategy_free(s);
	}
}

// spec: A32, M16, M17
TEST(batches_of_any_mixture)
{
	for (int i = 0; i < world_deal_count; i++) {
		choir_strategy *s = world_new(world_deals[i].replicas, world_deals[i].devices, 0);
		world_ok(choir_strategy_run(s, reduce_batch, NULL, NULL, NULL));
		choir_strategy_free(s);
	}
}

// Replica i has i + 1 rows (or columns) of i.
static choir_tensor *own_part(choir_replica *r, int axis)
{
	const int64_t size = choir_replica_id(r) + 1;
	return choir_fill(r->frame, CHOIR_F32, axis == 0 ? CHOIR_SHAPE(size, 3) : CHOIR_SHAPE(2, size),
			choir_replica_id(r));
}

static choir_status gather(choir_replica *r, void *user)
{
	(void) user;
	const int n = choir_replica_count(r);
	const int64_t rows = n * (n + 1) / 2;
	choir_tensor *a = choir_replica_all_gather(r, own_part(r, 0), 0);
	choir_tensor *b = choir_replica_all_gather(r, own_part(r, 1), -1);
	WORLD_NEED(a != NULL && b != NULL);
	WORLD_NEED(choir_tensor_shape(a)->dim[0] == rows && choir_tensor_shape(a)->dim[1] == 3);
	WORLD_NEED(choir_tensor_shape(b)->dim[0] == 2 && choir_tensor_shape(b)->dim[1] == rows);
	choir_replica_return(r, "a", a);
	return choir_replica_return(r, "b", b);
}

// spec: D8, M19, 2.9
TEST(gathers_of_unequal_sizes)
{
	for (int i = 0; i < world_deal_count; i++) {
		const int n = world_deals[i].replicas;
		const int rows = n * (n + 1) / 2;
		choir_strategy *s = world_new(n, world_deals[i].devices, 0);
		choir_values *results = NULL;
		world_ok(choir_strategy_run(s, gather, NULL, NULL, &results));
		float a[MAX * MAX * 3], b[MAX * MAX * 2];
		for (int r = 0; r < n; r++) {
			world_ok(choir_tensor_to_host(choir_value_local(choir_values_find(results, "a"), r), a,
					(size_t) rows * 3 * 4));
			world_ok(choir_tensor_to_host(choir_value_local(choir_values_find(results, "b"), r), b,
					(size_t) rows * 2 * 4));
			for (int k = 0, row = 0; k < n; k++)
				for (int j = 0; j <= k; j++, row++) {
					assert_float_equal(a[3 * row + 1], (float) k, 0);
					assert_float_equal(b[row], (float) k, 0);
					assert_float_equal(b[rows + row], (float) k, 0);
				}
		}
		choir_values_free(results);
		choir_strategy_free(s);
	}
}

static choir_status gather_wrong(choir_replica *r, void *user)
{
	const int how = *(int *) user, id = choir_replica_id(r);
	choir_tensor *x = choir_fill(r->frame, how == 1 && id == 1 ? CHOIR_F64 : CHOIR_F32,
			CHOIR_SHAPE(2, how == 0 ? id + 1 : 2), 1);
	choir_replica_all_gather(r, x, how == 2 ? 2 : how == 3 ? -3 : 0);
	return CHOIR_OK;
}

// spec: D8, E40, 2.19
TEST(gathers_that_do_not_fit)
{
	choir_strategy *s = world_new(3, "cpu:0,cpu:1", 0);
	static const char *const texts[] = { "replica 0 has f32 [2, 1], replica 1 f32 [2, 2]",
		"replica 0 has f32 [2, 2], replica 1 f64 [2, 2]", "axis 2", "axis -3" };
	for (int how = 0; how < 4; how++)
		world_failed(choir_strategy_run(s, gather_wrong, &how, NULL, NULL), CHOIR_INVALID,
				texts[how], NULL);
	world_works(s);
	choir_strategy_free(s);
}

static choir_status broadcast(choir_replica *r, void *user)
{
	(void) user;
	for (int from = 0; from < choir_replica_count(r); from++) {
		choir_tensor *x = choir_fill(r->frame, CHOIR_I32, CHOIR_SHAPE(2), choir_replica_id(r));
		choir_tensor *y = choir_replica_broadcast(r, x, from);
		WORLD_NEED((int) choir_tensor_number(choir_sum(y, CHOIR_ALL_AXES)) == 2 * from);
	}
	WORLD_NEED((int) choir_tensor_number(
					   choir_replica_broadcast(r, choir_number(r->frame, 6), 0)) == 6);
	return CHOIR_OK;
}

// spec: C7, 2.2
TEST(broadcasts)
{
	for (int i = 0; i < world_deal_count; i++) {
		choir_strategy *s = world_new(world_deals[i].replicas, world_deals[i].devices, 0);
		world_ok(choir_strategy_run(s, broadcast, NULL, NULL, NULL));
		choir_strategy_free(s);
	}
}

// A loss of everything that is gathered: sum over i of c_i y_i^2, where y is the gathered or
// reduced x.
static choir_status differentiate(choir_replica *r, void *user)
{
	const int how = *(int *) user, id = choir_replica_id(r), n = choir_replica_count(r);
	choir_frame *f = r->frame;
	choir_tape *tape = choir_tape_begin(f);
	choir_tensor *source = choir_fill(f, CHOIR_F64, CHOIR_SHAPE(id + 1), id + 1), *gradient = NULL;
	choir_tensor *x = how == 2 ? source : choir_sum(source, CHOIR_ALL_AXES);
	choir_tensor *y = how == 2
			? choir_replica_all_gather(r, choir_scale(x, 1), -1)
			: choir_replica_all_reduce(r, how == 0 ? CHOIR_SUM : CHOIR_MEAN, choir_scale(x, 1));
	choir_tensor *loss = choir_scale(choir_sum(choir_square(y), CHOIR_ALL_AXES), id + 1);
	CHOIR_TRY(choir_tape_gradient(tape, loss, 1, &source, &gradient));
	// The sum over replicas of (id + 1) y^2, by x: 2 y times the sum of the weights.
	double weights = 0, total = 0;
	for (int i = 0; i < n; i++) {
		weights += i + 1;
		total += (i + 1) * (i + 1);
	}
	const double expected = how == 0 ? 2 * total * weights
			: how == 1				 ? 2 * total / n * weights / n
									 : 2 * (id + 1) * weights;
	choir_tensor *mean = choir_mean(gradient, CHOIR_ALL_AXES);
	WORLD_NEED(choir_tensor_shape(gradient)->dim[0] == id + 1);
	WORLD_NEED(fabs(choir_tensor_number(mean) - expected) < 1e-9 * expected);
	return CHOIR_OK;
}

// spec: A32, D8
TEST(gradients_are_collectives_too)
{
	for (int i = 0; i < world_deal_count; i++) {
		choir_strategy *s = world_new(world_deals[i].replicas, world_deals[i].devices, 0);
		for (int how = 0; how < 3; how++)
			world_ok(choir_strategy_run(s, differentiate, &how, NULL, NULL));
		choir_strategy_free(s);
	}
}

// Memory of sums is shared by replicas that share memory; it must not change under any of them.
static choir_status keep_many(choir_replica *r, void *user)
{
	(void) user;
	choir_tensor *kept[20];
	for (int i = 0; i < 20; i++)
		kept[i] = choir_replica_all_reduce(
				r, CHOIR_SUM, choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(3000), i));
	for (int i = 0; i < 20; i++)
		WORLD_NEED((int) choir_tensor_number(choir_mean(kept[i], CHOIR_ALL_AXES)) ==
				i * choir_replica_count(r));
	return CHOIR_OK;
}

TEST(sums_stay)
{
	for (int i = 0; i < world_deal_count; i++) {
		choir_strategy *s = world_new(world_deals[i].replicas, world_deals[i].devices, 0);
		for (int k = 0; k < 3; k++)
			world_ok(choir_strategy_run(s, keep_many, NULL, NULL, NULL));
		choir_strategy_free(s);
	}
}

static choir_status mean_of_losses(choir_replica *r, void *user)
{
	(void) user;
	choir_tensor *x = choir_replica_arg(r, "x");
	choir_replica_return(r, "mean", choir_replica_average_loss(r, x));
	return choir_replica_return(r, "regular",
			choir_replica_scale_regularization(
					r, choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), 3)));
}

// The sum over replicas is the mean over the examples of the global batch, however unequal the
// parts.
// spec: A29, D27, 2.13
TEST(means_over_the_global_batch)
{
	static const float data[7] = { 1, 2, 3, 4, 5, 6, 7 };
	for (int i = 0; i < world_deal_count; i++)
		for (int64_t rows = 0; rows <= 7; rows += 1) {
			choir_strategy *s = world_new(world_deals[i].replicas, world_deals[i].devices, 0);
			choir_values *args = choir_values_new(s), *results = NULL;
			world_ok(choir_values_split(args, "x",
					choir_borrow(choir_values_frame(args), CHOIR_F32, CHOIR_SHAPE(rows), data)));
			world_ok(choir_strategy_run(s, mean_of_losses, NULL, args, &results));
			choir_tensor *mean = choir_strategy_reduce(
					s, CHOIR_SUM, choir_values_find(results, "mean"), CHOIR_NO_AXIS);
			assert_float_equal((float) choir_tensor_number(mean),
					rows == 0 ? 0 : (float) (rows + 1) / 2, 1e-5f);
			mean = choir_strategy_reduce(
					s, CHOIR_SUM, choir_values_find(results, "regular"), CHOIR_NO_AXIS);
			assert_float_equal((float) choir_tensor_number(mean), 6, 1e-5f);
			choir_values_free(args);
			choir_values_free(results);
			choir_strategy_free(s);
		}
}

typedef struct {
	choir_dtype dtype;
	choir_reduce_op op;
	int64_t elements;
	bool merge;
} no_sum;

static choir_status merge_no_sum(choir_cross *x, void *user)
{
	const no_sum *n = user;
	choir_value *v = choir_cross_arg(x, "x");
	return choir_cross_return(x, "y", choir_cross_reduce_to(x, n->op, v, v));
}

static choir_status try_no_sum(choir_replica *r, void *user)
{
	const no_sum *n = user;
	choir_tensor *x = choir_fill(
			r->frame, n->dtype, CHOIR_SHAPE(n->elements), choir_replica_id(r) == 0 ? 1 : 0);
	if (!n->merge)
		return choir_replica_return(r, "y", choir_replica_all_reduce(r, n->op, x));
	CHOIR_TRY(choir_replica_set_arg(r, "x", x));
	return choir_replica_merge_call(r, merge_no_sum, user);
}

static choir_status return_bools(choir_replica *r, void *user)
{
	(void) user;
	return choir_replica_return(r, "y", choir_fill(r->frame, CHOIR_BOOL, CHOIR_SHAPE(2), 1));
}

// Whatever the way, of a few elements, of more, or of several replicas a device.
// spec: A22, C27
TEST(what_has_no_sum)
{
	for (int replicas = 1; replicas <= 4; replicas++) {
		choir_strategy *s = world_new(replicas, replicas == 3 ? "far:0,cpu:0" : "cpu:0,cpu:1", 0);
		for (int i = 0; i < 8; i++) {
			const no_sum n = { CHOIR_BOOL, i % 2 ? CHOIR_MEAN : CHOIR_SUM, i / 2 % 2 ? 40000 : 10,
				i / 4 % 2 };
			const choir_status status =
					choir_strategy_run(s, try_no_sum, (void *) (uintptr_t) &n, NULL, NULL);
			if (n.op == CHOIR_MEAN)
				world_ok(status);
			else
				world_failed(status, CHOIR_UNSUPPORTED, "SUM", "bool");
		}
		choir_values *results = NULL;
		world_ok(choir_strategy_run(s, return_bools, NULL, NULL, &results));
		assert_null(choir_strategy_reduce(
				s, CHOIR_SUM, choir_values_find(results, "y"), CHOIR_NO_AXIS));
		world_failed(choir_error_status(), CHOIR_UNSUPPORTED,
				"reduce: *SUM*bool*f32, f64, i32, i64, u8", NULL);
		choir_values_free(results);
		world_works(s);
		choir_strategy_free(s);
	}
}

static choir_status sum_numbers(choir_replica *r, void *user)
{
	(void) user;
	choir_tensor *n = choir_number(r->frame, 16777217 + choir_replica_id(r)); // beyond an f32
	choir_tensor *all = choir_replica_all_reduce(r, CHOIR_SUM, n);
	WORLD_NEED(choir_tensor_dtype(all) == CHOIR_F64);
	CHOIR_TRY(choir_replica_return(r, "sum", all));
	return choir_replica_return(r, "n", n);
}

// spec: A32
TEST(numbers_are_summed_as_they_are)
{
	static const char *const devices[] = { "cpu:0", "cpu:0,cpu:1", "far:0,far:1" };
	for (int i = 0; i < 3; i++) {
		choir_strategy *s = world_new(2, devices[i], 0);
		choir_values *results = NULL;
		world_ok(choir_strategy_run(s, sum_numbers, NULL, NULL, &results));
		assert_true(world_number_of(results, "sum", 1) == 33554435);
		assert_true(choir_tensor_number(choir_strategy_reduce(s, CHOIR_SUM,
							choir_values_find(results, "n"), CHOIR_NO_AXIS)) == 33554435);
		choir_values_free(results);
		choir_strategy_free(s);
	}
}

// Sums in a loop that rewinds its frame, where each device comes last once.
static choir_status sum_in_turns(choir_replica *r, void *user)
{
	(void) user;
	const struct timespec late = { .tv_nsec = 3000000 };
	const size_t mark = choir_frame_mark(r->frame);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 2; i++) {
			if (round == i && choir_replica_device_index(r) == 1)
				nanosleep(&late, NULL);
			if (round != i && choir_replica_id(r) == 0)
				nanosleep(&late, NULL);
			CHOIR_TRY(choir_frame_status(r->frame));
			if (choir_replica_all_reduce(r, CHOIR_SUM, choir_number(r->frame, 1)) == NULL)
				return choir_frame_status(r->frame);
		}
		choir_frame_rewind(r->frame, mark);
	}
	return CHOIR_OK;
}

// Who comes last makes the sum, in memory that does not count as a call of its own.
TEST(any_replica_may_come_last)
{
	choir_strategy *s = world_new(3, "cpu:0,cpu:1", 0);
	for (int i = 0; i < 5; i++)
		world_ok(choir_strategy_run(s, sum_in_turns, NULL, NULL, NULL));
	choir_strategy_free(s);
}

TEST_BEFORE(world_watch)
