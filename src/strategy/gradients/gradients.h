// Gradients that optimizers apply inside replicas. A replica adds them to its device's partial
// sums and never waits (docs/decisions/0008). The update runs on all devices' threads at the end
// of the run. A read of an updated variable or a merge call runs it earlier, on one thread.
#pragma once

#include "choir/extend/kernel_table.h"
#include "collective/tree.h"
#include "strategy/run/run.h"

// Elements of a variable's summed gradient.
typedef struct {
	int64_t first, count;
	const void *data; // of element first
	double factor;
	const double *gate; // of "update_gate" on the device, or NULL
} chi_gradient_chunk;

// Ascending rows of a variable's summed gradient.
typedef struct {
	int64_t n, width; // width: elements of a row
	const int64_t *row;
	const void *values; // one row after another
} chi_gradient_rows;

// Called in the order begin, (gate), chunk .., end. Several workers' updates may be pending; each
// has its own state.
typedef struct {
	const char *name;
	size_t state_size; // zeroed once, then kept
	void (*close)(void *state); // may be NULL
	// Makes slots and fixes the learning rate, before the first write.
	choir_status (*begin)(void *user, void *state, size_t n, choir_variable *const v[]);
	// Elements of v with a zero gradient never change. May be NULL: they may.
	bool (*skips_zeros)(const void *user, const choir_variable *v);
	// gate must see all sums before the first write.
	bool (*gated)(const void *user);
	// A pure function that every device calls. squares: of all summed gradients, not finite if a
	// gradient is not. bad: the first variable with such a gradient. Sets a factor for all
	// gradients, or *skip.
	choir_status (*gate)(const void *user, double squares, const choir_variable *bad,
			double *factor, bool *skip);
	// chunk gets a whole copy in one call; gated then returns true.
	bool whole;
	// For a kernel that decides as gate does; may be NULL.
	choir_update_gate_attributes (*gate_attributes)(const void *user);
	// Updates elements of a copy of v, called concurrently. index: v's in begin. gradient is on
	// the copy's device.
	choir_status (*chunk)(void *user, const void *state, size_t index, choir_variable *v, int copy,
			const chi_gradient_chunk *chunk, chi_stream *stream);
	// Updates rows of v's only copy, in host memory. May be NULL.
	choir_status (*rows)(void *user, const void *state, size_t index, choir_variable *v,
			const chi_gradient_rows *rows, chi_stream *stream);
	// After the last write. applied: false if gate skipped the update.
	void (*end)(void *user, const void *state, bool applied);
} chi_gradients_table;

typedef struct chi_gradients chi_gradients;
chi_gradients *chi_gradients_new(choir_strategy *s, const chi_gradients_table *table, void *user);
void chi_gradients_free(chi_gradients *a);

bool chi_gradients_take_sparse(chi_gradients *a, const choir_variable *v);
// Adds a final gradient of v, sparse only if chi_gradients_take_sparse(v). apply: r has added all
// of this update.
choir_status chi_gradients_add(
		chi_gradients *a, choir_replica *r, choir_variable *v, choir_tensor *gradient);
choir_status chi_gradients_apply(chi_gradients *a, choir_replica *r);
// At once, on this thread, in cross-replica context. Per-replica values are summed.
choir_status chi_gradients_apply_now(chi_gradients *a, choir_cross *x, size_t n,
		choir_variable *const v[], choir_value *const values[]);

// Before r reads v. This function and those below are for src/strategy.
choir_status chi_gradients_finish_updates_of(chi_replica *r, const choir_variable *v);
// Fails if r has returned with gradients that it did not apply.
choir_status chi_gradients_check_applied(chi_replica *r);
// On this thread, while all replicas wait in a merge call.
choir_status chi_gradients_finish_updates(chi_run *run);
// Device d's part, after its replicas have returned.
void chi_gradients_run_updates(chi_run *run, int d);
// At the run's gate, until *flag of u is not zero. False: the run has failed.
bool chi_gradients_wait(struct chi_pending_update *u, const chi_atomic32 *flag);
void chi_gradients_discard_updates(chi_run *run);
