// Sums between workers whose transport takes the memory of devices: the bits of sums through the
// host, with nothing copied before it is there. The transport is the simulated cluster, which
// reads and writes the memory of the device `far`, or of GPUs of the stand-in (tests/cuda).
#include "base/alloc.h"
#include "cluster/worker_threads.h"
#include "collective/multi_worker.h"
#include "collective/oracle.h"
#include "far/far.h"
#include "short.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORKERS = 4, MAX_MEMBERS = 3, MAX_PARTS = 16, MAX_BYTES = 1 << 20 };
enum { ROUNDS = SHORT ? 2 : 3 };

// Of the two devices with separate memory, the program has one.
__attribute__((weak)) void *far_inside(const void *memory);
__attribute__((weak)) int standin_copy(void *to, const void *from, size_t bytes);

typedef struct {
	int workers, members, replicas; // members of a worker, and replicas of a member
	choir_dtype dtype;
	int64_t elements;
	bool first_wants_none; // the first device of each worker
	const char *unlike; // the first device of the last worker, or NULL
	bool may_fail;
	uint64_t fails; // the allocation that fails; 0: none
} sums;

static chi_atomic64 taken; // copies of device memory by the transport
static chi_atomic64 refused; // the number of the copy that is refused; 0: none

static bool take(void *to, const void *from, size_t bytes)
{
	bool is_device;
	bool good = true;
	if (standin_copy != NULL) {
		const int copied = standin_copy(to, from, bytes);
		is_device = copied == 2;
		good = copied != 0;
	} else {
		void *inside = far_inside(to), *source = far_inside(from);
		is_device = inside != to || source != from;
		memcpy(inside, source, bytes);
	}
	const uint64_t before = is_device ? chi_atomic64_add(&taken, 1) : 0;
	return good && (chi_atomic64_load(&refused) == 0 || before + 1 < chi_atomic64_load(&refused));
}

typedef struct {
	choir_device *device;
	chi_stream *stream;
	chi_buffer *buffer[MAX_PARTS], *result;
	choir_partial_sum part[MAX_PARTS];
	choir_collective c;
	uint64_t request;
	int64_t done;
} member;

static choir_status count_done(void *user, int64_t first, int64_t count, const void *data)
{
	((member *) user)->done += count;
	return first >= 0 && data != NULL ? CHOIR_OK : CHOIR_INTERNAL;
}

// Queues the parts of the member's replicas, and does not wait for them.
static choir_status bring(const sums *s, member *m, int first, const void *all, char *host)
{
	const int in_sync = s->workers * s->members * s->replicas;
	const size_t bytes = (size_t) s->elements * oracle_size(s->dtype);
	int nodes[MAX_PARTS][2];
	const int n = oracle_nodes(in_sync, first, first + s->replicas, nodes);
	for (int i = 0; i < n; i++) {
		oracle_sum(s->dtype, all, nodes[i][0], nodes[i][1], s->elements, host);
		if ((m->buffer[i] = chi_buffer_new(m->device, bytes)) == NULL)
			return choir_error_status();
		CHOIR_TRY(chi_stream_post(m->stream, m->buffer[i]->memory, host, bytes));
		m->part[i] = (choir_partial_sum){ nodes[i][0], nodes[i][1], m->buffer[i]->memory };
	}
	m->c = (choir_collective){ .size = sizeof m->c,
		.name = "sum",
		.kind = CHOIR_ALL_REDUCE,
		.dtype = s->dtype,
		.elements = s->elements,
		.divisor = 1,
		.n = (size_t) n,
		.partial_sums = m->part,
		.stream = m->stream->state,
		.done = count_done,
		.user = m };
	return CHOIR_OK;
}

