// The losses and gradients of one replica in a step, as summary numbers and as hashes of their
// bits.
#pragma once

#include <choir/choir.h>

#include <stdbool.h>

typedef struct {
	const char *name; // the variable's
	choir_shape shape;
	double norm, largest; // of the finite elements
	int64_t nonfinite; // number of elements that are not finite
	uint64_t hash;
} replay_gradient;

typedef struct {
	int replica; // the recorded one
	int64_t examples, global_examples;
	double loss; // mean over its examples; NAN without examples
	uint64_t hash; // of losses and gradients
	int n, capacity;
	replay_gradient *gradient; // in the order of the backward pass
	choir_status status; // of the recording
} replay_record;

// Callbacks for training.inspect_losses and choir_strategy_set_gradient_hook; user is a record.
void replay_inspect_losses(choir_replica *r, choir_tensor *losses, void *user);
void replay_inspect_gradient(
		choir_replica *r, choir_variable *v, choir_tensor *gradient, void *user);
void replay_record_free(replay_record *record);

// The checkpoints that a replay uses.
typedef struct {
	bool has_from, has_next;
	size_t from; // the last undamaged one before the step; else replay starts at step 1
	size_t next; // the first undamaged one at or after the step
	int64_t from_steps, next_steps; // their numbers of steps
} replay_plan;
// Finds them. CHOIR_NOT_FOUND: choir train made none that is undamaged.
choir_status replay_find(
		choir_checkpoint_list *l, const char *directory, int64_t step, replay_plan *plan);
