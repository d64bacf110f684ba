// Runs: every replica once, whatever carries it; arguments and results; who may run when; and that
// the caller's things are left as they were.
#include "choir/op.h"
#include "choir/strategy.h"

#include "base/alloc.h"
#include "base/thread.h"
#include "strategy/world.h"
#include "test.h"

#include <dirent.h>
#include <float.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

// spec: B26, B34, C4, C6, C27, 2.1
TEST(three_plus_id_on_every_deal)
{
	for (int i = 0; i < world_deal_count; i++) {
		choir_strategy *s = world_new(world_deals[i].replicas, world_deals[i].devices, 0);
		assert_int_equal(choir_strategy_replicas(s), world_deals[i].replicas);
		for (int k = 0; k < 3; k++)
			world_works(s);
		choir_strategy_free(s);
	}
}

// spec: B1, B26, C10, C12, 2.1
TEST(any_number_on_any_number)
{
	char text[256];
	for (int replicas = 1; replicas <= 7; replicas++)
		for (int devices = 1; devices <= 7; devices++) {
			choir_strategy *s = world_new(replicas, world_cpus(devices, text), 0);
			assert_int_equal(
					choir_strategy_worker_devices(s), replicas < devices ? replicas : devices);
			world_works(s);
			world_works(s);
			choir_strategy_free(s);
		}
}

typedef struct {
	atomic_int calls[16], now[8], max[8];
} census;

static choir_status count_in(choir_replica *r, void *user)
{
	census *c = user;
	const int id = choir_replica_id(r), d = choir_replica_device_index(r);
	c->calls[id]++;
	const int now = ++c->now[d];
	if (now > c->max[d])
		c->max[d] = now;
	WORLD_NEED(choir_replica_current() == r);
	WORLD_NEED(choir_frame_replica(r->frame) == r);
	WORLD_NEED(choir_strategy_current() == choir_replica_strategy(r));
	WORLD_NEED(!choir_in_cross_replica_context());
	WORLD_NEED(
			choir_replica_device(r) == choir_strategy_worker_device(choir_replica_strategy(r), d));
	usleep(300);
	c->now[d]--;
	return CHOIR_OK;
}

// A device is a baton: its replicas run one after another, in contiguous blocks.
// spec: V8, 2.1
TEST(one_replica_at_a_time_on_a_device)
{
	choir_strategy *s = world_new(7, "cpu:0,cpu:1,cpu:2", 0);
	census c = { 0 };
	for (int i = 0; i < 5; i++)
		world_ok(choir_strategy_run(s, count_in, &c, NULL, NULL));
	for (int i = 0; i < 7; i++)
		assert_int_equal(c.calls[i], 5);
	for (int i = 0; i < 3; i++)
		assert_int_equal(c.max[i], 1);
	choir_strategy_free(s);
}

static choir_status nothing(choir_cross *x, void *user)
{
	(void) x;
	++*(int *) user;
	return CHOIR_OK;
}

typedef struct {
	int calls;
	int merges;
	atomic_int running[8];
} batons;

static choir_status merge_often(choir_replica *r, void *user)
{
	batons *b = user;
	const int d = choir_replica_device_index(r);
	for (int i = 0; i < b->calls; i++) {
		WORLD_NEED(++b->running[d] == 1);
		WORLD_NEED(--b->running[d] == 0);
		CHOIR_TRY(choir_replica_merge_call(r, nothing, &b->merges));
		choir_tensor *one = choir_fill(r->frame, CHOIR_I64, CHOIR_SCALAR, i + choir_replica_id(r));
		choir_tensor *sum = choir_replica_all_reduce(r, CHOIR_SUM, one);
		const int n = choir_replica_count(r);
		WORLD_NEED((int) choir_tensor_number(sum) == n * i + n * (n - 1) / 2);
	}
	return CHOIR_OK;
}

// spec: 2.1
TEST(batons_go_round)
{
	char text[256];
	for (int replicas = 1; replicas <= 7; replicas++)
		for (int devices = 1; devices <= replicas; devices++) {
			choir_strategy *s = world_new(replicas, world_cpus(devices, text), 0);
			batons b = { .calls = 9 };
			for (int k = 0; k < 2; k++)
				world_ok(choir_strategy_run(s, merge_often, &b, NULL, NULL));
			assert_int_equal(b.merges, 18);
			choir_strategy_free(s);
		}
}

