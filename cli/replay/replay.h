// What one replica gave in a step: its losses and its gradients, as numbers that tell at a glance
// whether something is wrong, and as hashes that tell whether two are the same bits.
#pragma once

#include <choir/choir.h>

#include <stdbool.h>

typedef struct {
	const char *name; // the variable's
	choir_shape shape;
	double norm, largest; // of the elements that are finite
	int64_t nonfinite; // elements
	uint64_t hash;
} replay_gradient;

typedef struct {
	int replica; // the one that is looked at
	int64_t examples, global_examples;
	double loss; // mean over its examples; NAN without any
	uint64_t hash; // of losses and gradients
	int n, capacity;
	replay_gradient *gradient; // in the order in which they came
	choir_status status; // of looking
} replay_record;

// To be given to training.see and to choir_strategy_watch_gradients, with a record as user.
void replay_inspect_losses(choir_replica *r, choir_tensor *losses, void *user);
void replay_inspect_gradient(
		choir_replica *r, choir_variable *v, choir_tensor *gradient, void *user);
void replay_record_free(replay_record *record);

// Which checkpoints of a list a step is replayed with.
typedef struct {
	bool has_from, has_behind;
	size_t from; // the last that is whole before the step; without one it is from the beginning
	size_t behind; // the first that is whole behind it
	int64_t from_steps, behind_steps; // of the training, which they stand behind
} replay_plan;
// Looks for them. CHOIR_NOT_FOUND: there are none of this command's that are whole.
choir_status replay_find(
		choir_checkpoint_list *l, const char *directory, int64_t step, replay_plan *plan);
