// When something goes wrong among replicas: the right one is named, everybody is released, and the
// next run works, on every deal of replicas.
#include "choir/op.h"

#include "short.h"
#include "strategy/strategy.h"
#include "strategy/world.h"
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static choir_strategy *strategy;
static int replicas;

typedef enum { BEFORE, BETWEEN, AFTER, AFTER_REDUCE } moment;

typedef struct {
	int who; // the replica that misbehaves
	moment when;
	bool without_text; // fails without saying why
	atomic_int returned, cancelled, merged;
} plan;

static choir_status merge(choir_cross *x, void *user)
{
	plan *p = user;
	p->merged++;
	choir_value *v = choir_cross_arg(x, "v");
	return choir_cross_return(x, "v", choir_cross_reduce_to(x, CHOIR_SUM, v, v));
}

static choir_status misbehave(const plan *p)
{
	return p->without_text ? CHOIR_CORRUPT : choir_fail(CHOIR_IO, "the disk is on fire");
}

static choir_status steps(choir_replica *r, plan *p)
{
	const bool bad = choir_replica_id(r) == p->who;
	choir_tensor *v = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(3), 1);
	if (bad && p->when == BEFORE)
		return misbehave(p);
	choir_replica_set_arg(r, "v", v);
	CHOIR_TRY(choir_replica_merge_call(r, merge, p));
	if (bad && p->when == BETWEEN)
		return misbehave(p);
	choir_replica_set_arg(r, "v", choir_replica_result(r, "v"));
	CHOIR_TRY(choir_replica_merge_call(r, merge, p));
	if (bad && p->when == AFTER)
		return misbehave(p);
	if (choir_replica_all_reduce(r, CHOIR_MEAN, v) == NULL)
		return choir_error_status();
	return bad && p->when == AFTER_REDUCE ? misbehave(p) : CHOIR_OK;
}

static choir_status follow_plan(choir_replica *r, void *user)
{
	plan *p = user;
	const choir_status status = steps(r, p);
	p->returned++;
	p->cancelled += status == CHOIR_CANCELLED;
	if (status == CHOIR_CANCELLED)
		WORLD_NEED(text_holds(choir_error(), "cancelled:*replica"));
	return status;
}

static void check_plan(int who, moment when, bool without_text)
{
	plan p = { .who = who, .when = when, .without_text = without_text };
	char name[32];
	snprintf(name, sizeof name, "replica %d: ", who);
	const choir_status status = choir_strategy_run(strategy, follow_plan, &p, NULL, NULL);
	world_failed(status, without_text ? CHOIR_CORRUPT : CHOIR_IO, replicas == 1 ? NULL : name,
			without_text ? "the function returned CHOIR_CORRUPT" : "the disk is on fire");
	assert_int_equal(p.merged, when == BEFORE ? 0 : when == BETWEEN ? 1 : 2);
	assert_true(p.returned <= replicas && p.returned >= 1);
	if (when == BETWEEN || when == AFTER) // all began, and those that wait are released
		assert_int_equal(p.returned, replicas);
}

static void fail_everywhere(void)
{
	for (int text = 0; text < 2; text++)
		for (moment when = BEFORE; when <= AFTER_REDUCE; when++) {
			check_plan(0, when, text == 1);
			check_plan(replicas / 2, when, text == 1);
			check_plan(replicas - 1, when, text == 1);
		}
}

// spec: E47, M21, 2.1, 2.19
TEST(a_replica_fails)
{
	world_on_every_deal(&strategy, &replicas, 1, fail_everywhere);
}

static choir_status all_fail(choir_replica *r, void *user)
{
	(void) user;
	usleep((useconds_t) (100 * (choir_replica_count(r) - choir_replica_id(r))));
	return choir_fail(CHOIR_IO, "replica number %d has had enough", choir_replica_id(r));
}

// The lowest is reported, whoever was quicker.
static void fail_all(void)
{
	world_failed(choir_strategy_run(strategy, all_fail, NULL, NULL, NULL), CHOIR_IO,
			"replica number 0 has had enough", NULL);
}

// spec: E47, V8, 2.1
TEST(all_replicas_fail)
{
	world_on_every_deal(&strategy, &replicas, 1, fail_all);
}

static choir_status swallow(choir_replica *r, void *user)
{
	(void) user;
	choir_tensor *x = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), 1);
	choir_tensor *y = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(3), 1);
	if (choir_replica_id(r) == 1)
		choir_add(x, y); // nobody looks
	return CHOIR_OK;
}

