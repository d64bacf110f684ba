// The queue of closures, and the changes that servers remember, against a plain model.
#include "coordinator/closure_queue.h"
#include "coordinator/exactly_once.h"

#include "test.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <string.h>

static chi_closure *add(chi_closures *q)
{
	chi_closure *c = chi_closure_new(7, &(chi_pack){ 0 });
	assert_non_null(c);
	chi_closures_add(q, c);
	return c;
}

static bool finish(chi_closures *q, int worker, uint64_t id, choir_status status, const char *text)
{
	return chi_closures_finish(q, worker, id, status, text, "worker 1 (here)", &(chi_pack){ 0 });
}

static void count(void *user, const chi_closure *c)
{
	(void) c;
	++*(int *) user;
}

// spec: D17, 2.16
TEST(closures_are_given_in_order_and_retried_first)
{
	chi_closures q;
	chi_closure *c[6];
	chi_closures_init(&q, 2, 3);
	for (int i = 0; i < 6; i++)
		c[i] = add(&q);
	assert_null(chi_closures_give(&q)); // no worker
	assert_int_equal(chi_closures_join(&q), 0);
	assert_ptr_equal(chi_closures_give(&q), c[0]);
	assert_ptr_equal(chi_closures_give(&q), c[1]);
	assert_null(chi_closures_give(&q)); // it has two
	assert_int_equal(chi_closures_join(&q), 1);
	assert_ptr_equal(chi_closures_give(&q), c[2]);
	assert_true(finish(&q, 0, c[0]->id, CHOIR_OK, ""));
	assert_false(finish(&q, 0, c[0]->id, CHOIR_OK, ""));
	assert_false(finish(&q, 0, c[2]->id, CHOIR_OK, "")); // another's
	int ended = 0;
	chi_closures_lost(&q, 0, "killed", count, &ended);
	assert_int_equal(chi_closures_join(&q), 0);
	assert_ptr_equal(chi_closures_give(&q), c[1]);
	assert_int_equal(c[1]->attempt, 2);
	assert_int_equal(ended, 0);
	while (!chi_closures_idle(&q)) {
		(void) chi_closures_give(&q);
		for (int w = 0; w < 2; w++)
			if (q.worker[w].has.first != NULL)
				assert_true(finish(&q, w, q.worker[w].has.first->id, CHOIR_OK, ""));
	}
	for (int i = 0; i < 6; i++) {
		assert_int_equal(c[i]->state, CHI_CLOSURE_FINISHED);
		assert_int_equal(c[i]->status, CHOIR_OK);
		chi_closure_drop(c[i]);
	}
	chi_closures_free(&q);
}

TEST(a_quick_worker_has_more)
{
	chi_closures q;
	chi_closure *c[5];
	int ended = 0;
	chi_closures_init(&q, 1, 3);
	assert_int_equal(chi_closures_join(&q), 0);
	for (int i = 0; i < 5; i++)
		c[i] = add(&q);
	assert_ptr_equal(chi_closures_give(&q), c[0]);
	assert_null(chi_closures_give(&q));
	q.worker[0].more = 2;
	chi_closures_wants(&q, 0);
	assert_ptr_equal(chi_closures_give(&q), c[1]);
	assert_ptr_equal(chi_closures_give(&q), c[2]);
	assert_null(chi_closures_give(&q));
	assert_ptr_equal(chi_closures_find(&q, 0, c[1]->id), c[1]);
	assert_null(chi_closures_find(&q, 0, c[3]->id));
	chi_closures_lost(&q, 0, "killed", count, &ended);
	assert_int_equal(chi_closures_join(&q), 0); // its successor begins with one, in the same order
	assert_ptr_equal(chi_closures_give(&q), c[0]);
	assert_null(chi_closures_give(&q));
	assert_int_equal(ended, 0);
	for (int i = 0; i < 5; i++)
		chi_closure_drop(c[i]);
	chi_closures_free(&q);
}

