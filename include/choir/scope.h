// Scopes. From enter to exit, a scope decides in which strategy, and how, this thread makes
// variables and objects that have variables (layers, optimizers, metrics). Scopes nest. If
// entering a scope fails, the thread is not in it.
// Threads: only the thread that entered a scope may exit it.
#pragma once

#include "variable.h"

CHOIR_C_BEGIN

// Memory for one scope. It needs no initial value, and must not move before the exit.
typedef struct {
	void *hidden[4];
} choir_scope;

// Enters s's scope. CHOIR_STATE: the thread is in a replica or an update, is in a scope or merge
// call of another strategy, or has set another strategy.
CHOIR_MUST_CHECK choir_status choir_scope_enter(choir_scope *scope, choir_strategy *s);

// Enters a scope in which new variables are colocated with a variable v of the current strategy:
// pass choir_variable_as_value(v). An update function of v may also write the new variables. For
// non-slot variables (update.h), pass the destination from choir_cross_non_slot_devices.
// CHOIR_STATE: the thread is in no scope and no replica. CHOIR_INVALID: with is another value, or
// belongs to another strategy.
CHOIR_MUST_CHECK choir_status choir_scope_colocate(choir_scope *scope, choir_value *with);

// Enters a scope in which new variables are ON_READ, have this aggregation and are not trainable.
// The scope overrides the variables' options. CHOIR_STATE as for choir_scope_colocate.
CHOIR_MUST_CHECK choir_status choir_scope_replica_local(
		choir_scope *scope, choir_aggregation aggregation);

// Enters a scope in which variables that would begin at random begin by this initializer instead:
// the kernels and embeddings of layers. scale is that of choir_variable_options. Variables that
// begin at zero, at one or at given values stay as they are. CHOIR_STATE as for
// choir_scope_colocate. CHOIR_INVALID: an unknown initializer.
CHOIR_MUST_CHECK choir_status choir_scope_initializer(
		choir_scope *scope, choir_initializer initializer, double scale);

// Enters a scope in which variables with random initial values get a regularizer. These are the
// kernels and embeddings of layers, but not biases (Keras' kernel_regularizer L1L2). The penalty
// of a variable w is l1 sum(|w|) + l2 sum(w^2). choir_layer_regularization_loss (layer.h) computes
// the penalties of a layer, and choir_fit adds them to the loss. CHOIR_STATE as for
// choir_scope_colocate. CHOIR_INVALID: l1 or l2 is negative or not finite.
CHOIR_MUST_CHECK choir_status choir_scope_regularizer(choir_scope *scope, double l1, double l2);

// Enters a scope in which a replica's read of an ON_READ variable gives the value of a read
// outside of replicas. Each of these reads is a sync point of all replicas (docs/rules.md, section
// 4). In a parameter server strategy, only the replicas of one worker synchronize, and the value
// is that of their components. choir_variable_component ignores this scope.
CHOIR_MUST_CHECK choir_status choir_scope_sync_on_read(choir_scope *scope);

// Leaves scope. If a replica, merge or update function returns with open scopes, the scopes are
// closed, and the function fails with CHOIR_STATE. The call's CHOIR_STATE: entering scope failed;
// scope was left already; a scope that was entered later is still open (then scope stays entered).
choir_status choir_scope_exit(choir_scope *scope);

// CHOIR_SCOPE (s) { ... } runs the block in s's scope. The end of the block, return, goto, break
// and continue leave the scope. break and continue leave only the block, not a loop around it. If
// s's scope cannot be entered, the block is skipped, and choir_error gives the reason.
#define CHOIR_SCOPE(strategy) CHOIR_SCOPE_(strategy, __LINE__)
#define CHOIR_SCOPE_(strategy, line) CHOIR_SCOPE_AT_(strategy, line)
#define CHOIR_SCOPE_AT_(strategy, line) \
	for (choir_scope scope_##line##_ \
			__attribute__((cleanup(choir_scope_cleanup_))) = { { NULL } }; \
			choir_scope_enter_once_(&scope_##line##_, strategy);)

// For CHOIR_SCOPE. Enters a zeroed scope at the first call. Returns whether this call entered it.
bool choir_scope_enter_once_(choir_scope *scope, choir_strategy *s);

// For CHOIR_SCOPE. Leaves scope if it was entered.
void choir_scope_cleanup_(choir_scope *scope);

CHOIR_C_END
