// The suite of cross-device operations. A subject is set before its tests run; every test opens
// groups of its own. Threads of the tests are plain ones, as a table may expect of anybody.
#include "collective/ops_suite.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "collective/members.h"
#include "collective/oracle.h"
#include "short.h"
#include "test.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const ops_subject *subject;

static int max_members(void)
{
	return ops_subject_members(subject);
}

static bool on_host(const party *p)
{
	for (int i = 0; i < p->members; i++)
		if (!p->device[i]->host_memory)
			return false;
	return true;
}

static void sums_of_all_dtypes_and_sizes(void **state)
{
	(void) state;
	static const choir_dtype dtypes[] = { CHOIR_F32, CHOIR_F64, CHOIR_I32, CHOIR_I64, CHOIR_U8 };
	static const int64_t sizes[] = { 0, 1, 7, 8192, 8193, 20000 };
	party p;
	party_open(&p, subject, max_members(), 5);
	for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++)
		for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
			party_bring(&p, CHOIR_ALL_REDUCE, dtypes[d], sizes[s], d * 10 + s);
			assert_int_equal(party_meet(&p), CHOIR_OK);
			for (int i = 0; i < p.members; i++)
				party_check(&p, i, p.expected);
		}
	party_close(&p);
}

// The number of devices changes nothing, odd ones included.
static void sums_of_any_deal_of_replicas(void **state)
{
	(void) state;
	for (int members = 1; members <= max_members(); members++)
		for (int replicas = members; replicas <= 11; replicas += STRIDE) {
			party p;
			party_open(&p, subject, members, replicas);
			party_bring(&p, CHOIR_ALL_REDUCE, CHOIR_F32, 100, (uint64_t) replicas);
			assert_int_equal(party_meet(&p), CHOIR_OK);
			for (int i = 0; i < members; i++)
				party_check(&p, i, p.expected);
			party_close(&p);
		}
}

static void divisor_divides_the_sum(void **state)
{
	(void) state;
	static const choir_dtype dtypes[] = { CHOIR_F32, CHOIR_F64 };
	party p;
	party_open(&p, subject, max_members(), 6);
	for (size_t d = 0; d < 2; d++) {
		party_bring(&p, CHOIR_ALL_REDUCE, dtypes[d], 9000, d);
		oracle_divide(dtypes[d], p.expected, 3, p.elements);
		for (int i = 0; i < p.members; i++)
			p.member[i].c.divisor = 3;
		assert_int_equal(party_meet(&p), CHOIR_OK);
		for (int i = 0; i < p.members; i++)
			party_check(&p, i, p.expected);
	}
	party_close(&p);
}

// One replica, no addition at all, and yet a division.
static void a_single_part_is_copied_or_divided(void **state)
{
	(void) state;
	party p;
	party_open(&p, subject, 1, 1);
	party_bring(&p, CHOIR_ALL_REDUCE, CHOIR_F64, 10, 3);
	assert_int_equal(party_meet(&p), CHOIR_OK);
	party_check(&p, 0, p.all);
	p.member[0].c.divisor = 7;
	assert_int_equal(party_meet(&p), CHOIR_OK);
	oracle_divide(CHOIR_F64, p.expected, 7, 10);
	party_check(&p, 0, p.expected);
	party_close(&p);
}

static void only_who_wants_the_sum_gets_it(void **state)
{
	(void) state;
	party p;
	party_open(&p, subject, max_members(), 7);
	for (int root = 0; root < p.members; root++) {
		party_bring(&p, CHOIR_ALL_REDUCE, CHOIR_F32, 1000, (uint64_t) root);
		for (int i = 0; i < p.members; i++)
			if (i != root)
				p.member[i].c.result = NULL;
		assert_int_equal(party_meet(&p), CHOIR_OK);
		party_check(&p, root, p.expected);
	}
	party_close(&p);
}

static void broadcast_gives_what_the_root_has(void **state)
{
	(void) state;
	party p;
	party_open(&p, subject, max_members(), max_members());
	for (int root = 0; root < p.members; root++) {
		party_bring(&p, CHOIR_BROADCAST, CHOIR_I32, 9000, 40 + (uint64_t) root);
		for (int i = 0; i < p.members; i++) {
			p.member[i].c.root = root;
			p.member[i].c.n = i == root;
			if (i != root)
				chi_buffer_release(p.member[i].buffer[0]);
		}
		assert_int_equal(party_meet(&p), CHOIR_OK);
		for (int i = 0; i < p.members; i++)
			party_check(&p, i, (const char *) p.all + (size_t) root * 4 * 9000);
	}
	party_close(&p);
}

