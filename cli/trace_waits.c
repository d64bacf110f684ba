// Finds the files of a job's trace, and adds up who waited for whom.
#include "trace_waits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_directory(const char *path)
{
	struct stat is;
	return stat(path, &is) == 0 && S_ISDIR(is.st_mode);
}

choir_status trace_parts_find(trace_parts *p, const char *path)
{
	char first[TRACE_PATH], next[TRACE_PATH + 24];
	*p = (trace_parts){ .n = 0 };
	const int length =
			snprintf(first, sizeof first, is_directory(path) ? "%s/trace.json" : "%s", path);
	if (length >= TRACE_PATH - 24)
		return choir_fail(CHOIR_INVALID, "%.100s...: path too long", path);
	snprintf(next, sizeof next, "%s", first);
	while (access(next, F_OK) == 0) {
		if (p->n == p->capacity) {
			const size_t capacity = p->capacity == 0 ? 8 : 2 * p->capacity;
			void *grown = realloc(p->path, capacity * sizeof *p->path);
			if (grown == NULL)
				return choir_fail(CHOIR_NO_MEMORY, "%s: no memory for its parts", path);
			p->path = grown;
			p->capacity = capacity;
		}
		memcpy(p->path[p->n++], next, sizeof *p->path);
		snprintf(next, sizeof next, "%s.%zu", first, p->n);
	}
	return p->n > 0 ? CHOIR_OK
					: choir_fail(CHOIR_NOT_FOUND, "%s: no such file; needs a trace", first);
}

void trace_parts_free(trace_parts *p)
{
	free(p->path);
	*p = (trace_parts){ .n = 0 };
}

static wait *find_wait(wait_table *t, const choir_trace_span *s)
{
	char waiter[WAIT_NAME];
	const char *last = s->last == NULL ? "" : s->last;
	snprintf(waiter, sizeof waiter, "worker %d, %.40s", s->worker, s->track_name);
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->wait[i].waiter, waiter) == 0 && strcmp(t->wait[i].last, last) == 0)
			return &t->wait[i];
	if (t->n == WAITS)
		return NULL;
	wait *w = &t->wait[t->n++];
	*w = (wait){ .times = 0 };
	memcpy(w->waiter, waiter, sizeof waiter);
	snprintf(w->last, sizeof w->last, "%s", last);
	return w;
}

void waits_add(const choir_trace_span *span, void *waits)
{
	wait_table *t = waits;
	t->several = t->several || span->worker > 0;
	t->end = span->end > t->end ? span->end : t->end;
	if (span->category != CHOIR_TRACE_WAIT || span->track == CHOIR_TRACE_COMMUNICATION)
		return;
	wait *w = find_wait(t, span);
	if (w == NULL)
		return;
	w->times++;
	w->seconds += span->end - span->begin;
}

static int by_seconds(const void *a, const void *b)
{
	const wait *x = a, *y = b;
	return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

// The trace of one worker needs no name of it.
void waits_sort(wait_table *t)
{
	for (size_t i = 0; !t->several && i < t->n; i++) {
		char *comma = strchr(t->wait[i].waiter, ',');
		memmove(t->wait[i].waiter, comma + 2, strlen(comma + 2) + 1);
	}
	qsort(t->wait, t->n, sizeof t->wait[0], by_seconds);
}
