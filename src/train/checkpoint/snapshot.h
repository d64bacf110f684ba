// A snapshot: the weights and state from which a strategy continues with the same bits, on the
// host.
#pragma once

#include "strategy/state_dict.h"
#include "train/weights/weights.h"

typedef struct {
	chi_state_dict weights, state;
	chi_state_dict_memory memory;
	uint64_t step, replicas;
} chi_snapshot;

// Allocates the memory that a snapshot needs now, in one block, without other workers. The
// snapshot must not be in use.
choir_status chi_snapshot_reserve(chi_snapshot *snapshot, choir_strategy *s);
// Makes the system provide a snapshot's memory, so that a copy need not wait.
void chi_snapshot_touch(chi_snapshot *snapshot);
// Takes a snapshot in cross-replica context, reusing its memory. After a failure it must not be
// written.
choir_status chi_snapshot_take(chi_snapshot *snapshot, choir_strategy *s);
void chi_snapshot_free(chi_snapshot *snapshot);

// Restores a snapshot from checked files: st and data are weights, state is the rest. All is
// compared before anything changes.
choir_status chi_snapshot_apply(choir_strategy *s, const char *path, const chi_safetensors *st,
		const char *data, chi_state_dict *state);
