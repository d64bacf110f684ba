// The queue of closures, and the closures that each worker has.
#include "coordinator/closure_queue.h"

#include "base/alloc.h"

#include <stdio.h>

void chi_closures_init(chi_closures *q, int window, int attempts)
{
	*q = (chi_closures){ .window = window, .attempts = attempts, .hungry = CHOIR_NONE };
}

static void link_at_end(chi_closure_list *l, chi_closure *c)
{
	c->next = NULL;
	c->previous = l->last;
	*(l->last != NULL ? &l->last->next : &l->first) = c;
	l->last = c;
	l->n++;
}

static void link_at_front(chi_closure_list *l, chi_closure *c)
{
	c->previous = NULL;
	c->next = l->first;
	*(l->first != NULL ? &l->first->previous : &l->last) = c;
	l->first = c;
	l->n++;
}

static void unlink_closure(chi_closure_list *l, chi_closure *c)
{
	*(c->previous != NULL ? &c->previous->next : &l->first) = c->next;
	*(c->next != NULL ? &c->next->previous : &l->last) = c->previous;
	c->next = c->previous = NULL;
	l->n--;
}

chi_closure *chi_closure_new(int function, chi_pack *args)
{
	chi_closure *c = args->failed ? NULL : chi_alloc(sizeof *c);
	if (c == NULL) {
		chi_pack_free(args);
		return NULL;
	}
	c->function = function;
	c->args = *args;
	c->references = 1;
	*args = (chi_pack){ 0 };
	return c;
}

void chi_closure_drop(chi_closure *c)
{
	if (c == NULL || --c->references > 0)
		return;
	chi_pack_free(&c->args);
	chi_pack_free(&c->result);
	chi_free(c->error);
	chi_free(c);
}

// c must be in no list.
static void finish(chi_closure *c, choir_status status, const char *text)
{
	c->state = CHI_CLOSURE_FINISHED;
	c->status = status;
	if (status != CHOIR_OK)
		c->error = chi_strdup(text); // NULL: no text
	chi_pack_free(&c->args);
	chi_closure_drop(c);
}

static void cancel_waiting(chi_closures *q)
{
	while (q->waiting.first != NULL) {
		chi_closure *c = q->waiting.first;
		unlink_closure(&q->waiting, c);
		finish(c, CHOIR_CANCELLED,
				"cancelled, because an earlier closure failed; schedule it again");
	}
}

void chi_closures_add(chi_closures *q, chi_closure *c)
{
	c->id = ++q->last_id;
	c->references++;
	link_at_end(&q->waiting, c);
	if (q->failed)
		cancel_waiting(q);
}

void chi_closures_wants(chi_closures *q, int worker)
{
	chi_closure_worker *w = &q->worker[worker];
	if (!w->used || w->hungry || w->has.n >= (size_t) (q->window + w->more))
		return;
	w->hungry = true;
	w->next_hungry = q->hungry;
	q->hungry = worker;
}

int chi_closures_join(chi_closures *q)
{
	int worker = CHOIR_NONE;
	for (size_t i = 0; i < q->workers && worker == CHOIR_NONE; i++)
		if (!q->worker[i].used)
			worker = (int) i;
	if (worker == CHOIR_NONE) {
		if (!chi_grow(&q->worker, &q->capacity, q->workers + 1, sizeof *q->worker))
			return CHOIR_NONE;
		worker = (int) q->workers++;
		q->worker[worker] = (chi_closure_worker){ 0 };
	}
	q->worker[worker].more = 0;
	q->worker[worker].pace = 1;
	q->worker[worker].used = true; // a lost worker may still be in the list of hungry ones
	chi_closures_wants(q, worker);
	return worker;
}

static void give_to(chi_closures *q, chi_closure *c, int worker)
{
	link_at_end(&q->worker[worker].has, c);
	q->running++;
	c->state = CHI_CLOSURE_RUNS;
	c->worker = worker;
	c->attempt++;
}

void chi_closures_pin(chi_closures *q, chi_closure *c, int worker)
{
	c->id = ++q->last_id;
	c->references++;
	c->pinned = true;
	give_to(q, c, worker);
}

