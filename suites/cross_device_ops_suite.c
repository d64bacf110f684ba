// The checks of cross-device operations. Sums are compared bit by bit with those of the canonical
// tree. Members run on one thread and on threads of their own.
#include "cross_device_group.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void sleep_for(double seconds)
{
	nanosleep(&(struct timespec){ .tv_nsec = (long) (seconds * 1e9) }, NULL);
}

static choir_status need(bool good, const char *what)
{
	return good ? CHOIR_OK : choir_fail(CHOIR_INTERNAL, "%s is needed", what);
}

static choir_status join(chi_group *g, int i, const choir_collective *c, uint64_t *request)
{
	return chi_suite_expect("join", g->t->join(g->self, i, c, request), CHOIR_OK);
}

static choir_status sums_have_the_bits_of_the_tree(chi_group *g)
{
	static const choir_dtype dtypes[] = { CHOIR_F32, CHOIR_F64, CHOIR_I32, CHOIR_I64, CHOIR_U8,
		CHOIR_F16, CHOIR_BF16 };
	static const int64_t sizes[] = { 0, 1, 7, 8192, 8193, 20000 };
	CHOIR_TRY(chi_group_open(g, g->most, 5));
	// Not all devices with memory of their own add numbers of 16 bits.
	const size_t n = sizeof dtypes / sizeof dtypes[0] - (chi_group_is_on_host(g) ? 0 : 2);
	for (size_t d = 0; d < n; d++)
		for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
			CHOIR_TRY(chi_group_bring(g, CHOIR_ALL_REDUCE, dtypes[d], sizes[s], d * 10 + s));
			CHOIR_TRY(chi_group_meet(g));
			CHOIR_TRY(chi_group_check_all(g));
		}
	return CHOIR_OK;
}

static choir_status any_number_of_replicas(chi_group *g)
{
	for (int members = 1; members <= g->most; members++)
		for (int replicas = members; replicas <= 11; replicas += members < 3 ? 1 : 2) {
			CHOIR_TRY(chi_group_open(g, members, replicas));
			CHOIR_TRY(chi_group_bring(g, CHOIR_ALL_REDUCE, CHOIR_F32, 100, (uint64_t) replicas));
			CHOIR_TRY(chi_group_meet(g));
			CHOIR_TRY(chi_group_check_all(g));
		}
	return CHOIR_OK;
}

static choir_status divide(chi_group *g, choir_dtype dtype, int64_t elements)
{
	CHOIR_TRY(chi_group_bring(g, CHOIR_ALL_REDUCE, dtype, elements, (uint64_t) dtype));
	CHOIR_TRY(chi_group_divide(g, 3));
	for (int i = 0; i < g->group.members; i++)
		g->member[i].c.divisor = 3;
	CHOIR_TRY(chi_group_meet(g));
	return chi_group_check_all(g);
}

static choir_status a_divisor_divides_the_sum(chi_group *g)
{
	CHOIR_TRY(chi_group_open(g, g->most, 6));
	CHOIR_TRY(divide(g, CHOIR_F32, 9000));
	CHOIR_TRY(divide(g, CHOIR_F64, 9000));
	CHOIR_TRY(chi_group_open(g, 1, 1)); // no addition at all
	return divide(g, CHOIR_F64, 10);
}

// What is queued after the wait sees the result, and writes the partial sums of the next sum.
static choir_status results_come_in_stream_order(chi_group *g)
{
	static const int64_t sizes[] = { 20000, 20000, 3, 20000, 0, 70000, 20000 };
	CHOIR_TRY(chi_group_open(g, g->most, 6));
	for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
		const double divisor = k % 3 == 2 ? 3 : 1;
		CHOIR_TRY(chi_group_bring(g, CHOIR_ALL_REDUCE, CHOIR_F32, sizes[k], k));
		if (divisor != 1)
			CHOIR_TRY(chi_group_divide(g, divisor));
		for (int i = 0; i < g->group.members; i++) {
			g->member[i].c.in_stream = true;
			g->member[i].c.divisor = divisor;
		}
		CHOIR_TRY(chi_group_meet(g));
		CHOIR_TRY(chi_group_check_all(g));
	}
	return CHOIR_OK;
}

