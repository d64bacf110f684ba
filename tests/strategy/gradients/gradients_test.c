// Updates that replicas ask for: folded as they are given, done at the end of the run or when
// somebody reads, with the bits of the canonical tree, and nothing half done that looks whole.
#include "strategy/gradients/gradients.h"

#include "choir/op.h"
#include "base/alloc.h"
#include "collective/oracle.h"
#include "op/op.h"
#include "short.h"
#include "strategy/world.h"
#include "test.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LARGE = 20000, MAX = 8 };

// An update that adds the gradients' sum, and misbehaves when told to.
typedef struct {
	chi_gradients *apply;
	bool gated, skip;
	int fails; // 1: begin, 2: gate, 3: the last slice of the second item
	atomic_int begins, ends, skipped;
	choir_variable *small, *large;
	const float *values; // of replicas, LARGE each
} adder;

static choir_status begin(void *user, void *state, size_t n, choir_variable *const v[])
{
	(void) state;
	adder *a = user;
	a->begins++;
	if (n != 2 || v[0] != a->small || v[1] != a->large)
		return choir_fail(CHOIR_INTERNAL, "%zu variables", n);
	return a->fails == 1 ? choir_fail(CHOIR_IO, "begin fails") : CHOIR_OK;
}

static bool is_gated(const void *user)
{
	return ((const adder *) user)->gated;
}

static choir_status gate(
		const void *user, double squares, const choir_variable *bad, double *factor, bool *skip)
{
	const adder *a = user;
	if (a->fails == 2)
		return choir_fail(CHOIR_IO, "gate fails");
	*factor = squares > 0 && bad == NULL ? 1 : 2;
	*skip = a->skip;
	return CHOIR_OK;
}

static choir_status slice(void *user, const void *state, size_t index, choir_variable *v, int copy,
		const chi_gradient_chunk *c, chi_stream *stream)
{
	(void) state;
	const adder *a = user;
	if (a->fails == 3 && index == 1 && c->first + c->count == LARGE)
		return choir_fail(CHOIR_IO, "slice fails");
	WORLD_NEED(c->factor == 1);
	float *to = (float *) v->copy[copy].buffer->memory + c->first;
	const choir_buffer in[2] = { { to, CHOIR_F32, { 1, { c->count } } },
		{ (void *) (uintptr_t) c->data, CHOIR_F32, { 1, { c->count } } } };
	choir_buffer out = in[0];
	return chi_kernel_run(stream, "add", 2, in, &out, NULL);
}

static void end(void *user, const void *state, bool applied)
{
	(void) state;
	adder *a = user;
	a->ends++;
	a->skipped += !applied;
}

static const chi_gradients_table table = {
	.name = "adder", .begin = begin, .gated = is_gated, .gate = gate, .chunk = slice, .end = end
};

static choir_strategy *strategy;
static int replicas;
static float values[MAX * LARGE], sum[LARGE];

static void open_adder(adder *a)
{
	*a = (adder){ .apply = chi_gradients_new(strategy, &table, a), .values = values };
	assert_non_null(a->apply);
	CHOIR_SCOPE (strategy) {
		a->small = choir_variable_new("small", CHOIR_SHAPE(1), NULL);
		a->large = choir_variable_new("large", CHOIR_SHAPE(LARGE), NULL);
	}
	oracle_fill(CHOIR_F32, values, replicas, LARGE, 9);
	oracle_sum(CHOIR_F32, values, 0, replicas, LARGE, sum);
}

static void on_every_deal(void (*test)(adder *a))
{
	for (int i = 0; i < world_deal_count; i++)
		for (int gated = 0; gated < 2; gated++) {
			replicas = world_deals[i].replicas;
			if (SERIAL_STRIDE > 1 && i % 2 != gated)
				continue;
			strategy = world_new(replicas, world_deals[i].devices, 20);
			adder a;
			open_adder(&a);
			a.gated = gated == 1;
			test(&a);
			world_works(strategy);
			chi_gradients_free(a.apply);
			choir_strategy_free(strategy);
		}
}

