// Reductions that wait: whatever is done with one gives what it would give at once, and an
// elementwise update makes it slice by slice and leaves it waiting.
#include "strategy/world.h"

#include "base/alloc.h"
#include "choir/op.h"
#include "value/variable.h"
#include "short.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 700, COLUMNS = 37, SIZE = ROWS * COLUMNS };

static choir_strategy *strategy;
static int replicas;
static choir_variable *target, *other;

static void make_variables(void)
{
	choir_variable_options o = { .size = sizeof o, .initializer = CHOIR_INITIALIZER_ONES };
	target = world_variable(strategy, "target", CHOIR_SHAPE(ROWS, COLUMNS), &o);
	other = world_variable(strategy, "other", CHOIR_SHAPE(ROWS, COLUMNS), &o);
}

// What a replica brings: thirds, whose sums depend on their order.
static float element(int replica, int i)
{
	return (float) ((i * 7 + replica * 3) % 101 + 1) / 3;
}

static choir_tensor *brought(choir_frame *f, int replica)
{
	float *x = malloc(SIZE * sizeof *x);
	for (int i = 0; i < SIZE; i++)
		x[i] = element(replica, i);
	choir_tensor *t = choir_constant(f, CHOIR_F32, CHOIR_SHAPE(ROWS, COLUMNS), x);
	free(x);
	return t;
}

// The sum of the canonical tree over replicas [lo, hi), by its definition.
static float sum_of(int lo, int hi, int i)
{
	int half = 1;
	if (hi - lo == 1)
		return element(lo, i);
	while (2 * half < hi - lo)
		half *= 2;
	const float left = sum_of(lo, lo + half, i), right = sum_of(lo + half, hi, i);
	return left + right;
}

static float expected(choir_reduce_op op, int i)
{
	const float sum = sum_of(0, replicas, i);
	return op == CHOIR_SUM ? sum : sum / (float) replicas;
}

// Whether t, on the host or not, is the reduction times rate, plus offset.
static bool is_reduction(choir_tensor *t, choir_reduce_op op, float offset, float rate)
{
	if (t == NULL || choir_shape_elements(choir_tensor_shape(t)) != SIZE)
		return false;
	float *have = calloc(SIZE, sizeof *have);
	bool is = choir_tensor_to_host(t, have, SIZE * sizeof *have) == CHOIR_OK;
	for (int i = 0; is && i < SIZE; i++) {
		const float step = expected(op, i) * rate;
		is = have[i] == offset + step;
	}
	free(have);
	return is;
}

// Whether copies of v are.
static bool holds(choir_variable *v, choir_reduce_op op, float offset, float rate)
{
	bool all = true;
	choir_frame *f = choir_frame_new(NULL);
	for (int i = 0; i < choir_variable_copies(v); i++)
		all = all && is_reduction(chi_variable_view(v, i, f), op, offset, rate);
	choir_frame_free(f);
	return all;
}

// How it is asked for: by itself, in a batch, in a batch that is packed.
typedef enum { SINGLE, BATCH, PACKED } manner;

typedef struct {
	choir_reduce_op op;
	int use;
	bool waited; // it does so on these devices
	manner asked;
} job;

static choir_status add_it(choir_update *u, void *user)
{
	const job *j = user;
	choir_tensor *g = choir_update_arg(u, "g");
	CHOIR_TRY(choir_variable_assign_add(choir_update_variable(u), g));
	if (j->use == 1) // a second look at the same slice
		CHOIR_TRY(choir_variable_assign_add(choir_update_variable(u), choir_update_arg(u, "g")));
	return CHOIR_OK;
}

static choir_status add_elementwise(choir_cross *x, choir_value *g, job *j)
{
	CHOIR_TRY(choir_cross_set_arg(x, "g", g));
	return choir_cross_update(
			x, target, CHOIR_OPTIONS(choir_update_options, .elementwise = CHOIR_ON), add_it, j);
}

static choir_status look_at_it(choir_replica *r, void *user)
{
	const job *j = user;
	WORLD_NEED(is_reduction(choir_replica_arg(r, "g"), j->op, 0, 1));
	return CHOIR_OK;
}

