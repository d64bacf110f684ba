// What writing a variable means: in a replica a merge call that aggregates (or, for ON_READ, a write
// of the replica's own part), in cross-replica context a write of all copies, in an update function a
// write of the copy that is being updated.
#include "choir/op.h"
#include "strategy/merge.h"
#include "strategy/reduce.h"
#include "strategy/update.h"

#include <math.h>

typedef struct {
	choir_variable *variable;
	chi_assign_op op;
} assignment;

// Writes all copies with a value that is the same for all.
static choir_status write_all(choir_variable *v, chi_assign_op op, choir_tensor *t)
{
	if (t == NULL)
		return choir_error_status();
	if (v->copies > 1 && op != CHI_ASSIGN) {
		choir_tensor *now = chi_variable_view(v, 0, t->frame);
		if (now == NULL)
			return chi_frame_report(t->frame);
		t = op == CHI_ASSIGN_ADD ? choir_add(now, t) : choir_subtract(now, t);
		if (t == NULL)
			return chi_frame_report(now->frame);
		op = CHI_ASSIGN;
	}
	for (int i = 0; i < v->copies; i++)
		CHOIR_TRY(chi_variable_write(v, i, op, t));
	return CHOIR_OK;
}

static choir_status aggregate_and_write(choir_cross *x, void *user)
{
	const assignment *a = user;
	choir_variable *v = a->variable;
	choir_value *given = choir_cross_arg(x, "value");
	if (given == NULL)
		return chi_frame_report(x->frame);
	if (given->kind == CHOIR_VALUE_VARIABLE)
		return write_all(v, a->op, choir_variable_read(given->variable, x->frame));
	if (given->kind == CHOIR_VALUE_PLAIN)
		return write_all(v, a->op, choir_number(x->frame, given->component[0]->number));
	if (v->aggregation == CHOIR_AGGREGATION_ONLY_FIRST_REPLICA)
		return write_all(v, a->op, chi_value_view(x->frame, given->component[0]));
	choir_tensor *all = chi_reduce_tensors(x->frame,
			v->aggregation == CHOIR_AGGREGATION_SUM ? CHOIR_SUM : CHOIR_MEAN, given->count,
			given->component);
	return all == NULL ? chi_frame_report(x->frame) : write_all(v, a->op, all);
}

static choir_status assign_in_replica(choir_replica *replica, choir_variable *v, chi_assign_op op,
		choir_tensor *value)
{
	static const char *const names[] = { "assign", "assign_add", "assign_sub" };
	chi_replica *r = chi_replica_of(replica);
	CHOIR_TRY(chi_replica_check(replica, names[op]));
	if (v->strategy != r->run->strategy)
		return chi_frame_fail(replica->frame, CHOIR_STATE, "variable \"%s\": mixing strategies: it "
				"belongs to \"%s\", this replica to \"%s\"", v->name, v->strategy->kind,
				r->run->strategy->kind);
	if (v->synchronization == CHOIR_SYNCHRONIZATION_ON_READ)
		return chi_variable_write(v, v->copy_of_replica[r->id], op, value);
	if (v->aggregation == CHOIR_AGGREGATION_NONE)
		return chi_frame_fail(replica->frame, CHOIR_INVALID, "variable \"%s\": an aggregation is "
				"needed to write it in a replica", v->name);
	if (v->aggregation == CHOIR_AGGREGATION_SUM && value->is_number && value->number != 0 &&
			choir_replica_count(replica) > 1)
		return chi_frame_fail(replica->frame, CHOIR_INVALID, "variable \"%s\": the number %g is the "
				"same for all %d replicas and has no SUM over them", v->name, value->number,
				choir_replica_count(replica));
	assignment a = { v, op };
	return chi_merge_one(r, names[op], value, aggregate_and_write, &a, v, (uint64_t) op + 1);
}

// ON_READ SUM in cross-replica context: every part gets its share; of integers the first get one more.
static choir_status assign_shares(choir_variable *v, choir_tensor *value)
{
	choir_frame *f = value->frame;
	if (chi_dtype_is_float(v->dtype)) {
		choir_tensor *share = value->is_number ? choir_number(f, value->number / v->copies)
				: choir_divide(value, choir_number(f, v->copies));
		return share == NULL ? chi_frame_report(f) : write_all(v, CHI_ASSIGN, share);
	}
	// floor((x + copies - 1 - i) / copies) for part i, by integer division of what is not negative.
	for (int i = 0; i < v->copies; i++) {
		choir_tensor *share = value->is_number
				? choir_number(f, floor((value->number + v->copies - 1 - i) / v->copies))
				: choir_divide(choir_add(value, choir_number(f, v->copies - 1 - i)),
						choir_number(f, v->copies));
		if (share == NULL)
			return chi_frame_report(f);
		CHOIR_TRY(chi_variable_write(v, i, CHI_ASSIGN, share));
	}
	return CHOIR_OK;
}

static choir_status assign_across(choir_variable *v, chi_assign_op op, choir_tensor *value)
{
	choir_frame *f = value->frame;
	if (chi_context_need_cross(v->strategy, "assign") != CHOIR_OK)
		return chi_frame_keep(f);
	if (v->synchronization != CHOIR_SYNCHRONIZATION_ON_READ)
		return write_all(v, op, value);
	if (op != CHI_ASSIGN)
		return chi_frame_fail(f, CHOIR_INVALID, "variable \"%s\": it is ON_READ and cannot be added "
				"to outside a replica", v->name);
	if (v->aggregation == CHOIR_AGGREGATION_NONE)
		return chi_frame_fail(f, CHOIR_INVALID, "variable \"%s\": it is ON_READ without an "
				"aggregation and cannot be assigned outside a replica", v->name);
	return v->aggregation == CHOIR_AGGREGATION_SUM ? assign_shares(v, value)
	                                               : write_all(v, CHI_ASSIGN, value);
}

static choir_status assign(choir_variable *v, chi_assign_op op, choir_tensor *value)
{
	if (v == NULL)
		return choir_fail(CHOIR_INVALID, "assign: the variable is NULL");
	if (value == NULL)
		return choir_error_status() != CHOIR_OK ? choir_error_status()
				: choir_fail(CHOIR_INVALID, "variable \"%s\": assigned NULL", v->name);
	choir_frame *f = value->frame;
	if (f->context_kind == CHI_IN_REPLICA)
		return assign_in_replica(f->context, v, op, value);
	if (f->context_kind == CHI_IN_UPDATE)
		return chi_update_write(f->context, v, op, value);
	return assign_across(v, op, value);
}

choir_status choir_variable_assign(choir_variable *v, choir_tensor *value)
{
	return assign(v, CHI_ASSIGN, value);
}

choir_status choir_variable_assign_add(choir_variable *v, choir_tensor *value)
{
	return assign(v, CHI_ASSIGN_ADD, value);
}

choir_status choir_variable_assign_sub(choir_variable *v, choir_tensor *value)
{
	return assign(v, CHI_ASSIGN_SUB, value);
}
