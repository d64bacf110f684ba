// Workers that do alike: one mistake of all leaves the cluster usable, and what looks alike but is
// not - the same tensors in another order - is found before anything is done with it.
#include "peers.h"
#include "plain_kernels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static const peers_place places[] = { { 2, "cpu:0" }, { 4, "cpu:0" }, { 2, "cpu:0,cpu:1" },
	{ 2, "cpu:0;cpu:0,cpu:1" }, { 2, "far:0" } };
enum { PLACES = sizeof places / sizeof places[0] };

static void on_all_places(peers_fn *fn)
{
	for (int i = 0; i < PLACES; i++)
		peers_run(
				&(peers_job){ .replicas = 4, .place = places[i], .seed = (uint64_t) i, .fn = fn });
}

// ---- Failures.

typedef enum { IN_ALL_REDUCE, IN_MERGE, BY_ITSELF, AFTER_A_SUM } mistake;

typedef struct {
	mistake mistake;
	int only; // the worker that makes it; CHOIR_NONE: all
	int worker;
} erring;

static choir_status reduce_wrongly(choir_cross *x, void *user)
{
	(void) user;
	choir_value *v = choir_cross_arg(x, "x");
	return choir_cross_reduce(x, (choir_reduce_op) 7, v, CHOIR_NO_AXIS) == NULL
			? choir_error_status()
			: CHOIR_OK;
}

static choir_status err(choir_replica *r, void *user)
{
	const erring *w = user;
	choir_tensor *one = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(3), 1);
	if (w->only != CHOIR_NONE && w->only != w->worker)
		return choir_replica_all_reduce(r, CHOIR_SUM, one) == NULL ? choir_error_status()
																   : CHOIR_OK;
	if (w->mistake == BY_ITSELF)
		return choir_fail(CHOIR_IO, "the disk is full");
	if (w->mistake == AFTER_A_SUM && choir_replica_all_reduce(r, CHOIR_SUM, one) == NULL)
		return choir_error_status();
	if (w->mistake == IN_MERGE) {
		CHOIR_TRY(choir_replica_give(r, "x", one));
		return choir_replica_merge_call(r, reduce_wrongly, NULL);
	}
	return choir_replica_all_reduce(r, (choir_reduce_op) 7, one) == NULL ? choir_error_status()
																		 : CHOIR_OK;
}

static choir_status add_ones(choir_replica *r, void *user)
{
	double *sum = user;
	choir_tensor *t = choir_replica_all_reduce(
			r, CHOIR_SUM, choir_fill(r->frame, CHOIR_F64, CHOIR_SCALAR, 1));
	if (t != NULL && choir_replica_id(r) % 2 == 0)
		*sum = choir_tensor_number(t);
	return t == NULL ? choir_error_status() : CHOIR_OK;
}

static bool is_usable(choir_strategy *s)
{
	double sum = 0;
	return choir_strategy_run(s, add_ones, &sum, NULL, NULL) == CHOIR_OK &&
			(sum == 4 || sum == 0) && choir_cluster_barrier(choir_strategy_cluster(s)) == CHOIR_OK;
}

static const char *all_fail_alike(choir_strategy *s, int worker, void *user)
{
	static const char *const words[] = { "all_reduce: operation 7", "operation 7",
		"the disk is full", "all_reduce: operation 7" };
	(void) user;
	for (int i = IN_ALL_REDUCE; s != NULL && i <= AFTER_A_SUM; i++) {
		erring w = { (mistake) i, CHOIR_NONE, worker };
		const choir_status status = choir_strategy_run(s, err, &w, NULL, NULL);
		if (status == CHOIR_OK || status == CHOIR_CANCELLED ||
				strstr(choir_error(), words[i]) == NULL || !is_usable(s))
			return choir_error();
	}
	return s == NULL ? choir_error() : NULL;
}

// A mistake that all make is one worker's mistake: the others know of it.
// spec: 2.17
static void the_same_mistake(void **state)
{
	(void) state;
	on_all_places(all_fail_alike);
}

static const char *one_fails(choir_strategy *s, int worker, void *user)
{
	erring w = { BY_ITSELF, *(const int *) user, worker };
	if (s != NULL && choir_strategy_run(s, err, &w, NULL, NULL) == CHOIR_OK)
		return "the failure was lost";
	if (s != NULL && is_usable(s))
		return "the cluster goes on";
	return peers_last_failure(
			CHOIR_CANCELLED, w.only == worker ? "failed before" : "stopped: ", "the disk is full");
}

static const char *two_fail_otherwise(choir_strategy *s, int worker, void *user)
{
	erring w = { worker == 0 ? BY_ITSELF : IN_ALL_REDUCE, CHOIR_NONE, worker };
	(void) user;
	if (s != NULL && choir_strategy_run(s, err, &w, NULL, NULL) == CHOIR_OK)
		return "the failure was lost";
	if (s == NULL || choir_error_status() == CHOIR_CANCELLED) // it heard before it came to its own
		return peers_last_failure(CHOIR_CANCELLED, "stopped: ", "");
	if (strstr(choir_error(), worker == 0 ? "the disk is full" : "operation 7") == NULL)
		return choir_error(); // each has its own
	return is_usable(s) ? "the cluster goes on" : NULL;
}

