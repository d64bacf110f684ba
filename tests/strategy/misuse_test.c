// Replicas that misuse what they have: tensors of other contexts, reads that are out of date, what
// has died, names that do not exist. The replica is named, and the next run works.
#include "choir/op.h"
#include "choir/tape.h"

#include "strategy/world.h"
#include "test.h"

#include <string.h>

static choir_strategy *strategy;
static int replicas;

static choir_status merge(choir_cross *x, void *user)
{
	(void) user;
	choir_value *v = choir_cross_arg(x, "v");
	return choir_cross_return(x, "v", choir_cross_reduce_to(x, CHOIR_SUM, v, v));
}

static choir_status plain_merge(choir_cross *x, void *user)
{
	(void) x, (void) user;
	return CHOIR_OK;
}

typedef struct {
	choir_tensor *tensor;
	choir_variable *variable;
	int how;
} misuse;

static choir_status share_tensors(choir_cross *x, void *user)
{
	misuse *m = user;
	m->tensor = choir_value_local(choir_cross_arg(x, "v"), 0);
	return CHOIR_OK;
}

static choir_status mix(choir_replica *r, void *user)
{
	misuse *m = user;
	choir_tensor *own = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), 1);
	choir_replica_set_arg(r, "v", own);
	CHOIR_TRY(choir_replica_merge_call(r, share_tensors, m));
	if (choir_replica_id(r) != 1)
		return choir_replica_merge_call(r, plain_merge, NULL); // m->tensor lives until then
	switch (m->how) {
	case 0:
		choir_add(own, m->tensor);
		break;
	case 1:
		choir_replica_set_arg(r, "w", m->tensor);
		break;
	case 2:
		choir_replica_return(r, "w", m->tensor);
		break;
	case 3:
		choir_replica_all_reduce(r, CHOIR_SUM, m->tensor);
		break;
	case 4:
		choir_replica_all_gather(r, m->tensor, 0);
		break;
	default:
		choir_replica_broadcast(r, m->tensor, 0);
	}
	return choir_replica_merge_call(r, plain_merge, NULL);
}

static void mix_frames(void)
{
	static const char *const texts[] = { "add: operand 1 belongs to another frame",
		"set_arg: \"w\"", "return: \"w\"", "all_reduce", "set_arg: \"all_gather",
		"set_arg: \"broadcast" };
	for (int how = 0; how < 6; how++) {
		misuse m = { .how = how };
		world_failed(choir_strategy_run(strategy, mix, &m, NULL, NULL), CHOIR_INVALID,
				"replica 1: ", texts[how]);
	}
}

TEST(tensors_of_two_contexts)
{
	world_on_every_deal(&strategy, &replicas, 2, mix_frames);
}

static choir_status use_stale(choir_replica *r, void *user)
{
	misuse *m = user;
	choir_tensor *read = choir_variable_read(m->variable, r->frame);
	if (m->how == 2)
		choir_replica_set_arg(r, "v", read); // before it changes
	CHOIR_TRY(choir_variable_assign(
			m->variable, choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), 5)));
	switch (m->how) {
	case 0:
		choir_add(read, choir_number(r->frame, 1));
		return CHOIR_OK;
	case 1:
		return choir_replica_return(r, "x", read);
	case 2:
		return choir_replica_merge_call(r, plain_merge, NULL);
	default:
		choir_replica_all_reduce(r, CHOIR_SUM, read);
		return CHOIR_OK;
	}
}

static void read_stale(void)
{
	misuse m = { 0 };
	CHOIR_SCOPE (strategy)
		m.variable = choir_variable_new("weight", CHOIR_SHAPE(2),
				CHOIR_OPTIONS(choir_variable_options, .aggregation = CHOIR_AGGREGATION_MEAN));
	choir_values *results = NULL;
	for (m.how = 0; m.how < 4; m.how++)
		world_failed(choir_strategy_run(strategy, use_stale, &m, NULL, &results), CHOIR_STATE,
				"weight: has changed", "read it again");
	choir_values_free(results);
}

TEST(stale_reads)
{
	world_on_every_deal(&strategy, &replicas, 1, read_stale);
}

static choir_status drop_given(choir_replica *r, void *user)
{
	misuse *m = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *w = choir_variable_read(m->variable, r->frame), *gradient;
	choir_tensor *y = choir_square(w), *loss = choir_sum(y, CHOIR_ALL_AXES);
	choir_replica_set_arg(r, "activation", y);
	CHOIR_TRY(choir_tape_gradient(tape, loss, 1, &w, &gradient)); // y dies on the way back
	return choir_replica_merge_call(r, plain_merge, NULL);
}