static choir_status give(adder *a, choir_replica *r)
{
	const float *own = a->values + (size_t) choir_replica_id(r) * LARGE;
	CHOIR_TRY(chi_gradients_add(
			a->apply, r, a->small, choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(1), 1)));
	CHOIR_TRY(chi_gradients_add(
			a->apply, r, a->large, choir_constant(r->frame, CHOIR_F32, CHOIR_SHAPE(LARGE), own)));
	return chi_gradients_apply(a->apply, r);
}

static choir_status give_once(choir_replica *r, void *user)
{
	return give(user, r);
}

// All copies of both variables: so many replicas' ones times times; the sum times times.
static void check(const adder *a, int times)
{
	static float expected[LARGE], got[LARGE];
	memset(expected, 0, sizeof expected);
	for (int k = 0; k < times; k++)
		oracle_add(CHOIR_F32, expected, expected, sum, LARGE);
	for (int i = 0; i < choir_variable_copies(a->large); i++) {
		world_ok(chi_variable_to_host(a->large, i, got));
		assert_memory_equal(got, expected, sizeof got);
		world_ok(chi_variable_to_host(a->small, i, got));
		assert_int_equal((int) got[0], times * replicas);
	}
	assert_int_equal(a->begins, times);
	assert_int_equal(a->ends, times);
}

static void apply_at_the_end(adder *a)
{
	for (int k = 1; k <= 3; k++) {
		world_ok(choir_strategy_run(strategy, give_once, a, NULL, NULL));
		check(a, k);
	}
	assert_int_equal(strategy->step, 3);
}

// spec: A29, C26
TEST(at_the_end_of_a_run)
{
	on_every_deal(apply_at_the_end);
}

static choir_status count_merge(choir_cross *x, void *user)
{
	adder *a = user;
	WORLD_NEED(choir_tensor_number(choir_variable_read(a->small, x->frame)) ==
			a->begins * choir_strategy_replicas(strategy));
	return CHOIR_OK;
}

// Gives, then what needs the update: a read, a sum, a merge call; several times in one call, while
// replicas are at different places.
static choir_status give_and_go_on(choir_replica *r, void *user)
{
	adder *a = user;
	choir_tensor *before = choir_variable_read(a->small, r->frame);
	WORLD_NEED(before != NULL);
	for (int k = 1; k <= 6; k++) {
		CHOIR_TRY(give(a, r));
		if (k % 3 == 0) {
			CHOIR_TRY(choir_replica_merge_call(r, count_merge, a));
		} else if (k % 2 == 0 || choir_replica_id(r) % 2 == 0) {
			// Some read and some do not: the sums of both ways must not meet.
			choir_tensor *w = choir_variable_read(a->small, r->frame);
			WORLD_NEED((int) choir_tensor_number(w) == k * choir_replica_count(r));
		}
		choir_tensor *x = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(k % 2 ? 5000 : 10), k);
		choir_tensor *y = choir_replica_all_reduce(r, CHOIR_SUM, x);
		WORLD_NEED((int) choir_tensor_number(choir_mean(y, CHOIR_ALL_AXES)) ==
				k * choir_replica_count(r));
	}
	WORLD_NEED(choir_add(before, before) == NULL); // what was read before has changed
	WORLD_NEED(text_holds(choir_error(), "small:*update"));
	choir_frame_clear(r->frame);
	return CHOIR_OK;
}

static void apply_in_between(adder *a)
{
	for (int k = 0; k < 2; k++) {
		float got[1];
		choir_frame *f = choir_frame_new(NULL);
		a->begins = a->ends = 0;
		world_ok(choir_variable_assign(a->small, choir_number(f, 0)));
		world_ok(choir_strategy_run(strategy, give_and_go_on, a, NULL, NULL));
		world_ok(chi_variable_to_host(a->small, 0, got));
		assert_int_equal((int) got[0], 6 * replicas);
		assert_int_equal(a->begins, 6);
		assert_int_equal(a->ends, 6);
		choir_frame_free(f);
	}
}

