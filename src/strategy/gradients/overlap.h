// Sums that are made while the backward pass goes on. As soon as all replicas have given the
// gradient of a variable, its chunks may be summed: by each device, its share of them, when it
// gives the next gradient, and by devices that have nothing else to do. So a gradient is summed
// while it is in the caches, and of all devices' only the sum is kept. What is not summed when the
// update begins is summed then. The bits are the same either way, since the tree decides them.
//
// It needs to know which variable comes at which place before it comes: so it begins with an
// optimizer's second update, and goes by the order of the one before.
//
// Between workers a thread beside the replicas makes these sums (overlap_workers.h), or nobody
// does.
#pragma once

#include "collective/tree.h"
#include "strategy/strategy.h"

struct chi_pending_update;
struct chi_device_gradient;

enum { CHI_OVERLAP_SUMMED = 1, CHI_OVERLAP_FAILED }; // what done opens with

// The sum of one variable, of which nobody changes anything but the counts once it is open.
typedef struct {
	choir_variable *variable;
	bool eligible; // it is large, and no rows of it are given
	// Of each device, when all its replicas have given: its gradient, and what that brings.
	// Another device's list of gradients is never looked at, since its owner may be making it
	// longer.
	struct chi_device_gradient **gradient;
	const choir_collective **c;
	chi_atomic32 added; // replicas
	chi_atomic32 open; // not zero: all have given, and chunks may be summed
	chi_buffer *buffer; // of the sum, which may be the memory of a part
	choir_partial_sum whole; // the sum
	uint32_t chunks;
	chi_atomic32 next, finished; // chunks
	chi_atomic32 failed; // not zero: one of these could not be summed
	chi_gate done;
} chi_overlap_sum;

typedef struct {
	size_t cursor; // the next sum to look at
	char *scratch;
} chi_overlap_device;

typedef struct {
	size_t n;
	chi_overlap_sum *sum; // in the order of the last update
	size_t n_next;
	chi_overlap_sum *next; // what comes in its place after this update; NULL: nothing
	chi_overlap_device *device; // of each, and of who does the update for all
	chi_atomic32 waiting; // devices that look at the sums whenever something happens
	bool with_workers; // all workers' sums, made by the thread of overlap_workers.h
} chi_overlap;

// Whether this strategy's sums can be made early: on the host, directly, by several devices, or
// with other workers.
bool chi_overlap_possible(const choir_strategy *s);
// A replica has added to g, whose partial sums have it; then does this device's share.
choir_status chi_overlap_added(struct chi_device_gradient *g);
// Sums whatever there is, on behalf of a device that has nothing else to do.
choir_status chi_overlap_help(struct chi_pending_update *u, int d);
// Before the update, when all have come, by who does devices from .. to - 1: sums what is left and
// waits for what others have begun.
choir_status chi_overlap_finish(struct chi_pending_update *u, int from, int to);
// Then: the parts of g that its device brings to the update, which are its partial sums, or, if
// they were summed, the first device's only. Whether they are the sum of all workers.
const choir_partial_sum *chi_overlap_parts(const struct chi_device_gradient *g, size_t *n);
bool chi_overlap_is_whole(const struct chi_device_gradient *g);
// The sums that are made, or being made, with other workers. All replicas have asked for the
// update.
int chi_overlap_with_workers(const struct chi_pending_update *u);
// Whether v's gradients must be tensors, since workers sum them without asking what they are.
bool chi_overlap_needs_dense(const struct chi_pending_update *u, const choir_variable *v);
// Of all gradients of a variable only the sum is needed now.
void chi_overlap_release_parts(const struct chi_pending_update *u, const chi_overlap_sum *s);
// By one thread, before anything is written: keeps the order, for the next update to go by.
choir_status chi_overlap_prepare(struct chi_pending_update *u);
void chi_overlap_discard(struct chi_pending_update *u); // after an update, done or not
void chi_overlap_free(struct chi_pending_update *u);
