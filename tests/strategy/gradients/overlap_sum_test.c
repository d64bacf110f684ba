// Sums that are made while gradients are still being given: the bits of the tree whenever they are
// made, in any order of variables, also after failures; gradients that somebody still holds stay
// as they are, and those that nobody holds are given back before the update.
#include "strategy/gradients/overlap_sum.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "choir/op.h"
#include "collective/oracle.h"
#include "op/op.h"
#include "strategy/gradients/pending_update.h"
#include "strategy/world.h"
#include "short.h"
#include "test.h"

#include <stdatomic.h>
#include <string.h>

enum { N = 3, SMALL = 7, LARGE = 50001, LARGER = 65536, MAX = 6, STEPS = 4 };
static const int64_t sizes[N] = { LARGE, SMALL, LARGER };

// An update that adds the sums to the variables.
typedef struct {
	chi_gradients *apply;
	bool gated;
	choir_variable *v[N];
	int order[N];
	int fails; // this replica, after its last gradient; CHOIR_NONE: none
	atomic_int came[N]; // replicas that have given the k-th gradient
	atomic_int seen; // sums that were there before the update was asked for
	bool hold; // keep the gradients, and look at them afterwards
	size_t kept; // the most bytes that were in use after all had given
	choir_status helped, finished; // what a device and the update found
} adder;

static float values[N][MAX * LARGER], sums[N][LARGER];

static choir_status begin(void *user, void *state, size_t n, choir_variable *const v[])
{
	(void) user, (void) state, (void) v;
	return n == N ? CHOIR_OK : choir_fail(CHOIR_INTERNAL, "%zu variables", n);
}

static bool is_gated(const void *user)
{
	return ((const adder *) user)->gated;
}

static choir_status gate(
		const void *user, double squares, const choir_variable *bad, double *factor, bool *skip)
{
	(void) user;
	*factor = 1;
	*skip = !(squares > 0) || bad != NULL;
	return CHOIR_OK;
}

static choir_status slice(void *user, const void *state, size_t index, choir_variable *v, int copy,
		const chi_gradient_chunk *c, chi_stream *stream)
{
	(void) user, (void) state, (void) index;
	float *to = (float *) v->copy[copy].buffer->memory + c->first;
	const choir_buffer in[2] = { { to, CHOIR_F32, { 1, { c->count } } },
		{ (void *) (uintptr_t) c->data, CHOIR_F32, { 1, { c->count } } } };
	choir_buffer out = in[0];
	return chi_kernel_run(stream, "add", 2, in, &out, NULL);
}

static void end(void *user, const void *state, bool applied)
{
	(void) state;
	(void) user, (void) applied;
}

static const chi_gradients_table table = {
	.name = "adder", .begin = begin, .gated = is_gated, .gate = gate, .chunk = slice, .end = end
};

static choir_strategy *strategy;
static int replicas;

static void open_adder(adder *a)
{
	static const char *const names[N] = { "large", "small", "larger" };
	*a = (adder){
		.apply = chi_gradients_new(strategy, &table, a), .order = { 0, 1, 2 }, .fails = CHOIR_NONE
	};
	assert_non_null(a->apply);
	for (int i = 0; i < N; i++) {
		CHOIR_SCOPE (strategy)
			a->v[i] = choir_variable_new(names[i], CHOIR_SHAPE(sizes[i]), NULL);
		oracle_fill(CHOIR_F32, values[i], replicas, sizes[i], (uint64_t) i + 3);
		oracle_sum(CHOIR_F32, values[i], 0, replicas, sizes[i], sums[i]);
	}
}