static void fail_unseen(void)
{
	world_failed(choir_strategy_run(strategy, swallow, NULL, NULL, NULL), CHOIR_INVALID,
			"replica 1: ", "[2]");
}

// spec: M13, 2.1
TEST(an_ignored_failure_fails_the_run)
{
	world_on_every_deal(&strategy, &replicas, 2, fail_unseen);
}

typedef struct {
	int call; // which merge call fails, from 0
	int kind;
	int calls;
} bad_merge;

static choir_status fail_in_merge(choir_cross *x, void *user)
{
	bad_merge *b = user;
	if (b->calls++ != b->call)
		return CHOIR_OK;
	switch (b->kind) {
	case 0:
		return choir_fail(CHOIR_IO, "the merge went wrong");
	case 1:
		return CHOIR_UNSUPPORTED;
	case 2:
		return CHOIR_END;
	case 3:
		choir_cross_arg(x, "nothing");
		return CHOIR_OK; // nobody looks
	default:
		choir_cross_return(x, "y", NULL);
		return CHOIR_OK;
	}
}

static choir_status call_bad_merge(choir_replica *r, void *user)
{
	for (int i = 0; i < 3; i++)
		world_unseen(choir_replica_merge_call(r, fail_in_merge, user)); // not looked at either
	return CHOIR_OK;
}

static void fail_merges(void)
{
	static const choir_status expected[] = { CHOIR_IO, CHOIR_UNSUPPORTED, CHOIR_STATE,
		CHOIR_NOT_FOUND, CHOIR_INVALID };
	static const char *const texts[] = { "the merge went wrong",
		"the merge function returned CHOIR_UNSUPPORTED", "the merge function returned CHOIR_END",
		"arg: values: there is no \"nothing\": there are none", NULL };
	for (int kind = 0; kind < 5; kind++)
		for (int call = 0; call < 3; call++) {
			bad_merge b = { .call = call, .kind = kind };
			world_failed(choir_strategy_run(strategy, call_bad_merge, &b, NULL, NULL),
					expected[kind], texts[kind], NULL);
			assert_int_equal(b.calls, call + 1);
		}
}

// spec: E47, 2.1
TEST(a_merge_function_fails)
{
	world_on_every_deal(&strategy, &replicas, 1, fail_merges);
}

// "No more data" is no way to end a function: a loop over data would take it for its own end.
typedef struct {
	choir_variable *v;
	bool with_text;
	int where; // 0: in a replica, 1: in an update
} ending;

static choir_status end_now(const ending *e)
{
	return e->with_text ? choir_fail(CHOIR_END, "no more") : CHOIR_END;
}

static choir_status end_in_update(choir_update *u, void *user)
{
	(void) u;
	return end_now(user);
}

static choir_status end_in_replica(choir_replica *r, void *user)
{
	const ending *e = user;
	return e->where == 0 ? end_now(e) : choir_replica_update(r, e->v, end_in_update, user);
}

static void end_everywhere(void)
{
	ending e = { .v = world_variable(strategy, "v", CHOIR_SCALAR, NULL) };
	for (e.where = 0; e.where < 2; e.where++)
		for (int text = 0; text < 2; text++) {
			e.with_text = text == 1;
			world_failed(choir_strategy_run(strategy, end_in_replica, &e, NULL, NULL), CHOIR_STATE,
					"the function returned CHOIR_END", e.where == 0 ? NULL : "update of \"v\"");
		}
}

// spec: E47, 2.1
TEST(the_end_of_data_ends_no_function)
{
	world_on_every_deal(&strategy, &replicas, 1, end_everywhere);
}

static choir_status plain_merge(choir_cross *x, void *user)
{
	(void) x, (void) user;
	return CHOIR_OK;
}

static choir_status other_merge(choir_cross *x, void *user)
{
	(void) x;
	*(int *) user += 1;
	return CHOIR_OK;
}

// How the replica that is user's differs from the others.
typedef struct {
	int who, how;
	int merged;
	choir_variable *v;
} difference;

static choir_status update_nothing(choir_update *u, void *user)
{
	(void) u, (void) user;
	return CHOIR_OK;
}

