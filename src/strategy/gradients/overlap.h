// Overlap of summation and backward pass. After all replicas have added a variable's gradient,
// its chunks may be summed. Each device sums its share when it adds its next gradient, and idle
// devices sum more. So a gradient is summed while it is in the caches, and only the sum is kept.
// The update sums what is left. The results have the same bits, as they depend only on the
// canonical tree.
//
// The order of variables must be known in advance. So overlap begins with an optimizer's second
// update and uses the order of the update before. With several workers, a separate thread makes
// these sums (overlap_workers.h).
#pragma once

#include "collective/tree.h"
#include "strategy/strategy.h"

struct chi_pending_update;
struct chi_device_gradient;

enum { CHI_OVERLAP_SUMMED = 1, CHI_OVERLAP_FAILED }; // values of done

// The sum of one variable. After open is set, only the counts change.
typedef struct {
	choir_variable *variable;
	bool eligible; // large enough, and its gradients are dense
	// Of each device whose replicas have all added: its gradient and its part of the collective.
	// They are kept here because the device's list of gradients may grow, and only its owner may
	// read it.
	struct chi_device_gradient **gradient;
	const choir_collective **c;
	chi_atomic32 added; // replicas
	chi_atomic32 open; // not zero: all replicas have added
	chi_buffer *buffer; // holds the sum; may be the buffer of a partial sum
	choir_partial_sum whole; // the sum
	uint32_t chunks;
	chi_atomic32 next, finished; // chunks taken; chunks done
	chi_atomic32 failed; // not zero: a chunk could not be summed
	chi_gate done;
} chi_overlap_sum;

typedef struct {
	size_t cursor; // the next sum to check
	char *scratch;
} chi_overlap_device;

typedef struct {
	size_t n;
	chi_overlap_sum *sum; // in the order of the last update
	size_t n_next;
	chi_overlap_sum *next; // replaces sum after this update; may be NULL
	chi_overlap_device *device; // of each device, and one more for a thread that works for all
	chi_atomic32 waiting; // devices to wake when a sum opens
	bool with_workers; // the exchange thread makes the sums of all workers
} chi_overlap;

// Whether this strategy can overlap: several devices, exclusive use and direct reduction in host
// memory, or other workers.
bool chi_overlap_possible(const choir_strategy *s);
// Notes that a replica has added to g, then sums this device's share.
choir_status chi_overlap_added(struct chi_device_gradient *g);
// Sums all open chunks, for a device that is idle.
choir_status chi_overlap_help(struct chi_pending_update *u, int d);
// Before the update of devices from .. to - 1: sums the chunks that are left, and waits for those
// in other threads.
choir_status chi_overlap_finish(struct chi_pending_update *u, int from, int to);
// After that: g's partial sums for the update. If they are summed already, the first device has
// the sum and the others have nothing. is_whole: the sum is that of all workers.
const choir_partial_sum *chi_overlap_parts(const struct chi_device_gradient *g, size_t *n);
bool chi_overlap_is_whole(const struct chi_device_gradient *g);
// The number of sums that are exchanged with other workers. All replicas must have applied.
int chi_overlap_with_workers(const struct chi_pending_update *u);
// Whether v's gradients must be dense, as the exchange thread expects tensors.
bool chi_overlap_needs_dense(const struct chi_pending_update *u, const choir_variable *v);
// Releases the partial sums of s, which are not needed after the sum.
void chi_overlap_release_parts(const struct chi_pending_update *u, const chi_overlap_sum *s);
// Keeps this update's order for the next one. Called by one thread before the first write.
choir_status chi_overlap_prepare(struct chi_pending_update *u);
void chi_overlap_discard(struct chi_pending_update *u); // after an update, successful or not
void chi_overlap_free(struct chi_pending_update *u);