static choir_status use_arguments(choir_replica *r, void *user)
{
	(void) user;
	choir_tensor *x = choir_replica_arg(r, "x"), *n = choir_replica_arg(r, "n");
	choir_tensor *own = choir_replica_arg(r, "own");
	WORLD_NEED(choir_replica_examples(r) == choir_tensor_shape(x)->dim[0]);
	WORLD_NEED(choir_replica_global_examples(r) == 7);
	choir_tensor *y =
			choir_add(choir_scale(choir_sum(x, CHOIR_ALL_AXES), 1), choir_multiply(n, own));
	choir_replica_return(r, "y", y);
	return choir_replica_return(r, "seven", choir_number(r->frame, 7));
}

// spec: A2, A4, A19, B23, C15, 2.6
TEST(arguments_and_results)
{
	float data[7] = { 1, 2, 3, 4, 5, 6, 7 };
	for (int i = 0; i < world_deal_count; i++) {
		const int n = world_deals[i].replicas;
		choir_strategy *s = world_new(n, world_deals[i].devices, 0);
		choir_values *args = choir_values_new(s), *results = NULL;
		for (int step = 0; step < 3; step++) {
			choir_values_clear(args);
			choir_frame *f = choir_values_frame(args);
			world_ok(choir_values_split(
					args, "x", choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(7), data)));
			world_ok(choir_values_set(args, "n", choir_tensor_as_value(choir_number(f, 100))));
			for (int r = 0; r < n; r++)
				world_ok(choir_values_set_local(
						args, "own", r, choir_fill(f, CHOIR_F32, CHOIR_SCALAR, r)));
			world_ok(choir_strategy_run(s, use_arguments, NULL, args, &results));
			assert_int_equal(choir_value_local_count(choir_values_find(results, "y")), n);
			assert_int_equal(choir_value_local_count(choir_values_find(results, "seven")), 1);
			for (int r = 0, next = 0; r < n; r++) { // each its own rows and its own number
				double own = 100.0 * r;
				for (int rows = 7 / n + (r < 7 % n); rows > 0; rows--)
					own += data[next++];
				assert_float_equal((float) world_number_of(results, "y", r), (float) own, 1e-3f);
			}
			assert_float_equal((float) world_number(results, "seven"), 7, 0);
		}
		choir_values_free(args);
		choir_values_free(results);
		choir_strategy_free(s);
	}
}

static choir_status take_missing(choir_replica *r, void *user)
{
	(void) user;
	choir_replica_return(r, "x", choir_replica_arg(r, "xx")); // unchecked, and yet it fails
	return CHOIR_OK;
}

static choir_status return_unequal(choir_replica *r, void *user)
{
	(void) user;
	return choir_replica_id(r) == 1 ? CHOIR_OK
									: choir_replica_return(r, "loss", choir_number(r->frame, 1));
}

static choir_status return_more(choir_replica *r, void *user)
{
	(void) user;
	return choir_replica_id(r) == 0 ? CHOIR_OK
									: choir_replica_return(r, "loss", choir_number(r->frame, 1));
}

static choir_status empty(choir_replica *r, void *user)
{
	(void) r, (void) user;
	return CHOIR_OK;
}