static choir_status give(adder *a, choir_replica *r)
{
	choir_tensor *held[N] = { NULL };
	for (int k = 0; k < N; k++) {
		const int i = a->order[k];
		const float *own = values[i] + choir_replica_id(r) * sizes[i];
		choir_tensor *g = choir_constant(r->frame, CHOIR_F32, CHOIR_SHAPE(sizes[i]), own);
		CHOIR_TRY(chi_gradients_add(a->apply, r, a->v[i], g));
		if (a->hold)
			held[i] = g;
		else
			chi_tensor_drop(g);
	}
	if (choir_replica_id(r) == a->fails)
		return choir_fail(CHOIR_IO, "no update today");
	CHOIR_TRY(chi_gradients_apply(a->apply, r));
	for (int i = 0; i < N && a->hold && r->frame->device->host_memory; i++) {
		const float *own = values[i] + choir_replica_id(r) * sizes[i];
		WORLD_NEED(memcmp(choir_tensor_data(held[i]), own, (size_t) sizes[i] * sizeof *own) == 0);
	}
	return CHOIR_OK;
}

static choir_status step(choir_replica *r, void *user)
{
	return give(user, r);
}

static void check(const adder *a, int times)
{
	static float expected[LARGER], got[LARGER];
	for (int i = 0; i < N; i++) {
		const size_t bytes = (size_t) sizes[i] * sizeof *got;
		memset(expected, 0, bytes);
		for (int k = 0; k < times; k++)
			oracle_add(CHOIR_F32, expected, expected, sums[i], sizes[i]);
		for (int copy = 0; copy < choir_variable_copies(a->v[i]); copy++) {
			world_ok(chi_variable_to_host(a->v[i], copy, got));
			assert_memory_equal(got, expected, bytes);
		}
	}
}

static void on_every_deal(void (*test)(adder *a))
{
	for (int d = 0; d < world_deal_count; d++)
		for (int gated = 0; gated < 2; gated++) {
			const bool threads = strchr(world_deals[d].devices, ',') != NULL;
			replicas = world_deals[d].replicas;
			if (replicas > MAX || (SERIAL_STRIDE > 1 && (!threads || d % 2 != gated)))
				continue;
			strategy = world_new(replicas, world_deals[d].devices, 20);
			adder a;
			open_adder(&a);
			a.gated = gated == 1;
			test(&a);
			world_works(strategy);
			chi_gradients_free(a.apply);
			choir_strategy_free(strategy);
		}
}

static void check_bits(adder *a)
{
	for (int hold = 0; hold < 2; hold++)
		for (int k = 1; k <= STEPS; k++) {
			a->hold = hold == 1;
			world_ok(choir_strategy_run(strategy, step, a, NULL, NULL));
			check(a, hold * STEPS + k);
		}
	const chi_overlap *e = &a->apply->updates->overlap;
	assert_int_equal(e->n, chi_overlap_possible(strategy) ? N : 0);
	for (size_t i = 0; i < e->n; i++)
		assert_int_equal(e->sum[i].eligible, i != 1); // the small one is not
}

TEST(the_bits_of_the_tree)
{
	on_every_deal(check_bits);
}

static void turn_order(adder *a)
{
	for (int k = 1; k <= 2 * N; k++) {
		for (int i = 0; i < N; i++)
			a->order[i] = (i + (k + 1) / 2) % N; // each order twice
		world_ok(choir_strategy_run(strategy, step, a, NULL, NULL));
		check(a, k);
	}
}

TEST(other_orders)
{
	on_every_deal(turn_order);
}

static void fail_late(adder *a)
{
	for (int k = 1; k <= 3; k++) {
		a->fails = CHOIR_NONE;
		world_ok(choir_strategy_run(strategy, step, a, NULL, NULL));
		check(a, k);
		a->fails = replicas - 1;
		world_failed(choir_strategy_run(strategy, step, a, NULL, NULL), CHOIR_IO,
				"no update today", NULL);
		check(a, k);
	}
}

TEST(replicas_that_fail_when_sums_are_there)
{
	on_every_deal(fail_late);
}

static choir_status wait_for(const atomic_int *count, int needed)
{
	const double deadline = chi_clock_deadline(20);
	while (atomic_load(count) < needed)
		if (chi_clock_now() > deadline)
			return choir_fail(CHOIR_TIMEOUT, "nobody came");
	return CHOIR_OK;
}