static choir_status only_members_that_want_it_get_a_result(chi_group *g)
{
	CHOIR_TRY(chi_group_open(g, g->most, 7));
	for (int root = 0; root < g->most; root++) {
		CHOIR_TRY(chi_group_bring(g, CHOIR_ALL_REDUCE, CHOIR_F32, 1000, (uint64_t) root));
		for (int i = 0; i < g->most; i++)
			if (i != root)
				g->member[i].c.result = NULL;
		CHOIR_TRY(chi_group_meet(g));
		CHOIR_TRY(chi_group_check(g, root, g->expected));
	}
	return CHOIR_OK;
}

static choir_status a_broadcast_gives_what_the_root_has(chi_group *g)
{
	CHOIR_TRY(chi_group_open(g, g->most, g->most));
	for (int root = 0; root < g->most; root++) {
		CHOIR_TRY(chi_group_bring(g, CHOIR_BROADCAST, CHOIR_I32, 9000, 40 + (uint64_t) root));
		for (int i = 0; i < g->most; i++) {
			g->member[i].c.root = root;
			g->member[i].c.n = i == root;
		}
		CHOIR_TRY(chi_group_meet(g));
		for (int i = 0; i < g->most; i++)
			CHOIR_TRY(chi_group_check(g, i, g->all + (size_t) root * g->bytes));
	}
	return CHOIR_OK;
}

// Counts how often done is called for each element, and compares the data.
enum { HEARD = 20000 };
typedef struct {
	const chi_group *g;
	atomic_uchar seen[HEARD];
	atomic_int wrong;
} listener;

static choir_status listen(void *user, int64_t first, int64_t count, const void *data)
{
	listener *l = user;
	for (int64_t i = first; i < first + count; i++)
		l->seen[i]++;
	if (chi_group_is_on_host(l->g) &&
			memcmp(data, l->g->expected + (size_t) first * 4, (size_t) count * 4) != 0)
		l->wrong++;
	if (first % 8192 != 0 || (count % 8192 != 0 && first + count != HEARD))
		l->wrong++;
	return CHOIR_OK;
}

// Once for each result that is not another's; results of NULL are one.
static choir_status hear(chi_group *g, listener l[], int shared)
{
	CHOIR_TRY(chi_group_bring(g, CHOIR_ALL_REDUCE, CHOIR_F32, HEARD, (uint64_t) shared));
	memset(l, 0, CHI_MEMBERS * sizeof *l);
	for (int i = 0; i < g->most; i++) {
		l[i].g = g;
		g->member[i].c.done = listen;
		g->member[i].c.user = &l[i];
		if (shared > 0)
			g->member[i].c.result = shared == 1 ? g->member[0].result : NULL;
	}
	CHOIR_TRY(chi_group_meet(g));
	for (int64_t k = 0; k < HEARD; k++) {
		int times = 0;
		for (int i = 0; i < g->most; i++) {
			times += l[i].seen[k];
			if (shared == 0 && l[i].seen[k] != 1)
				return choir_fail(CHOIR_INTERNAL,
						"done is called %d times for element %lld of member %d; once is needed",
						l[i].seen[k], (long long) k, i);
		}
		if (shared > 0 && times != 1)
			return choir_fail(CHOIR_INTERNAL,
					"done is called %d times for element %lld of a shared result; once is needed",
					times, (long long) k);
	}
	for (int i = 0; i < g->most; i++)
		CHOIR_TRY(need(l[i].wrong == 0, "done with final data, in chunks of 8192 elements,"));
	return shared < 2 ? chi_group_check(g, 0, g->expected) : CHOIR_OK;
}

static choir_status done_is_called_once(chi_group *g)
{
	CHOIR_TRY(chi_group_open(g, g->most, 6));
	listener *l = calloc(CHI_MEMBERS, sizeof *l);
	choir_status status =
			l == NULL ? choir_fail(CHOIR_NO_MEMORY, "suite: %d listeners", CHI_MEMBERS) : CHOIR_OK;
	for (int shared = 0; shared < 3 && status == CHOIR_OK; shared++)
		if (shared != 1 || chi_group_is_on_host(g))
			status = hear(g, l, shared);
	free(l);
	return status;
}