TEST(when_somebody_needs_it)
{
	on_every_deal(apply_in_between);
}

static choir_status return_in_turn(choir_replica *r, void *user)
{
	CHOIR_TRY(give(user, r));
	usleep(180000 * (useconds_t) choir_replica_id(r));
	return CHOIR_OK;
}

// Nobody is late for an update while other replicas return.
TEST(patience)
{
	adder a;
	replicas = 4;
	strategy = world_new(replicas, "cpu:0,cpu:1,cpu:2,cpu:3", 0.45);
	open_adder(&a);
	world_ok(choir_strategy_run(strategy, return_in_turn, &a, NULL, NULL));
	check(&a, 1);
	chi_gradients_free(a.apply);
	choir_strategy_free(strategy);
}

static void fail_updates(adder *a)
{
	static const char *const texts[] = { "", "begin fails", "gate fails", "slice fails" };
	choir_frame *f = choir_frame_new(NULL);
	for (a->fails = 1; a->fails <= 3; a->fails++) {
		if (a->fails == 2 && !a->gated)
			continue;
		world_failed(choir_strategy_run(strategy, give_once, a, NULL, NULL), CHOIR_IO,
				texts[a->fails], NULL);
		assert_int_equal(choir_variable_read(a->large, f) == NULL, a->fails == 3); // half written
		choir_frame_clear(f);
		const int was = a->fails;
		a->fails = 0;
		world_ok(choir_variable_assign(a->small, choir_number(f, 0)));
		world_ok(choir_variable_assign(a->large, choir_number(f, 0)));
		a->begins = a->ends = 0;
		world_ok(choir_strategy_run(strategy, give_once, a, NULL, NULL));
		check(a, 1);
		world_ok(choir_variable_assign(a->small, choir_number(f, 0)));
		world_ok(choir_variable_assign(a->large, choir_number(f, 0)));
		choir_frame_clear(f);
		a->fails = was;
	}
	choir_frame_free(f);
}

TEST(updates_that_fail)
{
	on_every_deal(fail_updates);
}

static void skip_updates(adder *a)
{
	if (!a->gated)
		return;
	a->skip = true;
	world_ok(choir_strategy_run(strategy, give_once, a, NULL, NULL));
	assert_int_equal(a->skipped, 1);
	assert_int_equal(strategy->step, 0);
	a->skip = false;
	a->begins = a->ends = 0;
	world_ok(choir_strategy_run(strategy, give_once, a, NULL, NULL));
	check(a, 1);
}

TEST(updates_that_are_skipped)
{
	on_every_deal(skip_updates);
}

typedef struct {
	adder *a;
	int how;
} misuse;

static choir_status give_wrongly(choir_replica *r, void *user)
{
	const misuse *m = user;
	adder *a = m->a;
	const bool who = choir_replica_id(r) == choir_replica_count(r) - 1;
	choir_tensor *one = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(1), 1);
	if (!who)
		return give(a, r);
	switch (m->how) {
	case 0:
		return CHOIR_OK; // gives nothing, asks for nothing
	case 1:
		return chi_gradients_apply(a->apply, r); // asks, but gave nothing
	case 2:
		return chi_gradients_add(a->apply, r, a->large, one);
	case 3:
		return chi_gradients_add(a->apply, r, NULL, one);
	case 4:
		CHOIR_TRY(chi_gradients_add(a->apply, r, a->small, one));
		return chi_gradients_add(a->apply, r, a->small, one);
	case 5:
		return choir_fail(CHOIR_IO, "no gradient today");
	default:
		return chi_gradients_add(a->apply, r, a->small, NULL);
	}
}

