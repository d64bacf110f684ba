// The table of a strategy: on which devices its variables lie. This, and which options it takes,
// is all that makes one strategy differ from another. Mirrored puts a copy on every device that
// carries replicas, one-device on its only one, central storage one copy on a device that need not
// carry any, parameter server each variable on the next of several. Choir's own six are tables of
// this kind.
//
// The rest is the same for all and follows from where the copies lie: how replicas are dealt to
// devices, run and meet; that a device reads the copy in memory that it shares as it is, and
// another, the first, as a copy of its own; that sums of gradients travel to the copies, which are
// updated where they lie; and, with several workers, how those keep out of each other's way
// (strategy.h, .locked_updates).
#pragma once

#include "../strategy.h"
#include "device.h"

CHOIR_C_BEGIN

// Fields of choir_strategy_options that not every strategy has. Where a table's features lack
// them, they must be zero: CHOIR_INVALID else.
enum {
	CHOIR_FEATURE_PARAMETER_DEVICES = 1, // .parameter_devices
	CHOIR_FEATURE_WORKERS = 2, // .workers, .locked_updates
	CHOIR_FEATURE_SHARDS = 4, // .partition, .partition_size, .max_shards
	CHOIR_FEATURE_CLUSTER = 8 // .cluster
};

// A mirrored variable, or a shard of one, that is to be made. Slots and what else is colocated
// with a variable go where that is, and parts of an ON_READ one to the replicas' devices, without
// being asked for.
typedef struct {
	size_t size; // of this struct
	const char *name;
	const choir_shape *shape;
	choir_dtype dtype;
} choir_new_variable;

// Missing slots (NULL): place and parameter_devices fail with CHOIR_UNSUPPORTED, non_slot_devices
// are the parameter devices, the others do nothing. A failure leaves a text by choir_fail.
typedef struct choir_strategy_table {
	size_t size; // of this struct
	uint32_t version; // CHOIR_TABLE_VERSION
	const char *name; // "mirrored"; what choir_strategy_new takes; lives as long as the program
	size_t self_size; // bytes, zeroed, for each strategy
	int most_replicas; // 0: any number. With 1 there is one device, too
	unsigned features; // CHOIR_FEATURE_...
	// Once, when the strategy is made. options are checked, and as devices, the n devices that
	// carry replicas, they outlive self.
	choir_status (*open)(void *self, const choir_strategy_options *options, int n,
			choir_device *const devices[]);
	void (*close)(void *self); // once, also after a failed open
	// The devices that hold variables, none twice, at most room; asked once, after open. How many;
	// CHOIR_NONE after a failure.
	int (*parameter_devices)(void *self, int capacity, choir_device *devices[]);
	// As parameter_devices, of which these are some: where variables lie that belong to an
	// optimizer as a whole (choir_cross_non_slot_devices).
	int (*non_slot_devices)(void *self, int capacity, choir_device *devices[]);
	// (any thread) Some of the parameter devices, at most room: where v's copies are to lie. Of
	// devices that share memory the first gets one for all. How many, at least 1; CHOIR_NONE after
	// a failure.
	int (*place)(void *self, const choir_new_variable *v, int capacity, choir_device *devices[]);
} choir_strategy_table;

// Makes a strategy known to choir_strategy_new. The table is copied; its name is not.
// CHOIR_INVALID: a size or version that cannot be, no name, a name that is known already, or more
// than 16. Threads: one, before the first strategy.
CHOIR_MUST_CHECK choir_status choir_register_strategy(const choir_strategy_table *table);

CHOIR_C_END
