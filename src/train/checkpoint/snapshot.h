// All that a strategy must remember to go on from here as if it had never stopped, copied to the
// host: its weights, and the rest as state.
#pragma once

#include "strategy/state_dict.h"
#include "train/weights/weights.h"

typedef struct {
	chi_state_dict weights, state;
	chi_state_dict_memory memory; // of nearly all entries of both
	uint64_t step, replicas;
} chi_snapshot;

// Makes the memory that a snapshot of s would need now, as one piece, if there is less; nobody
// writes or reads the snapshot meanwhile. Without asking other workers.
choir_status chi_snapshot_reserve(chi_snapshot *snapshot, choir_strategy *s);
// Has the system give that memory, which it does at the first write; so that a copy need not wait.
void chi_snapshot_touch(chi_snapshot *snapshot);
// In cross-replica context. Memory is kept from call to call; after a failure the snapshot holds
// nothing that may be written.
choir_status chi_snapshot_take(chi_snapshot *snapshot, choir_strategy *s);
void chi_snapshot_free(chi_snapshot *snapshot);

// Brings a strategy to what is in files that were checked: st and data are its weights, state the
// rest. All is compared before anything is changed.
choir_status chi_snapshot_apply(choir_strategy *s, const char *path, const chi_safetensors *st,
		const char *data, chi_state_dict *state);
