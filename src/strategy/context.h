// A thread's stack of contexts; empty: the default replica. Functions without a context argument
// use the newest entry.
#pragma once

#include "strategy/strategy.h"

typedef struct chi_context {
	chi_context_kind kind;
	choir_strategy *strategy;
	void *what;
	choir_variable *colocate;
	bool non_slot;
	bool replica_local; // for new variables with this aggregation
	choir_aggregation aggregation;
	bool initializes;
	choir_initializer initializer;
	double scale;
	double l1, l2;
	bool sync_on_read;
	choir_frame *frame;
	struct chi_context *outer;
	const void *stack; // address of the call; NULL: a scope
} chi_context;

#define CHI_WAS_LEFT \
	"a function that Choir called was left by longjmp, an exception or pthread_exit"

chi_context *chi_context_current(void); // NULL: the default replica
void chi_context_push(chi_context *c);
// Before a function of the program. Returns the entry to leave: c, which must live until then, if
// the stack is full.
chi_context *chi_context_enter(
		chi_context *c, chi_context_kind kind, choir_strategy *s, void *what);
void chi_context_pop(chi_context *c);
// Closes the function's scopes. Returns status, or CHOIR_STATE: a non-local exit left a function
// inside; scopes were open after CHOIR_OK; or status is CHOIR_END. fmt names the function.
choir_status chi_context_leave(chi_context *c, choir_status status, const char *fmt, ...)
		CHOIR_PRINTF(3, 4);
// Before a strategy is freed: undoes choir_strategy_set_current, and closes contexts left by
// non-local exits, if any (true).
bool chi_context_forget(const choir_strategy *s);

choir_strategy *chi_context_strategy(void);
// CHOIR_STATE: not in cross-replica context of s or, for the first function, its update function.
choir_status chi_context_sees_all(const choir_strategy *s, const char *what);
choir_status chi_context_need_cross(const choir_strategy *s, const char *what);
