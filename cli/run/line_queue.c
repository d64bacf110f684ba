// A list of lines and a thread that writes them. If the list has MAX_BYTES, or if memory is
// missing, the adding thread waits for the reader.
#include "run/line_queue.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 1 << 26 };

typedef struct node node;
struct node {
	node *next;
	choir_supervisor_kind kind;
	int worker;
	char line[];
};

static struct {
	choir_supervisor_fn *write;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	node *first, **last;
	size_t bytes; // also of the line that is being written
	bool begun, ended;
} queue = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void *write_lines(void *unused)
{
	(void) unused;
	pthread_mutex_lock(&queue.lock);
	while (queue.first != NULL || !queue.ended) {
		node *n = queue.first;
		if (n == NULL) {
			pthread_cond_wait(&queue.changed, &queue.lock);
			continue;
		}
		queue.first = n->next;
		queue.last = queue.first == NULL ? &queue.first : queue.last;
		pthread_mutex_unlock(&queue.lock);
		queue.write(n->kind, n->worker, n->line, NULL);
		pthread_mutex_lock(&queue.lock);
		queue.bytes -= strlen(n->line) + sizeof *n;
		free(n);
		pthread_cond_broadcast(&queue.changed);
	}
	pthread_mutex_unlock(&queue.lock);
	return NULL;
}

bool line_queue_begin(choir_supervisor_fn *write)
{
	queue.write = write;
	queue.last = &queue.first;
	sigset_t all, before; // the main thread handles signals: it waits, and frees what they stop
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	queue.begun = pthread_create(&queue.thread, NULL, write_lines, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return queue.begun;
}

void line_queue_add(choir_supervisor_kind kind, int worker, const char *line, void *user)
{
	const size_t length = strlen(line);
	node *n = queue.begun ? malloc(sizeof *n + length + 1) : NULL;
	pthread_mutex_lock(&queue.lock);
	while (queue.bytes > (n == NULL ? 0 : (size_t) MAX_BYTES))
		pthread_cond_wait(&queue.changed, &queue.lock);
	if (n != NULL) {
		*n = (node){ .kind = kind, .worker = worker };
		memcpy(n->line, line, length + 1);
		*queue.last = n;
		queue.last = &n->next;
		queue.bytes += length + sizeof *n;
		pthread_cond_broadcast(&queue.changed);
	}
	pthread_mutex_unlock(&queue.lock);
	if (n == NULL)
		queue.write(kind, worker, line, user);
}

void line_queue_end(void)
{
	if (!queue.begun)
		return;
	pthread_mutex_lock(&queue.lock);
	queue.ended = true;
	pthread_cond_broadcast(&queue.changed);
	pthread_mutex_unlock(&queue.lock);
	pthread_join(queue.thread, NULL);
}
