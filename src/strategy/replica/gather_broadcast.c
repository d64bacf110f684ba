// Broadcast and all-gather inside replicas, as merge calls.
#include "base/hash.h"
#include "choir/op.h"
#include "op/tape/tape.h"
#include "strategy/cross/cross.h"
#include "strategy/cross/reduce.h"
#include "strategy/replica/merge_call.h"

#include <stdio.h>

static choir_status return_first(choir_cross *x, void *user)
{
	const int *from = user;
	choir_value *v = choir_cross_arg(x, "value");
	if (v != NULL && v->component != NULL && chi_cross_of(x)->strategy->process_group != NULL)
		return choir_cross_return(x, "value", choir_tensor_as_value(chi_broadcast(x, v, *from)));
	if (v == NULL || v->kind != CHOIR_VALUE_PER_REPLICA)
		return choir_cross_return(x, "value", v);
	return choir_cross_return(
			x, "value", choir_tensor_as_value(chi_value_view(x->frame, v->component[*from])));
}

choir_tensor *choir_replica_broadcast(choir_replica *replica, choir_tensor *t, int replica_id)
{
	if (chi_replica_check(replica, "broadcast") != CHOIR_OK)
		return NULL;
	if (t == NULL)
		return chi_frame_null_argument(replica->frame, "broadcast");
	if (replica_id < 0 || replica_id >= choir_replica_count(replica))
		return chi_frame_fail_null(replica->frame, CHOIR_INVALID,
				"broadcast: replica %d does not exist; there are %d replicas", replica_id,
				choir_replica_count(replica));
	chi_replica_gives(chi_replica_of(replica), t);
	// The replica may write its component after the call.
	if (t->source != NULL && (t = choir_copy(t, replica->frame)) == NULL)
		return NULL;
	chi_replica *r = chi_replica_of(replica);
	char name[64];
	chi_replica_name_collective(r, "broadcast", name);
	if (r->label.hash == 0)
		snprintf(name, sizeof name, "broadcast from replica %d", replica_id);
	if (chi_merge_one(r, name, t, return_first, &replica_id,
				(const void *) (uintptr_t) return_first,
				chi_hash_mix((uint64_t) replica_id + 1 + r->label.hash)) != CHOIR_OK)
		return NULL;
	return choir_replica_result(replica, "value");
}

typedef struct {
	choir_replica *replica;
	int axis;
	int64_t offset;
} gather_attributes;

static choir_status gather_all(choir_cross *x, void *user)
{
	const int *axis = user;
	choir_tensor *all = choir_cross_gather(x, choir_cross_arg(x, "value"), *axis);
	return choir_cross_return(x, "value", choir_tensor_as_value(all));
}

static choir_status gather_backward(const chi_node *node, const chi_backward *g)
{
	const gather_attributes *a = node->attributes;
	choir_tensor *sum = choir_replica_all_reduce(a->replica, CHOIR_SUM, g->dy);
	if (sum != NULL)
		g->gradient[0] = choir_slice(sum, a->axis, a->offset, node->in[0]->shape.dim[a->axis]);
	return CHOIR_OK;
}

static const chi_op all_gather_op = {
	.name = "all_gather",
	.attribute_bytes = sizeof(gather_attributes),
	.backward = gather_backward,
};

choir_tensor *choir_replica_all_gather(choir_replica *replica, choir_tensor *t, int axis)
{
	if (chi_replica_check(replica, "all_gather") != CHOIR_OK)
		return NULL;
	if (t == NULL)
		return chi_frame_null_argument(replica->frame, "all_gather");
	if (choir_tensor_is_slices(t))
		return chi_frame_fail_null(replica->frame, CHOIR_UNSUPPORTED,
				"all_gather: slices are not supported; use all_reduce instead");
	chi_replica *r = chi_replica_of(replica);
	chi_replica_gives(r, t);
	const int at = axis < 0 ? axis + t->shape.rank : axis;
	if (at < 0 || at >= t->shape.rank)
		return chi_frame_fail_null(replica->frame, CHOIR_INVALID,
				"all_gather: axis %d does not exist; the value has rank %d", axis, t->shape.rank);
	if (t->component && (t = chi_tensor_alias(replica->frame, t)) == NULL)
		return NULL;
	int shown = at;
	char name[40];
	snprintf(name, sizeof name, "all_gather along axis %d", at);
	if (chi_merge_one(r, name, t, gather_all, &shown, &all_gather_op, (uint64_t) at + 1) !=
			CHOIR_OK)
		return NULL;
	choir_tensor *out = choir_replica_result(replica, "value");
	const gather_attributes a = { replica, at, r->offset };
	return out == NULL ? NULL : chi_op_record(&all_gather_op, 1, &t, &a, out);
}