static choir_status refuse(void *user, int64_t first, int64_t count, const void *data)
{
	(void) user, (void) count, (void) data;
	return first == 0 ? choir_fail(CHOIR_IO, "no room for slices") : CHOIR_OK;
}

// All members get the failure, and the group works on.
static choir_status done_may_fail(chi_group *g)
{
	CHOIR_TRY(chi_group_open(g, g->most, 4));
	CHOIR_TRY(chi_group_bring(g, CHOIR_ALL_REDUCE, CHOIR_F32, 9000, 1));
	g->member[0].c.done = refuse;
	for (int i = 0; i < g->most; i++)
		CHOIR_TRY(join(g, i, &g->member[i].c, &g->member[i].request));
	for (int i = 0; i < g->most; i++) {
		choir_fail(CHOIR_INTERNAL, "something else");
		CHOIR_TRY(chi_suite_expect("wait after done fails",
				g->t->wait(g->self, i, g->member[i].request, 20), CHOIR_IO));
		CHOIR_TRY(need(strstr(choir_error(), "slices") != NULL, "the text of done"));
	}
	CHOIR_TRY(chi_group_bring(g, CHOIR_ALL_REDUCE, CHOIR_F32, 9000, 2));
	CHOIR_TRY(chi_group_meet(g));
	return chi_group_check_all(g);
}

static choir_status requests_end_in_any_order(chi_group *g)
{
	enum { AT_ONCE = 24 };
	static choir_collective c[AT_ONCE][CHI_MEMBERS];
	uint64_t request[AT_ONCE][CHI_MEMBERS];
	CHOIR_TRY(chi_group_open(g, g->most, 4));
	CHOIR_TRY(chi_group_bring(g, CHOIR_ALL_REDUCE, CHOIR_F32, 300, 1));
	for (int i = 0; i < g->most; i++)
		for (int k = 0; k < AT_ONCE; k++) {
			c[k][i] = g->member[i].c;
			c[k][i].sequence = (uint64_t) k;
			CHOIR_TRY(join(g, i, &c[k][i], &request[k][i]));
		}
	for (int i = g->most - 1; i >= 0; i--)
		for (int k = AT_ONCE - 1; k >= 0; k--)
			CHOIR_TRY(chi_suite_expect(
					"wait", g->t->wait(g->self, i, request[(k * 7) % AT_ONCE][i], 20), CHOIR_OK));
	return chi_group_check_all(g);
}

// A member on a thread of its own.
typedef struct {
	chi_group *g;
	int index, rounds;
	choir_status status;
	char text[256];
} participant;

// Joins several collectives before it waits.
static void *participate(void *user)
{
	participant *t = user;
	const chi_group *g = t->g;
	enum { AHEAD = 5 };
	choir_collective c[AHEAD];
	uint64_t request[AHEAD];
	for (int round = 0; t->status == CHOIR_OK && round < t->rounds; round++) {
		const int n = 1 + round % AHEAD;
		for (int k = 0; t->status == CHOIR_OK && k < n; k++) {
			c[k] = g->member[t->index].c;
			c[k].sequence = (uint64_t) round * AHEAD + (uint64_t) k;
			t->status = g->t->join(g->self, t->index, &c[k], &request[k]);
		}
		for (int k = 0; t->status == CHOIR_OK && k < n; k++)
			t->status = g->t->wait(g->self, t->index, request[k], 20);
	}
	if (t->status != CHOIR_OK)
		snprintf(t->text, sizeof t->text, "%s", choir_error());
	return NULL;
}

// Runs members 0 .. n - 1 on threads. meanwhile may be NULL; it runs on the caller's thread.
static choir_status run_threads(chi_group *g, int n, void *(*fn)(void *), participant t[],
		int rounds, void (*meanwhile)(chi_group *g))
{
	pthread_t id[CHI_MEMBERS];
	int begun = 0;
	for (; begun < n; begun++) {
		t[begun] = (participant){ .g = g, .index = begun, .rounds = rounds };
		if (pthread_create(&id[begun], NULL, fn, &t[begun]) != 0)
			break;
	}
	if (begun < n)
		g->t->abort(g->self);
	else if (meanwhile != NULL)
		meanwhile(g);
	for (int i = 0; i < begun; i++)
		pthread_join(id[i], NULL);
	return begun == n ? CHOIR_OK : choir_fail(CHOIR_NO_MEMORY, "suite: a thread");
}

