// Variables on parameter servers in other processes: a strategy has copies, and the servers apply
// its updates.
#pragma once

#include "strategy/strategy.h"

// In host memory: of all elements, or of n rows, in ascending order.
typedef struct {
	const void *dense;
	int64_t n;
	const int64_t *row;
	const void *values;
} chi_remote_gradient;

typedef struct chi_remote {
	void *user;
	// Updates the copies before each run, and before reads and writes outside of runs.
	choir_status (*refresh)(void *user);
	// Before runs, and writes outside of runs. The servers do not change until they have these
	// writes. NULL: refresh.
	choir_status (*refresh_to_write)(void *user);
	// After refresh, before a read of v: n rows; row NULL: all. Ignores invalid rows. NULL:
	// refresh brings all. Threads: any.
	choir_status (*fetch)(void *user, choir_variable *v, int64_t n, const int64_t row[]);
	// Instead of an update, with gradients summed over the replicas. optimizer:
	// chi_gradients_new's user. NULL: updates are applied here.
	choir_status (*push)(void *user, void *optimizer, size_t n, choir_variable *const v[],
			const chi_remote_gradient gradient[]);
	// After a write of v in this process. t: host memory, or a plain number. NULL: nothing to do.
	choir_status (*assign)(void *user, choir_variable *v, chi_assign_op op, choir_tensor *t);
} chi_remote;

static inline choir_status chi_remote_refresh(const choir_strategy *s)
{
	const chi_remote *r = s->owner->remote;
	// All reads of a run are of one moment.
	return r == NULL || chi_atomic32_load(&s->running) != 0 || s->owner->remote_held
			? CHOIR_OK
			: r->refresh(r->user);
}

static inline choir_status chi_remote_refresh_to_write(const choir_strategy *s)
{
	const chi_remote *r = s->owner->remote;
	return r == NULL || r->refresh_to_write == NULL || chi_atomic32_load(&s->running) != 0
			? chi_remote_refresh(s)
			: r->refresh_to_write(r->user);
}

static inline bool chi_remote_fetches(const choir_variable *v)
{
	return v->strategy->remote != NULL && v->strategy->remote->fetch != NULL;
}

static inline choir_status chi_remote_fetch(choir_variable *v, int64_t n, const int64_t row[])
{
	const chi_remote *r = v->strategy->remote;
	return chi_remote_fetches(v) ? r->fetch(r->user, v, n, row) : CHOIR_OK;
}

static inline bool chi_remote_pushes(const choir_strategy *s)
{
	return s->owner->remote != NULL && s->owner->remote->push != NULL;
}

// CHOIR_UNSUPPORTED: would change only this process's copies.
static inline choir_status chi_remote_refuse(const choir_strategy *s, const char *what)
{
	if (!chi_remote_pushes(s))
		return CHOIR_OK;
	return choir_fail(CHOIR_UNSUPPORTED,
			"%s: the variables are on parameter servers in other processes; optimizers, and "
			"assign, "
			"assign_add and assign_sub, can change them",
			what);
}