// spec: E10, 2.6, 2.19
TEST(wrong_arguments_and_results)
{
	choir_strategy *s = world_new(3, "cpu:0,cpu:1", 0), *other = world_new(2, "cpu:0", 0);
	choir_values *args = choir_values_new(s), *results = NULL, *others = choir_values_new(other);
	world_ok(choir_values_set(
			args, "x", choir_tensor_as_value(choir_number(choir_values_frame(args), 1))));
	world_failed(choir_strategy_run(s, take_missing, NULL, args, &results), CHOIR_NOT_FOUND,
			"replica 0: arg: values: there is no \"xx\"", "is only \"x\"");
	world_failed(choir_strategy_run(s, take_missing, NULL, NULL, &results), CHOIR_NOT_FOUND,
			"no arguments", NULL);
	world_failed(choir_strategy_run(s, return_unequal, NULL, NULL, &results), CHOIR_STATE,
			"replica 1 returned no \"loss\"", "replica 0 did");
	world_failed(choir_strategy_run(s, return_more, NULL, NULL, &results), CHOIR_STATE,
			"replica 0 returned no \"loss\"", "replica 1 did");
	for (int i = 0; i < 2; i++) { // also where nothing is kept
		world_failed(choir_strategy_run(s, return_unequal, NULL, NULL, NULL), CHOIR_STATE,
				"replica 1 returned no \"loss\"", "replica 0 did");
		world_failed(choir_strategy_run(s, return_more, NULL, NULL, NULL), CHOIR_STATE,
				"replica 0 returned no \"loss\"", "replica 1 did");
	}
	assert_null(choir_values_find(results, "loss"));
	world_failed(choir_strategy_run(s, empty, NULL, others, NULL), CHOIR_INVALID,
			"arguments belong to another strategy", NULL);
	world_failed(choir_strategy_run(s, empty, NULL, NULL, &others), CHOIR_INVALID,
			"results belong to another strategy", NULL);
	world_failed(
			choir_strategy_run(s, empty, NULL, args, &args), CHOIR_INVALID, "the same set", NULL);
	world_failed(choir_strategy_run(s, NULL, NULL, NULL, NULL), CHOIR_INVALID, "NULL", NULL);
	world_failed(choir_strategy_run(NULL, empty, NULL, NULL, NULL), CHOIR_INVALID, "NULL", NULL);
	world_ok(choir_values_set_local(args, "part", 1, choir_number(choir_values_frame(args), 1)));
	world_failed(choir_strategy_run(s, empty, NULL, args, NULL), CHOIR_INVALID,
			"\"part\" is not set for replica 0", NULL);
	world_works(s);
	choir_values_free(args);
	choir_values_free(others);
	choir_values_free(results);
	choir_strategy_free(s);
	choir_strategy_free(other);
}

static choir_status run_again(choir_replica *r, void *user)
{
	(void) user;
	return choir_strategy_run(choir_replica_strategy(r), empty, NULL, NULL, NULL);
}

static choir_status enter_again(choir_replica *r, void *user)
{
	(void) user;
	choir_scope scope;
	return choir_scope_enter(&scope, choir_replica_strategy(r));
}

static choir_status run_other(choir_replica *r, void *user)
{
	(void) r;
	return choir_strategy_run(user, empty, NULL, NULL, NULL);
}

// spec: B26, E1, 2.2, 2.19
TEST(run_needs_cross_replica_context)
{
	choir_strategy *s = world_new(2, "cpu:0,cpu:1", 0), *other = world_new(1, "cpu:0", 0);
	world_failed(choir_strategy_run(s, run_again, NULL, NULL, NULL), CHOIR_STATE, "replica 0",
			"merge call");
	world_failed(choir_strategy_run(s, enter_again, NULL, NULL, NULL), CHOIR_STATE, "scope",
			"cross-replica context");
	world_failed(
			choir_strategy_run(s, run_other, other, NULL, NULL), CHOIR_STATE, "replica 0", NULL);
	world_works(s);
	choir_strategy_free(s);
	choir_strategy_free(other);
}

typedef struct {
	choir_strategy *strategy;
	atomic_int inside, go;
	choir_status status;
} meeting_point;

static choir_status wait_inside(choir_replica *r, void *user)
{
	meeting_point *m = user;
	(void) r;
	m->inside = 1;
	while (!m->go)
		usleep(100);
	return CHOIR_OK;
}

static void *run_in_thread(void *user)
{
	meeting_point *m = user;
	m->status = choir_strategy_run(m->strategy, wait_inside, m, NULL, NULL);
	return NULL;
}

TEST(two_threads_cannot_run_at_once)
{
	meeting_point m = { .strategy = world_new(2, "cpu:0,cpu:1", 0) };
	pthread_t id;
	pthread_create(&id, NULL, run_in_thread, &m);
	while (!m.inside)
		usleep(100);
	world_failed(choir_strategy_run(m.strategy, empty, NULL, NULL, NULL), CHOIR_STATE,
			"another run of this strategy", "mirrored");
	m.go = 1;
	pthread_join(id, NULL);
	assert_int_equal(m.status, CHOIR_OK);
	world_works(m.strategy);
	choir_strategy_free(m.strategy);
}