static choir_status expect_all(const participant t[], int n, const char *when, choir_status needed)
{
	for (int i = 0; i < n; i++)
		if (t[i].status != needed)
			return choir_fail(CHOIR_INTERNAL, "%s, member %d gets %s: %.150s; %s is needed", when,
					i, choir_status_name(t[i].status), t[i].text, choir_status_name(needed));
	return CHOIR_OK;
}

static choir_status members_have_their_own_threads(chi_group *g)
{
	static const int64_t sizes[] = { 1, 100, 30000 };
	participant t[CHI_MEMBERS];
	CHOIR_TRY(chi_group_open(g, g->most, 5));
	for (size_t s = 0; s < 3; s++) {
		CHOIR_TRY(chi_group_bring(g, CHOIR_ALL_REDUCE, CHOIR_F32, sizes[s], s));
		CHOIR_TRY(
				run_threads(g, g->most, participate, t, chi_group_is_on_host(g) ? 60 : 10, NULL));
		CHOIR_TRY(expect_all(t, g->most, "on threads", CHOIR_OK));
		CHOIR_TRY(chi_group_check_all(g));
	}
	return CHOIR_OK;
}

// What makes a member's collective differ.
enum { ELEMENTS, DTYPE, KIND, ROOT, NAME, WAYS };

static void differ(choir_collective *c, int way)
{
	if (way == ELEMENTS)
		c->elements = 3;
	else if (way == DTYPE)
		c->dtype = CHOIR_I32;
	else if (way == KIND)
		c->kind = CHOIR_BROADCAST;
	else if (way == ROOT)
		c->root = 1;
	else
		c->name = "another";
}

// All members fail, and none reads beyond what another has.
static choir_status members_that_differ_are_named(chi_group *g)
{
	participant t[CHI_MEMBERS];
	if (g->most < 2)
		return CHOIR_OK;
	CHOIR_TRY(chi_group_open(g, g->most, 4));
	for (int way = 0; way < WAYS; way++) {
		CHOIR_TRY(chi_group_bring(g, CHOIR_ALL_REDUCE, CHOIR_F32, 30000, 1));
		differ(&g->member[1].c, way);
		CHOIR_TRY(run_threads(g, g->most, participate, t, 1, NULL));
		CHOIR_TRY(expect_all(t, g->most, "if members differ", CHOIR_STATE));
		for (int i = 0; i < g->most; i++)
			CHOIR_TRY(need(strcmp(t[i].text, t[0].text) == 0, "the same text for all members"));
		CHOIR_TRY(need(
				strstr(t[0].text, "device 0") != NULL && strstr(t[0].text, "device 1") != NULL,
				"a text with \"device 0\" and \"device 1\""));
	}
	CHOIR_TRY(chi_group_bring(g, CHOIR_ALL_REDUCE, CHOIR_F32, 30000, 2));
	CHOIR_TRY(chi_group_meet(g));
	return chi_group_check_all(g);
}

// After an abort and a reset the group works as before.
static choir_status start_over(chi_group *g)
{
	g->t->abort(g->self);
	g->t->reset(g->self);
	CHOIR_TRY(chi_group_bring(g, CHOIR_ALL_REDUCE, CHOIR_F32, 500, 77));
	CHOIR_TRY(chi_group_meet(g));
	return chi_group_check_all(g);
}

