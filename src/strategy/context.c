// The stack of contexts of a thread, and the questions about it.
#include "strategy/context.h"

#include "base/alloc.h"
#include "strategy/run/run.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local chi_context *top;
static _Thread_local choir_strategy *set_strategy; // choir_strategy_set_current

chi_context *chi_context_current(void)
{
	return top;
}

void chi_context_push(chi_context *c)
{
	c->outer = top;
	top = c;
}

void chi_context_pop(chi_context *c)
{
	top = c->outer;
}

// So many as were open.
static int close_scopes(const chi_context *c)
{
	int open = 0;
	while (top != c) { // all above c are scopes', from the heap
		chi_context *scope = top;
		top = scope->outer;
		chi_free(scope);
		open++;
	}
	return open;
}

choir_status chi_context_leave(chi_context *c, choir_status status, const char *fmt, ...)
{
	const int open = close_scopes(c);
	chi_context_pop(c);
	if (status == CHOIR_OK && open > 0)
		return choir_fail(CHOIR_STATE, "scope: the function returned with %d scope%s still open",
				open, open == 1 ? "" : "s");
	if (status == CHOIR_OK || choir_error_status() == status) // which is never CHOIR_END
		return status;
	char function[200];
	va_list args;
	va_start(args, fmt);
	vsnprintf(function, sizeof function, fmt, args);
	va_end(args);
	return choir_fail(status == CHOIR_END ? CHOIR_STATE : status, "%s returned %s", function,
			choir_status_name(status));
}

void chi_context_forget(const choir_strategy *s)
{
	if (set_strategy == s)
		set_strategy = NULL;
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

choir_replica *choir_replica_current(void)
{
	if (top != NULL)
		return top->kind == CHI_IN_REPLICA ? &((chi_replica *) top->what)->shown : NULL;
	if (set_strategy != NULL)
		return NULL;
	choir_strategy *s = choir_default_strategy();
	return s == NULL ? NULL : &s->standing->replica[0].shown;
}

choir_status choir_strategy_set_current(choir_strategy *s)
{
	if (top != NULL)
		return choir_fail(CHOIR_STATE,
				"strategy: set_current is not possible inside a scope or a "
				"replica of %s",
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
	if (top->kind == CHI_IN_REPLICA && !top->strategy->is_default)
		return choir_fail(CHOIR_STATE,
				"%s is not possible in replica %d: it needs cross-replica "
				"context, which a merge call gives",
				what, chi_replica_number(top->what));
	if (top->strategy != s && top->strategy->home != s)
		return choir_fail(CHOIR_STATE,
				"%s: mixing strategies: this thread is in a scope of "
				"%s, the call is for %s",
				what, top->strategy->label, s->label);
	return CHOIR_OK;
}

choir_status chi_context_need_cross(const choir_strategy *s, const char *what)
{
	if (top != NULL && top->kind == CHI_IN_UPDATE)
		return choir_fail(CHOIR_STATE, "%s is not possible in an update function", what);
	return chi_context_sees_all(s, what);
}