// Who is told of slices, and what is found there.
typedef struct {
	const party *party;
	atomic_uchar *seen; // of each element
	_Atomic int wrong;
} listener;

static choir_status listen(void *user, int64_t first, int64_t count, const void *data)
{
	listener *l = user;
	const size_t size = oracle_size(l->party->dtype);
	for (int64_t i = first; i < first + count; i++)
		l->seen[i]++;
	if (on_host(l->party) &&
			memcmp(data, (const char *) l->party->expected + (size_t) first * size,
					(size_t) count * size) != 0)
		l->wrong++;
	return CHOIR_OK;
}

static void check_listener(const listener *l, int times)
{
	for (int64_t i = 0; i < l->party->elements; i++)
		assert_int_equal(l->seen[i], times);
	assert_int_equal(l->wrong, 0);
}

// Each element once for each result that is not another's; results of NULL are one.
static void slices_are_told_of_once(void **state)
{
	(void) state;
	party p;
	party_open(&p, subject, max_members(), 6);
	for (int shared = 0; shared < 3; shared++) {
		if (shared == 1 && !on_host(&p))
			continue; // nobody else's memory could be named
		party_bring(&p, CHOIR_ALL_REDUCE, CHOIR_F32, 20000, (uint64_t) shared);
		listener l[MAX_MEMBERS];
		for (int i = 0; i < p.members; i++) {
			l[i] = (listener){ .party = &p, .seen = calloc(20000, sizeof(atomic_uchar)) };
			p.member[i].c.done = listen;
			p.member[i].c.user = &l[i];
			if (shared > 0)
				p.member[i].c.result = shared == 1 ? p.member[0].result->memory : NULL;
		}
		assert_int_equal(party_meet(&p), CHOIR_OK);
		for (int i = 0; i < p.members; i++) {
			check_listener(&l[i], shared == 0 || i == 0);
			free(l[i].seen);
		}
		if (shared < 2)
			party_check(&p, 0, p.expected);
	}
	party_close(&p);
}

static choir_status refuse(void *user, int64_t first, int64_t count, const void *data)
{
	(void) user, (void) count, (void) data;
	return first == 0 ? choir_fail(CHOIR_IO, "no room for slices") : CHOIR_OK;
}

// All members learn of it, and the group goes on.
static void a_listener_may_fail(void **state)
{
	(void) state;
	party p;
	party_open(&p, subject, max_members(), 4);
	party_bring(&p, CHOIR_ALL_REDUCE, CHOIR_F32, 9000, 1);
	p.member[0].c.done = refuse;
	for (int i = 0; i < p.members; i++)
		assert_int_equal(chi_communicator_join(&p.group, i, &p.member[i].c, &p.member[i].request),
				CHOIR_OK);
	for (int i = 0; i < p.members; i++) {
		choir_fail(CHOIR_INTERNAL, "something else");
		assert_int_equal(chi_communicator_wait(&p.group, i, p.member[i].request, 20), CHOIR_IO);
		assert_text_holds(choir_error(), "slices");
	}
	party_bring(&p, CHOIR_ALL_REDUCE, CHOIR_F32, 9000, 2);
	assert_int_equal(party_meet(&p), CHOIR_OK);
	party_check(&p, 0, p.expected);
	party_close(&p);
}