// All give at about the same time; then the sums of all but the last are there, though nobody has
// asked for the update, and memory is held for them alone.
static choir_status give_together(choir_replica *r, void *user)
{
	adder *a = user;
	const int64_t n = sizes[2];
	for (int k = 0; k < N; k++) {
		choir_tensor *g = choir_constant(
				r->frame, CHOIR_F32, CHOIR_SHAPE(n), values[2] + choir_replica_id(r) * n);
		CHOIR_TRY(chi_gradients_add(a->apply, r, a->v[k], g));
		chi_tensor_drop(g);
		a->came[k]++;
		CHOIR_TRY(wait_for(&a->came[k], choir_replica_count(r)));
	}
	const chi_overlap *e = &a->apply->updates->overlap;
	for (size_t i = 0; i + 1 < e->n && choir_replica_id(r) == 0; i++) {
		CHOIR_TRY(wait_for((const atomic_int *) &e->sum[i].done.word.value, 1));
		a->seen++;
	}
	if (choir_replica_id(r) == 0)
		a->kept = chi_buffer_in_use(strategy->device[0]) + chi_buffer_in_use(strategy->device[1]);
	return chi_gradients_apply(a->apply, r);
}

TEST(while_others_are_on_their_way)
{
	replicas = 2;
	strategy = world_new(replicas, "cpu:0,cpu:1", 20);
	adder a;
	open_adder(&a);
	static const char *const names[N] = { "one", "two", "three" };
	for (int i = 0; i < N; i++)
		CHOIR_SCOPE (strategy)
			a.v[i] = choir_variable_new(names[i], CHOIR_SHAPE(sizes[2]), NULL);
	size_t kept[2];
	for (int k = 0; k < 2; k++) {
		for (int i = 0; i < N; i++)
			a.came[i] = 0;
		world_ok(choir_strategy_run(strategy, give_together, &a, NULL, NULL));
		assert_int_equal(a.seen, k == 0 ? 0 : N - 1);
		kept[k] = a.kept;
	}
	// Of the sums that were made one gradient is held, not two. The other replica may have come as
	// far as to make the last as well.
	assert_in_range(kept[0] - kept[1], (N - 2) * (size_t) sizes[2] * sizeof(float),
			N * (size_t) sizes[2] * sizeof(float) * 9 / 8);
	chi_gradients_free(a.apply);
	choir_strategy_free(strategy);
}

// An update of one variable more than the one before: a device makes its list of items longer
// while others sum, and let go of, what it has given before.
enum { ITEMS = 8, ROW = 1 << 14 };

typedef struct {
	chi_gradients *apply;
	choir_variable *v[ITEMS + 1];
	int n; // of this update
} grower;

static choir_status begin_any(void *user, void *state, size_t n, choir_variable *const v[])
{
	(void) state, (void) v;
	const grower *g = user;
	return n == (size_t) g->n ? CHOIR_OK : choir_fail(CHOIR_INTERNAL, "%zu variables", n);
}

static bool is_never_gated(const void *user)
{
	(void) user;
	return false;
}

static const chi_gradients_table growing = { .name = "grower",
	.begin = begin_any,
	.gated = is_never_gated,
	.gate = gate,
	.chunk = slice,
	.end = end };

static choir_status give_n(choir_replica *r, void *user)
{
	const grower *g = user;
	for (int i = 0; i < g->n; i++) {
		choir_tensor *t = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(ROW), 1);
		CHOIR_TRY(chi_gradients_add(g->apply, r, g->v[i], t));
		chi_tensor_drop(t);
	}
	return chi_gradients_apply(g->apply, r);
}

