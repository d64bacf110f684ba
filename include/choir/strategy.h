// What a program calls. Threads: one run of a strategy at a time (else CHOIR_STATE), the caller carrying
// device 0. After a fork strategies are unusable in the child (CHOIR_STATE).
#pragma once

#include "replica.h"

CHOIR_C_BEGIN

// One struct for all strategies; a field that a strategy cannot use is CHOIR_INVALID there.
typedef struct {
	size_t size;
	const char *devices; // "cpu:0,cpu:1"; NULL: CHOIR_DEVICES, else accelerators, else CPU
	int replicas; // of the job; 0: one for each device named (house 7)
	int cores_per_device; // 0: cores / devices
	choir_toggle pin; // off, unless the launcher narrowed the mask
	uint64_t seed;
	double timeout; // seconds to wait for other replicas; 0: 60; CHOIR_NONE: for ever
	const char *cross_device_ops; // "direct", "reduce_to_one_device", or registered; NULL: best score
} choir_strategy_options;
typedef choir_strategy *choir_strategy_constructor(const choir_strategy_options *o);
choir_strategy_constructor choir_mirrored_strategy_new, choir_one_device_strategy_new;
choir_strategy *choir_strategy_copy_new(const choir_strategy *s); // same kind and options, no variables
void choir_strategy_free(choir_strategy *s);
choir_strategy *choir_default_strategy(void); // one replica; not to be freed or entered in another scope

choir_strategy *choir_strategy_current(void);
bool choir_has_strategy(void);
bool choir_in_cross_replica_context(void);
choir_status choir_strategy_set_current(choir_strategy *s); // without a block; NULL: none

int choir_strategy_replicas(const choir_strategy *s);
int choir_strategy_worker_devices(const choir_strategy *s);
choir_device *choir_strategy_worker_device(const choir_strategy *s, int index);
int choir_strategy_worker_device_index(const choir_strategy *s, const choir_device *d); // or CHOIR_NONE
int choir_strategy_parameter_devices(const choir_strategy *s);
choir_device *choir_strategy_parameter_device(const choir_strategy *s, int index);
bool choir_strategy_is_chief(const choir_strategy *s); // writes checkpoints and summaries
bool choir_strategy_variable_created_in_scope(const choir_strategy *s, const choir_variable *v);
// Scopes govern what this thread makes until exit; they nest. Another strategy's scope inside one is
// CHOIR_STATE; exit out of order too, and the scope stays.
typedef struct { void *hidden[4]; } choir_scope;
choir_status choir_scope_enter(choir_scope *scope, choir_strategy *s);
choir_status choir_scope_colocate(choir_scope *scope, choir_value *with); // variable or place
choir_status choir_scope_replica_local(choir_scope *scope, choir_aggregation aggregation); // ON_READ, not trainable
choir_status choir_scope_exit(choir_scope *scope);
// CHOIR_SCOPE (s) { ... }: return leaves it well; break leaves the scope, not a loop around it. If
// entering fails the block is skipped.
#define CHOIR_SCOPE(strategy) CHOIR_SCOPE_(strategy, __LINE__)
#define CHOIR_SCOPE_(strategy, line) CHOIR_SCOPE_AT_(strategy, line)
#define CHOIR_SCOPE_AT_(strategy, line) \
	for (choir_scope scope_##line##_ __attribute__((cleanup(choir_scope_leave))) = { { NULL } }; \
			choir_scope_once(&scope_##line##_, strategy);)
bool choir_scope_once(choir_scope *scope, choir_strategy *s); // for CHOIR_SCOPE
void choir_scope_leave(choir_scope *scope);
// fn once for each local replica; waits for all. args may be NULL; *results is NULL or an earlier set,
// refilled; results may be NULL. Returns the first failure (lowest replica not cancelled by another),
// "replica 1: ...", also if fn ignored it. A variable half updated by a failure is undefined until set.
choir_status choir_strategy_run(choir_strategy *s, choir_replica_fn *fn, void *user, choir_values *args, choir_values **results);
// Over replicas, and along axes first (then MEAN is by true counts; else house 14). Lives in value's set.
choir_tensor *choir_strategy_reduce(choir_strategy *s, choir_reduce_op op, choir_value *v, choir_axes axes);
// A program's own, for the rest of cross.h; its frame lives until emptied. In a replica NULL (CHOIR_STATE).
choir_cross *choir_strategy_cross(choir_strategy *s);

CHOIR_C_END
