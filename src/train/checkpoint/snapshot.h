// From the weights and state a strategy continues with the same bits.
#pragma once

#include "strategy/state_dict.h"
#include "train/weights/weights.h"

typedef struct {
	chi_state_dict weights, state;
	chi_state_dict_memory memory;
	uint64_t step, replicas;
} chi_snapshot;

// The snapshot must not be in use.
choir_status chi_snapshot_reserve(chi_snapshot *snapshot, choir_strategy *s);
// The system provides the memory now.
void chi_snapshot_touch(chi_snapshot *snapshot);
// In cross-replica context. After a failure the snapshot must not be written.
choir_status chi_snapshot_take(chi_snapshot *snapshot, choir_strategy *s);
void chi_snapshot_free(chi_snapshot *snapshot);

// st and data are weights, state the rest. All is compared before anything changes.
choir_status chi_snapshot_apply(choir_strategy *s, const char *path, const chi_safetensors *st,
		const char *data, chi_state_dict *state);
