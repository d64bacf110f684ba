// Updates that optimizers ask for inside replicas (docs/decisions/0008: applying gradients never
// parks). A replica adds its gradients to its device's partial sums and returns; the update
// runs when all have come: at the end of the run on the threads of all devices together, or
// earlier, by whoever must have it done (a read of a variable, a merge call).
#pragma once

#include "collective/tree.h"
#include "strategy/run/run.h"

// What an optimizer does. Slots are called in the order begin, (gate), chunk .., end. Updates of
// several workers may be on their way at the same time; what one of them needs is in its state.
typedef struct {
	const char *name; // in messages
	size_t state_size; // bytes, zeroed, of an update's state, which is kept for later updates
	void (*close)(void *state); // before it is freed; NULL: nothing to do
	// Once, before anything is written: makes slots, fixes the rate. v[i] is variable i.
	choir_status (*begin)(void *user, void *state, size_t n, choir_variable *const v[]);
	// Whether elements of v stay as they are where the gradient is zero, so that rows of zeros may
	// be left out. NULL: never.
	bool (*skips_zeros)(const void *user, const choir_variable *v);
	// True: nothing is written before gate has seen all sums.
	bool (*gated)(const void *user);
	// A pure function, called by every device: squares is the sum of squares of all summed
	// gradients (not finite if one is not), bad the first variable whose own is not finite. Gives
	// the factor for all gradients, or *skip.
	choir_status (*gate)(const void *user, double squares, const choir_variable *bad,
			double *factor, bool *skip);
	// Elements first .. first + count - 1 of a copy of v (variable index); several at the same
	// time. gradient points to the first of them, on the copy's device.
	choir_status (*chunk)(void *user, const void *state, size_t index, choir_variable *v, int copy,
			int64_t first, int64_t count, const void *gradient, double factor, chi_stream *stream);
	// Once, after the last write; applied: false if it was skipped.
	void (*end)(void *user, const void *state, bool applied);
} chi_gradients_table;

typedef struct chi_gradients chi_gradients; // of one optimizer
chi_gradients *chi_gradients_new(choir_strategy *s, const chi_gradients_table *table, void *user);
void chi_gradients_free(chi_gradients *a);

// Whether the next gradient of v may be slices.
bool chi_gradients_take_sparse(chi_gradients *a, const choir_variable *v);
// In replica r: one final gradient of v, which is no slices unless v takes rows, and the end of
// r's gradients for this update.
choir_status chi_gradients_add(
		chi_gradients *a, choir_replica *r, choir_variable *v, choir_tensor *gradient);
choir_status chi_gradients_apply(chi_gradients *a, choir_replica *r);
// In cross-replica context: reduces the values (per-replica: summed; else taken as they are) and
// updates at once, on this thread.
choir_status chi_gradients_apply_now(chi_gradients *a, choir_cross *x, size_t n,
		choir_variable *const v[], choir_value *const values[]);

// For the rest of this room. Before r reads v: if r has asked for an update of v, has it done.
choir_status chi_gradients_finish_updates_of(chi_replica *r, const choir_variable *v);
// r's function has returned: fails, naming the variables, if it gave gradients for an update that
// it did not ask for.
choir_status chi_gradients_check_applied(chi_replica *r);
// All replicas wait in a merge call: does what is pending, on this thread.
choir_status chi_gradients_finish_updates(chi_run *run);
// Does, for a device whose replicas have all returned, its part of the updates that were asked
// for.
void chi_gradients_run_updates(chi_run *run, int d);
// Waits at the run's gate until *flag, of u, is not zero, for such a device. False: the run has
// failed.
bool chi_gradients_wait(struct chi_pending_update *u, const chi_atomic32 *flag);
// After a run: forgets what did not run.
void chi_gradients_discard_updates(chi_run *run);