static int threads_now(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/task");
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static choir_status sum_up(choir_cross *x, void *user)
{
	(void) user;
	choir_value *v = choir_cross_arg(x, "x");
	return choir_cross_return(x, "x", choir_cross_reduce_to(x, CHOIR_SUM, v, v));
}

static choir_status steady(choir_replica *r, void *user)
{
	(void) user;
	choir_tensor *x = choir_add(choir_replica_arg(r, "x"), choir_number(r->frame, 1));
	choir_replica_set_arg(r, "x", x);
	CHOIR_TRY(choir_replica_merge_call(r, sum_up, NULL));
	choir_tensor *y =
			choir_add(choir_replica_result(r, "x"), choir_replica_all_reduce(r, CHOIR_SUM, x));
	choir_replica_return(r, "mean", choir_replica_average_loss(r, y));
	return choir_replica_return(r, "all", choir_replica_all_gather(r, x, 0));
}

static choir_status run_steady(choir_strategy *s, choir_values *args, choir_values **results)
{
	static const float data[20] = { 0 };
	choir_values_clear(args);
	choir_tensor *x = choir_borrow(choir_values_frame(args), CHOIR_F32, CHOIR_SHAPE(4, 2), data);
	CHOIR_TRY(choir_values_set(args, "x", choir_tensor_as_value(x)));
	CHOIR_TRY(choir_values_split(args, "rows", x));
	return choir_strategy_run(s, steady, NULL, args, results);
}

// The same step again and again takes no memory from the heap and makes no thread. How many
// buffers there must be depends on who overtakes whom, so the first steps do not count, nor does
// one of many.
TEST(a_steady_step_allocates_nothing)
{
	static const world_deal deals[] = { { 2, "cpu:0,cpu:1" }, { 5, "cpu:0,cpu:1" },
		{ 3, "cpu:0" } };
	for (int i = 0; i < 3; i++) {
		choir_strategy *s = world_new(deals[i].replicas, deals[i].devices, 0);
		choir_values *args = choir_values_new(s), *results = NULL;
		int quiet = 0;
		for (int step = 0; quiet < 50; step++) {
			const uint64_t before = chi_alloc_count();
			const int threads = threads_now();
			world_ok(run_steady(s, args, &results));
			quiet = chi_alloc_count() == before && threads_now() == threads ? quiet + 1 : 0;
			assert_in_range(step, 0, 1000);
		}
		choir_values_free(args);
		choir_values_free(results);
		choir_strategy_free(s);
	}
}

typedef struct {
	choir_strategy *strategy;
	pthread_t caller;
	atomic_int wrong;
} guest;

static choir_status be_a_guest(choir_replica *r, void *user)
{
	guest *g = user;
	sigset_t mask;
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	if (!pthread_equal(pthread_self(), g->caller) && !sigismember(&mask, SIGUSR1))
		g->wrong++;
	volatile float tiny = FLT_MIN;
	if (tiny / 2 == 0 || choir_replica_id(r) < 0)
		g->wrong++;
	return CHOIR_OK;
}

static void set_flush_to_zero(bool on)
{
#ifdef __SSE2__
	_mm_setcsr(on ? _mm_getcsr() | 0x8040u : _mm_getcsr() & ~0x8040u);
#else
	(void) on;
#endif
}

// Threads with all signals blocked; the caller's mask, affinity and floating point as they were;
// and numbers below the smallest normal one inside, whatever the host has set.
TEST(the_caller_keeps_its_things)
{
	cpu_set_t affinity, after;
	sigset_t mask, mask_after;
	sched_getaffinity(0, sizeof affinity, &affinity);
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	set_flush_to_zero(true);
	for (int pin = 0; pin < 2; pin++) {
		choir_strategy *s = choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
				.replicas = 5, .devices = "cpu:0,cpu:1", .pin = pin ? CHOIR_ON : CHOIR_OFF));
		guest g = { .strategy = s, .caller = pthread_self() };
		for (int i = 0; i < 3; i++)
			world_ok(choir_strategy_run(s, be_a_guest, &g, NULL, NULL));
		assert_int_equal(g.wrong, 0);
		choir_strategy_free(s);
	}
#ifdef __SSE2__
	assert_int_equal(_mm_getcsr() & 0x8040u, 0x8040u);
#endif
	set_flush_to_zero(false);
	sched_getaffinity(0, sizeof after, &after);
	pthread_sigmask(SIG_BLOCK, NULL, &mask_after);
	assert_true(CPU_EQUAL(&affinity, &after));
	for (int i = 1; i < 32; i++)
		assert_int_equal(sigismember(&mask, i), sigismember(&mask_after, i));
}

