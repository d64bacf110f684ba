// The checks of transports. Two workers, each on a thread of its own with its own self, open the
// transport and send each other messages. Every check opens it anew. A worker waits as Choir does:
// it tests its request, and pauses until the request may have changed.
#include "suite.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LAST_TAG = CHOIR_TRANSPORT_TAGS - 1, MAX = 300001 };
static const double LIMIT = 10; // seconds of the transport's clock for a message
static const double END = 60; // real seconds for a check

typedef struct meeting meeting;

typedef struct {
	const choir_transport_table *t;
	void *self;
	int number; // 0 or 1
	meeting *with;
	const void *argument;
	// Memory of messages is as long as the meeting: a broken transport may use it at any time.
	unsigned char out[MAX], in[MAX];
	choir_status status;
	char text[300];
} worker;

typedef choir_status check_fn(worker *w);

struct meeting {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	check_fn *fn;
	bool ends_alone; // workers end without waiting for each other
	int opened, failed, ended;
	worker *worker[2];
};

static double real_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static double now(const worker *w)
{
	return w->t->now != NULL ? w->t->now(w->self) : real_now();
}

static void take_a_break(const worker *w, int turn, double until)
{
	const struct timespec short_time = { .tv_nsec = 50000 };
	if (w->t->pause != NULL)
		w->t->pause(w->self, turn, until);
	else
		nanosleep(&short_time, NULL);
}

static int peer(const worker *w)
{
	return 1 - w->number;
}

static choir_status send(worker *w, int tag, const void *data, size_t bytes, uint64_t *request)
{
	return chi_suite_expect(
			"send", w->t->send(w->self, peer(w), tag, data, bytes, request), CHOIR_OK);
}

static choir_status receive(worker *w, int tag, void *data, size_t capacity, uint64_t *request)
{
	return chi_suite_expect(
			"receive", w->t->receive(w->self, peer(w), tag, data, capacity, request), CHOIR_OK);
}

// Waits for a request. The failure of a test is returned. CHOIR_TIMEOUT: seconds have passed.
static choir_status wait(worker *w, uint64_t request, double seconds, size_t *bytes)
{
	const double until = now(w) + seconds;
	for (int turn = 0;; turn++) {
		bool done = false;
		CHOIR_TRY(w->t->test(w->self, request, &done, bytes));
		if (done)
			return CHOIR_OK;
		if (now(w) >= until)
			return choir_fail(CHOIR_TIMEOUT, "a request is not done after %g s", seconds);
		take_a_break(w, turn, until);
	}
}

static choir_status finish(worker *w, uint64_t request, size_t needed)
{
	size_t bytes = needed;
	CHOIR_TRY(chi_suite_expect("test", wait(w, request, LIMIT, &bytes), CHOIR_OK));
	return bytes == needed
			? CHOIR_OK
			: choir_fail(CHOIR_INTERNAL, "test: a message of %zu bytes; %zu are needed", bytes,
					  needed);
}

static unsigned char pattern(size_t i, int seed)
{
	return (unsigned char) (i * 131 + (i >> 8) + (size_t) seed * 17 + 1);
}

static void fill(unsigned char *data, size_t bytes, int seed)
{
	for (size_t i = 0; i < bytes; i++)
		data[i] = pattern(i, seed);
}

static choir_status expect_pattern(const unsigned char *data, size_t bytes, int seed)
{
	for (size_t i = 0; i < bytes; i++)
		if (data[i] != pattern(i, seed))
			return choir_fail(CHOIR_INTERNAL, "byte %zu of a message of %zu is %d; %d is needed",
					i, bytes, data[i], pattern(i, seed));
	return CHOIR_OK;
}

static choir_status workers_are_numbered(worker *w)
{
	const int number = w->t->worker == NULL ? 0 : w->t->worker(w->self);
	const int workers = w->t->workers == NULL ? 1 : w->t->workers(w->self);
	if (number != w->number || workers != 2)
		return choir_fail(CHOIR_INTERNAL, "worker %d of %d; worker %d of 2 is needed", number,
				workers, w->number);
	char text[80] = "", cut[8] = "1234567";
	if (w->t->describe == NULL)
		return CHOIR_OK;
	w->t->describe(w->self, text, sizeof text);
	w->t->describe(w->self, cut, 4);
	if (text[0] == '\0' || strchr(text, '\n') != NULL || memchr(cut, '\0', 4) == NULL ||
			strcmp(cut + 4, "567") != 0)
		return choir_fail(CHOIR_INTERNAL,
				"describe: \"%s\", and \"%.4s\" in 4 bytes; one line within the bytes is needed",
				text, cut);
	return CHOIR_OK;
}

