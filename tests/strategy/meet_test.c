// Meetings seen from inside: what is left of one whose preparation failed.
#include "strategy/run/meet.h"

#include "strategy/world.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static choir_status refuse(chi_meet *m, chi_replica *r, void *user)
{
	(void) m, (void) r;
	++*(int *) user;
	return choir_fail(CHOIR_NO_MEMORY, "nothing is there for it");
}

static choir_status accept(chi_meet *m, chi_replica *r, void *user)
{
	(void) m, (void) r;
	++*(int *) user;
	return CHOIR_OK;
}

static chi_meet *arrive(chi_replica *r, chi_prepare_fn *prepare, int *calls)
{
	bool last;
	return chi_meet_arrive(r, CHI_MEET_UPDATE, calls, 1, "a meeting", prepare, calls, &last);
}

static choir_status come(choir_replica *replica, void *user)
{
	chi_replica *r = chi_replica_of(replica);
	const chi_run *run = r->run;
	chi_meet *m = arrive(r, accept, user);
	WORLD_NEED(m != NULL && r->sequence == 1 && run->next_meet == 1);
	WORLD_NEED(arrive(r, refuse, user) == NULL);
	WORLD_NEED(r->sequence == 1 && run->next_meet == 1); // there is no second one
	return choir_error_status();
}

// spec: 2.1
static void a_meeting_that_cannot_be_prepared_is_none(void **state)
{
	(void) state;
	choir_strategy *s = world_new(2, "cpu:0", 0); // replica 1 begins when the run has failed
	int calls = 0;
	world_failed(choir_strategy_run(s, come, &calls, NULL, NULL), CHOIR_NO_MEMORY,
			"nothing is there for it", NULL);
	assert_int_equal(calls, 2);
	world_works(s);
	choir_strategy_free(s);
}

int main(void)
{
	world_watch();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_meeting_that_cannot_be_prepared_is_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