// Many at once, waited for in another order than joined.
static void tickets_are_waited_for_in_any_order(void **state)
{
	(void) state;
	enum { AT_ONCE = 24 };
	party p;
	party_open(&p, subject, max_members(), 4);
	party_bring(&p, CHOIR_ALL_REDUCE, CHOIR_F32, 300, 1);
	choir_collective(*c)[MAX_MEMBERS] = calloc(AT_ONCE, sizeof *c);
	uint64_t request[AT_ONCE][MAX_MEMBERS];
	for (int i = 0; i < p.members; i++)
		for (int k = 0; k < AT_ONCE; k++) {
			c[k][i] = p.member[i].c;
			c[k][i].sequence = (uint64_t) k;
			assert_int_equal(
					chi_communicator_join(&p.group, i, &c[k][i], &request[k][i]), CHOIR_OK);
		}
	for (int i = p.members - 1; i >= 0; i--)
		for (int k = AT_ONCE - 1; k >= 0; k--)
			assert_int_equal(chi_communicator_wait(&p.group, i, request[(k * 7) % AT_ONCE][i], 20),
					CHOIR_OK);
	for (int i = 0; i < p.members; i++)
		party_check(&p, i, p.expected);
	free(c);
	party_close(&p);
}

typedef struct {
	party *party;
	int index, rounds;
	choir_status status, first_status;
	char text[256];
} participant;

// A member of its own thread, which joins several before it waits.
static void *participate(void *user)
{
	participant *t = user;
	member *m = &t->party->member[t->index];
	enum { AHEAD = 5 };
	choir_collective c[AHEAD];
	uint64_t request[AHEAD];
	for (int round = 0; t->status == CHOIR_OK && round < t->rounds; round++) {
		const int n = 1 + round % AHEAD;
		for (int k = 0; t->status == CHOIR_OK && k < n; k++) {
			c[k] = m->c;
			c[k].sequence = (uint64_t) round * AHEAD + (uint64_t) k;
			t->status = chi_communicator_join(&t->party->group, t->index, &c[k], &request[k]);
		}
		for (int k = 0; t->status == CHOIR_OK && k < n; k++)
			t->status = chi_communicator_wait(&t->party->group, t->index, request[k], 20);
	}
	if (t->status != CHOIR_OK)
		strncpy(t->text, choir_error(), sizeof t->text - 1);
	return NULL;
}

// Runs all members on threads of their own; spoil: before it, on the caller's thread, if not NULL.
static void participate_all(party *p, int rounds, participant t[], void (*spoil)(party *p))
{
	pthread_t id[MAX_MEMBERS];
	for (int i = 0; i < p->members; i++) {
		t[i] = (participant){ .party = p, .index = i, .rounds = rounds };
		assert_int_equal(pthread_create(&id[i], NULL, participate, &t[i]), 0);
	}
	if (spoil != NULL)
		spoil(p);
	for (int i = 0; i < p->members; i++)
		pthread_join(id[i], NULL);
}

static void each_member_has_its_own_thread(void **state)
{
	(void) state;
	static const int64_t sizes[] = { 1, 100, 30000 };
	party p;
	party_open(&p, subject, max_members(), 5);
	for (size_t s = 0; s < 3; s++) {
		participant t[MAX_MEMBERS];
		party_bring(&p, CHOIR_ALL_REDUCE, CHOIR_F32, sizes[s], s);
		participate_all(&p, on_host(&p) && !SHORT ? 150 : 10, t, NULL);
		for (int i = 0; i < p.members; i++) {
			assert_int_equal(t[i].status, CHOIR_OK);
			party_check(&p, i, p.expected);
		}
	}
	party_close(&p);
}

// What makes a member's collective another one.
static void differ(choir_collective *c, int how)
{
	switch (how) {
	case 0:
		c->elements = 3;
		break;
	case 1:
		c->dtype = CHOIR_I32;
		break;
	case 2:
		c->kind = CHOIR_BROADCAST;
		break;
	case 3:
		c->sequence = 99;
		break;
	case 4:
		c->name = "another";
		break;
	}
}

// Named on all sides, and nobody hangs or reads beyond what a member has.
static void members_that_differ_are_named(void **state)
{
	(void) state;
	if (max_members() < 2)
		return;
	party p;
	party_open(&p, subject, max_members(), 4);
	for (int how = 0; how < 5; how++) {
		participant t[MAX_MEMBERS];
		party_bring(&p, CHOIR_ALL_REDUCE, CHOIR_F32, 30000, 1);
		differ(&p.member[1].c, how);
		if (how == 3) // participate sets it
			p.member[1].c.root = 1;
		participate_all(&p, 1, t, NULL);
		for (int i = 0; i < p.members; i++) {
			assert_int_equal(t[i].status, CHOIR_STATE);
			assert_non_null(strstr(t[i].text, "device 0"));
			assert_non_null(strstr(t[i].text, "device 1"));
		}
	}
	party_bring(&p, CHOIR_ALL_REDUCE, CHOIR_F32, 30000, 2);
	assert_int_equal(party_meet(&p), CHOIR_OK);
	party_check(&p, 1, p.expected);
	party_close(&p);
}

