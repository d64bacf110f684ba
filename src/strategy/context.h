// Which context a thread is in: a stack of entries, the innermost first. An empty stack is the
// default replica, 0 of 1. The stack is what the ambient questions of the API read; calls that
// take a context as an argument need it only to refuse a context that is not the current one.
#pragma once

#include "strategy/strategy.h"

typedef enum {
	CHI_IN_REPLICA = 1, // what: chi_replica
	CHI_IN_CROSS, // what: choir_cross, or NULL in a scope
	CHI_IN_UPDATE // what: choir_update
} chi_context_kind;

typedef struct chi_context {
	chi_context_kind kind;
	choir_strategy *strategy;
	void *what;
	choir_variable *colocate; // variables made here go beside it; NULL
	bool non_slot; // variables made here lie where a strategy's non-slot variables do
	bool replica_local; // variables made here are ON_READ, with this aggregation
	choir_aggregation aggregation;
	bool sync_on_read; // reads of ON_READ variables in a replica are of the whole
	choir_frame *frame; // an update's own, freed here if its function was left; NULL
	struct chi_context *outer;
	const void *stack; // of a function that Choir calls: where it was called; NULL: a scope's
} chi_context;

// What is said of a function that did not end by returning.
#define CHI_WAS_LEFT \
	"a function that Choir called was left by longjmp, an exception or pthread_exit"

chi_context *chi_context_current(void); // NULL: the default replica
void chi_context_push(chi_context *c); // c, a scope's, stays until popped
// For a function that Choir is about to call. Returns an entry of the thread's own, which is
// popped or left after the call; where there are too many already it is c, which then stays
// until that.
chi_context *chi_context_enter(
		chi_context *c, chi_context_kind kind, choir_strategy *s, void *what);
void chi_context_pop(chi_context *c);
// Pops c after a function of the program's, which returned status, and closes the scopes that it
// left open. Returns that status, or CHOIR_STATE if it left a function that Choir called inside
// otherwise than by returning, or for open scopes of one that says it went well: to
// leave them by a failure is no other failure. A failure of which the thread has no text gets one,
// which names the function by fmt, and CHOIR_END, which to callers is no failure, is CHOIR_STATE.
choir_status chi_context_leave(chi_context *c, choir_status status, const char *fmt, ...)
		CHOIR_PRINTF(3, 4);
// The strategy is no more: this thread's choir_strategy_set_current is undone, and entries of its
// functions, which were left, are closed. True: there were some.
bool chi_context_forget(const choir_strategy *s);

// The strategy whose scope or context this thread is in, or the one set; NULL: none.
choir_strategy *chi_context_strategy(void);
// CHOIR_STATE if the thread is in a replica (what needs cross-replica context), or under another
// strategy: what names the call. In an update function it sees all of its strategy...
choir_status chi_context_sees_all(const choir_strategy *s, const char *what);
// ... but it may do nothing there that all replicas or copies take part in: CHOIR_STATE, too.
choir_status chi_context_need_cross(const choir_strategy *s, const char *what);
