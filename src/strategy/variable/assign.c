// In a replica, a merge call aggregates values, or a component is written; in cross-replica
// context all copies, in an update function the current one.
#include "choir/op.h"
#include "strategy/remote_variables.h"
#include "strategy/replica/merge_call.h"
#include "strategy/cross/reduce.h"
#include "strategy/update/update.h"
#include "strategy/variable/assign.h"
#include "strategy/worker_sync.h"
#include "value/shard_rows.h"

typedef struct {
	choir_variable *variable;
	chi_assign_op op;
} assignment;

static const char *const names[] = { "assign", "assign_add", "assign_sub" };

static choir_status write_copies(choir_variable *v, chi_assign_op op, choir_tensor *t)
{
	const bool here = chi_device_shares(v->copy[0].device, choir_tensor_device(t));
	if (op != CHI_ASSIGN && (v->copies > 1 || !here)) {
		choir_tensor *now = chi_variable_view(v, 0, t->frame);
		CHOIR_TRY(chi_frame_made(t->frame, now));
		t = op == CHI_ASSIGN_ADD ? choir_add(now, t) : choir_subtract(now, t);
		CHOIR_TRY(chi_frame_made(now->frame, t));
		op = CHI_ASSIGN;
	}
	for (int i = 0; i < v->copies; i++) {
		const choir_status status = chi_variable_write(v, i, op, t);
		if (status != CHOIR_OK) {
			if (i > 0)
				chi_variable_undefine(v);
			return status;
		}
	}
	return CHOIR_OK;
}

static choir_status write_all(choir_variable *v, chi_assign_op op, choir_tensor *t);

static choir_status write_shards(choir_variable *v, chi_assign_op op, choir_tensor *t)
{
	CHOIR_TRY(chi_variable_check_written(v, t));
	if (op != CHI_ASSIGN)
		CHOIR_TRY(chi_variable_check_defined(v, 0, t->frame));
	for (int i = 0; i < v->shards; i++) {
		const choir_status status = write_all(v->shard[i], op, chi_shard_rows(v->shard[i], t));
		if (status != CHOIR_OK && i > 0)
			chi_variable_undefine(v);
		CHOIR_TRY(status);
	}
	return CHOIR_OK;
}

static choir_status write_all(choir_variable *v, chi_assign_op op, choir_tensor *t)
{
	if (t == NULL)
		return chi_frame_status(NULL);
	choir_frame *f = t->frame;
	if ((t = chi_variable_apart(v, t)) == NULL)
		return chi_frame_status(f);
	if (v->shards > 0)
		return write_shards(v, op, t);
	if (chi_variable_enter(v) != CHOIR_OK)
		return chi_frame_record_error(t->frame);
	const chi_remote *r = v->strategy->remote;
	choir_status status = write_copies(v, op, t);
	if (status == CHOIR_OK && r != NULL && r->assign != NULL)
		status = r->assign(r->user, v, op, t);
	chi_variable_leave(v);
	return status;
}

static choir_status convert_numbers(choir_frame *f, const choir_variable *v, choir_value *given)
{
	for (int i = 0; i < given->count; i++) {
		choir_tensor **t = &given->component[i];
		if ((*t)->is_number && (*t = choir_fill(f, v->dtype, v->shape, (*t)->number)) == NULL)
			return chi_frame_status(f);
	}
	return CHOIR_OK;
}

static choir_status aggregate_and_write(choir_cross *x, void *user)
{
	const assignment *a = user;
	choir_variable *v = a->variable;
	choir_value *given = choir_cross_arg(x, "value");
	CHOIR_TRY(chi_frame_made(x->frame, given));
	if (given->kind == CHOIR_VALUE_VARIABLE)
		return write_all(v, a->op, choir_variable_read(given->variable, x->frame));
	CHOIR_TRY(chi_write_check_number(x, v, given));
	if (given->kind == CHOIR_VALUE_PLAIN)
		return write_all(v, a->op, given->component[0]);
	CHOIR_TRY(convert_numbers(x->frame, v, given));
	if (v->aggregation == CHOIR_AGGREGATION_ONLY_FIRST_REPLICA)
		return write_all(v, a->op,
				v->strategy->process_group != NULL
						? chi_broadcast(x, given, 0)
						: chi_value_view(x->frame, given->component[0]));
	choir_tensor *all = chi_reduce_tensors(v->strategy, x->frame, v->name,
			v->aggregation == CHOIR_AGGREGATION_SUM ? CHOIR_SUM : CHOIR_MEAN, given->count,
			given->component);
	return all == NULL ? chi_frame_status(x->frame) : write_all(v, a->op, all);
}

