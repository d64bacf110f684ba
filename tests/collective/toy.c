// A table as somebody outside would make it: one mutex, one condition, and whoever finds that all
// have joined does the whole collective while the others wait.
#include "collective/toy.h"

#include "collective/oracle.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OPEN = 64, MEMBERS = 16 };

typedef struct {
	const choir_collective *c[MEMBERS];
	int joined, left;
	bool done;
	choir_status status;
	char failure[128];
} meeting;

typedef struct {
	const choir_group *group;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	meeting meeting[OPEN];
	uint64_t count[MEMBERS];
	bool aborted;
} toy;

static int score(const choir_group *group, choir_collective_kind kind, int64_t bytes)
{
	(void) kind, (void) bytes;
	choir_device_info info = { .size = sizeof info };
	for (int i = 0; i < group->members; i++)
		if (choir_device_describe(group->devices[i], &info) != CHOIR_OK ||
				strcmp(info.kind, "cpu") != 0)
			return 0;
	return group->members <= MEMBERS ? 1 : 0;
}

static choir_status open_toy(void *self, const choir_group *group)
{
	toy *t = self;
	t->group = group;
	pthread_mutex_init(&t->mutex, NULL);
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&t->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	return CHOIR_OK;
}

static void close_toy(void *self)
{
	toy *t = self;
	if (t->group == NULL)
		return;
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->mutex);
}

static choir_status join(void *self, int member, const choir_collective *c, uint64_t *request)
{
	toy *t = self;
	pthread_mutex_lock(&t->mutex);
	*request = t->count[member]++;
	meeting *m = &t->meeting[*request % OPEN];
	m->c[member] = c;
	const bool aborted = t->aborted;
	if (!aborted && ++m->joined == t->group->members)
		pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->mutex);
	return aborted ? choir_fail(CHOIR_CANCELLED, "%s: cancelled", c->name) : CHOIR_OK;
}

// All parts of all members, as an array of sums without gaps; then the recursion over them.
typedef struct {
	const choir_partial_sum *part[1024];
	int n, at;
	choir_dtype dtype;
	int64_t elements;
} parts;

static void add_up(parts *p, int lo, int hi, void *out)
{
	const size_t bytes = (size_t) p->elements * oracle_size(p->dtype);
	if (p->part[p->at]->lo == lo && p->part[p->at]->hi == hi) {
		memcpy(out, p->part[p->at++]->data, bytes);
		return;
	}
	int half = 1;
	while (2 * half < hi - lo)
		half *= 2;
	void *right = malloc(bytes + 1);
	add_up(p, lo, lo + half, out);
	add_up(p, lo + half, hi, right);
	oracle_add(p->dtype, out, out, right, p->elements);
	free(right);
}

static choir_status check(const toy *t, const meeting *m)
{
	for (int i = 1; i < t->group->members; i++) {
		const choir_collective *a = m->c[0], *b = m->c[i];
		if (a->sequence != b->sequence || a->kind != b->kind || a->dtype != b->dtype ||
				a->elements != b->elements || a->root != b->root || strcmp(a->name, b->name) != 0)
			return choir_fail(
					CHOIR_STATE, "device 0 joined \"%s\", device %d \"%s\"", a->name, i, b->name);
	}
	return CHOIR_OK;
}

static choir_status hand_out(const toy *t, const meeting *m, const void *data)
{
	for (int i = 0; i < t->group->members; i++) {
		const choir_collective *c = m->c[i];
		bool again = false;
		for (int k = 0; k < i; k++)
			again = again || m->c[k]->result == c->result;
		if (again)
			continue;
		if (c->result != NULL)
			memcpy(c->result, data, (size_t) c->elements * oracle_size(c->dtype));
		if (c->done != NULL)
			CHOIR_TRY(c->done(c->user, 0, c->elements, c->result != NULL ? c->result : data));
	}
	return CHOIR_OK;
}

static choir_status perform(const toy *t, const meeting *m)
{
	const choir_collective *c = m->c[0];
	CHOIR_TRY(check(t, m));
	if (c->kind == CHOIR_BROADCAST)
		return hand_out(t, m, m->c[c->root]->partial_sums[0].data);
	parts p = { .dtype = c->dtype, .elements = c->elements };
	for (int i = 0; i < t->group->members; i++)
		for (size_t k = 0; k < m->c[i]->n; k++)
			p.part[p.n++] = &m->c[i]->partial_sums[k];
	void *sum = malloc((size_t) c->elements * oracle_size(c->dtype) + 1);
	add_up(&p, 0, t->group->replicas, sum);
	if (c->divisor != 1)
		oracle_divide(c->dtype, sum, c->divisor, c->elements);
	const choir_status status = hand_out(t, m, sum);
	free(sum);
	return status;
}

static choir_status leave(const toy *t, meeting *m)
{
	const choir_status status = m->status;
	if (status != CHOIR_OK)
		choir_fail(status, "%s", m->failure);
	if (++m->left == t->group->members)
		*m = (meeting){ .joined = 0 };
	return status;
}

static choir_status wait(void *self, int member, uint64_t request, double seconds)
{
	toy *t = self;
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t) seconds;
	until.tv_nsec += (long) ((seconds - (double) (time_t) seconds) * 1e9);
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_mutex_lock(&t->mutex);
	meeting *m = &t->meeting[request % OPEN];
	choir_status status = CHOIR_OK;
	while (status == CHOIR_OK && !t->aborted && m->joined < t->group->members)
		if ((seconds < 0 ? pthread_cond_wait(&t->changed, &t->mutex)
						 : pthread_cond_timedwait(&t->changed, &t->mutex, &until)) == ETIMEDOUT) {
			status = choir_fail(CHOIR_TIMEOUT, "%s: too late", m->c[member]->name);
			t->aborted = true; // its memory goes with it, so nobody may begin any more
			pthread_cond_broadcast(&t->changed);
		}
	if (status == CHOIR_OK && t->aborted)
		status = choir_fail(CHOIR_CANCELLED, "%s: cancelled", m->c[member]->name);
	if (status == CHOIR_OK && !m->done) {
		m->done = true;
		if ((m->status = perform(t, m)) != CHOIR_OK)
			strncpy(m->failure, choir_error(), sizeof m->failure - 1);
	}
	if (status == CHOIR_OK)
		status = leave(t, m);
	pthread_mutex_unlock(&t->mutex);
	return status;
}

static void abort_toy(void *self)
{
	toy *t = self;
	pthread_mutex_lock(&t->mutex);
	t->aborted = true;
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->mutex);
}

static void reset(void *self)
{
	toy *t = self;
	memset(t->meeting, 0, sizeof t->meeting);
	memset(t->count, 0, sizeof t->count);
	t->aborted = false;
}

const choir_cross_device_ops_table toy_ops = {
	.size = sizeof(choir_cross_device_ops_table),
	.version = CHOIR_TABLE_VERSION,
	.name = "toy",
	.self_size = sizeof(toy),
	.score = score,
	.open = open_toy,
	.close = close_toy,
	.join = join,
	.wait = wait,
	.abort = abort_toy,
	.reset = reset,
};