static choir_status use_it(choir_cross *x, choir_value *v, choir_value *g, job *j)
{
	choir_values *set;
	switch (j->use) {
	case 0: // fused: once, and once more
	case 1:
		CHOIR_TRY(add_elementwise(x, g, j));
		WORLD_NEED((g->materialize != NULL) == j->waited);
		return CHOIR_OK;
	case 2: // not elementwise
		CHOIR_TRY(choir_cross_set_arg(x, "g", g));
		CHOIR_TRY(choir_cross_update(x, target, NULL, add_it, j));
		break;
	case 3:
		WORLD_NEED(is_reduction(choir_value_tensor(g), j->op, 0, 1));
		break;
	case 4:
		for (int i = 0; i < choir_value_local_count(g); i++)
			WORLD_NEED(is_reduction(choir_value_local(g, i), j->op, 0, 1));
		break;
	case 5:
		CHOIR_TRY(choir_cross_set_arg(x, "g", g));
		CHOIR_TRY(choir_cross_run(x, look_at_it, j));
		break;
	case 6:
		WORLD_NEED(is_reduction(choir_cross_gather(x, g, 0), j->op, 0, 1));
		break;
	case 7:
		WORLD_NEED(is_reduction(choir_cross_reduce(x, CHOIR_MEAN, g, CHOIR_NO_AXIS), j->op, 0, 1));
		break;
	case 8:
		g = choir_cross_broadcast_to(x, g, v);
		WORLD_NEED(is_reduction(choir_value_local(g, 0), j->op, 0, 1));
		break;
	case 9:
		set = choir_values_new(strategy);
		CHOIR_TRY(choir_values_set(set, "g", g));
		WORLD_NEED(is_reduction(choir_value_tensor(choir_values_find(set, "g")), j->op, 0, 1));
		choir_values_free(set);
		break;
	case 10:
		g = choir_cross_reduce_to(x, CHOIR_MEAN, g, choir_variable_as_value(target));
		WORLD_NEED(is_reduction(choir_value_tensor(g), j->op, 0, 1));
		break;
	default: // returned below
		break;
	}
	CHOIR_TRY(choir_cross_return(x, "g", g));
	WORLD_NEED(g->materialize == NULL);
	return CHOIR_OK;
}

// The second of three, of which the first is small and the last for another variable.
static choir_value *reduce_in_batch(choir_cross *x, const job *j, choir_value *v)
{
	choir_value *small = choir_cross_arg(x, "small");
	choir_reduction item[3] = { { small, choir_variable_as_value(target), NULL },
		{ v, choir_variable_as_value(target), NULL },
		{ v, choir_variable_as_value(other), NULL } };
	const choir_communication_options *o =
			CHOIR_OPTIONS(choir_communication_options, .num_packs = j->asked == PACKED ? 2 : 0);
	if (choir_cross_batch_reduce_to(x, j->op, 3, item, o) != CHOIR_OK)
		return NULL;
	float threes = 0;
	bool good = item[0].result->materialize == NULL &&
			(item[2].result->materialize != NULL) == (item[1].result->materialize != NULL) &&
			choir_tensor_to_host(choir_value_local(item[0].result, 0), &threes, sizeof threes) ==
					CHOIR_OK &&
			threes == (float) (j->op == CHOIR_SUM ? 3 * replicas : 3);
	if (j->use % 2 == 1) // the others are never looked at
		good = good && is_reduction(choir_value_local(item[2].result, 0), j->op, 0, 1);
	return good ? item[1].result : NULL;
}

static choir_status reduce_and_use(choir_cross *x, void *user)
{
	job *j = user;
	choir_value *v = choir_cross_arg(x, "g");
	choir_value *g = j->asked == SINGLE
			? choir_cross_reduce_to(x, j->op, v, choir_variable_as_value(target))
			: reduce_in_batch(x, j, v);
	WORLD_NEED(g != NULL && (g->materialize != NULL) == j->waited);
	CHOIR_TRY(use_it(x, v, g, j));
	return choir_cross_return(x, "used", choir_tensor_as_value(choir_number(x->frame, 1)));
}

static choir_status train(choir_replica *r, void *user)
{
	const job *j = user;
	choir_replica_set_arg(r, "g", brought(r->frame, choir_replica_id(r)));
	choir_replica_set_arg(r, "small", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(1), 3));
	CHOIR_TRY(choir_replica_merge_call(r, reduce_and_use, user));
	if (j->use >= 2)
		WORLD_NEED(is_reduction(choir_replica_result(r, "g"), j->op, 0, 1));
	return CHOIR_OK;
}

static bool on_cpus(void)
{
	for (int i = 0; i < choir_strategy_worker_devices(strategy); i++)
		if (strncmp(choir_device_name(choir_strategy_worker_device(strategy, i)), "cpu", 3) != 0)
			return false;
	return true;
}

