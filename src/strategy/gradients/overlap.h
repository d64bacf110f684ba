// Overlap of summation and backward pass. After all replicas have added a gradient, each device
// sums its share of the chunks when it adds its next gradient, and idle devices sum more. So
// gradients are summed in the caches, and only the sum is kept. The update sums the rest; the
// bits depend only on the canonical tree.
//
// Overlap begins with an optimizer's second update and expects the variable order of the update
// before. With several workers a thread makes the sums (overlap_workers.h).
#pragma once

#include "collective/tree.h"
#include "strategy/strategy.h"

struct chi_pending_update;
struct chi_device_gradient;

enum { CHI_OVERLAP_SUMMED = 1, CHI_OVERLAP_FAILED }; // values of done

// The sum of one variable. After open is set, only the counts change.
typedef struct {
	choir_variable *variable;
	bool eligible; // large enough, and dense
	// The gradient of each device whose replicas have all added. It is kept here because the
	// device's own list may grow and only its owner may read it.
	struct chi_device_gradient **gradient;
	const choir_collective **c;
	chi_atomic32 added; // number of replicas that have added
	chi_atomic32 open; // not zero: all replicas have added
	chi_buffer *buffer; // holds the sum; may be the buffer of a partial sum
	choir_partial_sum whole;
	uint32_t chunks;
	chi_atomic32 next, finished; // number of chunks claimed; number done
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
	chi_overlap_sum *next; // for the next update; NULL
	chi_overlap_device *device; // one for each, and one for a thread that works for all
	chi_atomic32 waiting; // number of devices to wake when a sum opens
	bool with_workers; // the exchange thread makes all workers' sums
} chi_overlap;

// Whether this strategy can overlap.
bool chi_overlap_possible(const choir_strategy *s);
// Notes that a replica has added to g, then sums this device's share.
choir_status chi_overlap_added(struct chi_device_gradient *g);
// Sums all open chunks, for an idle device.
choir_status chi_overlap_help(struct chi_pending_update *u, int d);
// Sums the rest before the update of devices from .. to - 1, and waits for other threads.
choir_status chi_overlap_finish(struct chi_pending_update *u, int from, int to);
// The partial sums of g after that. If they are summed, device 0 has the sum and the others have
// none. is_whole: with_workers only; the sum is that of all workers.
const choir_partial_sum *chi_overlap_parts(const struct chi_device_gradient *g, size_t *n);
bool chi_overlap_is_whole(const struct chi_device_gradient *g);
// Number of sums exchanged with other workers, after all replicas have applied.
int chi_overlap_with_workers(const struct chi_pending_update *u);
// Whether the exchange thread needs v's gradients dense.
bool chi_overlap_needs_dense(const struct chi_pending_update *u, const choir_variable *v);
void chi_overlap_release_parts(const struct chi_pending_update *u, const chi_overlap_sum *s);
// Keeps the order for the next update. Called by one thread before the first write.
choir_status chi_overlap_prepare(struct chi_pending_update *u);
void chi_overlap_discard(struct chi_pending_update *u); // after an update, successful or not
void chi_overlap_free(struct chi_pending_update *u);
