// Gradients that optimizers apply inside replicas. A replica adds them to its device's partial
// sums without a wait (docs/decisions/0008). The update runs on all devices' threads at the run's
// end, or on one thread for an earlier read or merge call.
#pragma once

#include "choir/extend/kernel_table.h"
#include "collective/tree.h"
#include "strategy/run/run.h"

typedef struct {
	int64_t first, count;
	const void *data;
	double factor;
	const double *gate; // of "update_gate" on the device, or NULL
} chi_gradient_chunk;

// A chunk of a variable's copy. index: the variable's in begin.
typedef struct {
	size_t index;
	choir_variable *variable;
	int copy;
	chi_gradient_chunk chunk;
} chi_gradient_write;

typedef struct {
	int64_t n, width;
	const int64_t *row;
	const void *values;
} chi_gradient_rows;

// Called in the order begin, (gate), chunk .., end. Each pending update has its own state.
typedef struct {
	const char *name;
	size_t state_size;
	void (*close)(void *state);
	// Makes slots, before the first write.
	choir_status (*begin)(void *user, void *state, size_t n, choir_variable *const v[]);
	// Elements of v with a zero gradient never change. NULL: they may.
	bool (*skips_zeros)(const void *user, const choir_variable *v);
	bool (*gated)(const void *user);
	// Pure, called by every device. squares: of all summed gradients; bad: the first variable
	// whose gradient is not finite. Sets a factor for all, or *skip.
	choir_status (*gate)(const void *user, double squares, const choir_variable *bad,
			double *factor, bool *skip);
	// chunk gets a whole copy in one call; gated then returns true.
	bool whole;
	// For "update_gate", which must decide as gate. May be NULL.
	choir_update_gate_attributes (*gate_attributes)(const void *user);
	// Called concurrently. index: v's in begin. gradient is on the copy's device.
	choir_status (*chunk)(void *user, const void *state, size_t index, choir_variable *v, int copy,
			const chi_gradient_chunk *chunk, chi_stream *stream);
	// The same for several copies, on their device's stream. May be NULL.
	choir_status (*chunks)(void *user, const void *state, size_t n, const chi_gradient_write w[],
			chi_stream *stream);
	// v's only copy, in host memory. May be NULL.
	choir_status (*rows)(void *user, const void *state, size_t index, choir_variable *v,
			const chi_gradient_rows *rows, chi_stream *stream);
	// applied: gate did not skip the update.
	void (*end)(void *user, const void *state, bool applied);
} chi_gradients_table;

typedef struct chi_gradients chi_gradients;
chi_gradients *chi_gradients_new(choir_strategy *s, const chi_gradients_table *table, void *user);
void chi_gradients_free(chi_gradients *a);

bool chi_gradients_take_sparse(chi_gradients *a, const choir_variable *v);
// apply: the update is complete. gradient is sparse only if chi_gradients_take_sparse(v).
choir_status chi_gradients_add(
		chi_gradients *a, choir_replica *r, choir_variable *v, choir_tensor *gradient);
choir_status chi_gradients_apply(chi_gradients *a, choir_replica *r);
// On this thread, in cross-replica context. Per-replica values are summed.
choir_status chi_gradients_apply_now(chi_gradients *a, choir_cross *x, size_t n,
		choir_variable *const v[], choir_value *const values[]);

// Before r reads v. From here on for src/strategy.
choir_status chi_gradients_finish_updates_of(chi_replica *r, const choir_variable *v);
choir_status chi_gradients_check_applied(chi_replica *r);
choir_status chi_gradients_finish_updates(chi_run *run);
void chi_gradients_run_updates(chi_run *run, int d);
// r's queue has failed: streams that need its gradients write nothing.
void chi_gradients_spare_updates(const chi_replica *r);
// False: the run has failed.
bool chi_gradients_wait(struct chi_pending_update *u, const chi_atomic32 *flag);
void chi_gradients_discard_updates(chi_run *run);
