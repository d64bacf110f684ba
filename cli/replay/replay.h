// The losses and gradients of one replica in a step: summary numbers, and hashes of their bits.
#pragma once

#include <choir/choir.h>

#include <stdbool.h>

typedef struct {
	const char *name; // the variable's
	choir_shape shape;
	double norm, largest; // of the finite elements
	int64_t nonfinite; // elements
	uint64_t hash;
} replay_gradient;

typedef struct {
	int replica;
	int64_t examples, global_examples;
	double loss; // mean; NAN without examples
	uint64_t hash; // of losses and gradients
	int n, capacity;
	replay_gradient *gradient; // in the order of the backward pass
	choir_status status;
} replay_record;

// For training.inspect_losses and choir_strategy_set_gradient_hook; user is a record.
void replay_inspect_losses(choir_replica *r, choir_tensor *losses, void *user);
void replay_inspect_gradient(
		choir_replica *r, choir_variable *v, choir_tensor *gradient, void *user);
void replay_record_free(replay_record *record);

// The checkpoints that a replay uses.
typedef struct {
	bool has_from, has_next;
	size_t from; // the last undamaged one before the step; else step 1
	size_t next; // the first undamaged one at or after the step
	int64_t from_steps, next_steps;
} replay_plan;
// CHOIR_NOT_FOUND: no undamaged one of choir train.
choir_status replay_find(
		choir_checkpoint_list *l, const char *directory, int64_t step, replay_plan *plan);
