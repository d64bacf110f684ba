// Scopes. From enter to exit, a scope decides in which strategy, and how, this thread makes
// variables and objects with variables (layers, optimizers, metrics). Scopes nest. After a failed
// enter the thread is not in the scope. Outside of all scopes, replicas, merge calls and updates,
// choir_scope_sync_on_read does nothing, and all other functions of this header except
// choir_scope_enter fail with CHOIR_STATE.
// Threads: the thread that enters a scope exits it.
#pragma once

#include "variable.h"

CHOIR_C_BEGIN

// Memory for one scope, which need not be initialized. It must not move before the exit.
typedef struct {
	void *hidden[4];
} choir_scope;

// Enters a scope of s. CHOIR_STATE: the thread is in a replica or an update, is in a scope or
// merge call of another strategy, or has set another strategy (choir_strategy_set_current).
CHOIR_MUST_CHECK choir_status choir_scope_enter(choir_scope *scope, choir_strategy *s);

// Colocates new variables with a variable v of the current strategy, so v's update functions may
// write them. Pass choir_variable_as_value(v) or, for non-slot variables (update.h),
// choir_cross_non_slot_devices's destination.
CHOIR_MUST_CHECK choir_status choir_scope_colocate(choir_scope *scope, choir_value *with);

// Makes new variables ON_READ with this aggregation and not trainable, whatever their options say.
CHOIR_MUST_CHECK choir_status choir_scope_replica_local(
		choir_scope *scope, choir_aggregation aggregation);

// Gives this initializer to new variables that begin at random (kernels, embeddings). scale: as in
// choir_variable_options.
CHOIR_MUST_CHECK choir_status choir_scope_initializer(
		choir_scope *scope, choir_initializer initializer, double scale);

// Gives new variables that begin at random a regularizer (Keras' kernel_regularizer L1L2): the
// penalty l1 sum(|w|) + l2 sum(w^2), with l1 and l2 of at least 0. choir_layer_regularization_loss
// (layer.h) computes a layer's penalties.
CHOIR_MUST_CHECK choir_status choir_scope_regularizer(choir_scope *scope, double l1, double l2);

// In a replica, reads of an ON_READ variable give the aggregate of all components, and are sync
// points (docs/rules.md, section 4). With a parameter server, the components are those of one
// worker's replicas. choir_variable_component ignores this scope.
CHOIR_MUST_CHECK choir_status choir_scope_sync_on_read(choir_scope *scope);

// Exits a scope. CHOIR_STATE: scope is not entered; a later scope is still open (scope stays
// entered). A replica, merge or update function that returns with open scopes fails with
// CHOIR_STATE, and they are closed.
choir_status choir_scope_exit(choir_scope *scope);

// CHOIR_SCOPE (s) { ... } runs the block in s's scope, or skips it if it cannot enter
// (choir_error). The block's end, return, goto, break and continue exit the scope; break and
// continue leave the block, not a loop around it.
#define CHOIR_SCOPE(strategy) CHOIR_SCOPE_(strategy, __LINE__)
#define CHOIR_SCOPE_(strategy, line) CHOIR_SCOPE_AT_(strategy, line)
#define CHOIR_SCOPE_AT_(strategy, line) \
	for (choir_scope scope_##line##_ \
			__attribute__((cleanup(choir_scope_cleanup_))) = { { NULL } }; \
			choir_scope_enter_once_(&scope_##line##_, strategy);)

// For CHOIR_SCOPE: enters a zeroed scope at the first call. Returns whether it has entered.
bool choir_scope_enter_once_(choir_scope *scope, choir_strategy *s);

// For CHOIR_SCOPE.
void choir_scope_cleanup_(choir_scope *scope);

CHOIR_C_END