// Both workers send and receive at once.
static choir_status bytes_arrive(worker *w)
{
	static const size_t sizes[] = { 0, 1, 7, 4000, 4096, 5000, 16384, 65536, MAX };
	for (int k = 0; k < (int) (sizeof sizes / sizeof sizes[0]); k++) {
		const int tag = k % 2 == 0 ? 0 : LAST_TAG;
		uint64_t in, out;
		fill(w->out, sizes[k], w->number + 2 * k);
		memset(w->in, 0, sizes[k]);
		CHOIR_TRY(receive(w, tag, w->in, sizes[k], &in));
		CHOIR_TRY(send(w, tag, w->out, sizes[k], &out));
		CHOIR_TRY(finish(w, in, sizes[k]));
		CHOIR_TRY(finish(w, out, sizes[k]));
		CHOIR_TRY(expect_pattern(w->in, sizes[k], peer(w) + 2 * k));
	}
	return CHOIR_OK;
}

static choir_status a_message_may_be_shorter(worker *w)
{
	enum { ROOM = 9000, SENT = 100 };
	uint64_t in, out;
	fill(w->out, SENT, w->number);
	memset(w->in, 7, ROOM);
	CHOIR_TRY(receive(w, 3, w->in, ROOM, &in));
	CHOIR_TRY(send(w, 3, w->out, SENT, &out));
	CHOIR_TRY(finish(w, in, SENT));
	CHOIR_TRY(finish(w, out, SENT));
	CHOIR_TRY(expect_pattern(w->in, SENT, peer(w)));
	for (int i = SENT; i < ROOM; i++)
		if (w->in[i] != 7)
			return choir_fail(CHOIR_INTERNAL,
					"byte %d behind a message is written; it must stay as it is", i);
	return CHOIR_OK;
}

// Each tag has its own order; the tags are received in the opposite order.
static choir_status tags_keep_their_order(worker *w)
{
	enum { TAGS = 5, EACH = 4, BYTES = 6000 };
	uint64_t out[EACH][TAGS], in[EACH];
	for (int k = 0; k < EACH; k++)
		for (int tag = 0; tag < TAGS; tag++) {
			unsigned char *data = w->out + (k * TAGS + tag) * BYTES;
			fill(data, BYTES, k * TAGS + tag);
			CHOIR_TRY(send(w, tag, data, BYTES, &out[k][tag]));
		}
	for (int tag = TAGS - 1; tag >= 0; tag--) {
		for (int k = 0; k < EACH; k++)
			CHOIR_TRY(receive(w, tag, w->in + k * BYTES, BYTES, &in[k]));
		for (int k = EACH - 1; k >= 0; k--) // a later request may be done first
			CHOIR_TRY(finish(w, in[k], BYTES));
		for (int k = 0; k < EACH; k++)
			CHOIR_TRY(expect_pattern(w->in + k * BYTES, BYTES, k * TAGS + tag));
	}
	for (int k = 0; k < EACH; k++)
		for (int tag = 0; tag < TAGS; tag++)
			CHOIR_TRY(finish(w, out[k][tag], BYTES));
	return CHOIR_OK;
}

// No message comes until the time limit. Then the memory of the request is free, and the transport
// works on.
static choir_status a_wait_has_an_end(worker *w)
{
	uint64_t never;
	size_t bytes;
	memset(w->in, 7, 100);
	CHOIR_TRY(receive(w, 8, w->in, 100, &never));
	const double begun = now(w), real = real_now();
	const choir_status status = wait(w, never, 0.1, &bytes);
	CHOIR_TRY(chi_suite_expect("a wait for no message", status, CHOIR_TIMEOUT));
	const double waited = now(w) - begun, spent = real_now() - real;
	if (waited > 5 || spent > 20)
		return choir_fail(CHOIR_INTERNAL,
				"pause: a wait of 0.1 s takes %.3g s on the transport's clock and %.3g s in all; "
				"at most 5 s and 20 s are needed",
				waited, spent);
	if (w->t->drop != NULL)
		w->t->drop(w->self, never);
	CHOIR_TRY(bytes_arrive(w));
	return CHOIR_OK;
}