choir_status chi_write_check_replica(
		choir_replica *replica, const choir_variable *v, const char *what)
{
	CHOIR_TRY(chi_replica_check(replica, what));
	return chi_replica_check_variable(chi_replica_of(replica), v);
}

choir_status chi_write_check_aggregation(choir_replica *replica, const choir_variable *v)
{
	if (v->aggregation != CHOIR_AGGREGATION_NONE)
		return CHOIR_OK;
	return chi_frame_fail(replica->frame, CHOIR_INVALID,
			"variable \"%s\": it has no aggregation; a replica needs one to write it", v->name);
}

choir_status chi_write_check_number(
		choir_cross *x, const choir_variable *v, const choir_value *given)
{
	const int n = chi_cross_of(x)->strategy->in_sync;
	const choir_tensor *t = given->kind == CHOIR_VALUE_PLAIN ? given->component[0] : NULL;
	if (v->aggregation != CHOIR_AGGREGATION_SUM || n == 1 || t == NULL || !t->is_number ||
			t->number == 0)
		return CHOIR_OK;
	return chi_frame_fail(x->frame, CHOIR_INVALID,
			"variable \"%s\": the number %g is the same for all %d replicas "
			"and has no SUM over them; assign each replica's share, or a tensor",
			v->name, t->number, n);
}

choir_status chi_write_check_across(choir_frame *f, const choir_variable *v, const char *what)
{
	if (chi_strategy_check(v->strategy) == CHOIR_OK &&
			chi_context_sees_all(v->strategy, what) == CHOIR_OK)
		return CHOIR_OK;
	chi_error_prefix("variable \"%s\"", v->name);
	return chi_frame_record_error(f);
}

static bool is_its_own_mean(const choir_variable *v, const choir_variable *value)
{
	return v->aggregation == CHOIR_AGGREGATION_MEAN &&
			value->synchronization != CHOIR_SYNCHRONIZATION_ON_READ;
}

static choir_status assign_in_replica(
		choir_replica *replica, choir_variable *v, chi_assign_op op, choir_tensor *value)
{
	chi_replica *r = chi_replica_of(replica);
	CHOIR_TRY(chi_write_check_replica(replica, v, names[op]));
	if (v->synchronization == CHOIR_SYNCHRONIZATION_ON_READ)
		return chi_variable_write(v, chi_strategy_copy(r->run->strategy, v, r->id), op, value);
	CHOIR_TRY(chi_write_check_aggregation(replica, v));
	if (v->aggregation != CHOIR_AGGREGATION_ONLY_FIRST_REPLICA)
		CHOIR_TRY(chi_variable_check_written(v, value));
	// Unless it is the same for all replicas, and so its own mean.
	if (value->component && !is_its_own_mean(v, choir_tensor_variable(value)) &&
			(value = chi_tensor_alias(replica->frame, value)) == NULL)
		return chi_frame_status(replica->frame);
	assignment a = { v, op };
	const chi_merge_call c = { names[op], aggregate_and_write, &a, v, (uint64_t) op + 1, v->name };
	return chi_merge_own(r, &c, 1, &(chi_named){ "value", value });
}

// Shares differ by at most one; their sum is x.
static int64_t share_of(int64_t x, int parts, int i)
{
	const int64_t below = x / parts - (x % parts < 0);
	return below + (i < x - below * parts);
}

static void share_integers(
		choir_dtype dtype, const void *from, void *to, int64_t n, int parts, int i)
{
	for (int64_t k = 0; k < n; k++) {
		if (dtype == CHOIR_I64)
			((int64_t *) to)[k] = share_of(((const int64_t *) from)[k], parts, i);
		else
			chi_dtype_store(dtype, to, k,
					(double) share_of((int64_t) chi_dtype_load(dtype, from, k), parts, i));
	}
}