static void misuse_updates(adder *a)
{
	static const choir_status expected[] = { CHOIR_STATE, CHOIR_STATE, CHOIR_INVALID,
		CHOIR_INVALID, CHOIR_INVALID, CHOIR_IO, CHOIR_INVALID };
	static const char *const texts[] = { "returned after 0", "adder",
		"the gradient of \"large\" is f32 [1]", "the variable is NULL", "twice",
		"no gradient today", NULL };
	for (int how = 0; how < 7; how++) {
		misuse m = { a, how };
		if (replicas == 1 && how < 2)
			continue;
		world_failed(choir_strategy_run(strategy, give_wrongly, &m, NULL, NULL), expected[how],
				texts[how], NULL);
	}
	assert_int_equal(a->ends, 0);
	a->begins = a->ends = 0;
	world_ok(choir_strategy_run(strategy, give_once, a, NULL, NULL)); // nothing of before is in it
	check(a, 1);
}

TEST(updates_that_diverge)
{
	on_every_deal(misuse_updates);
}

static choir_status apply_now(choir_cross *x, void *user)
{
	adder *a = user;
	choir_variable *v[2] = { a->small, a->large };
	choir_value *g[2] = { choir_cross_arg(x, "small"), choir_cross_arg(x, "large") };
	return chi_gradients_apply_now(a->apply, x, 2, v, g);
}

static choir_status give_and_apply(choir_replica *r, void *user)
{
	adder *a = user;
	choir_replica_set_arg(r, "small", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(1), 1));
	choir_replica_set_arg(r, "large",
			choir_constant(r->frame, CHOIR_F32, CHOIR_SHAPE(LARGE),
					a->values + (size_t) choir_replica_id(r) * LARGE));
	return choir_replica_merge_call(r, apply_now, a);
}

static void apply_across(adder *a)
{
	world_ok(choir_strategy_run(strategy, give_and_apply, a, NULL, NULL));
	check(a, 1);
	// In the program's own context, with values that are the same for all.
	choir_cross *x = choir_strategy_cross(strategy);
	choir_variable *v[2] = { a->small, a->large };
	choir_value *g[2] = { choir_tensor_as_value(
								  choir_fill(x->frame, CHOIR_F32, CHOIR_SHAPE(1), replicas)),
		choir_tensor_as_value(choir_constant(x->frame, CHOIR_F32, CHOIR_SHAPE(LARGE), sum)) };
	world_ok(chi_gradients_apply_now(a->apply, x, 2, v, g));
	check(a, 2);
	a->fails = 1;
	assert_int_equal(chi_gradients_apply_now(a->apply, x, 2, v, g), CHOIR_IO);
	choir_frame_clear(x->frame);
	a->fails = 0;
}

// spec: C26
TEST(in_cross_replica_context)
{
	on_every_deal(apply_across);
}

TEST(a_steady_update_allocates_nothing)
{
	replicas = 4;
	strategy = world_new(4, "cpu:0,cpu:1", 0);
	adder a;
	open_adder(&a);
	world_steady(strategy, give_once, &a);
	chi_gradients_free(a.apply);
	choir_strategy_free(strategy);
}

// The default replica outside any run has its updates done at once.
TEST(the_default_replica)
{
	strategy = choir_default_strategy();
	replicas = 1;
	adder a = { .values = values };
	a.apply = chi_gradients_new(strategy, &table, &a);
	a.small = choir_variable_new("small", CHOIR_SHAPE(1), NULL);
	a.large = choir_variable_new("large", CHOIR_SHAPE(LARGE), NULL);
	oracle_fill(CHOIR_F32, values, 1, LARGE, 9);
	oracle_sum(CHOIR_F32, values, 0, 1, LARGE, sum);
	choir_replica *r = choir_replica_current();
	for (int k = 1; k <= 4; k++) {
		world_ok(give(&a, r));
		check(&a, k);
		choir_frame_clear(r->frame);
	}
	assert_int_equal(strategy->step, 4);
	a.fails = 1;
	world_failed(give(&a, r), CHOIR_IO, "begin fails", NULL);
	a.fails = 0;
	choir_frame_clear(r->frame);
	a.begins = a.ends = 4;
	world_ok(give(&a, r));
	check(&a, 5);
	choir_frame_clear(r->frame);
	chi_gradients_free(a.apply);
}

TEST_BEFORE(world_watch)