// The next failure of a wait for a message that does not come.
static choir_status wait_for_nothing(worker *w)
{
	uint64_t never;
	size_t bytes;
	const choir_status status = w->t->receive(w->self, peer(w), 5, w->in, 100, &never);
	if (status != CHOIR_OK)
		return status;
	const choir_status result = wait(w, never, LIMIT, &bytes);
	if (w->t->drop != NULL && result != CHOIR_OK)
		w->t->drop(w->self, never);
	return result;
}

static choir_status expect_text(const char *part)
{
	return strstr(choir_error(), part) != NULL
			? CHOIR_OK
			: choir_fail(CHOIR_INTERNAL, "the text is \"%.150s\"; \"%s\" is needed in it",
					  choir_error(), part);
}

static choir_status an_abort_reaches_the_other(worker *w)
{
	if (w->number == 1) {
		w->t->abort(w->self, "the disk is full");
		return CHOIR_OK;
	}
	for (int i = 0; i < 2; i++) { // all that follows fails too
		CHOIR_TRY(chi_suite_expect("a wait after an abort", wait_for_nothing(w), CHOIR_CANCELLED));
		CHOIR_TRY(expect_text("worker 1"));
		CHOIR_TRY(expect_text("the disk is full"));
	}
	return CHOIR_OK;
}

// A transport that cannot detect it leaves the wait to the time limit.
static choir_status a_worker_that_leaves_is_named(worker *w)
{
	if (w->number == 1)
		return CHOIR_OK;
	const choir_status status = wait_for_nothing(w);
	if (status == CHOIR_TIMEOUT)
		return CHOIR_OK;
	CHOIR_TRY(chi_suite_expect("a wait for a worker that left", status, CHOIR_PEER_LOST));
	return expect_text("worker 1");
}

static const struct {
	const char *name;
	check_fn *fn;
	bool ends_alone;
} checks[] = {
	{ "workers are numbered", workers_are_numbered, false },
	{ "bytes arrive", bytes_arrive, false },
	{ "a message may be shorter than its room", a_message_may_be_shorter, false },
	{ "tags keep their order", tags_keep_their_order, false },
	{ "a wait has an end", a_wait_has_an_end, false },
	{ "an abort reaches the other worker", an_abort_reaches_the_other, true },
	{ "a worker that leaves is named", a_worker_that_leaves_is_named, true },
};
enum { CHECKS = sizeof checks / sizeof checks[0] };

// Waits until both workers have opened the transport. False: one could not.
static bool meet(meeting *m, bool opened)
{
	pthread_mutex_lock(&m->mutex);
	m->opened++;
	m->failed += !opened;
	pthread_cond_broadcast(&m->changed);
	while (m->opened < 2)
		pthread_cond_wait(&m->changed, &m->mutex);
	const bool all = m->failed == 0;
	pthread_mutex_unlock(&m->mutex);
	return all;
}

// The workers tell each other that they are done, so that no one leaves early.
static choir_status say_goodbye(worker *w)
{
	uint64_t in, out;
	CHOIR_TRY(receive(w, 11, w->in, 0, &in));
	CHOIR_TRY(send(w, 11, w->out, 0, &out));
	CHOIR_TRY(finish(w, in, 0));
	return finish(w, out, 0);
}

static void *work(void *arg)
{
	worker *w = arg;
	meeting *m = w->with;
	w->status = w->t->open == NULL
			? CHOIR_OK
			: chi_suite_expect("open", w->t->open(w->self, w->argument), CHOIR_OK);
	if (meet(m, w->status == CHOIR_OK) && w->status == CHOIR_OK) {
		w->status = m->fn(w);
		if (w->status == CHOIR_OK && !m->ends_alone)
			w->status = say_goodbye(w);
	}
	if (w->status != CHOIR_OK)
		snprintf(w->text, sizeof w->text, "worker %d: %s", w->number, choir_error());
	if (w->t->close != NULL)
		w->t->close(w->self, LIMIT);
	pthread_mutex_lock(&m->mutex);
	m->ended++;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->mutex);
	return NULL;
}

