// The strategy table says on which devices variables are. Kinds of strategies differ only in this
// and in their options. Rules of all tables, and of slots marked (any): extend.h.
//
// A device that shares a copy's memory reads it directly, another one a duplicate of the first
// copy. Choir sends sums of gradients to the copies, and updates each on its device. Several
// parameter server workers share a variable by the rules of .locked_updates (strategy.h).
#pragma once

#include "../strategy.h"
#include "device_table.h"

CHOIR_C_BEGIN

// Features. Without a feature, its fields of choir_strategy_options must be 0 (else
// CHOIR_INVALID).
enum {
	CHOIR_FEATURE_PARAMETER_DEVICES = 1, // .parameter_devices
	CHOIR_FEATURE_WORKERS = 2, // .workers, .locked_updates
	CHOIR_FEATURE_SHARDS = 4, // .partition, .partition_size, .max_shards
	CHOIR_FEATURE_CLUSTER = 8 // .cluster
};

// A new mirrored variable or shard, for place_variable. Choir places slots and colocated variables
// on their variable's devices, components of ON_READ variables on the replicas'.
typedef struct {
	size_t size;
	const char *name;
	const choir_shape *shape;
	choir_dtype dtype;
} choir_new_variable;

// Functions may be NULL. Without parameter_devices, no strategy can be made, without
// place_variable, no variable (CHOIR_UNSUPPORTED). Without non_slot_devices, Choir uses
// parameter_devices.
typedef struct choir_strategy_table {
	size_t size;
	uint32_t version;
	const char *name; // "mirrored", for choir_strategy_new
	size_t self_size; // for each strategy
	int max_replicas; // 0: no limit; 1: one replica, and .devices names one device
	unsigned features; // CHOIR_FEATURE_...
	// Called when the strategy is made. devices are those that run replicas. options are checked.
	// Both outlive self.
	choir_status (*open)(void *self, const choir_strategy_options *options, int n,
			choir_device *const devices[]);
	void (*close)(void *self);
	// The next three functions write devices, each once, at most capacity. They return the number
	// of devices, or CHOIR_NONE after a failure.

	// Writes the devices that hold variables. Called once.
	int (*parameter_devices)(void *self, int capacity, choir_device *devices[]);
	// Those for non-slot variables (choir_cross_non_slot_devices). Called once.
	int (*non_slot_devices)(void *self, int capacity, choir_device *devices[]);
	// (any) Those for copies of v, at least one. Of devices that share memory, only the first gets
	// a copy.
	int (*place_variable)(
			void *self, const choir_new_variable *v, int capacity, choir_device *devices[]);
} choir_strategy_table;

// Registers a kind of strategies for choir_strategy_new.
CHOIR_MUST_CHECK choir_status choir_register_strategy(const choir_strategy_table *table);

CHOIR_C_END
