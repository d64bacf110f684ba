// Values of replicas, and sets of them. A value is one leaf: PerReplica, Mirrored, a distributed
// variable (TensorFlow's terms), or a destination. It is allocated in a frame's arena.
#pragma once

#include "choir/value.h"
#include "tensor/tensor.h"

struct choir_value {
	choir_value_kind kind;
	choir_frame *frame; // also of views
	int count; // 1, the replicas, or a destination's devices
	choir_tensor **component; // NULL for VARIABLE and DESTINATION
	choir_device **device; // of each component, if MIRRORED or DESTINATION
	choir_variable *variable;
	// Fills a lazy value's components (chi_value_materialize); NULL: they are filled.
	choir_status (*materialize)(choir_value *v);
	void *lazy;
};

// This process's replicas.
typedef struct {
	int replicas;
	choir_device *const *device; // of each replica
} chi_layout;

// Make values in frame f, with components of NULL. NULL: out of memory.
choir_value *chi_value_new(choir_frame *f, choir_value_kind kind, int count);
choir_value *chi_value_of_variable(choir_frame *f, choir_variable *v);
// Merges the replicas' tensors into a value (docs/rules.md, section 6). Equal numbers become one
// number, a variable's components become the variable, all else is per-replica.
choir_value *chi_value_merge(choir_frame *f, int count, choir_tensor *const tensors[]);
// Computes a lazy value's elements, before they are read. A failure is recorded in v's frame, and
// the next call tries again. NULL is allowed.
choir_status chi_value_materialize(choir_value *v);
// The value's component for a replica on device d. If v is not per-replica, it is one in memory
// that d shares, else the first.
choir_tensor *chi_value_for_replica(
		const choir_value *v, int local_replica, const choir_device *d);

typedef struct {
	const char *name; // in the set's arena
	choir_value *value;
	bool split; // rows of a global batch
} chi_leaf;

struct choir_values {
	choir_strategy *strategy;
	chi_layout layout;
	// Replicas in earlier processes, and in all processes of the job.
	int before, in_sync;
	choir_frame *frame; // the host's
	choir_frame **replica_frame; // on its device; made on first use
	size_t n, capacity;
	chi_leaf *leaf;
	int64_t *examples; // or CHOIR_UNKNOWN
	// Examples in all processes, if the set cannot tell; CHOIR_UNKNOWN: not asked yet.
	int64_t all_examples;
	// The leaf whose rows are the examples: a split one, else the first.
	const char *counted_by;
};

choir_values *chi_values_new(choir_strategy *s, const chi_layout *layout);
// Finds a leaf in a set of values. NULL: not found; no failure is recorded.
chi_leaf *chi_values_leaf(choir_values *set, const char *name);
choir_status chi_values_put(choir_values *set, const char *name, choir_value *v);
// Prepares a set of values for the replicas' threads (chi_frame_publish).
choir_status chi_values_publish(choir_values *set);
// The frame of a replica's tensors in a set of values. NULL: recorded.
choir_frame *chi_values_replica_frame(choir_values *set, int local_replica);
// Splits a leaf of a set: gives replica i the next rows[i] rows of the host tensor t, which may
// have more in total.
choir_status chi_values_split_rows(
		choir_values *set, const char *name, choir_tensor *t, const int64_t rows[]);
// Makes a leaf of one tensor of set->frame per replica, with its number of rows.
choir_status chi_values_take_rows(
		choir_values *set, const char *name, choir_tensor *const part[], const int64_t rows[]);
// The examples of all replicas in a set of values, or CHOIR_UNKNOWN.
int64_t chi_values_global_examples(const choir_values *set);
// Checks a set of values. CHOIR_INVALID names the first leaf that a replica lacks.
choir_status chi_values_check(const choir_values *set);
// A tensor of a value for use in f: t itself, an alias if memory is shared, else a copy.
choir_tensor *chi_value_view(choir_frame *f, choir_tensor *t);
// The number of rows of replica i of n. Sizes differ by at most one, and the first are larger
// (docs/rules.md, section 9).
static inline int64_t chi_share_of(int64_t total, int n, int i)
{
	return total / n + (i < total % n);
}
