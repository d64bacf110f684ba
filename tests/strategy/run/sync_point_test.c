// Meetings seen from inside: what is left of one whose preparation failed.
#include "strategy/run/sync_point.h"

#include "choir/op.h"
#include "strategy/world.h"
#include "test.h"

static choir_status refuse(chi_sync_point *m, chi_replica *r, void *user)
{
	(void) m, (void) r;
	++*(int *) user;
	return choir_fail(CHOIR_NO_MEMORY, "nothing is there for it");
}

static choir_status accept(chi_sync_point *m, chi_replica *r, void *user)
{
	(void) m, (void) r;
	++*(int *) user;
	return CHOIR_OK;
}

static chi_sync_point *arrive(chi_replica *r, chi_prepare_fn *prepare, int *calls)
{
	bool last;
	return chi_sync_point_arrive(
			r, CHI_SYNC_POINT_UPDATE, calls, 1, "a sync point", prepare, calls, &last);
}

static choir_status come(choir_replica *replica, void *user)
{
	chi_replica *r = chi_replica_of(replica);
	const chi_run *run = r->run;
	chi_sync_point *m = arrive(r, accept, user);
	WORLD_NEED(m != NULL && r->sequence == 1 && run->next_sync_point == 1);
	WORLD_NEED(arrive(r, refuse, user) == NULL);
	WORLD_NEED(r->sequence == 1 && run->next_sync_point == 1); // there is no second one
	return choir_error_status();
}

// spec: 2.1
TEST(a_meeting_that_cannot_be_prepared_is_none)
{
	choir_strategy *s = world_new(2, "cpu:0", 0); // replica 1 begins when the run has failed
	int calls = 0;
	world_failed(choir_strategy_run(s, come, &calls, NULL, NULL), CHOIR_NO_MEMORY,
			"nothing is there for it", NULL);
	assert_int_equal(calls, 2);
	world_works(s);
	choir_strategy_free(s);
}

typedef struct {
	choir_variable *a, *b;
	int how;
} difference;

static choir_status change(choir_update *u, void *user)
{
	(void) user;
	return choir_variable_assign(choir_update_variable(u), choir_number(u->frame, 1));
}

static choir_status change_too(choir_update *u, void *user)
{
	return change(u, user);
}

static choir_status differ(choir_replica *r, void *user)
{
	const difference *d = user;
	const int id = choir_replica_id(r);
	choir_tensor *t = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2, 2), 1);
	switch (d->how) {
	case 0:
		return choir_replica_all_reduce(r, id == 0 ? CHOIR_SUM : CHOIR_MEAN, t) == NULL
				? choir_error_status()
				: CHOIR_OK;
	case 1:
		return choir_variable_assign(id == 0 ? d->a : d->b, t);
	case 2:
		return choir_replica_update(r, d->a, id == 0 ? change : change_too, NULL);
	case 3:
		return choir_replica_all_gather(r, t, id) == NULL ? choir_error_status() : CHOIR_OK;
	case 4:
		return choir_replica_broadcast(r, t, id) == NULL ? choir_error_status() : CHOIR_OK;
	default:
		return choir_variable_new("new", CHOIR_SHAPE(2 + id), NULL) == NULL ? choir_error_status()
																			: CHOIR_OK;
	}
}

// Who comes first is a matter of luck, the text is not: the lower replica is the first in it, and
// each call says what sets it apart.
// spec: E6, 2.19
TEST(what_differs_is_named)
{
	static const struct {
		const char *first, *second;
	} texts[] = {
		{ "replica 0 is in all_reduce of f32 [2, 2], replica 1 in ",
				"all_reduce, mean of f32 [2" },
		{ "replica 0*assign of \"a\"*replica 1*assign of \"b\"", NULL },
		{ "in update of \"a\"", "with another function" },
		{ "replica 0 is in all_gather along axis 0", "replica 1 in all_gather along axis 1" },
		{ "replica 0 is in broadcast from replica 0", "replica 1 in broadcast from replica 1" },
		{ "replica 0 is in the creation of variable \"new\", ON_WRITE NONE f32 [2], replica 1",
				"variable \"new\", ON_WRITE NONE f32 [3]" },
	};
	for (int devices = 1; devices <= 2; devices++) {
		choir_strategy *s = world_new(2, devices == 1 ? "cpu:0" : "cpu:0,cpu:1", 0);
		difference d = { .how = 0 };
		const choir_variable_options mean = { .size = sizeof mean,
			.aggregation = CHOIR_AGGREGATION_MEAN };
		d.a = world_variable(s, "a", CHOIR_SHAPE(2, 2), &mean);
		d.b = world_variable(s, "b", CHOIR_SHAPE(2, 2), &mean);
		for (d.how = 0; d.how < 6; d.how++)
			for (int again = 0; again < 20; again++)
				world_failed(choir_strategy_run(s, differ, &d, NULL, NULL), CHOIR_STATE,
						texts[d.how].first, texts[d.how].second);
		world_works(s);
		choir_strategy_free(s);
	}
}

TEST_BEFORE(world_watch)