chi_closure *chi_closures_give(chi_closures *q)
{
	while (q->hungry != CHOIR_NONE && q->waiting.first != NULL) {
		const int worker = q->hungry;
		chi_closure_worker *w = &q->worker[worker];
		q->hungry = w->next_hungry;
		w->hungry = false;
		if (!w->used)
			continue;
		chi_closure *c = q->waiting.first;
		unlink_closure(&q->waiting, c);
		give_to(q, c, worker);
		chi_closures_wants(q, worker);
		return c;
	}
	return NULL;
}

static void note_failure(chi_closures *q, choir_status status, const char *text)
{
	if (!q->failed) {
		choir_fail(status, "%s", text);
		chi_error_save(&q->error);
		q->failed = true;
	}
	cancel_waiting(q);
}

chi_closure *chi_closures_find(const chi_closures *q, int worker, uint64_t id)
{
	chi_closure *c = q->worker[worker].has.first;
	while (c != NULL && c->id != id)
		c = c->next;
	return c;
}

bool chi_closures_finish(chi_closures *q, int worker, uint64_t id, choir_status status,
		const char *text, const char *name, chi_pack *result)
{
	chi_closure_worker *w = &q->worker[worker];
	chi_closure *c = chi_closures_find(q, worker, id);
	char line[CHI_ERROR_SIZE];
	if (c == NULL)
		return false;
	unlink_closure(&w->has, c);
	q->running--;
	chi_closures_wants(q, worker);
	c->result = *result;
	*result = (chi_pack){ 0 };
	if (status != CHOIR_OK)
		snprintf(line, sizeof line, "closure %llu on %s: %.350s", (unsigned long long) id, name,
				text);
	const bool fails = status != CHOIR_OK && !c->pinned;
	finish(c, status, line);
	if (fails)
		note_failure(q, status, line);
	return true;
}

void chi_closures_lost(chi_closures *q, int worker, const char *why,
		void (*ended)(void *user, const chi_closure *c), void *user)
{
	chi_closure_worker *w = &q->worker[worker];
	char line[CHI_ERROR_SIZE];
	w->used = false;
	while (w->has.last != NULL) {
		chi_closure *c = w->has.last;
		unlink_closure(&w->has, c);
		q->running--;
		c->state = CHI_CLOSURE_WAITS;
		if (c->attempt < q->attempts && !c->pinned) {
			link_at_front(&q->waiting, c);
			continue;
		}
		ended(user, c);
		snprintf(line, sizeof line, "closure %llu: its worker was lost %d times: %.350s",
				(unsigned long long) c->id, c->attempt, why);
		const bool fails = !c->pinned;
		finish(c, CHOIR_PEER_LOST, line);
		if (fails)
			note_failure(q, CHOIR_PEER_LOST, line);
	}
	if (q->failed)
		cancel_waiting(q);
}

bool chi_closures_idle(const chi_closures *q)
{
	return q->waiting.n == 0 && q->running == 0;
}

choir_status chi_closures_take_error(chi_closures *q)
{
	if (!q->failed || q->running > 0)
		return CHOIR_OK;
	cancel_waiting(q);
	q->failed = false;
	return chi_error_restore(&q->error);
}

void chi_closures_end(chi_closures *q)
{
	chi_error why;
	chi_error_save(&why);
	for (size_t i = 0; i < q->workers; i++)
		while (q->worker[i].has.first != NULL) {
			chi_closure *c = q->worker[i].has.first;
			unlink_closure(&q->worker[i].has, c);
			q->running--;
			finish(c, why.status, why.text);
		}
	while (q->waiting.first != NULL) {
		chi_closure *c = q->waiting.first;
		unlink_closure(&q->waiting, c);
		finish(c, why.status, why.text);
	}
	chi_error_restore(&why);
}

void chi_closures_free(chi_closures *q)
{
	choir_fail(CHOIR_CANCELLED, "the coordinator was freed");
	chi_closures_end(q);
	chi_free(q->worker);
	*q = (chi_closures){ 0 };
}