static void use_in_every_way(void)
{
	make_variables();
	choir_frame *f = choir_frame_new(NULL);
	for (int k = 0; k < 28; k++) { // each use by a single call and in a batch, two in a packed one
		const int use = k < 24 ? k / 2 : k < 26 ? 0 : 3;
		const manner asked = k < 24 ? (manner) ((k + use) % 2) : PACKED;
		job j = { k % 2 == 0 ? CHOIR_SUM : CHOIR_MEAN, use, asked != PACKED && on_cpus(), asked };
		world_ok(choir_variable_assign(target, choir_number(f, j.use == 1 ? 0 : 0.25)));
		world_ok(choir_strategy_run(strategy, train, &j, NULL, NULL));
		if (j.use == 1)
			assert_true(holds(target, j.op, 0, 2));
		else if (j.use == 0 || j.use == 2)
			assert_true(holds(target, j.op, 0.25F, 1));
	}
	choir_frame_free(f);
}

// spec: A23, A26, A36, A39, A41, M18
TEST(every_use_gives_what_it_would_at_once)
{
	world_on_every_deal(&strategy, &replicas, 1, use_in_every_way);
}

// ---- What it adds up may go or change meanwhile.

static choir_status bring(choir_replica *r, void *user)
{
	(void) user;
	return choir_replica_return(r, "g", brought(r->frame, choir_replica_id(r)));
}

static choir_status bring_zeros(choir_replica *r, void *user)
{
	(void) user;
	return choir_replica_return(
			r, "g", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(ROWS, COLUMNS), 0));
}

static void reduce_what_is_cleared(void)
{
	make_variables();
	choir_values *results = NULL;
	job j = { CHOIR_SUM, 0, on_cpus(), SINGLE };
	choir_cross *x = choir_strategy_cross(strategy);
	world_ok(choir_strategy_run(strategy, bring, NULL, NULL, &results));
	choir_value *g = choir_cross_reduce_to(
			x, CHOIR_SUM, choir_values_find(results, "g"), choir_variable_as_value(target));
	for (int i = 0; i < 3; i++) // its memory is taken again, if it may be
		world_ok(choir_strategy_run(strategy, bring_zeros, NULL, NULL, &results));
	choir_values_free(results);
	world_ok(add_elementwise(x, g, &j));
	assert_true(holds(target, CHOIR_SUM, 1, 1));
	assert_true(is_reduction(choir_value_tensor(g), CHOIR_SUM, 0, 1));
	choir_frame_clear(x->frame);
}

static void reduce_what_is_borrowed(void)
{
	make_variables();
	job j = { CHOIR_SUM, 0, false, SINGLE };
	float *memory = malloc((size_t) replicas * SIZE * sizeof *memory);
	choir_values *set = choir_values_new(strategy);
	choir_cross *x = choir_strategy_cross(strategy);
	for (int i = 0; i < replicas * SIZE; i++)
		memory[i] = element(i / SIZE, i % SIZE);
	// Rows of borrowed memory are views of it.
	world_ok(choir_values_split(set, "g",
			choir_borrow(choir_values_frame(set), CHOIR_F32, CHOIR_SHAPE(replicas * ROWS, COLUMNS),
					memory)));
	choir_value *g = choir_cross_reduce_to(
			x, CHOIR_SUM, choir_values_find(set, "g"), choir_variable_as_value(target));
	memset(memory, 0, (size_t) replicas * SIZE * sizeof *memory);
	choir_values_free(set);
	free(memory);
	world_ok(add_elementwise(x, g, &j));
	assert_true(holds(target, CHOIR_SUM, 1, 1));
	choir_frame_clear(x->frame);
}

// spec: A23
TEST(what_it_adds_up_stays)
{
	world_on_every_deal(&strategy, &replicas, 1, reduce_what_is_cleared);
	world_on_every_deal(&strategy, &replicas, 1, reduce_what_is_borrowed);
}

static choir_status reduce_then_assign(choir_cross *x, void *user)
{
	job *j = user;
	choir_value *g = choir_cross_reduce_to(
			x, CHOIR_SUM, choir_cross_arg(x, "g"), choir_variable_as_value(target));
	CHOIR_TRY(choir_variable_assign(other, choir_number(x->frame, 1000)));
	return add_elementwise(x, g, j);
}

static choir_status read_and_merge(choir_replica *r, void *user)
{
	choir_replica_set_arg(r, "g", choir_variable_read(other, r->frame));
	return choir_replica_merge_call(r, reduce_then_assign, user);
}

static void reduce_what_is_written(void)
{
	static float have[SIZE];
	make_variables();
	job j = { CHOIR_SUM, 0, false, SINGLE };
	world_ok(choir_strategy_run(strategy, read_and_merge, &j, NULL, NULL));
	world_ok(chi_variable_to_host(target, 0, have));
	for (int i = 0; i < SIZE; i++)
		assert_true(have[i] == (float) (1 + replicas));
}