static choir_status differ(choir_replica *r, const difference *d)
{
	int unused = 0;
	switch (d->how) {
	case 0:
		return choir_replica_merge_call(r, other_merge, &unused);
	case 1:
		choir_replica_set_arg(r, "w", choir_number(r->frame, 1));
		break;
	case 2:
		return CHOIR_OK; // gives, calls nothing
	case 3:
		return choir_replica_update(r, d->v, update_nothing, NULL);
	case 4:
		choir_replica_all_reduce(r, CHOIR_SUM, choir_number(r->frame, 1));
		return CHOIR_OK;
	case 5:
		choir_variable_new("z", CHOIR_SCALAR, NULL);
		return CHOIR_OK;
	default:
		choir_replica_broadcast(r, choir_number(r->frame, 1), 0);
		return CHOIR_OK;
	}
	return choir_replica_merge_call(r, plain_merge, NULL);
}

static choir_status meet_differently(choir_replica *r, void *user)
{
	const difference *d = user;
	choir_replica_set_arg(r, "v", choir_number(r->frame, choir_replica_id(r)));
	if (choir_replica_id(r) == d->who)
		return differ(r, d);
	return choir_replica_merge_call(r, plain_merge, NULL);
}

static void diverge(void)
{
	choir_variable *v = NULL;
	CHOIR_SCOPE (strategy)
		v = choir_variable_new("v", CHOIR_SCALAR, NULL);
	static const char *const texts[] = { "another function", "merge call with v, w", "returned",
		"update", "all_reduce", "creation of variable \"z\"", "broadcast" };
	for (int how = 0; how < 7; how++)
		for (int who = 0; who < replicas; who += replicas - 1) {
			difference d = { .who = who, .how = how, .v = v };
			char name[32];
			snprintf(name, sizeof name, "replica %d ", who);
			choir_status status = choir_strategy_run(strategy, meet_differently, &d, NULL, NULL);
			world_failed(status, CHOIR_STATE, name, texts[how]);
			world_failed(status, CHOIR_STATE, how == 4 ? NULL : "merge call with v",
					"all replicas must make the same");
		}
}

// spec: E6, E10, 2.1, 2.19
TEST(replicas_diverge)
{
	world_on_every_deal(&strategy, &replicas, 2, diverge);
}

// Different numbers of merge calls.
static choir_status call_so_often(choir_replica *r, void *user)
{
	const difference *d = user;
	const int calls = choir_replica_id(r) == d->who ? d->how : 2;
	for (int i = 0; i < calls; i++)
		CHOIR_TRY(choir_replica_merge_call(r, plain_merge, NULL));
	return CHOIR_OK;
}

static void count_differently(void)
{
	for (int how = 0; how < 4; how++)
		for (int who = 0; how != 2 && who < replicas; who += replicas - 1) {
			difference d = { .who = who, .how = how };
			char name[32];
			snprintf(name, sizeof name, "replica %d ", who);
			world_failed(choir_strategy_run(strategy, call_so_often, &d, NULL, NULL), CHOIR_STATE,
					name,
					how > 2			   ? "after 2"
							: how == 0 ? "after 0"
									   : "after 1");
			world_failed(CHOIR_STATE, CHOIR_STATE, "the same number of calls", NULL);
		}
}

// spec: E6, 2.1, 2.19
TEST(numbers_of_calls_differ)
{
	world_on_every_deal(&strategy, &replicas, 2, count_differently);
}

typedef struct {
	int who, what;
	bool once;
	atomic_int go;
} latecomer;

static choir_status come_late(choir_replica *r, void *user)
{
	latecomer *l = user;
	// User code that does not return in time; on a device of others it has the baton all the
	// while.
	for (int i = 0; choir_replica_id(r) == l->who && !l->go && i < (l->once ? 4000 : 60000); i++)
		usleep(500);
	switch (l->what) {
	case 0:
		world_unseen(choir_replica_merge_call(r, plain_merge, NULL));
		break;
	case 1:
		choir_replica_all_reduce(r, CHOIR_SUM, choir_number(r->frame, 1));
		break;
	case 2:
		choir_replica_all_gather(r, choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(1), 1), 0);
		break;
	default:
		choir_variable_new("late", CHOIR_SCALAR, NULL);
	}
	if (choir_replica_id(r) != l->who && choir_frame_status(r->frame) == CHOIR_CANCELLED)
		l->go = 1; // it has been given up
	return CHOIR_OK;
}

static void never_come(void)
{
	for (int what = 0; what < 4; what++) {
		const int who = what == 3 ? 0 : replicas - 1; // variables are made by the first
		latecomer l = { .who = who, .what = what };
		char name[48], waited[32];
		snprintf(name, sizeof name, "replica %d has not come", who);
		snprintf(waited, sizeof waited, "waited %g s", strategy->timeout);
		world_failed(choir_strategy_run(strategy, come_late, &l, NULL, NULL), CHOIR_TIMEOUT, name,
				waited);
	}
}

