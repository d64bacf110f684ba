// A mirrored (ON_WRITE) variable has one copy per separate memory of the strategy's devices, an
// ON_READ variable one component per replica.
#pragma once

#include "base/lock.h"
#include "base/recursive_lock.h"
#include "choir/variable.h"
#include "value/value.h"

typedef struct {
	chi_source source; // version counts writes
	char *name; // "v/replica_1", except the first's
	chi_buffer *buffer;
	choir_device *device;
	// A write failed halfway: reads fail until the next assignment.
	chi_atomic32 undefined;
	chi_mutex narrow_lock;
	// In 16 bits, for a version of the copy.
	struct {
		chi_buffer *buffer;
		uint64_t version;
		bool asked; // read since the last update
		bool followed; // the running update writes it, too
	} narrow[2];
	chi_atomic64 followed; // elements that the running update has rounded
} chi_copy;

// How workers with loops of their own use a variable.
typedef enum { CHI_EXCLUSIVE, CHI_LOCKED, CHI_LOCK_FREE } chi_concurrency;

struct choir_variable {
	choir_strategy *strategy;
	chi_concurrency concurrency;
	chi_recursive_lock *lock; // its own, or the colocated variable's
	chi_recursive_lock own_lock;
	double timeout; // seconds; negative: none
	choir_value value;
	char *name;
	choir_dtype dtype;
	choir_shape shape;
	int64_t elements;
	choir_synchronization synchronization;
	choir_aggregation aggregation;
	bool trainable;
	double l1, l2;
	int64_t flattened_channels; // a kernel's, whose inputs are a flattened image; 0: no image
	bool slot; // not saved with weights
	bool written; // by the running update function
	void *wrapped; // the caller's memory if no copy is in it
	uint64_t wrapped_version; // of copy 0 in wrapped
	choir_variable *colocated_with;
	bool non_slot;
	int copies;
	chi_copy *copy;
	int replicas;
	int *copy_of_replica;
	int shards; // above 0: they hold its rows, and it has no copies
	choir_variable **shard;
	chi_source source;
	choir_variable *parent;
	int shard_index;
	int64_t first_row;
	choir_variable *next;
	choir_variable *next_written;
};

typedef struct {
	choir_strategy *strategy;
	const char *name;
	choir_shape shape;
	choir_variable_options options; // synchronization resolved
	const chi_layout *layout;
	// One per separate memory; 0: the replicas' devices. Other memory reads the first copy.
	int copy_devices;
	choir_device *const *copy_device;
	chi_concurrency concurrency;
	chi_recursive_lock *lock;
	double timeout;
	uint64_t seed; // mixed with the name
	void *wrap; // the caller's memory for the only host copy
	int shards;
} chi_variable_plan;

choir_status chi_variable_check_plan(const chi_variable_plan *plan);
choir_variable *chi_variable_new(const chi_variable_plan *plan);
void chi_variable_free(choir_variable *v);

// An alias if f's device shares the memory, else a copied tensor. Shards are copied whole. NULL:
// recorded in f.
choir_tensor *chi_variable_alias(choir_variable *v, int copy, choir_frame *f);
// A copied tensor is not tied to the version.
choir_tensor *chi_variable_view(choir_variable *v, int copy, choir_frame *f);

// Around reads and writes; excludes other workers if v is LOCKED. Nests for v and colocated
// variables. CHOIR_TIMEOUT names v.
choir_status chi_variable_lock(choir_variable *v, bool lock(chi_recursive_lock *, double));
static inline choir_status chi_variable_enter(choir_variable *v)
{
	return chi_variable_lock(v, chi_recursive_lock_enter);
}
// Other workers may read at the same time. Nothing nests in it.
static inline choir_status chi_variable_enter_to_read(choir_variable *v)
{
	return chi_variable_lock(v, chi_recursive_lock_enter_to_read);
}
void chi_variable_leave(choir_variable *v);

// True: t reads v, its shards or its parent, or shares memory with v.
bool chi_variable_concerns(const choir_variable *v, const choir_tensor *t);
// t or, if v concerns it, a copy in t's frame. NULL: recorded.
choir_tensor *chi_variable_apart(const choir_variable *v, choir_tensor *t);
typedef enum { CHI_ASSIGN, CHI_ASSIGN_ADD, CHI_ASSIGN_SUB } chi_assign_op;
// On the stream of t's frame. t is a plain number, or has the dtype and shape (checked).
choir_status chi_variable_write(choir_variable *v, int copy, chi_assign_op op, choir_tensor *t);
choir_status chi_variable_check_written(const choir_variable *v, const choir_tensor *t);
choir_status chi_variable_from_host(choir_variable *v, const void *from);
choir_status chi_variable_copy_from_host(choir_variable *v, int copy, const void *from);
choir_status chi_variable_to_host(choir_variable *v, int copy, void *to);
choir_status chi_variable_copy_out(choir_variable *v, void *to);
// Copy 0, if it has changed.
choir_status chi_variable_unwrap(choir_variable *v);
void chi_variable_undefine(choir_variable *v);
// CHOIR_STATE, recorded in f: the copy or a shard is undefined.
choir_status chi_variable_check_defined(choir_variable *v, int copy, choir_frame *f);
void chi_variable_bump_version(choir_variable *v, int copy); // written by other means
size_t chi_variable_bytes(const choir_variable *v);