// On the host: they must add up to the value.
static choir_status assign_integer_shares(choir_variable *v, choir_tensor *value)
{
	choir_frame *f = value->frame;
	const size_t bytes = chi_variable_bytes(v);
	char *host = chi_arena_alloc(&f->arena, 2 * bytes);
	if (host == NULL)
		return chi_frame_record_error(f);
	CHOIR_TRY(choir_tensor_to_host(value, host, bytes));
	for (int i = 0; i < v->copies; i++) {
		share_integers(v->dtype, host, host + bytes, v->elements, chi_strategy_parts(v),
				v->strategy->replica_offset + i);
		choir_tensor *share = choir_constant(f, v->dtype, v->shape, host + bytes);
		CHOIR_TRY(chi_frame_made(f, share));
		const choir_status status = chi_variable_write(v, i, CHI_ASSIGN, share);
		if (status != CHOIR_OK && i > 0)
			chi_variable_undefine(v);
		CHOIR_TRY(status);
	}
	return CHOIR_OK;
}

static choir_status assign_shares(choir_variable *v, choir_tensor *value)
{
	choir_frame *f = value->frame;
	choir_tensor *share;
	if (chi_dtype_is_float(v->dtype)) {
		share = value->is_number ? choir_number(f, value->number / chi_strategy_parts(v))
								 : choir_divide(value, choir_number(f, chi_strategy_parts(v)));
		return share == NULL ? chi_frame_status(f) : write_all(v, CHI_ASSIGN, share);
	}
	if (value->is_number)
		value = choir_fill(f, v->dtype, v->shape, value->number);
	CHOIR_TRY(chi_frame_made(f, value));
	if (value->dtype != v->dtype || !chi_shape_equal(&value->shape, &v->shape))
		return chi_variable_write(v, 0, CHI_ASSIGN, value);
	return assign_integer_shares(v, value);
}

static choir_status write_across(choir_variable *v, chi_assign_op op, choir_tensor *value)
{
	choir_frame *f = value->frame;
	CHOIR_TRY(chi_write_check_across(f, v, names[op]));
	if (v->synchronization != CHOIR_SYNCHRONIZATION_ON_READ &&
			chi_remote_refresh_to_write(v->strategy) != CHOIR_OK)
		return chi_frame_record_error(f);
	// The default replica has the only component of its strategy's variables.
	const chi_replica *r = f->context_kind == CHI_IN_REPLICA ? f->context : NULL;
	if (v->synchronization != CHOIR_SYNCHRONIZATION_ON_READ ||
			(r != NULL && chi_strategy_has(r->run->strategy, v)))
		return write_all(v, op, value);
	if (op != CHI_ASSIGN)
		return chi_frame_fail(f, CHOIR_INVALID,
				"variable \"%s\": it is ON_READ; only a replica can add to it", v->name);
	if (v->aggregation == CHOIR_AGGREGATION_NONE)
		return chi_frame_fail(f, CHOIR_INVALID,
				"variable \"%s\": it is ON_READ without an "
				"aggregation; only a replica can assign it",
				v->name);
	return v->aggregation == CHOIR_AGGREGATION_SUM ? assign_shares(v, value)
												   : write_all(v, CHI_ASSIGN, value);
}

static choir_status assign_across(choir_variable *v, chi_assign_op op, choir_tensor *value)
{
	CHOIR_TRY(write_across(v, op, value));
	const choir_status status = chi_stream_wait(value->frame->stream);
	return status == CHOIR_OK ? status : chi_frame_record_error(value->frame);
}

static choir_status assign(choir_variable *v, chi_assign_op op, choir_tensor *value)
{
	if (v == NULL && value != NULL)
		return chi_frame_fail(value->frame, CHOIR_INVALID, "assign: the variable is NULL");
	if (v == NULL)
		return choir_fail(CHOIR_INVALID, "assign: the variable is NULL");
	if (value == NULL)
		return chi_error_null("variable \"%s\": assigned NULL", v->name);
	choir_frame *f = value->frame;
	if (f->context_kind == CHI_IN_REPLICA && !chi_replica_is_default(f->context))
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
