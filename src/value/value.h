// A value is one leaf: PerReplica, Mirrored, a distributed variable (TensorFlow's terms), or a
// destination. It is in a frame's arena.
#pragma once

#include "choir/value.h"
#include "tensor/tensor.h"

struct choir_value {
	choir_value_kind kind;
	choir_frame *frame;
	int count; // 1, the replicas, or a destination's devices
	choir_tensor **component; // NULL for VARIABLE and DESTINATION
	choir_device **device;
	choir_variable *variable;
	// Fills a lazy value's components; NULL: they are filled.
	choir_status (*materialize)(choir_value *v);
	void *lazy;
};

typedef struct {
	int replicas;
	choir_device *const *device;
} chi_layout;

// Its components are NULL.
choir_value *chi_value_new(choir_frame *f, choir_value_kind kind, int count);
choir_value *chi_value_of_variable(choir_frame *f, choir_variable *v);
// docs/rules.md, section 6: equal numbers become one, a variable's components become the variable,
// all else is per-replica.
choir_value *chi_value_merge(choir_frame *f, int count, choir_tensor *const tensors[]);
// Recorded in v's frame; the next call tries again. v may be NULL.
choir_status chi_value_materialize(choir_value *v);
// On device d. If v is not per-replica: the component in memory that d shares, else the first.
choir_tensor *chi_value_for_replica(
		const choir_value *v, int local_replica, const choir_device *d);

typedef struct {
	const char *name;
	choir_value *value;
	bool split;
} chi_leaf;

struct choir_values {
	choir_strategy *strategy;
	chi_layout layout;
	// In earlier processes, and in all of the job.
	int before, in_sync;
	choir_frame *frame;
	choir_frame **replica_frame; // on its device; made on first use
	size_t n, capacity;
	chi_leaf *leaf;
	int64_t *examples;
	// In all processes, if the set does not know; CHOIR_UNKNOWN: not asked yet.
	int64_t all_examples;
	// A split leaf, else the first.
	const char *counted_by;
};

choir_values *chi_values_new(choir_strategy *s, const chi_layout *layout);
// NULL without a failure: not found.
chi_leaf *chi_values_leaf(choir_values *set, const char *name);
choir_status chi_values_put(choir_values *set, const char *name, choir_value *v);
// Afterwards replicas' threads may read the set.
choir_status chi_values_publish(choir_values *set);
// NULL: recorded.
choir_frame *chi_values_replica_frame(choir_values *set, int local_replica);
// Replica i gets the next rows[i] rows of the host tensor t, which may have more.
choir_status chi_values_split_rows(
		choir_values *set, const char *name, choir_tensor *t, const int64_t rows[]);
choir_status chi_values_take_rows(
		choir_values *set, const char *name, choir_tensor *const part[], const int64_t rows[]);
int64_t chi_values_global_examples(const choir_values *set);
// CHOIR_INVALID names the first leaf that a replica lacks.
choir_status chi_values_check(const choir_values *set);
// t itself, an alias if memory is shared, else a copy.
choir_tensor *chi_value_view(choir_frame *f, choir_tensor *t);
// The rows of replica i of n. The first replicas get one more (docs/rules.md, section 9).
static inline int64_t chi_share_of(int64_t total, int n, int i)
{
	return total / n + (i < total % n);
}