static choir_status a_wait_has_an_end(chi_group *g)
{
	struct timespec before, after;
	if (g->most < 2)
		return CHOIR_OK;
	CHOIR_TRY(chi_group_open(g, g->most, 4));
	CHOIR_TRY(chi_group_bring(g, CHOIR_ALL_REDUCE, CHOIR_F32, 500, 1));
	for (int i = 1; i < g->most; i++)
		CHOIR_TRY(join(g, i, &g->member[i].c, &g->member[i].request));
	clock_gettime(CLOCK_MONOTONIC, &before);
	const choir_status status = g->t->wait(g->self, 1, g->member[1].request, 0.05);
	clock_gettime(CLOCK_MONOTONIC, &after);
	CHOIR_TRY(chi_suite_expect("wait for a member that does not join", status, CHOIR_TIMEOUT));
	const double waited = (double) (after.tv_sec - before.tv_sec) +
			1e-9 * (double) (after.tv_nsec - before.tv_nsec);
	CHOIR_TRY(need(waited >= 0.05 && waited < 15, "a wait of 0.05 s that takes 0.05 to 15 s"));
	return start_over(g);
}

static void abort_soon(chi_group *g)
{
	sleep_for(0.02);
	g->t->abort(g->self);
}

static choir_status an_abort_ends_all_waits(chi_group *g)
{
	participant t[CHI_MEMBERS];
	uint64_t request;
	if (g->most < 2)
		return CHOIR_OK;
	CHOIR_TRY(chi_group_open(g, g->most, 4));
	for (int i = 0; i < 3; i++) {
		const int last = g->most - 1; // which never joins
		CHOIR_TRY(chi_group_bring(g, CHOIR_ALL_REDUCE, CHOIR_F32, 500, 1));
		CHOIR_TRY(run_threads(g, last, participate, t, 1, abort_soon));
		CHOIR_TRY(expect_all(t, last, "after an abort", CHOIR_CANCELLED));
		CHOIR_TRY(chi_suite_expect("join after an abort",
				g->t->join(g->self, last, &g->member[last].c, &request), CHOIR_CANCELLED));
		CHOIR_TRY(start_over(g));
	}
	return CHOIR_OK;
}

// A member's collective and partial sums in memory of their own.
typedef struct {
	choir_collective c;
	choir_partial_sum part[2 * CHI_REPLICAS];
} duplicate;

static void duplicate_free(const chi_group *g, duplicate *d)
{
	for (size_t k = 0; d != NULL && k < d->c.n && chi_group_is_on_host(g); k++)
		free(d->part[k].data);
	free(d);
}

// NULL: there is no memory.
static duplicate *duplicate_new(const chi_group *g, const chi_member *m)
{
	duplicate *d = malloc(sizeof *d);
	if (d == NULL)
		return NULL;
	d->c = m->c;
	d->c.partial_sums = d->part;
	for (d->c.n = 0; d->c.n < m->c.n; d->c.n++) {
		choir_partial_sum *part = &d->part[d->c.n];
		*part = m->part[d->c.n];
		if (!chi_group_is_on_host(g))
			continue;
		part->data = malloc(g->bytes);
		if (part->data == NULL) {
			duplicate_free(g, d);
			return NULL;
		}
		memcpy(part->data, m->part[d->c.n].data, g->bytes);
	}
	return d;
}

// A member frees its memory as soon as its wait returns. The address sanitizer then finds a
// collective that still uses the memory.
static void *join_and_free(void *user)
{
	participant *t = user;
	const chi_group *g = t->g;
	while (t->status == CHOIR_OK) {
		uint64_t request;
		duplicate *d = duplicate_new(g, &g->member[t->index]);
		t->status = d == NULL ? CHOIR_NO_MEMORY : g->t->join(g->self, t->index, &d->c, &request);
		if (t->status == CHOIR_OK)
			t->status = g->t->wait(g->self, t->index, request, 20);
		duplicate_free(g, d);
	}
	return NULL;
}

static void abort_in_the_middle(chi_group *g)
{
	sleep_for((double) (g->member[0].c.sequence * 137 % 3000) * 1e-6);
	g->t->abort(g->self);
}

static choir_status an_abort_in_the_middle_of_work(chi_group *g)
{
	participant t[CHI_MEMBERS];
	CHOIR_TRY(chi_group_open(g, g->most, 7));
	for (int round = 0; round < (chi_group_is_on_host(g) ? 20 : 6); round++) {
		CHOIR_TRY(chi_group_bring(g, CHOIR_ALL_REDUCE, CHOIR_F32, 40000, (uint64_t) round));
		CHOIR_TRY(run_threads(g, g->most, join_and_free, t, 1, abort_in_the_middle));
		CHOIR_TRY(expect_all(t, g->most, "after an abort", CHOIR_CANCELLED));
		CHOIR_TRY(start_over(g));
	}
	return CHOIR_OK;
}

