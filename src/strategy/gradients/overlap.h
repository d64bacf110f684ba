// Sums that are made while the backward pass goes on. As soon as all replicas have given the
// gradient of a variable, its slices may be summed: by each lane, its share of them, when it gives
// the next gradient, and by lanes that have nothing else to do. So a gradient is summed while it
// is in the caches, and of all lanes' only the sum is kept. What is not summed when the update
// begins is summed then. The bits are the same either way, since the tree decides them.
//
// It needs to know which variable comes at which place before it comes: so it begins with an
// optimizer's second update, and goes by the order of the one before.
//
// Between workers a thread beside the replicas makes these sums (overlap_workers.h), or nobody
// does.
#pragma once

#include "collective/way.h"
#include "strategy/strategy.h"

struct chi_instance;
struct chi_item;

enum { CHI_EARLY_SUMMED = 1, CHI_EARLY_FAILED }; // what done opens with

// The sum of one variable, of which nobody changes anything but the counts once it is open.
typedef struct {
	choir_variable *variable;
	bool worth; // it is large, and no rows of it are given
	// Of each lane, when all its replicas have given: its item, and what that brings. Another
	// lane's list of items is never looked at, since its owner may be making it longer.
	struct chi_item **item;
	const choir_collective **c;
	chi_atomic32 given; // replicas
	chi_atomic32 open; // not zero: all have given, and slices may be summed
	chi_buffer *buffer; // of the sum, which may be the memory of a part
	choir_part whole; // the sum
	uint32_t slices;
	chi_atomic32 next, finished; // slices
	chi_atomic32 failed; // not zero: one of these could not be summed
	chi_gate done;
} chi_early_sum;

typedef struct {
	size_t cursor; // the next sum to look at
	char *scratch;
} chi_early_lane;

typedef struct {
	size_t n;
	chi_early_sum *sum; // in the order of the last update
	size_t n_next;
	chi_early_sum *next; // what comes in its place after this update; NULL: nothing
	chi_early_lane *lane; // of each, and of who does the update for all
	chi_atomic32 waiting; // lanes that look at the sums whenever something happens
	bool between; // all workers' sums, made by the thread of overlap_workers.h
} chi_early;

// Whether this strategy's sums can be made early: on the host, directly, by several lanes, or with
// other workers.
bool chi_early_possible(const choir_strategy *s);
// A replica has given item's gradient, which is in its fold; then does this lane's share.
choir_status chi_early_given(struct chi_item *item);
// Sums whatever there is, on behalf of a lane that has nothing else to do.
choir_status chi_early_help(struct chi_instance *in, int lane);
// Before the update, when all have come, by who does lanes from .. to - 1: sums what is left and
// waits for what others have begun.
choir_status chi_early_finish(struct chi_instance *in, int from, int to);
// Then: the parts of an item that its lane brings to the update, which are its fold's, or, if they
// were summed, the first lane's only. Whether they are the sum of all workers.
const choir_part *chi_early_parts(const struct chi_item *item, size_t *n);
bool chi_early_is_whole(const struct chi_item *item);
// The sums that are made, or being made, with other workers. All replicas have asked for the
// update.
int chi_early_between(const struct chi_instance *in);
// Whether v's gradients must be tensors, since workers sum them without asking what they are.
bool chi_early_needs_tensors(const struct chi_instance *in, const choir_variable *v);
// Of all gradients of a variable only the sum is needed now.
void chi_early_let_go(const struct chi_instance *in, const chi_early_sum *s);
// By one thread, before anything is written: keeps the order, for the next update to go by.
choir_status chi_early_prepare(struct chi_instance *in);
void chi_early_forget(struct chi_instance *in); // after an update, done or not
void chi_early_free(struct chi_instance *in);
