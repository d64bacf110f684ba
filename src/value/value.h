// Values of replicas and sets of them, seen from inside. A value is one leaf: what TensorFlow
// calls a PerReplica or Mirrored value, a distributed variable, or only a place. It lies in the
// arena of a frame and lives as long as that frame's tensors.
#pragma once

#include "choir/value.h"
#include "tensor/tensor.h"

struct choir_value {
	choir_value_kind kind;
	choir_frame *frame; // where it lives, fails, and where its views are made
	int count; // components: 1, the replicas, or the devices of the place
	choir_tensor **component; // NULL for VARIABLE and PLACE
	choir_device **device; // MIRRORED and PLACE: of each component
	choir_variable *variable; // VARIABLE
	// Not NULL: the components have memory, and this fills it when it is first needed, which
	// chi_value_materialize asks for.
	choir_status (*materialize)(choir_value *v);
	void *lazy;
};

// Who the replicas of this process are and where they run.
typedef struct {
	int replicas;
	choir_device *const *device; // of each replica
} chi_layout;

// New values in frame f; components may be NULL tensors, to be filled. NULL: no memory.
choir_value *chi_value_new(choir_frame *f, choir_value_kind kind, int count);
choir_value *chi_value_of_variable(choir_frame *f, choir_variable *v);
// Merges what replicas gave (docs/rules.md, section 6): the same number from all is plain,
// components of one variable are that variable, anything else is per-replica.
choir_value *chi_value_merge(choir_frame *f, int count, choir_tensor *const tensors[]);
// Before anybody looks at v's elements; after a failure, which v's frame keeps, the next who needs
// them tries again. NULL is fine.
choir_status chi_value_materialize(choir_value *v);
// The component of replica (of count) as seen by it: plain and mirrored on one place: the only
// one.
choir_tensor *chi_value_for_replica(const choir_value *v, int replica, const choir_device *d);

typedef struct {
	const char *name; // in the set's arena
	choir_value *value;
	bool split; // rows of a global batch
} chi_leaf;

struct choir_values {
	choir_strategy *strategy;
	chi_layout layout;
	// Replicas of earlier processes, and of all, that are in step with these.
	int before, in_sync;
	choir_frame *frame; // of the host
	choir_frame **replica_frame; // on each replica's device; made when first used
	size_t n, capacity;
	chi_leaf *leaf;
	int64_t *examples; // of each replica; CHOIR_NONE: nothing says
	// Of all replicas of all processes, where this set cannot say it; CHOIR_NONE: it has not been
	// asked for.
	int64_t all_examples;
	const char *counted_by; // the leaf whose rows are the examples: a split one, or else the first
};

choir_values *chi_values_new(choir_strategy *s, const chi_layout *layout);
chi_leaf *chi_values_leaf(choir_values *set, const char *name); // NULL: none, and no failure
// Adds or replaces a leaf.
choir_status chi_values_put(choir_values *set, const char *name, choir_value *v);
// For replicas, which look at the set's tensors on threads of their own (chi_frame_publish).
choir_status chi_values_publish(choir_values *set);
// The frame in which replica's tensors of this set live; NULL after a failure.
choir_frame *chi_values_replica_frame(choir_values *set, int replica);
// Splits t (on the host) into rows[i] rows for replica i; their sum may be less than t's rows.
choir_status chi_values_split_rows(
		choir_values *set, const char *name, choir_tensor *t, const int64_t rows[]);
// The same where each replica's rows are a tensor of its own, of set->frame.
choir_status chi_values_take_rows(
		choir_values *set, const char *name, choir_tensor *const part[], const int64_t rows[]);
// Examples of all replicas; CHOIR_NONE: nothing says.
int64_t chi_values_global_examples(const choir_values *set);
// CHOIR_INVALID naming the first leaf that some replica lacks.
choir_status chi_values_check(const choir_values *set);
// t as seen in frame f: itself, an alias where the memory is shared, else a copy on f's device.
choir_tensor *chi_value_view(choir_frame *f, choir_tensor *t);
// The share of replica i when total rows are dealt to n: sizes differ by at most one, the first
// are larger (docs/rules.md, section 9).
static inline int64_t chi_share_of(int64_t total, int n, int i)
{
	return total / n + (i < total % n);
}
