// One list of messages in the order in which they were sent, and one mutex. A send copies the
// message, so it is done at once. A receive is done by a test that finds its message in the list.
#include "cluster/mailbox.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REQUESTS = 64 };

typedef struct message {
	struct message *next;
	int from, tag;
	size_t bytes;
	unsigned char data[];
} message;

struct mailbox {
	pthread_mutex_t mutex;
	message *first;
	bool left[2];
	int aborted_by; // 2: nobody
	char why[128];
};

typedef struct {
	bool used, done, receives;
	int tag;
	void *data;
	size_t bytes;
} request;

typedef struct {
	mailbox *box;
	int worker;
	request request[REQUESTS];
} self_of;

mailbox *mailbox_new(void)
{
	mailbox *b = calloc(1, sizeof *b);
	if (b == NULL)
		return NULL;
	b->aborted_by = 2;
	pthread_mutex_init(&b->mutex, NULL);
	return b;
}

void mailbox_free(mailbox *b)
{
	if (b == NULL)
		return;
	for (message *m = b->first, *next; m != NULL; m = next) {
		next = m->next;
		free(m);
	}
	pthread_mutex_destroy(&b->mutex);
	free(b);
}

static choir_status open_box(void *self, const void *argument)
{
	const mailbox_argument *a = argument;
	self_of *s = self;
	s->box = a->box;
	s->worker = a->worker;
	return CHOIR_OK;
}

static void close_box(void *self, double seconds)
{
	self_of *s = self;
	(void) seconds;
	pthread_mutex_lock(&s->box->mutex);
	s->box->left[s->worker] = true;
	pthread_mutex_unlock(&s->box->mutex);
}

static int worker(const void *self)
{
	return ((const self_of *) self)->worker;
}

static int workers(const void *self)
{
	(void) self;
	return 2;
}

static void describe(const void *self, char *text, size_t size)
{
	(void) self;
	snprintf(text, size, "a list of messages");
}

static choir_status begin(self_of *s, const request *new, uint64_t *number)
{
	for (uint64_t i = 0; i < REQUESTS; i++)
		if (!s->request[i].used) {
			s->request[i] = *new;
			*number = i;
			return CHOIR_OK;
		}
	return choir_fail(CHOIR_UNSUPPORTED, "mailbox: more than %d requests", REQUESTS);
}

static choir_status send(
		void *self, int to, int tag, const void *data, size_t bytes, uint64_t *number)
{
	self_of *s = self;
	message *m = malloc(sizeof *m + bytes);
	(void) to;
	if (m == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "mailbox: a message of %zu bytes", bytes);
	*m = (message){ .from = s->worker, .tag = tag, .bytes = bytes };
	if (bytes > 0)
		memcpy(m->data, data, bytes);
	pthread_mutex_lock(&s->box->mutex);
	message **end = &s->box->first;
	while (*end != NULL)
		end = &(*end)->next;
	*end = m;
	pthread_mutex_unlock(&s->box->mutex);
	return begin(s, &(request){ .used = true, .done = true, .bytes = bytes }, number);
}

static choir_status receive(
		void *self, int from, int tag, void *data, size_t capacity, uint64_t *number)
{
	const request r = {
		.used = true, .receives = true, .tag = tag, .data = data, .bytes = capacity
	};
	(void) from;
	return begin(self, &r, number);
}

// Gives messages to the receives of a tag, in the order of both.
static void deliver(self_of *s, int tag)
{
	message **at = &s->box->first;
	for (int i = 0; i < REQUESTS; i++) {
		request *r = &s->request[i];
		if (!r->used || !r->receives || r->done || r->tag != tag)
			continue;
		while (*at != NULL && ((*at)->from == s->worker || (*at)->tag != tag))
			at = &(*at)->next;
		if (*at == NULL)
			return;
		message *m = *at;
		*at = m->next;
		if (m->bytes > 0)
			memcpy(r->data, m->data, m->bytes);
		r->bytes = m->bytes;
		r->done = true;
		free(m);
	}
}

static choir_status failure(const self_of *s, const request *r)
{
	const mailbox *b = s->box;
	if (b->aborted_by == 1 - s->worker)
		return choir_fail(CHOIR_CANCELLED, "worker %d stopped: %s", b->aborted_by, b->why);
	if (r->receives && !r->done && b->left[1 - s->worker])
		return choir_fail(CHOIR_PEER_LOST, "worker %d left", 1 - s->worker);
	return CHOIR_OK;
}

static choir_status test(void *self, uint64_t number, bool *done, size_t *bytes)
{
	self_of *s = self;
	request *r = &s->request[number];
	pthread_mutex_lock(&s->box->mutex);
	if (r->receives)
		deliver(s, r->tag);
	const choir_status status = failure(s, r);
	pthread_mutex_unlock(&s->box->mutex);
	CHOIR_TRY(status);
	*done = r->done;
	*bytes = r->bytes;
	if (r->done)
		r->used = false;
	return CHOIR_OK;
}

static void drop(void *self, uint64_t number)
{
	((self_of *) self)->request[number].used = false;
}

static void abort_box(void *self, const char *why)
{
	self_of *s = self;
	pthread_mutex_lock(&s->box->mutex);
	s->box->aborted_by = s->worker;
	snprintf(s->box->why, sizeof s->box->why, "%s", why);
	pthread_mutex_unlock(&s->box->mutex);
}

const choir_transport_table mailbox_table = {
	.size = sizeof(choir_transport_table),
	.version = CHOIR_TABLE_VERSION,
	.name = "mailbox",
	.self_size = sizeof(self_of),
	.open = open_box,
	.close = close_box,
	.worker = worker,
	.workers = workers,
	.describe = describe,
	.send = send,
	.receive = receive,
	.test = test,
	.drop = drop,
	.abort = abort_box,
};
