// Teams: every piece is done once, by members that are who they say, also by threads that slept or
// come late; pieces have no team of their own; and what cannot be is said.
#include "base/team.h"

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/thread.h"
#include "test.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIECES = 97, MAX = 4 };

typedef struct {
	int members;
	chi_atomic32 done[PIECES];
	chi_atomic32 inside[MAX]; // threads that are in a piece as this member
	chi_atomic32 wrong;
} job;

static void piece(void *arg, int member, int64_t number)
{
	job *j = arg;
	if (member < 0 || member >= j->members || chi_atomic32_add(&j->inside[member], 1) != 0 ||
			chi_team_own_members() != 1)
		chi_atomic32_add(&j->wrong, 1);
	chi_atomic32_add(&j->done[number], 1);
	chi_atomic32_add(&j->inside[member], UINT32_MAX);
}

static void check(const job *j, int64_t pieces)
{
	assert_int_equal(chi_atomic32_load(&j->wrong), 0);
	for (int64_t i = 0; i < PIECES; i++)
		assert_int_equal(chi_atomic32_load(&j->done[i]), i < pieces);
}

TEST(every_piece_once)
{
	for (int spin = 0; spin < 2; spin++)
		for (int threads = 1; threads <= MAX; threads++) {
			chi_team *t = chi_team_new(
					&(chi_team_options){ .name = "team", .threads = threads, .spin = spin == 1 });
			assert_non_null(t);
			assert_int_equal(chi_team_members(t), threads);
			for (int64_t round = 0; round < 300; round++) {
				job j = { .members = threads };
				const int64_t pieces = round % (PIECES + 1);
				assert_int_equal(chi_team_run(t, pieces, piece, &j), CHOIR_OK);
				check(&j, pieces);
				if (round % 100 == 50)
					chi_thread_nap(1e-3); // until all sleep
			}
			chi_team_free(t);
		}
}

TEST(the_team_of_a_thread)
{
	chi_team *t = chi_team_new(&(chi_team_options){ .name = "team", .threads = 3 });
	job alone = { .members = 1 }, shared = { .members = 3 };
	assert_int_equal(chi_team_own_members(), 1);
	assert_int_equal(chi_team_share(PIECES, piece, &alone), CHOIR_OK);
	check(&alone, PIECES);
	assert_null(chi_team_use(t));
	assert_int_equal(chi_team_own_members(), 3);
	assert_int_equal(chi_team_share(PIECES, piece, &shared), CHOIR_OK);
	check(&shared, PIECES);
	assert_int_equal(chi_team_own_members(), 3); // again
	assert_ptr_equal(chi_team_use(NULL), t);
	chi_team_free(t);
	chi_team_free(NULL);
}

TEST(in_a_child)
{
	chi_team *t = chi_team_new(&(chi_team_options){ .name = "team", .threads = 2 });
	job j = { .members = 2 };
	assert_int_equal(chi_team_run(t, 2, piece, &j), CHOIR_OK);
	const pid_t child = fork();
	if (child == 0) {
		const bool refused = chi_team_run(t, 2, piece, &j) == CHOIR_STATE &&
				text_holds(choir_error(), "team:*after");
		chi_team_free(t);
		_exit(refused ? 0 : 1);
	}
	int status = 1;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	chi_team_free(t);
}

TEST(every_allocation_fails)
{
	for (uint64_t n = 1;; n++) {
		chi_alloc_fail(n, false);
		chi_team *t = chi_team_new(&(chi_team_options){ .name = "team", .threads = 2 });
		const bool failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(t == NULL, failed);
		chi_team_free(t);
		if (!failed)
			break;
	}
}