static choir_status open_member(const sums *s, member *m, choir_device *d, bool wants_none)
{
	m->device = d;
	if ((m->stream = chi_stream_new(d)) == NULL)
		return choir_error_status();
	if (!wants_none &&
			(m->result = chi_buffer_new(d, (size_t) s->elements * oracle_size(s->dtype))) == NULL)
		return choir_error_status();
	return CHOIR_OK;
}

static void close_member(member *m)
{
	chi_stream_free(m->stream);
	for (int i = 0; i < MAX_PARTS; i++)
		chi_buffer_release(m->buffer[i]);
	chi_buffer_release(m->result);
}

static const char *judge(const sums *s, const member *m, const void *all, char *host, char *sum)
{
	const size_t bytes = (size_t) s->elements * oracle_size(s->dtype);
	if (m->done != s->elements)
		return "done was not told of all elements";
	if (m->result == NULL)
		return NULL;
	if (chi_stream_fetch(m->stream, host, m->result->memory, bytes) != CHOIR_OK)
		return choir_error();
	oracle_sum(s->dtype, all, 0, s->workers * s->members * s->replicas, s->elements, sum);
	return memcmp(host, sum, bytes) == 0 ? NULL : "other bits than the model's";
}

static const char *sum_once(
		const sums *s, chi_communicator *g, choir_device *const devices[], int worker, char *host)
{
	member m[MAX_MEMBERS] = { 0 };
	char *all = host + 2 * MAX_BYTES;
	choir_status status = CHOIR_OK;
	for (int i = 0; status == CHOIR_OK && i < s->members; i++) {
		status = open_member(s, &m[i], devices[i], i == 0 && s->first_wants_none);
		if (status == CHOIR_OK)
			status = bring(s, &m[i], (worker * s->members + i) * s->replicas, all, host);
		m[i].c.result = m[i].result == NULL ? NULL : m[i].result->memory;
	}
	for (int i = 0; status == CHOIR_OK && i < s->members; i++)
		status = chi_communicator_join(g, i, &m[i].c, &m[i].request);
	for (int i = s->members - 1; status == CHOIR_OK && i >= 0; i--)
		status = chi_communicator_wait(g, i, m[i].request, 20);
	const char *wrong = status == CHOIR_OK ? NULL : choir_error();
	for (int i = 0; wrong == NULL && i < s->members; i++)
		wrong = judge(s, &m[i], all, host, host + MAX_BYTES);
	for (int i = 0; i < s->members; i++)
		close_member(&m[i]);
	return wrong;
}

static const char *be_worker(choir_cluster *c, int worker, void *user)
{
	const sums *s = user;
	const size_t bytes = (size_t) s->elements * oracle_size(s->dtype);
	const int in_sync = s->workers * s->members * s->replicas;
	char *host = malloc(2 * MAX_BYTES + (size_t) in_sync * bytes);
	choir_device *devices[MAX_MEMBERS];
	chi_communicator group = { 0 };
	chi_process_group peers = { 0 };
	char name[16];
	for (int i = 0; i < s->members; i++) {
		snprintf(name, sizeof name, "far:%d", worker * s->members + i);
		const bool unlike = s->unlike != NULL && i == 0 && worker == s->workers - 1;
		devices[i] = choir_device_find(unlike ? s->unlike : name);
	}
	oracle_fill(s->dtype, host + 2 * MAX_BYTES, in_sync, s->elements, 7);
	const char *wrong = NULL;
	if (c == NULL ||
			chi_process_group_open(&peers, c, CHI_TAG_COLLECTIVES, s->members * s->replicas) !=
					CHOIR_OK ||
			chi_communicator_open_among_workers(&group, s->members, devices, &peers, NULL) !=
					CHOIR_OK)
		wrong = choir_error();
	for (int i = 0; wrong == NULL && i < ROUNDS; i++)
		wrong = sum_once(s, &group, devices, worker, host);
	if (wrong != NULL && s->may_fail)
		wrong = wrong[0] != '\0' && strchr(wrong, '\n') == NULL ? NULL : "not one line";
	chi_communicator_close(&group);
	chi_process_group_close(&peers);
	free(host);
	return wrong;
}

