// A thread's contexts: the strategy, replica, merge call or update of a call.
#include "strategy/context.h"

#include "strategy/run/run.h"

#include <stdio.h>

static _Thread_local chi_context *top;
static _Thread_local choir_strategy *set_strategy;

// a non-local exit leaves the entries of called functions readable
enum { DEPTH = 16 };
static _Thread_local chi_context called[DEPTH];
static _Thread_local int calls;

chi_context *chi_context_current(void)
{
	return top;
}

void chi_context_push(chi_context *c)
{
	c->outer = top;
	top = c;
}

chi_context *chi_context_enter(
		chi_context *c, chi_context_kind kind, choir_strategy *s, void *what)
{
	chi_mutex_check_none_held();
	if (calls < DEPTH)
		c = &called[calls++];
	*c = (chi_context){ .kind = kind, .strategy = s, .what = what, .outer = top };
	c->stack = __builtin_frame_address(0);
	top = c;
	return c;
}

void chi_context_pop(chi_context *c)
{
	top = c->outer;
	if (c >= called && c < called + DEPTH)
		calls = (int) (c - called);
}

static int close_above(const chi_context *c, bool *left)
{
	int open = 0;
	while (top != c) {
		chi_context *above = top;
		chi_context_pop(above);
		if (above->stack != NULL) {
			*left = true;
			choir_frame_free(above->frame);
		} else {
			chi_free(above);
			open++;
		}
	}
	return open;
}

// Stacks grow down: a call from a higher address proves that the innermost function was left.
static bool was_left(void)
{
	const chi_context *c = top;
	while (c != NULL && c->stack == NULL)
		c = c->outer;
	return c != NULL && (uintptr_t) __builtin_frame_address(0) > (uintptr_t) c->stack;
}

choir_status chi_context_leave(chi_context *c, choir_status status, const char *fmt, ...)
{
	bool left = false;
	const int open = close_above(c, &left);
	chi_context_pop(c);
	if (left)
		return choir_fail(CHOIR_STATE, "%s", CHI_WAS_LEFT);
	if (status == CHOIR_OK && open > 0)
		return choir_fail(CHOIR_STATE, "scope: the function returned with %d scope%s still open",
				open, open == 1 ? "" : "s");
	if (status == CHOIR_OK || choir_error_status() == status) // never CHOIR_END
		return status;
	char function[200];
	va_list args;
	va_start(args, fmt);
	vsnprintf(function, sizeof function, fmt, args);
	va_end(args);
	return choir_fail(status == CHOIR_END ? CHOIR_STATE : status, "%s returned %s", function,
			choir_status_name(status));
}

bool chi_context_forget(const choir_strategy *s)
{
	const chi_context *last = NULL;
	bool left = false;
	if (set_strategy == s)
		set_strategy = NULL;
	for (const chi_context *c = top; c != NULL; c = c->outer)
		if (c->stack != NULL && c->strategy->owner == s)
			last = c;
	if (last != NULL)
		close_above(last->outer, &left);
	return left;
}

choir_strategy *chi_context_strategy(void)
{
	return top != NULL ? top->strategy : set_strategy;
}

choir_strategy *choir_strategy_current(void)
{
	choir_strategy *s = chi_context_strategy();
	return s != NULL ? s : choir_default_strategy();
}

bool choir_has_strategy(void)
{
	choir_strategy *s = chi_context_strategy();
	return s != NULL && !s->is_default;
}

bool choir_in_cross_replica_context(void)
{
	return top != NULL ? top->kind != CHI_IN_REPLICA : set_strategy != NULL;
}

choir_status choir_strategy_set_current(choir_strategy *s)
{
	if (top != NULL)
		return choir_fail(CHOIR_STATE,
				"set_current: this thread is inside a scope or a replica of %s; call it outside",
				top->strategy->label);
	if (s != NULL)
		CHOIR_TRY(chi_strategy_check(s));
	set_strategy = s;
	return CHOIR_OK;
}

choir_status chi_context_sees_all(const choir_strategy *s, const char *what)
{
	if (top == NULL)
		return set_strategy == NULL || set_strategy == s
				? CHOIR_OK
				: choir_fail(CHOIR_STATE, "%s: another strategy (%s) is current", what,
						  set_strategy->label);
	if (was_left())
		return choir_fail(CHOIR_STATE, "%s: on this thread, %s; free its strategy %s first", what,
				CHI_WAS_LEFT, top->strategy->label);
	if (top->kind == CHI_IN_REPLICA && !top->strategy->is_default)
		return choir_fail(CHOIR_STATE,
				"%s is not possible in replica %d; it needs "
				"cross-replica context, which a merge call gives",
				what, chi_replica_number(top->what));
	if (top->strategy != s && top->strategy->owner != s)
		return choir_fail(CHOIR_STATE,
				"%s: mixing strategies: this thread is in a scope of %s, the call is for %s", what,
				top->strategy->label, s->label);
	return CHOIR_OK;
}

choir_status chi_context_need_cross(const choir_strategy *s, const char *what)
{
	if (top != NULL && top->kind == CHI_IN_UPDATE && !was_left())
		return choir_fail(CHOIR_STATE, "%s is not possible in an update function", what);
	return chi_context_sees_all(s, what);
}