// spec: 2.17
static void other_mistakes(void **state)
{
	(void) state;
	for (int i = 0; i < PLACES; i++)
		for (int only = 0; only < 2; only++)
			peers_run(&(peers_job){
					.replicas = 4, .place = places[i], .fn = one_fails, .user = &only });
	on_all_places(two_fail_otherwise);
}

static const char *reduces_wrongly(choir_strategy *s, int worker, void *user)
{
	(void) worker, (void) user;
	if (s == NULL)
		return choir_error();
	choir_values *set = choir_values_new(s);
	choir_frame *f = choir_values_frame(set);
	choir_status status = choir_values_set(set, "x", choir_tensor_value(choir_number(f, 1)));
	const bool made = status == CHOIR_OK &&
			choir_strategy_reduce(s, CHOIR_SUM, choir_values_find(set, "x"), CHOIR_NO_AXIS) !=
					NULL;
	const char *wrong = made || status != CHOIR_OK ? "a plain 1 has a SUM"
												   : peers_last_failure(CHOIR_INVALID, "SUM", "");
	choir_values_free(set);
	return wrong != NULL ? wrong : is_usable(s) ? NULL : choir_error();
}

// spec: 2.17
static void outside_of_runs(void **state)
{
	(void) state;
	on_all_places(reduces_wrongly);
}

// ---- Orders.

typedef struct {
	bool crosses; // worker 1 gives b before a
	bool more; // worker 1 makes something before
	int worker;
	double a, b;
} sums;

static choir_status sum_two(choir_replica *r, void *user)
{
	sums *s = user;
	choir_frame *f = r->frame;
	const double id = choir_replica_id(r);
	if (s->worker == 1 && s->more)
		choir_fill(f, CHOIR_F64, CHOIR_SHAPE(20), 3);
	choir_tensor *t[2] = { choir_fill(f, CHOIR_F32, CHOIR_SCALAR, 2 * id + 1),
		choir_fill(f, CHOIR_F32, CHOIR_SCALAR, 4 * id + 2) };
	const int first = s->worker == 1 && s->crosses;
	choir_tensor *one = choir_replica_all_reduce(r, CHOIR_SUM, t[first]);
	choir_tensor *two = choir_replica_all_reduce(r, CHOIR_SUM, t[!first]);
	if (two == NULL)
		return choir_error_status();
	if (choir_replica_id(r) % 2 == 0) {
		s->a = choir_tensor_number(first == 0 ? one : two);
		s->b = choir_tensor_number(first == 0 ? two : one);
	}
	return CHOIR_OK;
}

static const char *order_is_compared(choir_strategy *s, int worker, void *user)
{
	sums two = *(const sums *) user;
	two.worker = worker;
	const choir_status status =
			s == NULL ? choir_error_status() : choir_strategy_run(s, sum_two, &two, NULL, NULL);
	if (!two.crosses && status != CHOIR_OK)
		return choir_error();
	if (!two.crosses)
		return (two.a == 16 && two.b == 32) || (two.a == 0 && two.b == 0) ? NULL : "another sum";
	return status == CHOIR_OK ? "sums of other tensors"
							  : peers_last_or_heard(CHOIR_STATE, "worker", "another order");
}

// Two tensors of one shape would be added up crosswise, if nothing but shapes were compared.
// spec: 2.17
static void the_same_tensors_in_another_order(void **state)
{
	(void) state;
	for (int i = 0; i < PLACES; i++)
		for (int k = 0; k < 4; k++) {
			sums two = { .crosses = k % 2 == 1, .more = k / 2 == 1 };
			if (two.more && two.crosses)
				continue; // what all make in one order is all that can be told
			peers_run(&(peers_job){ .replicas = 4,
					.place = places[i],
					.seed = (uint64_t) k,
					.fn = order_is_compared,
					.user = &two });
		}
}

static choir_status sum_by_id(choir_replica *r, void *user)
{
	sums s = *(const sums *) user;
	s.worker = choir_replica_id(r);
	return sum_two(r, &s);
}

// spec: 2.17
static void replicas_of_one_process(void **state)
{
	(void) state;
	static const char *const devices[] = { "cpu:0,cpu:1", "cpu:0", "far:0,cpu:0" };
	for (int i = 0; i < 3; i++) {
		choir_strategy *s = choir_mirrored_strategy_new(CHOIR_OPTIONS(
				choir_strategy_options, .devices = devices[i], .replicas = 2, .timeout = 20));
		sums two = { .crosses = false, .more = true };
		assert_int_equal(choir_strategy_run(s, sum_by_id, &two, NULL, NULL), CHOIR_OK);
		two.crosses = true, two.more = false;
		assert_int_equal(choir_strategy_run(s, sum_by_id, &two, NULL, NULL), CHOIR_STATE);
		assert_non_null(strstr(choir_error(), "in another order"));
		choir_strategy_free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_mistake),
		cmocka_unit_test(other_mistakes),
		cmocka_unit_test(outside_of_runs),
		cmocka_unit_test(the_same_tensors_in_another_order),
		cmocka_unit_test(replicas_of_one_process),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