static void start_over(party *p)
{
	chi_communicator_abort(&p->group);
	chi_communicator_reset(&p->group);
	party_bring(p, CHOIR_ALL_REDUCE, CHOIR_F32, 500, 77);
	assert_int_equal(party_meet(p), CHOIR_OK);
	for (int i = 0; i < p->members; i++)
		party_check(p, i, p->expected);
}

static void who_waits_too_long_is_told(void **state)
{
	(void) state;
	if (max_members() < 2)
		return;
	party p;
	party_open(&p, subject, max_members(), 4);
	party_bring(&p, CHOIR_ALL_REDUCE, CHOIR_F32, 500, 1);
	for (int i = 1; i < p.members; i++)
		assert_int_equal(chi_communicator_join(&p.group, i, &p.member[i].c, &p.member[i].request),
				CHOIR_OK);
	const double before = chi_clock_now();
	assert_int_equal(chi_communicator_wait(&p.group, 1, p.member[1].request, 0.05), CHOIR_TIMEOUT);
	assert_text_holds(choir_error(), "suite");
	assert_true(chi_clock_now() - before >= 0.05);
	start_over(&p);
	party_close(&p);
}

static void abort_soon(party *p)
{
	usleep(20000);
	chi_communicator_abort(&p->group);
}

static void an_abort_ends_all_waits(void **state)
{
	(void) state;
	if (max_members() < 2)
		return;
	party p;
	participant t[MAX_MEMBERS];
	party_open(&p, subject, max_members(), 4);
	for (int i = 0; i < 5; i++) {
		party_bring(&p, CHOIR_ALL_REDUCE, CHOIR_F32, 500, 1);
		p.members--; // the last never comes
		participate_all(&p, 1, t, abort_soon);
		p.members++;
		for (int k = 0; k < p.members - 1; k++) {
			assert_int_equal(t[k].status, CHOIR_CANCELLED);
			assert_string_not_equal(t[k].text, "");
		}
		uint64_t request;
		assert_int_equal(chi_communicator_join(
								 &p.group, p.members - 1, &p.member[p.members - 1].c, &request),
				CHOIR_CANCELLED);
		start_over(&p);
	}
	party_close(&p);
}

// Aborts in the middle of work: whoever returns takes its memory away at once, so that anybody who
// still looks at it is found by the address sanitizer.
static void *join_and_free(void *user)
{
	participant *t = user;
	while (t->status == CHOIR_OK) {
		const member *m = &t->party->member[t->index];
		const bool host = m->device->host_memory;
		choir_collective *c = malloc(sizeof *c);
		choir_partial_sum *parts = malloc(m->c.n * sizeof *parts);
		*c = m->c;
		c->partial_sums = parts;
		for (size_t k = 0; k < m->c.n; k++) {
			parts[k] = m->part[k];
			if (host) {
				parts[k].data = malloc((size_t) t->party->elements * 4);
				memcpy(parts[k].data, m->part[k].data, (size_t) t->party->elements * 4);
			}
		}
		uint64_t request;
		t->status = chi_communicator_join(&t->party->group, t->index, c, &request);
		if (t->status == CHOIR_OK)
			t->status = chi_communicator_wait(&t->party->group, t->index, request, 20);
		for (size_t k = 0; host && k < m->c.n; k++)
			free(parts[k].data);
		free(parts);
		free(c);
	}
	return NULL;
}

static void an_abort_in_the_middle_of_work(void **state)
{
	(void) state;
	party p;
	party_open(&p, subject, max_members(), 7);
	for (int round = 0; round < (!on_host(&p) ? 8 : SHORT ? 20 : 60); round++) {
		participant t[MAX_MEMBERS];
		pthread_t id[MAX_MEMBERS];
		party_bring(&p, CHOIR_ALL_REDUCE, CHOIR_F32, 40000, (uint64_t) round);
		for (int i = 0; i < p.members; i++) {
			t[i] = (participant){ .party = &p, .index = i };
			assert_int_equal(pthread_create(&id[i], NULL, join_and_free, &t[i]), 0);
		}
		usleep((useconds_t) (round * 137 % 3000));
		chi_communicator_abort(&p.group);
		for (int i = 0; i < p.members; i++) {
			pthread_join(id[i], NULL);
			assert_int_equal(t[i].status, CHOIR_CANCELLED);
		}
		start_over(&p);
	}
	party_close(&p);
}

