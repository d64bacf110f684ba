// Cross-device operations among workers where one device waits too long while another one of its
// worker goes on: it takes its memory away as soon as it has been told, so that anybody who still
// looks at it is found by the address sanitizer, and the other workers hear why it all ended.
#include "cluster/worker_threads.h"
#include "collective/multi_worker.h"
#include "tensor/buffer_pool.h"
#include "test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS = 2, MEMBERS = 2, ELEMENTS = 40000, BYTES = ELEMENTS * (int) sizeof(float) };

typedef struct {
	const char *device[MEMBERS];
	double seconds; // that the first device of the first worker waits
} late;

// A device of a worker, with one replica.
typedef struct {
	chi_communicator *group;
	choir_device *device;
	int index, replica;
	double seconds;
	chi_stream *stream;
	chi_buffer *part, *result;
	choir_status status;
	char text[400];
} member;

static void *take_part(void *user)
{
	member *m = user;
	choir_collective *c = malloc(sizeof *c);
	choir_partial_sum *part = malloc(sizeof *part);
	uint64_t request;
	*part = (choir_partial_sum){ m->replica, m->replica + 1, m->part->memory };
	*c = (choir_collective){ .size = sizeof *c,
		.name = "late",
		.kind = CHOIR_ALL_REDUCE,
		.dtype = CHOIR_F32,
		.elements = ELEMENTS,
		.divisor = 1,
		.n = 1,
		.partial_sums = part,
		.stream = m->stream->state,
		.result = m->result->memory };
	m->status = chi_communicator_join(m->group, m->index, c, &request);
	if (m->status == CHOIR_OK)
		m->status = chi_communicator_wait(m->group, m->index, request, m->seconds);
	free(part);
	free(c);
	snprintf(m->text, sizeof m->text, "%s", m->status == CHOIR_OK ? "" : choir_error());
	return NULL;
}

// Each replica brings its number and one.
static bool bring(member *m, float *host)
{
	for (int i = 0; i < ELEMENTS; i++)
		host[i] = (float) m->replica + 1;
	m->stream = chi_stream_new(m->device);
	m->part = chi_buffer_new(m->device, BYTES);
	m->result = chi_buffer_new(m->device, BYTES);
	return m->stream != NULL && m->part != NULL && m->result != NULL &&
			chi_stream_send(m->stream, m->part->memory, host, BYTES) == CHOIR_OK;
}

// The other worker may be told at any time, also before it has come so far.
static const char *heard(int worker)
{
	const bool did = worker > 0 && choir_error_status() == CHOIR_CANCELLED &&
			text_holds(choir_error(), "in time");
	return did ? NULL : choir_error();
}

static const char *check(const member *m, float *host)
{
	static _Thread_local char text[500];
	const bool is_late = m->replica == 0 && m->status == CHOIR_TIMEOUT;
	const bool is_told = m->replica > 0 && m->status == CHOIR_CANCELLED &&
			(m->replica < MEMBERS || strstr(m->text, "in time") != NULL);
	snprintf(text, sizeof text, "replica %d: %s: %.400s", m->replica, choir_status_name(m->status),
			m->text);
	if (m->status != CHOIR_OK)
		return is_late || is_told ? NULL : text;
	if (chi_stream_fetch(m->stream, host, m->result->memory, BYTES) != CHOIR_OK)
		return choir_error();
	return host[0] == 10 && host[ELEMENTS - 1] == 10 ? NULL : "not the sum";
}

static const char *meet_and_check(
		chi_communicator *g, choir_device *const devices[], int worker, double seconds)
{
	float *host = malloc(BYTES);
	member m[MEMBERS];
	pthread_t id[MEMBERS];
	const char *wrong = NULL;
	for (int i = 0; i < MEMBERS; i++) {
		m[i] = (member){ g, devices[i], i, MEMBERS * worker + i,
			.seconds = i == 0 ? seconds : 20 };
		if (!bring(&m[i], host))
			wrong = choir_error();
	}
	for (int i = 0; wrong == NULL && i < MEMBERS; i++)
		pthread_create(&id[i], NULL, take_part, &m[i]);
	for (int i = 0; wrong == NULL && i < MEMBERS; i++)
		pthread_join(id[i], NULL);
	for (int i = 0; i < MEMBERS; i++) {
		wrong = wrong != NULL ? wrong : check(&m[i], host);
		chi_buffer_release(m[i].part);
		chi_buffer_release(m[i].result);
		chi_stream_free(m[i].stream);
	}
	free(host);
	return wrong;
}

static const char *be_worker(choir_cluster *c, int worker, void *user)
{
	const late *l = user;
	choir_device *devices[MEMBERS];
	chi_communicator group = { 0 };
	chi_process_group peers = { 0 };
	for (int i = 0; i < MEMBERS; i++)
		devices[i] = choir_device_find(l->device[i]);
	const char *wrong = c == NULL ||
					chi_process_group_open(&peers, c, CHI_TAG_COLLECTIVES, MEMBERS) != CHOIR_OK ||
					chi_communicator_open_among_workers(&group, MEMBERS, devices, &peers, NULL) !=
							CHOIR_OK
			? heard(worker)
			: meet_and_check(&group, devices, worker, worker == 0 ? l->seconds : 20);
	chi_communicator_close(&group);
	chi_process_group_close(&peers);
	return wrong;
}

TEST(late_and_gone)
{
	enum { ROUNDS = 24 };
	for (int round = 0; round < ROUNDS; round++) {
		late l = { { "cpu:0", "cpu:1" }, 1e-5 * round };
		if (round % 2 == 1)
			l = (late){ { "far:0", "far:1" }, 5e-5 * round };
		const sim_options o = { .workers = WORKERS,
			.seed = (uint64_t) round,
			.slowest = 1e-3,
			.eager = 4096,
			.quiet = 5 };
		sim *s = sim_new(&o);
		assert_non_null(s);
		worker_threads_run(s, WORKERS, NULL, be_worker, &l);
		sim_free(s);
	}
}