static choir_status leave_mess(choir_replica *r, void *user)
{
	(void) r, (void) user;
	set_flush_to_zero(true);
	return CHOIR_OK;
}

// A replica that changes the floating point changes it for nobody else.
TEST(a_replica_keeps_its_mess)
{
	choir_strategy *s = world_new(3, "cpu:0,cpu:1", 0);
	guest g = { .strategy = s, .caller = pthread_self() };
	world_ok(choir_strategy_run(s, leave_mess, NULL, NULL, NULL));
	volatile float tiny = FLT_MIN;
	assert_true(tiny / 2 > 0);
	world_ok(choir_strategy_run(s, be_a_guest, &g, NULL, NULL));
	assert_int_equal(g.wrong, 0);
	choir_strategy_free(s);
}

static int in_child(choir_strategy *s)
{
	choir_scope scope;
	alarm(20);
	if (choir_strategy_run(s, empty, NULL, NULL, NULL) != CHOIR_STATE ||
			!text_holds(choir_error(), "fork"))
		return 1;
	if (choir_scope_enter(&scope, s) != CHOIR_STATE || choir_strategy_cross(s) != NULL ||
			choir_values_new(s) != NULL)
		return 2;
#ifndef __SANITIZE_THREAD__ // which allows no threads in the child
	if (strstr(choir_device_name(choir_strategy_worker_device(s, 0)), "far") == NULL) {
		choir_strategy *own = choir_strategy_copy_new(s);
		world_works(own);
		choir_strategy_free(own);
	}
#endif
	choir_strategy_free(s);
	return 0;
}

// In the child of a fork a strategy says so, may be freed, and a new one works.
TEST(after_a_fork)
{
	static const world_deal deals[] = { { 5, "cpu:0,cpu:1" }, { 2, "far:0,far:1" } };
	for (int i = 0; i < 2; i++) {
		choir_strategy *s = world_new(deals[i].replicas, deals[i].devices, 0);
		world_works(s);
		const pid_t child = fork();
		if (child == 0)
			_exit(in_child(s));
		int status;
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
		world_works(s);
		choir_strategy_free(s);
	}
}

static choir_status leave_scope_open(choir_replica *r, void *user)
{
	static _Thread_local choir_scope scope;
	(void) user;
	return choir_replica_id(r) == 1 ? choir_scope_replica_local(&scope, CHOIR_AGGREGATION_SUM)
									: CHOIR_OK;
}

static choir_status fail_in_a_scope(choir_replica *r, void *user)
{
	choir_scope scope;
	(void) user;
	CHOIR_TRY(choir_scope_replica_local(&scope, CHOIR_AGGREGATION_SUM));
	if (choir_replica_id(r) == 1)
		return choir_fail(CHOIR_IO, "in a scope");
	return choir_scope_exit(&scope);
}

// spec: B31, E5, 2.2
TEST(an_open_scope_is_told_of)
{
	choir_strategy *s = world_new(2, "cpu:0", 0);
	world_failed(choir_strategy_run(s, leave_scope_open, NULL, NULL, NULL), CHOIR_STATE,
			"replica 1", "scope still open");
	// But not instead of what went wrong.
	world_failed(choir_strategy_run(s, fail_in_a_scope, NULL, NULL, NULL), CHOIR_IO,
			"replica 1: in a scope", NULL);
	world_works(s);
	choir_strategy_free(s);
}

static choir_status read_before_and_after(choir_replica *r, void *user)
{
	(void) user;
	return choir_replica_return(r, "n", choir_number(r->frame, choir_replica_id(r)));
}

// Results are a set of their own: the next run does not touch them unless it is given them.
// spec: 2.6
TEST(results_stay)
{
	choir_strategy *s = world_new(2, "cpu:0,cpu:1", 0);
	choir_values *first = NULL, *second = NULL;
	world_ok(choir_strategy_run(s, read_before_and_after, NULL, NULL, &first));
	world_ok(choir_strategy_run(s, read_before_and_after, NULL, NULL, &second));
	assert_ptr_not_equal(first, second);
	assert_float_equal((float) world_number_of(first, "n", 1), 1, 0);
	world_ok(choir_strategy_run(s, empty, NULL, NULL, &first));
	assert_null(choir_values_find(first, "n"));
	choir_values_free(first);
	choir_strategy_free(s);
	choir_values_free(second); // may outlive the strategy
}

TEST_BEFORE(world_watch)