// A wait that is too late takes its memory away as well, while the one that was missing comes.
static void late_and_gone(void **state)
{
	(void) state;
	if (max_members() < 2)
		return;
	party p;
	party_open(&p, subject, 2, 2);
	for (int round = 0; round < (SHORT ? 10 : 30); round++) {
		party_bring(&p, CHOIR_ALL_REDUCE, CHOIR_F32, 40000, 1);
		choir_collective *c = malloc(sizeof *c);
		*c = p.member[0].c;
		c->sequence = 0; // as participate counts
		participant other = { .party = &p, .index = 1, .rounds = 1 };
		pthread_t id;
		uint64_t request;
		assert_int_equal(chi_communicator_join(&p.group, 0, c, &request), CHOIR_OK);
		assert_int_equal(pthread_create(&id, NULL, participate, &other), 0);
		choir_status status = chi_communicator_wait(&p.group, 0, request, 1e-5 * round);
		free(c);
		chi_communicator_abort(&p.group); // as who is too late must
		pthread_join(id, NULL);
		assert_true(status == CHOIR_OK || status == CHOIR_TIMEOUT);
		assert_true(other.status == CHOIR_OK || other.status == CHOIR_CANCELLED);
		start_over(&p);
	}
	party_close(&p);
}

static void allocations_may_fail(void **state)
{
	(void) state;
	uint64_t n = 1;
	for (bool failed = true; failed; n += n < 10 ? 1 : STRIDE) {
		party p;
		party_open(&p, subject, max_members(), 6);
		party_bring(&p, CHOIR_ALL_REDUCE, CHOIR_F32, 30000, n);
		chi_buffer_trim();
		chi_alloc_fail(n, false);
		const choir_status status = party_meet(&p);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
		if (failed)
			assert_string_not_equal(choir_error(), "");
		start_over(&p);
		party_close(&p);
	}
}

static void opening_may_fail(void **state)
{
	(void) state;
	for (uint64_t n = 1;; n++) {
		chi_communicator group = { 0 };
		choir_device *devices[MAX_MEMBERS];
		for (int i = 0; i < max_members(); i++)
			devices[i] = choir_device_find(subject->device[i]);
		chi_alloc_fail(n, false);
		const choir_status status =
				chi_communicator_open(&group, max_members(), 5, devices, subject->ops);
		const bool failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		chi_communicator_close(&group);
		if (!failed)
			break;
		assert_int_equal(status, CHOIR_NO_MEMORY);
		assert_string_not_equal(choir_error(), "");
	}
}

int ops_suite_run(const char *name, const ops_subject *s)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_of_all_dtypes_and_sizes),
		cmocka_unit_test(sums_of_any_deal_of_replicas),
		cmocka_unit_test(divisor_divides_the_sum),
		cmocka_unit_test(a_single_part_is_copied_or_divided),
		cmocka_unit_test(only_who_wants_the_sum_gets_it),
		cmocka_unit_test(broadcast_gives_what_the_root_has),
		cmocka_unit_test(slices_are_told_of_once),
		cmocka_unit_test(a_listener_may_fail),
		cmocka_unit_test(tickets_are_waited_for_in_any_order),
		cmocka_unit_test(each_member_has_its_own_thread),
		cmocka_unit_test(members_that_differ_are_named),
		cmocka_unit_test(who_waits_too_long_is_told),
		cmocka_unit_test(an_abort_ends_all_waits),
		cmocka_unit_test(an_abort_in_the_middle_of_work),
		cmocka_unit_test(late_and_gone),
		cmocka_unit_test(allocations_may_fail),
		cmocka_unit_test(opening_may_fail),
	};
	subject = s;
	return cmocka_run_group_tests_name(name, tests, NULL, NULL) + ops_stream_suite_run(name, s);
}