// spec: A23, 2.8
TEST(a_variable_that_changes_was_added_up_before)
{
	world_on_every_deal(&strategy, &replicas, 1, reduce_what_is_written);
}

// ---- Shards and failures.

// spec: A23, A41
TEST(shards_take_their_rows)
{
	for (int shards = 2; shards < 5; shards++) {
		replicas = 3;
		strategy = choir_parameter_server_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
				.replicas = 3, .devices = "cpu:0,cpu:1", .parameter_devices = "cpu:0,cpu:1",
				.partition = CHOIR_PARTITION_FIXED, .max_shards = shards));
		make_variables();
		assert_int_equal(choir_variable_shards(target), shards);
		choir_frame *f = choir_frame_new(NULL);
		for (int use = 0; use < 3; use += 2) {
			job j = { CHOIR_MEAN, use, true, use == 0 ? BATCH : SINGLE };
			world_ok(choir_variable_assign(target, choir_number(f, 1)));
			if (shards < 4 || use == 2) {
				world_ok(choir_strategy_run(strategy, train, &j, NULL, NULL));
			} else { // shards of less than a slice: the whole is made
				choir_values *results = NULL;
				choir_cross *x = choir_strategy_cross(strategy);
				world_ok(choir_strategy_run(strategy, bring, NULL, NULL, &results));
				choir_value *g = choir_cross_reduce_to(x, CHOIR_MEAN,
						choir_values_find(results, "g"), choir_variable_as_value(target));
				world_ok(add_elementwise(x, g, &j));
				choir_values_free(results);
			}
			assert_true(is_reduction(choir_variable_read(target, f), CHOIR_MEAN, 1, 1));
			choir_frame_clear(f);
		}
		choir_frame_free(f);
		choir_strategy_free(strategy);
	}
}

static choir_status bring_other_shapes(choir_replica *r, void *user)
{
	(void) user;
	choir_replica_return(
			r, "g", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(SIZE - choir_replica_id(r)), 1));
	return choir_replica_return(
			r, "half", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(SIZE / 2), 1));
}

// spec: 2.19
TEST(what_is_wrong_is_said_at_once)
{
	strategy = world_new(replicas = 2, "cpu:0,cpu:1", 0);
	make_variables();
	choir_values *results = NULL;
	job j = { .use = 0 };
	world_ok(choir_strategy_run(strategy, bring_other_shapes, NULL, NULL, &results));
	choir_cross *x = choir_strategy_cross(strategy);
	choir_value *to = choir_variable_as_value(target);
	assert_null(choir_cross_reduce_to(x, CHOIR_SUM, choir_values_find(results, "g"), to));
	world_failed(choir_error_status(), CHOIR_INVALID, "replica 0 has f32 [25900]",
			"replica 1 f32 [25899]");
	choir_frame_clear(x->frame);
	choir_value *half =
			choir_cross_reduce_to(x, CHOIR_SUM, choir_values_find(results, "half"), to);
	assert_non_null(half); // which is no slice of the target
	world_failed(add_elementwise(x, half, &j), CHOIR_INVALID, "\"g\" is [12950]",
			"the variable's shape");
	choir_frame_clear(x->frame);
	choir_frame *f = choir_frame_new(NULL);
	assert_non_null(choir_variable_read(target, f)); // nothing was written
	choir_frame_free(f);
	choir_values_free(results);
	choir_strategy_free(strategy);
}

TEST(allocations_may_fail)
{
	bool failed = true;
	for (int use = 0; use < 5; use += 2, failed = true)
		for (uint64_t n = 1; failed; n += SERIAL_STRIDE) {
			strategy = world_new(replicas = 2, "cpu:0", 0);
			make_variables();
			choir_values *results = NULL;
			world_ok(choir_strategy_run(strategy, bring, NULL, NULL, &results));
			choir_cross *x = choir_strategy_cross(strategy);
			job j = { CHOIR_SUM, use, true, SINGLE };
			chi_alloc_fail(n, false);
			choir_value *g = choir_cross_reduce_to(x, CHOIR_SUM, choir_values_find(results, "g"),
					choir_variable_as_value(target));
			const choir_status status = g == NULL ? choir_error_status() : use_it(x, NULL, g, &j);
			failed = chi_alloc_failed();
			chi_alloc_fail(0, false);
			if (use != 4) // which asserts by a failure of its own
				assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
			else
				assert_int_equal(status == CHOIR_OK, !failed);
			choir_values_free(results);
			choir_strategy_free(strategy);
		}
}

TEST_BEFORE(world_watch)
