// Scopes: contexts that a program opens and closes.
#include "base/alloc.h"
#include "strategy/update/update.h"

#include <math.h>

enum { ENTRY, CALLED, NO_CHANGE };

static void begin(choir_scope *scope)
{
	scope->hidden[ENTRY] = scope->hidden[NO_CHANGE] = NULL;
}

static choir_status push(choir_scope *scope, chi_context from)
{
	chi_context *c = chi_alloc(sizeof *c);
	CHOIR_TRY(chi_made(c));
	*c = from;
	c->stack = NULL;
	chi_context_push(c);
	scope->hidden[ENTRY] = c;
	return CHOIR_OK;
}

choir_status choir_scope_enter(choir_scope *scope, choir_strategy *s)
{
	begin(scope);
	CHOIR_TRY(chi_strategy_check(s));
	const chi_context *c = chi_context_current();
	if (c != NULL && s->is_default && c->strategy != s)
		return choir_fail(CHOIR_STATE,
				"scope: the default strategy's scope was "
				"entered inside a scope of %s; enter it outside",
				c->strategy->label);
	CHOIR_TRY(chi_context_need_cross(s, "entering a scope"));
	return push(scope,
			(chi_context){ .kind = CHI_IN_CROSS,
					.strategy = s,
					.what = c != NULL && c->kind == CHI_IN_CROSS ? c->what : NULL });
}

static choir_status inside(const char *what, chi_context *from)
{
	const chi_context *c = chi_context_current();
	if (c == NULL)
		return choir_fail(CHOIR_STATE,
				"scope: %s was called outside of scopes; enter a strategy's scope before", what);
	*from = *c;
	return CHOIR_OK;
}

choir_status choir_scope_colocate(choir_scope *scope, choir_value *with)
{
	begin(scope);
	chi_context from = { 0 };
	CHOIR_TRY(inside("colocate", &from));
	from.non_slot = choir_value_kind_of(with) == CHOIR_VALUE_DESTINATION;
	from.colocate = NULL;
	if (from.non_slot)
		return chi_strategy_is_non_slot_destination(from.strategy, with)
				? push(scope, from)
				: choir_fail(CHOIR_INVALID,
						  "scope: colocate got another destination; it "
						  "needs a variable or the one of non_slot_devices");
	choir_variable *v = choir_value_variable(with);
	if (v == NULL)
		return choir_fail(CHOIR_INVALID, "scope: colocate needs a variable");
	if (!chi_strategy_has(from.strategy, v))
		return choir_fail(CHOIR_INVALID, "scope: variable \"%s\" belongs to another strategy (%s)",
				v->name, v->strategy->label);
	from.colocate = v->colocated_with != NULL ? v->colocated_with : v;
	return push(scope, from);
}

choir_status choir_scope_replica_local(choir_scope *scope, choir_aggregation aggregation)
{
	begin(scope);
	chi_context from = { 0 };
	CHOIR_TRY(inside("replica_local", &from));
	from.replica_local = true;
	from.aggregation = aggregation;
	return push(scope, from);
}

choir_status choir_scope_initializer(
		choir_scope *scope, choir_initializer initializer, double scale)
{
	begin(scope);
	chi_context from = { 0 };
	CHOIR_TRY(inside("initializer", &from));
	if ((unsigned) initializer > CHOIR_INITIALIZER_CONSTANT || !isfinite(scale))
		return choir_fail(CHOIR_INVALID,
				"scope: initializer %d with scale %g; a member of choir_initializer and a finite "
				"number are needed",
				(int) initializer, scale);
	from.initializes = true;
	from.initializer = initializer;
	from.scale = scale;
	return push(scope, from);
}

choir_status choir_scope_regularizer(choir_scope *scope, double l1, double l2)
{
	begin(scope);
	chi_context from = { 0 };
	CHOIR_TRY(inside("regularizer", &from));
	if (!(l1 >= 0 && l2 >= 0 && isfinite(l1) && isfinite(l2)))
		return choir_fail(CHOIR_INVALID,
				"scope: regularizer with l1 %g and l2 %g; finite numbers of 0 or more are needed",
				l1, l2);
	from.l1 = l1;
	from.l2 = l2;
	return push(scope, from);
}

choir_status choir_scope_sync_on_read(choir_scope *scope)
{
	begin(scope);
	const chi_context *c = chi_context_current();
	if (c == NULL) {
		scope->hidden[NO_CHANGE] = scope;
		return CHOIR_OK;
	}
	chi_context from = *c;
	from.sync_on_read = true;
	return push(scope, from);
}

choir_status choir_scope_exit(choir_scope *scope)
{
	chi_context *c = scope->hidden[ENTRY];
	if (c == NULL && scope->hidden[NO_CHANGE] == scope) {
		begin(scope);
		return CHOIR_OK;
	}
	if (c == NULL)
		return choir_fail(CHOIR_STATE, "scope: exit of a scope that was not entered");
	if (chi_context_current() != c)
		return choir_fail(CHOIR_STATE,
				"scope: a scope that was entered later is still open; exit that one first");
	chi_context_pop(c);
	chi_free(c);
	scope->hidden[ENTRY] = NULL;
	return CHOIR_OK;
}

bool choir_scope_enter_once_(choir_scope *scope, choir_strategy *s)
{
	if (scope->hidden[CALLED] != NULL)
		return false;
	scope->hidden[CALLED] = scope;
	return choir_scope_enter(scope, s) == CHOIR_OK;
}

void choir_scope_cleanup_(choir_scope *scope)
{
	if (scope->hidden[ENTRY] != NULL)
		(void) choir_scope_exit(scope);
}

bool choir_strategy_variable_created_in_scope(const choir_strategy *s, const choir_variable *v)
{
	return s != NULL && v != NULL && chi_strategy_has(s, v);
}