TEST(one_variable_more)
{
	replicas = 2;
	for (int round = 0; round < 8; round++) {
		static float got[ROW];
		grower g = { .n = ITEMS };
		strategy = world_new(replicas, "cpu:0,cpu:1", 20);
		g.apply = chi_gradients_new(strategy, &growing, &g);
		for (int i = 0; i <= ITEMS; i++)
			CHOIR_SCOPE (strategy)
				g.v[i] = choir_variable_new(
						(char[]){ 'a', (char) ('0' + i), '\0' }, CHOIR_SHAPE(ROW), NULL);
		for (int k = 0; k < 3; k++) {
			g.n = k < 2 ? ITEMS : ITEMS + 1;
			world_ok(choir_strategy_run(strategy, give_n, &g, NULL, NULL));
		}
		for (int i = 0; i <= ITEMS; i++) {
			world_ok(chi_variable_to_host(g.v[i], 0, got));
			assert_true(got[0] == (i < ITEMS ? 6 : 2) && got[0] == got[ROW - 1]);
		}
		chi_gradients_free(g.apply);
		choir_strategy_free(strategy);
	}
}

// The second replica's last gradient opens a sum of which the first one's part is missing, and a
// device with nothing else to do is the first to sum it. Whoever updates for all devices at that
// moment must not take what is there for a sum.
static choir_status give_what_cannot_be_summed(choir_replica *r, void *user)
{
	adder *a = user;
	const int id = choir_replica_id(r);
	chi_pending_update *u = a->apply->updates;
	if (id == 1)
		CHOIR_TRY(wait_for(&a->came[0], 1));
	choir_tensor *g = choir_constant(r->frame, CHOIR_F32, CHOIR_SHAPE(LARGE), values[id]);
	WORLD_NEED(u->overlap.n == N && u->overlap.sum[0].eligible);
	u->overlap.device[id].cursor = N; // it sums nothing when it gives
	CHOIR_TRY(chi_gradients_add(a->apply, r, a->v[0], g));
	u->overlap.device[id].cursor = 0;
	if (id == 0) {
		u->overlap.sum[0].gradient[0]->collective.n = 0;
		a->came[0]++;
		CHOIR_TRY(wait_for(&a->came[1], 1));
	} else {
		a->seen = chi_atomic32_load(&u->overlap.sum[0].open) != 0;
		a->helped = chi_overlap_help(u, 1);
		a->finished = chi_overlap_finish(u, 0, 2);
		a->came[1]++;
	}
	return choir_fail(CHOIR_IO, "no update today");
}

TEST(a_sum_that_failed_is_not_taken)
{
	replicas = 2;
	strategy = world_new(replicas, "cpu:0,cpu:1", 20);
	adder a;
	open_adder(&a);
	world_ok(choir_strategy_run(strategy, step, &a, NULL, NULL));
	world_failed(choir_strategy_run(strategy, give_what_cannot_be_summed, &a, NULL, NULL),
			CHOIR_IO, "no update today", NULL);
	assert_int_equal(a.seen, 1);
	assert_int_equal(a.helped, CHOIR_INTERNAL);
	assert_int_equal(a.finished, CHOIR_CANCELLED);
	for (int k = 2; k <= 3; k++) {
		world_ok(choir_strategy_run(strategy, step, &a, NULL, NULL));
		check(&a, k);
	}
	chi_gradients_free(a.apply);
	choir_strategy_free(strategy);
}

static choir_status three_steps(adder *a)
{
	for (int k = 0; k < 3; k++)
		CHOIR_TRY(choir_strategy_run(strategy, step, a, NULL, NULL));
	return CHOIR_OK;
}

TEST(every_allocation_fails)
{
	replicas = 3;
	for (uint64_t n = 1;; n += STRIDE) {
		strategy = world_new(replicas, "cpu:0,cpu:1", 20);
		adder a;
		open_adder(&a);
		chi_buffer_trim();
		chi_alloc_fail(n, false);
		const choir_status status = three_steps(&a);
		const bool failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
		if (!failed)
			check(&a, 3);
		chi_gradients_free(a.apply);
		choir_strategy_free(strategy);
		if (!failed)
			break;
	}
}

TEST(a_steady_update_allocates_nothing)
{
	replicas = 4;
	strategy = world_new(replicas, "cpu:0,cpu:1", 20);
	adder a;
	open_adder(&a);
	world_steady(strategy, step, &a);
	chi_gradients_free(a.apply);
	choir_strategy_free(strategy);
}

TEST_BEFORE(world_watch)