// A wait that times out frees its memory, while the missing member joins.
static choir_status a_late_member_uses_no_memory(chi_group *g)
{
	if (g->most < 2)
		return CHOIR_OK;
	CHOIR_TRY(chi_group_open(g, 2, 2));
	for (int round = 0; round < 12; round++) {
		CHOIR_TRY(chi_group_bring(g, CHOIR_ALL_REDUCE, CHOIR_F32, 40000, 1));
		duplicate *d = duplicate_new(g, &g->member[0]);
		if (d == NULL)
			return choir_fail(CHOIR_NO_MEMORY, "suite: partial sums");
		d->c.sequence = 0; // as participate counts
		participant other = { .g = g, .index = 1, .rounds = 1 };
		pthread_t id;
		uint64_t request;
		const bool joined = g->t->join(g->self, 0, &d->c, &request) == CHOIR_OK;
		const bool begun = pthread_create(&id, NULL, participate, &other) == 0;
		const choir_status status =
				joined ? g->t->wait(g->self, 0, request, 3e-5 * round) : CHOIR_INTERNAL;
		duplicate_free(g, d);
		g->t->abort(g->self); // as Choir does after a timeout
		if (begun)
			pthread_join(id, NULL);
		CHOIR_TRY(need(status == CHOIR_OK || status == CHOIR_TIMEOUT, "OK or TIMEOUT"));
		CHOIR_TRY(need(other.status == CHOIR_OK || other.status == CHOIR_CANCELLED,
				"OK or CANCELLED of the late member"));
		CHOIR_TRY(start_over(g));
	}
	return CHOIR_OK;
}

static const struct {
	const char *name;
	choir_status (*fn)(chi_group *g);
} checks[] = {
	{ "sums have the bits of the tree", sums_have_the_bits_of_the_tree },
	{ "any number of replicas", any_number_of_replicas },
	{ "a divisor divides the sum", a_divisor_divides_the_sum },
	{ "results come in stream order", results_come_in_stream_order },
	{ "only members that want it get a result", only_members_that_want_it_get_a_result },
	{ "a broadcast gives what the root has", a_broadcast_gives_what_the_root_has },
	{ "done is called once", done_is_called_once },
	{ "done may fail", done_may_fail },
	{ "requests end in any order", requests_end_in_any_order },
	{ "members have their own threads", members_have_their_own_threads },
	{ "members that differ are named", members_that_differ_are_named },
	{ "a wait has an end", a_wait_has_an_end },
	{ "an abort ends all waits", an_abort_ends_all_waits },
	{ "an abort in the middle of work", an_abort_in_the_middle_of_work },
	{ "a late member uses no memory", a_late_member_uses_no_memory },
};

choir_status chi_suite_cross_device_ops(const choir_suite_options *o, chi_suite_tally *t)
{
	const choir_cross_device_ops_table *table = o->cross_device_ops;
	CHOIR_TRY(chi_suite_check_table("cross-device operations", table, sizeof *table, table->name));
	const char *missing = table->join == NULL ? "join"
			: table->wait == NULL			  ? "wait"
			: table->abort == NULL			  ? "abort"
			: table->reset == NULL			  ? "reset"
											  : NULL;
	if (missing != NULL)
		return choir_fail(CHOIR_INVALID,
				"suite: cross-device operations \"%s\" have no slot %s; it is needed", table->name,
				missing);
	chi_group *g = malloc(sizeof *g);
	if (g == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "suite: a group");
	choir_status status = chi_group_find(g, o);
	for (size_t i = 0; i < sizeof checks / sizeof checks[0] && status == CHOIR_OK; i++) {
		chi_suite_note(t, checks[i].name, checks[i].fn(g));
		chi_group_close(g);
	}
	free(g);
	return status == CHOIR_OK ? chi_suite_end(t, "cross-device operations", table->name) : status;
}