static void give_and_drop(void)
{
	misuse m = { 0 };
	CHOIR_SCOPE (strategy)
		m.variable = choir_variable_new("weight", CHOIR_SHAPE(2), NULL);
	world_failed(choir_strategy_run(strategy, drop_given, &m, NULL, NULL), CHOIR_STATE, "dropped",
			NULL);
}

// spec: 2.1
TEST(what_was_given_may_die)
{
	world_on_every_deal(&strategy, &replicas, 1, give_and_drop);
}

static choir_status take_wrong(choir_replica *r, void *user)
{
	const misuse *m = user;
	if (m->how == 0)
		choir_replica_result(r, "x");
	choir_replica_set_arg(r, "v", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), 1));
	CHOIR_TRY(choir_replica_merge_call(r, merge, NULL));
	switch (m->how) {
	case 0:
		break;
	case 1:
		choir_replica_result(r, "w");
		break;
	case 2:
		choir_replica_result(r, NULL);
		break;
	case 3:
		choir_replica_set_arg(r, "", choir_number(r->frame, 1));
		break;
	case 4:
		choir_replica_return(r, NULL, choir_number(r->frame, 1));
		break;
	case 5:
		world_unseen(choir_replica_merge_call(r, NULL, NULL));
		break;
	case 6:
		choir_replica_set_arg(r, "v", NULL);
		break;
	case 7:
		choir_replica_broadcast(r, choir_number(r->frame, 1), 99);
		break;
	case 8:
		choir_replica_all_gather(r, choir_number(r->frame, 1), 0);
		break;
	default:
		choir_replica_all_reduce(r, (choir_reduce_op) 7, choir_number(r->frame, 1));
	}
	return CHOIR_OK;
}

static void misuse_names(void)
{
	static const choir_status expected[] = { CHOIR_STATE, CHOIR_NOT_FOUND, CHOIR_STATE,
		CHOIR_INVALID, CHOIR_INVALID, CHOIR_INVALID, CHOIR_INVALID, CHOIR_INVALID, CHOIR_INVALID,
		CHOIR_INVALID };
	static const char *const texts[] = { "merge call", "is only \"v\"", "result",
		"a leaf needs a name", "a leaf needs a name", "the function is NULL", NULL, "replica 99",
		"axis 0", "operation*7" };
	for (int how = 0; how < 10; how++) {
		misuse m = { .how = how };
		world_failed(choir_strategy_run(strategy, take_wrong, &m, NULL, NULL), expected[how],
				texts[how], NULL);
	}
}

// spec: E13, E16, 2.19
TEST(wrong_names_and_operations)
{
	world_on_every_deal(&strategy, &replicas, 1, misuse_names);
}

static choir_status use_elsewhere(choir_replica *r, void *user)
{
	choir_replica **kept = user;
	if (choir_replica_id(r) == 0)
		*kept = r;
	return choir_replica_merge_call(r, plain_merge, NULL);
}

static choir_status keep_cross(choir_cross *x, void *user)
{
	*(choir_cross **) user = x;
	return CHOIR_OK;
}

static choir_status merge_and_keep(choir_replica *r, void *user)
{
	return choir_replica_merge_call(r, keep_cross, user);
}

// Contexts that are kept for later are not that later context.
// spec: E2, 2.2, 2.19
TEST(contexts_end)
{
	choir_replica *r = NULL;
	choir_cross *x = NULL;
	strategy = world_new(2, "cpu:0,cpu:1", 0);
	world_ok(choir_strategy_run(strategy, use_elsewhere, &r, NULL, NULL));
	world_failed(choir_replica_merge_call(r, plain_merge, NULL), CHOIR_STATE,
			"merge_call: this thread is not in replica 0", NULL);
	assert_null(choir_replica_arg(r, "x"));
	assert_null(choir_replica_result(r, "x"));
	assert_int_equal(choir_replica_return(r, "x", NULL), CHOIR_STATE);
	world_ok(choir_strategy_run(strategy, merge_and_keep, &x, NULL, NULL));
	assert_null(choir_cross_arg(x, "v"));
	assert_int_equal(choir_error_status(), CHOIR_STATE);
	assert_int_equal(choir_cross_run(x, use_elsewhere, &r), CHOIR_STATE);
	assert_null(choir_replica_arg(NULL, "x"));
	assert_int_equal(choir_replica_id(NULL), CHOIR_NONE);
	world_works(strategy);
	choir_strategy_free(strategy);
}

TEST_BEFORE(world_watch)
