// Functions of the program that do not end by returning: longjmp out of every kind of them, and
// threads that end in one. Nothing hangs, nothing that is dead is read, and the strategy can be
// freed, or goes on where its own threads are concerned.
#include "choir/op.h"
#include "choir/replay.h"

#include "strategy/context.h"
#include "strategy/world.h"
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static const char LEFT[] = "was left by longjmp, an exception or pthread_exit";

typedef enum { FROM_REPLICA, FROM_MERGE, FROM_NESTED } place;

typedef struct {
	jmp_buf *back;
	place from;
	int who; // the replica that ends its thread
	atomic_int cancelled;
	choir_strategy *strategy;
	pthread_t thread;
} plan;

static choir_status jump(choir_replica *r, void *user)
{
	const plan *p = user;
	if (choir_replica_id(r) == 0)
		longjmp(*p->back, 1);
	return CHOIR_OK;
}

static choir_status merge(choir_cross *x, void *user)
{
	const plan *p = user;
	if (p->from == FROM_NESTED)
		return choir_cross_run(x, jump, user);
	longjmp(*p->back, 1);
}

// Replica 0 leaves; the others wait for it in a meeting.
static choir_status leave(choir_replica *r, void *user)
{
	plan *p = user;
	choir_tensor *one = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(3), 1);
	if (p->from == FROM_REPLICA && choir_replica_id(r) == 0)
		longjmp(*p->back, 1);
	if (p->from == FROM_MERGE || p->from == FROM_NESTED)
		return choir_replica_merge_call(r, merge, p);
	const choir_tensor *sum = choir_replica_all_reduce(r, CHOIR_SUM, one);
	p->cancelled += sum == NULL && choir_error_status() == CHOIR_CANCELLED;
	return sum == NULL ? choir_error_status() : CHOIR_OK;
}

static choir_status nothing(choir_replica *r, void *user)
{
	(void) r;
	(void) user;
	return CHOIR_OK;
}

// What the thread may ask then, of a strategy that was left and of another.
static void all_is_refused(choir_strategy *s)
{
	choir_scope scope;
	choir_strategy *other = world_new(2, "cpu:0", 0);
	world_failed(choir_strategy_run(s, nothing, NULL, NULL, NULL), CHOIR_STATE, LEFT, "run: ");
	world_failed(choir_strategy_run(other, nothing, NULL, NULL, NULL), CHOIR_STATE, LEFT, "free");
	// Which text depends on how deep the stack is here: see was_left in context.c.
	world_failed(choir_scope_enter(&scope, s), CHOIR_STATE, "entering a scope", NULL);
	world_failed(choir_strategy_set_current(s), CHOIR_STATE, "inside", NULL);
	assert_null(choir_strategy_cross(s));
	choir_strategy_free(other);
}

// The thread is as it was.
static void all_is_well(void)
{
	choir_strategy *s = world_new(3, "cpu:0,cpu:1", 0);
	assert_null(chi_context_current());
	assert_false(choir_has_strategy());
	world_works(s);
	choir_strategy_free(s);
}

static void left_by_longjmp(int replicas, const char *devices, place from)
{
	jmp_buf back;
	static plan p;
	choir_strategy *volatile s = world_new(replicas, devices, 30);
	p = (plan){ .back = &back, .from = from };
	if (setjmp(back) == 0) {
		world_unseen(choir_strategy_run(s, leave, &p, NULL, NULL));
		fail_msg("it returned");
	}
	all_is_refused(s);
	choir_strategy_free(s);
	assert_true(p.cancelled <= replicas - 1);
	all_is_well();
}

TEST(replica_is_left_by_longjmp)
{
	for (int i = 0; i < world_deal_count; i++)
		left_by_longjmp(world_deals[i].replicas, world_deals[i].devices, FROM_REPLICA);
	left_by_longjmp(1, "cpu:0", FROM_REPLICA);
}

// With one device the caller's thread carries all.
TEST(merge_function_is_left_by_longjmp)
{
	left_by_longjmp(1, "cpu:0", FROM_MERGE);
	left_by_longjmp(1, "cpu:0", FROM_NESTED);
}

TEST(lone_replica_is_left_by_longjmp)
{
	jmp_buf back;
	plan p = { .back = &back };
	choir_strategy *volatile s = world_new(2, "cpu:0,cpu:1", 0);
	if (setjmp(back) == 0) {
		world_unseen(choir_strategy_run_replica(s, 0, jump, &p, NULL));
		fail_msg("it returned");
	}
	all_is_refused(s);
	choir_strategy_free(s);
	all_is_well();
}

static choir_status jump_in_update(choir_update *u, void *user)
{
	(void) u;
	longjmp(*(jmp_buf *) user, 1);
}

TEST(update_function_is_left_by_longjmp)
{
	jmp_buf back;
	choir_strategy *volatile s = world_new(2, "cpu:0,cpu:1", 0);
	choir_variable *volatile v = world_variable(s, "v", CHOIR_SHAPE(2), NULL);
	if (setjmp(back) == 0) {
		world_unseen(choir_cross_update(choir_strategy_cross(s), v, NULL, jump_in_update, &back));
		fail_msg("it returned");
	}
	all_is_refused(s);
	choir_strategy_free(s);
	all_is_well();
}

// Left for a place in another function that Choir called: the run sees it when that returns.
static choir_status catch_inside(choir_replica *r, void *user)
{
	jmp_buf back;
	plan p = { .back = &back, .from = FROM_MERGE };
	(void) user;
	if (setjmp(back) == 0)
		return choir_replica_merge_call(r, merge, &p);
	return CHOIR_OK;
}