// The last replica of the last device, so that others can get to wait for it. A device that
// carries several waits with those that came before, and they have to come in time, whatever else
// the machine does.
// spec: E43
TEST(a_replica_never_comes)
{
	static const world_deal deals[] = { { 2, "cpu:0,cpu:1" }, { 4, "cpu:0,cpu:1" },
		{ 2, "far:0,far:1" }, { 3, "cpu:0,cpu:1" } };
	for (int i = 0; i < 4; i++) {
		replicas = deals[i].replicas;
		strategy = world_new(replicas, deals[i].devices, replicas == 2 ? 0.05 : 0.4);
		if (i == 3) { // one device: the first waits for the last of its own
			choir_strategy_free(strategy);
			strategy = world_new(3, "cpu:0", 0.4);
			latecomer l = { .who = 2, .once = true };
			world_failed(choir_strategy_run(strategy, come_late, &l, NULL, NULL), CHOIR_TIMEOUT,
					"replica 2 has not come", "waited 0.4 s in merge call");
		} else {
			never_come();
		}
		strategy->timeout = 20; // of a machine that has other things to do
		world_works(strategy);
		choir_strategy_free(strategy);
	}
}

// Replica 1 has been in a merge call with all others, and then keeps the device of replica 0.
static choir_status keep_the_device(choir_replica *r, void *user)
{
	latecomer *l = user;
	CHOIR_TRY(choir_replica_merge_call(r, plain_merge, NULL));
	for (int i = 0; choir_replica_id(r) == 1 && !l->go && i < 60000; i++)
		usleep(500);
	const choir_status status = choir_replica_merge_call(r, plain_merge, NULL);
	if (status == CHOIR_CANCELLED)
		l->go = 1;
	return status;
}

// Who has the device of the one that does not come is the cause.
TEST(a_replica_keeps_the_device)
{
	for (int i = 0; i < (SHORT ? 1 : 4); i++) {
		strategy = world_new(3, "cpu:0,cpu:1", 0.6);
		latecomer l = { .who = 1 };
		world_failed(choir_strategy_run(strategy, keep_the_device, &l, NULL, NULL), CHOIR_TIMEOUT,
				" waited 0.6 s in merge call", "replica 1 ");
		strategy->timeout = 20;
		world_works(strategy);
		choir_strategy_free(strategy);
	}
}

static choir_status slow_merge(choir_cross *x, void *user)
{
	(void) user;
	usleep(600000);
	choir_value *v = choir_cross_arg(x, "v");
	return choir_cross_return(x, "v", choir_cross_reduce_to(x, CHOIR_SUM, v, v));
}

static choir_status wait_for_slow_merge(choir_replica *r, void *user)
{
	(void) user;
	choir_replica_set_arg(r, "v", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(1000), 1));
	CHOIR_TRY(choir_replica_merge_call(r, slow_merge, NULL));
	WORLD_NEED(((const float *) choir_tensor_data(choir_replica_result(r, "v")))[999] ==
			(float) choir_replica_count(r));
	return CHOIR_OK;
}

static choir_status be_slow_in_turn(choir_replica *r, void *user)
{
	(void) user;
	usleep(180000);
	return choir_replica_merge_call(r, plain_merge, NULL);
}

static choir_status come_in_turn(choir_replica *r, void *user)
{
	(void) user;
	usleep(180000 * (useconds_t) choir_replica_id(r));
	choir_tensor *t = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(8192), 1); // not a light one
	return choir_replica_all_reduce(r, CHOIR_SUM, t) == NULL ? choir_error_status() : CHOIR_OK;
}

// Nobody is late while somebody works on what all have given, or while there is progress.
TEST(patience)
{
	static const world_deal deals[] = { { 2, "cpu:0,cpu:1" }, { 3, "cpu:0" },
		{ 5, "cpu:0,cpu:1" } };
	for (int i = SHORT ? 2 : 0; i < 3; i++) {
		strategy = world_new(deals[i].replicas, deals[i].devices, 0.45);
		world_ok(choir_strategy_run(strategy, wait_for_slow_merge, NULL, NULL, NULL));
		world_ok(choir_strategy_run(strategy, be_slow_in_turn, NULL, NULL, NULL));
		choir_strategy_free(strategy);
	}
	strategy = world_new(4, "cpu:0,cpu:1,cpu:2,cpu:3", 0.45);
	world_ok(choir_strategy_run(strategy, come_in_turn, NULL, NULL, NULL));
	choir_strategy_free(strategy);
}

TEST_BEFORE(world_watch)
