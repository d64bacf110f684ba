// Overlap of summation and backward pass. After all replicas have added a gradient, each device
// sums its share of the chunks when it adds its next gradient, and idle devices sum more. So
// gradients are summed while they are in the caches. The update sums the remaining chunks.
//
// Overlap begins with an optimizer's second update. It expects the variables in the order of the
// previous update. With several workers an exchange thread makes the sums (overlap_workers.h).
#pragma once

#include "collective/tree.h"
#include "strategy/strategy.h"

struct chi_pending_update;
struct chi_device_gradient;

enum { CHI_OVERLAP_SUMMED = 1, CHI_OVERLAP_FAILED }; // of done

// The sum of one variable. After open is set, only the counts change.
typedef struct {
	choir_variable *variable;
	bool eligible; // large enough, and dense
	// Of each device whose replicas have all added. Only its owner may read the device's own list,
	// which may grow.
	struct chi_device_gradient **gradient;
	const choir_collective **c;
	chi_atomic32 added;
	chi_atomic32 open; // all replicas have added
	chi_buffer *buffer; // holds the sum; may be a partial sum's
	choir_partial_sum whole;
	uint32_t chunks;
	chi_atomic32 next, finished; // chunks claimed; done
	chi_atomic32 failed; // a chunk could not be summed
	chi_gate done;
} chi_overlap_sum;

typedef struct {
	size_t cursor; // next sum to check
	char *scratch;
} chi_overlap_device;

typedef struct {
	size_t n;
	chi_overlap_sum *sum;
	size_t n_next;
	chi_overlap_sum *next;
	chi_overlap_device *device; // one each, and one for a thread that works for all
	chi_atomic32 waiting; // devices to wake when a sum opens
	bool with_workers; // the exchange thread makes all sums
} chi_overlap;

// Returns whether this strategy can overlap sums with the backward pass.
bool chi_overlap_possible(const choir_strategy *s);
// Notes that a replica has added to g, then sums this device's share of overlapped sums.
choir_status chi_overlap_added(struct chi_device_gradient *g);
choir_status chi_overlap_help(struct chi_pending_update *u, int d);
// Finishes overlapped sums before the update of devices from .. to - 1, and waits for other
// threads.
choir_status chi_overlap_finish(struct chi_pending_update *u, int from, int to);
// Returns the partial sums of g after the overlap: if they are summed, device 0 has the sum and
// the others have none. *whole: the sum is that of all workers.
const choir_partial_sum *chi_overlap_parts(
		const struct chi_device_gradient *g, size_t *n, bool *whole);
// Returns the number of overlapped sums exchanged with other workers, after all replicas have
// applied.
int chi_overlap_with_workers(const struct chi_pending_update *u);
// Returns whether the overlap's exchange thread needs v's gradients dense.
bool chi_overlap_needs_dense(const struct chi_pending_update *u, const choir_variable *v);
void chi_overlap_release_parts(const struct chi_pending_update *u, const chi_overlap_sum *s);
// Keeps the variable order for the next update's overlap, on one thread before the first write.
choir_status chi_overlap_prepare(struct chi_pending_update *u);
void chi_overlap_discard(struct chi_pending_update *u); // after an update, successful or not
void chi_overlap_free(struct chi_pending_update *u);