TEST(left_within_a_replica)
{
	choir_strategy *s = world_new(1, "cpu:0", 0);
	world_failed(choir_strategy_run(s, catch_inside, NULL, NULL, NULL), CHOIR_STATE, LEFT, NULL);
	world_works(s);
	choir_strategy_free(s);
	all_is_well();
}

static choir_status exit_thread(choir_replica *r, void *user)
{
	plan *p = user;
	choir_tensor *one = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(3), 1);
	if (choir_replica_id(r) == p->who)
		pthread_exit(NULL);
	const choir_tensor *sum = choir_replica_all_reduce(r, CHOIR_SUM, one);
	return sum == NULL ? choir_error_status() : CHOIR_OK;
}

// Of a thread of Choir's, alone on its device and among others of it.
TEST(thread_of_choir_ends)
{
	static const struct {
		int replicas;
		const char *devices;
		int who;
	} deals[] = { { 2, "cpu:0,cpu:1", 1 }, { 3, "cpu:0,cpu:1,cpu:2", 2 }, { 4, "cpu:0,cpu:1", 2 },
		{ 4, "cpu:0,cpu:1", 3 }, { 3, "cpu:0", 1 } };
	for (size_t i = 0; i < sizeof deals / sizeof *deals; i++) {
		choir_strategy *s = world_new(deals[i].replicas, deals[i].devices, 30);
		plan p = { .who = deals[i].who };
		for (int n = 0; n < 3; n++) {
			const char *number =
					(const char *[]){ "0", "replica 1", "replica 2", "replica 3" }[p.who];
			world_failed(
					choir_strategy_run(s, exit_thread, &p, NULL, NULL), CHOIR_STATE, LEFT, number);
			world_works(s);
		}
		choir_strategy_free(s);
	}
}

static choir_status be_cancelled(choir_replica *r, void *user)
{
	plan *p = user;
	if (choir_replica_id(r) == 1)
		pthread_cancel(pthread_self());
	return exit_thread(r, p);
}

TEST(cancelling_a_thread_of_choir_does_nothing)
{
	choir_strategy *s = world_new(2, "cpu:0,cpu:1", 30);
	plan p = { .who = -1 };
	for (int n = 0; n < 3; n++)
		world_ok(choir_strategy_run(s, be_cancelled, &p, NULL, NULL));
	world_works(s);
	choir_strategy_free(s);
}

static void *run_and_end(void *arg)
{
	plan *p = arg;
	world_unseen(choir_strategy_run(p->strategy, exit_thread, p, NULL, NULL));
	return p; // never
}

TEST(thread_of_the_program_ends)
{
	for (int i = 0; i < world_deal_count; i++) {
		choir_strategy *s = world_new(world_deals[i].replicas, world_deals[i].devices, 30);
		plan p = { .strategy = s, .who = 0 };
		void *returned;
		assert_int_equal(pthread_create(&p.thread, NULL, run_and_end, &p), 0);
		assert_int_equal(pthread_join(p.thread, &returned), 0);
		assert_null(returned);
		world_failed(choir_strategy_run(s, nothing, NULL, NULL, NULL), CHOIR_STATE,
				"another run of this strategy", NULL);
		choir_strategy_free(s);
		all_is_well();
	}
}

typedef struct {
	choir_variable *variable;
	jmp_buf *back; // NULL: a thread of Choir's ends
	pthread_t caller;
	atomic_int left;
} update_plan;

static choir_status leave_update(choir_update *u, void *user)
{
	update_plan *p = user;
	const bool here = pthread_equal(pthread_self(), p->caller);
	(void) u;
	if (p->back != NULL && here)
		longjmp(*p->back, 1);
	if (p->back == NULL && !here) {
		p->left++;
		pthread_exit(NULL);
	}
	return CHOIR_OK;
}

static choir_status ask_for_update(choir_replica *r, void *user)
{
	update_plan *p = user;
	choir_replica_set_arg(r, "x", choir_number(r->frame, 1));
	return choir_replica_update(r, p->variable, leave_update, p);
}

static const char *const update_devices[] = { "cpu:0,cpu:1", "far:0,far:1" };

static void asked_update_left(const char *devices)
{
	jmp_buf back;
	static update_plan p;
	choir_strategy *volatile s = world_new(2, devices, 30);
	p = (update_plan){ .back = &back, .caller = pthread_self() };
	p.variable = world_variable(s, "v", CHOIR_SHAPE(3), NULL);
	if (setjmp(back) == 0)
		world_ok(choir_strategy_run(s, ask_for_update, &p, NULL, NULL)); // the other did it
	else
		all_is_refused(s);
	choir_strategy_free(s);
	all_is_well();
}

TEST(asked_update_is_left_by_longjmp)
{
	for (int i = 0; i < 2; i++)
		asked_update_left(update_devices[i]);
}

TEST(thread_of_choir_ends_in_an_update)
{
	for (int i = 0; i < 2; i++) {
		choir_strategy *s = world_new(2, update_devices[i], 30);
		update_plan p = { .caller = pthread_self() };
		p.variable = world_variable(s, "v", CHOIR_SHAPE(3), NULL);
		const choir_status status = choir_strategy_run(s, ask_for_update, &p, NULL, NULL);
		if (p.left > 0)
			world_failed(status, CHOIR_STATE, LEFT, NULL);
		else
			world_ok(status);
		world_works(s);
		choir_strategy_free(s);
	}
}

TEST_BEFORE(world_watch)