// spec: D17, 2.16
TEST(the_first_failure_is_told_once_and_cancels_what_waits)
{
	chi_closures q;
	chi_closure *c[5];
	chi_closures_init(&q, 1, 3);
	(void) chi_closures_join(&q);
	(void) chi_closures_join(&q);
	for (int i = 0; i < 4; i++)
		c[i] = add(&q);
	while (chi_closures_give(&q) != NULL)
		;
	const int first = c[0]->worker;
	assert_true(finish(&q, first, c[0]->id, CHOIR_INVALID, "no such thing"));
	assert_int_equal(chi_closures_take_error(&q), CHOIR_OK); // one still runs
	c[4] = add(&q);
	assert_int_equal(c[4]->status, CHOIR_CANCELLED);
	assert_true(finish(&q, 1 - first, c[1]->id, CHOIR_IO, "a later failure"));
	assert_int_equal(chi_closures_take_error(&q), CHOIR_INVALID);
	assert_text_holds(choir_error(), "no such thing*closure 1*worker 1");
	assert_int_equal(chi_closures_take_error(&q), CHOIR_OK); // once
	static const choir_status status[] = { CHOIR_INVALID, CHOIR_IO, CHOIR_CANCELLED,
		CHOIR_CANCELLED, CHOIR_CANCELLED };
	for (int i = 0; i < 5; i++) {
		assert_int_equal(c[i]->status, status[i]);
		assert_non_null(c[i]->error);
		chi_closure_drop(c[i]);
	}
	c[0] = add(&q); // usable again
	assert_ptr_equal(chi_closures_give(&q), c[0]);
	chi_closure_drop(c[0]);
	chi_closures_free(&q);
}

// spec: D18, 2.16
TEST(a_closure_that_kills_workers_fails)
{
	chi_closures q;
	int ended = 0;
	chi_closures_init(&q, 2, 3);
	chi_closure *bad = add(&q), *other = add(&q);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(chi_closures_join(&q), 0);
		assert_ptr_equal(chi_closures_give(&q), bad);
		chi_closures_lost(&q, 0, "worker 0 (there): killed", count, &ended);
	}
	assert_int_equal(ended, 1);
	assert_int_equal(bad->status, CHOIR_PEER_LOST);
	assert_text_holds(bad->error, "closure 1*3*killed");
	assert_int_equal(other->status, CHOIR_CANCELLED);
	assert_int_equal(chi_closures_take_error(&q), CHOIR_PEER_LOST);
	chi_closure_drop(bad);
	chi_closure_drop(other);
	chi_closures_free(&q);
}

// Runs closures on n workers; returns the seconds for each.
static double run(int n, int closures)
{
	chi_closures q;
	chi_closures_init(&q, 2, 3);
	for (int i = 0; i < n; i++)
		assert_int_equal(chi_closures_join(&q), i);
	for (int i = 0; i < closures; i++)
		chi_closure_drop(add(&q));
	const double begin = chi_clock_now();
	int last = 0;
	for (int w = 0; !chi_closures_idle(&q); w = (w + 1) % n) {
		while (chi_closures_give(&q) != NULL)
			;
		if (q.worker[w].has.first != NULL) {
			assert_true(finish(&q, w, q.worker[w].has.first->id, CHOIR_OK, ""));
			last++;
		}
	}
	const double seconds = chi_clock_now() - begin;
	assert_int_equal(last, closures);
	chi_closures_free(&q);
	return seconds / closures;
}

TEST(a_thousand_workers_cost_no_more_for_each_closure)
{
	double few = 1, many = 1;
	for (int i = 0; i < 20; i++) { // the least of all: other programs disturb
		const double a = run(10, 30000), b = run(1000, 30000);
		few = a < few ? a : few;
		many = b < many ? b : many;
	}
	if (many > 4 * few) // 100 times as many workers would show 100
		fail_msg("%.3g us with 10 workers, %.3g us with 1000", few * 1e6, many * 1e6);
}

TEST(remembered_changes_are_those_of_a_plain_model)
{
	enum { CLOSURES = 40, ORDINALS = 6 };
	static bool model[CLOSURES + 1][ORDINALS];
	chi_exactly_once m = { 0 };
	uint32_t x = 5;
	memset(model, 0, sizeof model);
	for (int i = 0; i < 50000; i++) {
		x = x * 1664525u + 1013904223u;
		const uint64_t c = 1 + (x >> 8) % CLOSURES, o = (x >> 16) % ORDINALS;
		assert_int_equal(chi_exactly_once_have(&m, c, o), model[c][o]);
		if (x >> 28 == 0) {
			chi_exactly_once_forget(&m, c);
			memset(model[c], 0, sizeof model[c]);
		} else if (x >> 28 == 1) {
			chi_exactly_once_remove(&m, c, o);
			model[c][o] = false;
		} else if (!model[c][o]) {
			assert_int_equal(chi_exactly_once_add(&m, c, o), CHOIR_OK);
			model[c][o] = true;
		}
	}
	for (uint64_t c = 1; c <= CLOSURES; c++)
		chi_exactly_once_forget(&m, c);
	assert_int_equal(m.n, 0);
	assert_int_equal(chi_exactly_once_fence(&m, 9), CHOIR_OK);
	assert_true(chi_exactly_once_fenced(&m, 9) && !chi_exactly_once_fenced(&m, 8));
	chi_exactly_once_free(&m);
}
