// Every allocation fails in turn, over making a strategy, runs with merge calls, collectives,
// updates and reductions: each failure has a text, nothing hangs or leaks, and what was made can
// be used or freed.
#include "choir/op.h"
#include "choir/tape.h"

#include "base/alloc.h"
#include "short.h"
#include "strategy/world.h"
#include "tensor/buffer_pool.h"
#include "test.h"

#include <string.h>

static choir_variable *weight, *made_in_a_step;

static choir_status fill_weight(choir_update *u, void *user)
{
	(void) user;
	return choir_variable_assign(weight, choir_update_arg(u, "g"));
}

static choir_status nothing(choir_replica *r, void *user)
{
	(void) r, (void) user;
	return CHOIR_OK;
}

static choir_status merge(choir_cross *x, void *user)
{
	(void) user;
	choir_value *g = choir_cross_arg(x, "g");
	choir_value *mean = choir_cross_reduce_to(x, CHOIR_MEAN, g, choir_variable_as_value(weight));
	choir_cross_set_arg(x, "g", mean);
	CHOIR_TRY(choir_cross_update(x, weight, NULL, fill_weight, NULL));
	CHOIR_TRY(choir_cross_run(x, nothing, NULL));
	choir_cross_return(x, "all", choir_tensor_as_value(choir_cross_gather(x, g, 0)));
	return choir_cross_return(x, "g", mean);
}

static choir_status step(choir_replica *r, void *user)
{
	(void) user;
	choir_frame *f = r->frame;
	choir_tensor *x = choir_replica_arg(r, "x");
	choir_tape *tape = choir_tape_begin(f);
	choir_tensor *w = choir_variable_read(weight, f), *g = NULL;
	choir_tensor *y = choir_multiply(w, choir_sum(x, CHOIR_ALL_AXES));
	choir_tensor *loss =
			choir_sum(choir_square(choir_replica_all_reduce(r, CHOIR_SUM, y)), CHOIR_ALL_AXES);
	choir_tensor *pair[2] = { y, choir_square(y) };
	CHOIR_TRY(choir_replica_batch_all_reduce(r, CHOIR_SUM, 2, pair, pair));
	CHOIR_TRY(choir_tape_gradient(tape, loss, 1, &w, &g));
	choir_replica_set_arg(r, "g", g);
	CHOIR_TRY(choir_replica_merge_call(r, merge, NULL));
	choir_variable *made = choir_variable_new("made", CHOIR_SHAPE(2),
			CHOIR_OPTIONS(choir_variable_options, .aggregation = CHOIR_AGGREGATION_SUM));
	if (choir_replica_id(r) == 0)
		made_in_a_step = made;
	CHOIR_TRY(choir_variable_assign_add(made, choir_replica_result(r, "g")));
	choir_replica_return(r, "all", choir_replica_all_gather(r, x, 0));
	choir_replica_return(r, "weight", choir_variable_component(weight, f));
	return choir_replica_return(
			r, "loss", choir_replica_broadcast(r, choir_with_count(loss, 1), 0));
}

typedef struct {
	choir_strategy *s;
	choir_values *args, *results;
} session;

static choir_status open_session(session *t, const world_deal *deal)
{
	t->s = choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
			.replicas = deal->replicas, .devices = deal->devices, .timeout = 20));
	if (t->s == NULL)
		return choir_error_status();
	choir_scope scope;
	made_in_a_step = NULL;
	CHOIR_TRY(choir_scope_enter(&scope, t->s));
	weight = choir_variable_new("weight", CHOIR_SHAPE(2),
			CHOIR_OPTIONS(choir_variable_options, .initializer = CHOIR_INITIALIZER_ONES));
	CHOIR_TRY(choir_scope_exit(&scope));
	if (weight == NULL || (t->args = choir_values_new(t->s)) == NULL)
		return choir_error_status();
	return CHOIR_OK;
}

static choir_status use_session(session *t)
{
	static const float data[6] = { 1, 2, 3, 4, 5, 6 };
	choir_values_clear(t->args);
	choir_tensor *x = choir_borrow(choir_values_frame(t->args), CHOIR_F32, CHOIR_SHAPE(6), data);
	CHOIR_TRY(choir_values_split(t->args, "x", x));
	CHOIR_TRY(choir_strategy_run(t->s, step, NULL, t->args, &t->results));
	choir_value *loss = choir_values_find(t->results, "loss");
	return choir_strategy_reduce(t->s, CHOIR_MEAN, loss, CHOIR_NO_AXIS) == NULL
			? choir_error_status()
			: CHOIR_OK;
}

static void close_session(session *t)
{
	choir_values_free(t->args);
	choir_values_free(t->results);
	choir_strategy_free(t->s);
	*t = (session){ 0 };
}

// The variables are undefined if an update failed half way: assigned, they are good again.
static void works_again(session *t)
{
	choir_frame *f = choir_frame_new(NULL);
	world_ok(choir_variable_assign(weight, choir_fill(f, CHOIR_F32, CHOIR_SHAPE(2), 1)));
	if (made_in_a_step != NULL)
		world_ok(choir_variable_assign(
				made_in_a_step, choir_fill(f, CHOIR_F32, CHOIR_SHAPE(2), 1)));
	choir_frame_free(f);
	world_ok(use_session(t));
	world_works(t->s);
}

static void fail_each(const world_deal *deal, bool persistent)
{
	for (uint64_t n = 1;; n += STRIDE) {
		session t = { 0 };
		chi_buffer_trim();
		chi_alloc_fail(n, persistent);
		choir_status status = open_session(&t, deal);
		if (status == CHOIR_OK)
			status = use_session(&t);
		if (status == CHOIR_OK)
			status = use_session(&t);
		const bool failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		if (failed)
			world_failed(status, CHOIR_NO_MEMORY, "memory", NULL);
		else
			world_ok(status);
		if (t.args != NULL)
			works_again(&t);
		close_session(&t);
		if (!failed)
			break;
	}
}

TEST(each_allocation_on_shared_memory)
{
	fail_each(&(world_deal){ 2, "cpu:0,cpu:1" }, false);
	fail_each(&(world_deal){ 3, "cpu:0" }, false);
}

TEST(each_allocation_with_batons)
{
	fail_each(&(world_deal){ 5, "cpu:0,cpu:1" }, false);
}

TEST(each_allocation_and_all_behind_it)
{
	fail_each(&(world_deal){ 3, "cpu:0,cpu:1" }, true);
}

TEST(each_allocation_on_separate_memory)
{
	fail_each(&(world_deal){ 2, "far:0,cpu:0" }, false);
}

TEST_BEFORE(world_watch)
