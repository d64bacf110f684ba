// When all replicas have added a gradient, each device sums its share of the chunks, in cache, at
// its next gradient. Idle devices sum more, the update the rest.
//
// An optimizer's updates expect the previous one's order.
#pragma once

#include "base/gate.h"
#include "collective/tree.h"
#include "strategy/strategy.h"

struct chi_pending_update;
struct chi_device_gradient;

enum { CHI_OVERLAP_SUMMED = 1, CHI_OVERLAP_FAILED };

// After open is set, only the counts change.
typedef struct {
	choir_variable *variable;
	bool eligible;
	// The owner's list may grow.
	struct chi_device_gradient **gradient;
	const choir_collective **c;
	chi_atomic32 added;
	chi_atomic32 open;
	chi_buffer *buffer; // may be a partial sum's
	choir_partial_sum whole;
	uint32_t chunks;
	chi_atomic32 next, finished;
	chi_atomic32 failed;
	chi_gate done;
} chi_overlap_sum;

typedef struct {
	size_t cursor;
	char *scratch;
} chi_overlap_device;

typedef struct {
	size_t n;
	chi_overlap_sum *sum;
	size_t n_next;
	chi_overlap_sum *next;
	chi_overlap_device *device; // and one for a thread that works for all
	chi_atomic32 waiting;
	bool with_workers;
} chi_overlap;

bool chi_overlap_possible(const choir_strategy *s);
choir_status chi_overlap_added(struct chi_device_gradient *g);
choir_status chi_overlap_help(struct chi_pending_update *u, int d);
// Waits for other threads.
choir_status chi_overlap_finish(struct chi_pending_update *u, int from, int to);
// If g is summed, device 0 has the sum and the others have none. *whole: of all workers.
const choir_partial_sum *chi_overlap_parts(
		const struct chi_device_gradient *g, size_t *n, bool *whole);
int chi_overlap_with_workers(const struct chi_pending_update *u);
bool chi_overlap_needs_dense(const struct chi_pending_update *u, const choir_variable *v);
void chi_overlap_release_parts(const struct chi_pending_update *u, const chi_overlap_sum *s);
// Keeps the order for the next update. On one thread, before the first write.
choir_status chi_overlap_prepare(struct chi_pending_update *u);
void chi_overlap_discard(struct chi_pending_update *u);
void chi_overlap_free(struct chi_pending_update *u);