// Returns how many copies of device memory the transport has made.
static uint64_t run(sums s, uint64_t seed, const char *kind)
{
	const sim_options o = { .workers = s.workers,
		.seed = seed,
		.slowest = 1e-3,
		.eager = seed % 2 == 0 ? 100 : MAX_BYTES,
		.quiet = s.may_fail ? 0.5 : 5, // a worker that failed leaves the others waiting for it
		.kind = kind,
		.copy = kind == NULL ? NULL : take };
	sim *played = sim_new(&o);
	assert_non_null(played);
	chi_atomic64_store(&taken, 0);
	chi_alloc_fail(s.fails, false);
	worker_threads_run(played, s.workers, NULL, be_worker, &s);
	sim_free(played);
	return chi_atomic64_load(&taken);
}

static const char *kind_of_far(void)
{
	char name[16];
	for (int i = 1; i < MAX_WORKERS * MAX_MEMBERS; i++) {
		snprintf(name, sizeof name, "far:%d", i);
		assert_non_null(choir_device_find(name)); // finding it later allocates nothing
	}
	return choir_device_find("far:0")->table->kind;
}

// The number of elements is not a multiple of the workers' shares.
TEST(the_same_bits)
{
	enum { ELEMENTS = 70001 };
	static const sums cases[] = {
		{ 2, 1, 1, CHOIR_F32, ELEMENTS, false, NULL, false, 0 },
		{ 2, 1, 3, CHOIR_F32, ELEMENTS, false, NULL, false, 0 },
		{ 2, 2, 1, CHOIR_F32, ELEMENTS, false, NULL, false, 0 },
		{ 3, 2, 3, CHOIR_F64, ELEMENTS, true, NULL, false, 0 },
		{ 4, 3, 1, CHOIR_I32, ELEMENTS, true, NULL, false, 0 },
		{ 3, 1, 2, CHOIR_F32, 200000, false, NULL, false, 0 },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i += SHORT ? 2 : 1) {
		if (run(cases[i], i, kind_of_far()) == 0)
			fail_msg("case %zu: nothing went from device to device", i);
		assert_int_equal(run(cases[i], i, NULL), 0);
	}
}

// Small sums, and workers with devices of the host.
TEST(what_goes_through_the_host)
{
	const sums small = { .workers = 2, .members = 1, .replicas = 1, .dtype = CHOIR_F32 };
	for (int64_t elements = 0; elements < 2000; elements += 999) {
		sums s = small;
		s.elements = elements;
		assert_int_equal(run(s, 1, kind_of_far()), 0);
	}
	const sums mixed = { 2, 1, 1, CHOIR_F32, 70001, false, "cpu:0", false, 0 };
	assert_int_equal(run(mixed, 1, kind_of_far()), 0);
	const sums other_kind = { 2, 1, 1, CHOIR_F32, 70001, false, NULL, false, 0 };
	run(other_kind, 1, "another");
}

// Each copy in turn is refused: all workers end, each with one line.
TEST(refused_memory)
{
	const sums s = { 2, 2, 1, CHOIR_F32, 33001, false, NULL, true, 0 };
	const uint64_t copies = run(s, 2, kind_of_far());
	assert_true(copies > 4);
	for (uint64_t n = 1; n <= copies; n += SHORT ? 3 : 1) {
		chi_atomic64_store(&refused, n);
		run(s, 2, kind_of_far());
		chi_atomic64_store(&refused, 0);
	}
}

TEST(each_allocation_fails)
{
	sums s = { 2, 2, 1, CHOIR_F32, 33001, false, NULL, true, 1 };
	for (bool failed = true; failed; s.fails += SHORT ? 7 : 1) {
		run(s, 1, kind_of_far());
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
	}
	assert_true(s.fails > 30);
}