static void meeting_free(meeting *m)
{
	for (int i = 0; i < 2; i++) {
		if (m->worker[i] != NULL)
			free(m->worker[i]->self);
		free(m->worker[i]);
	}
	pthread_cond_destroy(&m->changed);
	pthread_mutex_destroy(&m->mutex);
	free(m);
}

static meeting *meeting_new(const choir_transport_table *t, int check)
{
	meeting *m = calloc(1, sizeof *m);
	if (m == NULL)
		return NULL;
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&m->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&m->mutex, NULL);
	m->fn = checks[check].fn;
	m->ends_alone = checks[check].ends_alone;
	bool made = true;
	for (int i = 0; i < 2; i++) {
		m->worker[i] = calloc(1, sizeof *m->worker[i]);
		if (m->worker[i] == NULL || (m->worker[i]->self = calloc(1, t->self_size + 1)) == NULL)
			made = false;
		else
			m->worker[i]->t = t, m->worker[i]->number = i, m->worker[i]->with = m;
	}
	if (made)
		return m;
	meeting_free(m);
	return NULL;
}

// Waits for both workers. False: they do not end.
static bool wait_for_end(meeting *m)
{
	const double until = real_now() + END;
	const struct timespec at = { .tv_sec = (time_t) until, .tv_nsec = 0 };
	int result = 0;
	pthread_mutex_lock(&m->mutex);
	while (m->ended < 2 && result == 0)
		result = pthread_cond_timedwait(&m->changed, &m->mutex, &at);
	const bool ended = m->ended == 2;
	pthread_mutex_unlock(&m->mutex);
	return ended;
}

// *hangs: the workers do not end. Then their memory must stay.
static choir_status run(const choir_suite_options *o, int check, void *user, bool *hangs)
{
	pthread_t thread[2];
	meeting *m = meeting_new(o->transport, check);
	if (m == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "suite: two workers");
	int begun = 0;
	for (int i = 0; i < 2; i++)
		m->worker[i]->argument = o->argument == NULL ? NULL : o->argument(check, i, user);
	while (begun < 2 && pthread_create(&thread[begun], NULL, work, m->worker[begun]) == 0)
		begun++;
	pthread_mutex_lock(&m->mutex);
	m->opened += 2 - begun; // a thread that has begun must end
	m->failed += 2 - begun;
	m->ended += 2 - begun;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->mutex);
	*hangs = !wait_for_end(m);
	for (int i = 0; i < begun; i++)
		*hangs ? pthread_detach(thread[i]) : pthread_join(thread[i], NULL);
	if (*hangs)
		return choir_fail(CHOIR_INTERNAL, "the workers do not end within %g s", END);
	choir_status status = begun < 2 ? choir_fail(CHOIR_NO_MEMORY, "suite: a thread") : CHOIR_OK;
	for (int i = 0; i < 2 && status == CHOIR_OK; i++)
		if (m->worker[i]->status != CHOIR_OK)
			status = choir_fail(m->worker[i]->status, "%s", m->worker[i]->text);
	meeting_free(m);
	return status;
}

choir_status chi_suite_transport(const choir_suite_options *o, chi_suite_tally *t)
{
	const choir_transport_table *table = o->transport;
	CHOIR_TRY(chi_suite_check_table("transport", table, sizeof *table, table->name));
	const char *missing = table->send == NULL ? "send"
			: table->receive == NULL		  ? "receive"
			: table->test == NULL			  ? "test"
			: table->abort == NULL			  ? "abort"
											  : NULL;
	if (missing != NULL)
		return choir_fail(CHOIR_INVALID, "suite: transport \"%s\" has no slot %s; it is needed",
				table->name, missing);
	bool hangs = false;
	for (int i = 0; i < CHECKS && !hangs; i++)
		chi_suite_note(t, checks[i].name, run(o, i, t->user, &hangs));
	return chi_suite_end(t, "transport", table->name);
}
