// All checks precede the first write and a replica's merge call, so an error names the replica.
// Rows are written in the order of replicas.
#include "choir/op.h"
#include "op/op.h"
#include "strategy/remote_variables.h"
#include "strategy/replica/merge_call.h"
#include "strategy/cross/reduce.h"
#include "strategy/update/update.h"
#include "strategy/variable/sharded_variable.h"
#include "strategy/variable/assign.h"

#include <math.h>
#include <stdio.h>

typedef struct {
	choir_variable *variable;
	choir_scatter how;
	choir_tensor *indices, *values;
	choir_tensor *number;
} scatter;

static const struct {
	const char *kernel, *name;
	bool aggregates;
} methods[] = {
	[CHOIR_SCATTER_ADD] = { "scatter_add", "scatter_add", true },
	[CHOIR_SCATTER_SUB] = { "scatter_subtract", "scatter_sub", true },
	[CHOIR_SCATTER_MUL] = { "scatter_multiply", "scatter_mul", true },
	[CHOIR_SCATTER_DIV] = { "scatter_divide", "scatter_div", true },
	[CHOIR_SCATTER_MIN] = { "scatter_minimum", "scatter_min", false },
	[CHOIR_SCATTER_MAX] = { "scatter_maximum", "scatter_max", false },
	[CHOIR_SCATTER_UPDATE] = { "scatter_update", "scatter_update", false },
};

static choir_buffer buffer_of(const choir_tensor *t)
{
	return (choir_buffer){ t->data, t->dtype, t->shape };
}

// f's device has the operands and shares the copy's memory.
static choir_status write_copy(const scatter *s, int copy, choir_frame *f)
{
	choir_variable *v = s->variable;
	const choir_buffer in[3] = { { v->copy[copy].buffer->memory, v->dtype, v->shape },
		buffer_of(s->indices), buffer_of(s->values) };
	choir_buffer out = in[0];
	if (v->concurrency == CHI_LOCK_FREE)
		return chi_frame_fail(f, CHOIR_UNSUPPORTED,
				"variable \"%s\": several workers update it without "
				"locks; writing its rows needs .locked_updates",
				v->name);
	if (choir_shape_elements(&s->values->shape) == 0)
		return CHOIR_OK;
	if (chi_kernel_run(f->stream, methods[s->how].kernel, 3, in, &out, NULL) != CHOIR_OK) {
		chi_error_prefix("variable \"%s\"", v->name);
		return chi_frame_record_error(f);
	}
	chi_variable_bump_version(v, copy);
	return CHOIR_OK;
}

static choir_status write_far_copy(const scatter *s, int copy)
{
	choir_frame *f = choir_frame_new(s->variable->copy[copy].device);
	CHOIR_TRY(chi_made(f));
	scatter there = *s;
	there.indices = choir_copy(s->indices, f);
	there.values = choir_copy(s->values, f);
	choir_status status = there.indices == NULL || there.values == NULL
			? chi_frame_status(f)
			: write_copy(&there, copy, f);
	if (status == CHOIR_OK)
		status = chi_stream_wait(f->stream);
	choir_frame_free(f);
	return status;
}

static choir_status write_copies(const scatter *s)
{
	choir_variable *v = s->variable;
	choir_frame *f = s->values->frame;
	for (int i = 0; i < v->copies; i++)
		CHOIR_TRY(chi_variable_check_defined(v, i, f));
	for (int i = 0; i < v->copies; i++) {
		const choir_status status = chi_device_shares(v->copy[i].device, f->device)
				? write_copy(s, i, f)
				: write_far_copy(s, i);
		if (status != CHOIR_OK) {
			if (i > 0)
				chi_variable_undefine(v);
			return chi_frame_record_error(f);
		}
	}
	return CHOIR_OK;
}

static choir_status write_all(const scatter *s);

static choir_status write_shard(const scatter *s, int k, const chi_dealt_rows *d)
{
	choir_frame *f = s->values->frame;
	const int64_t first = d->first[k], count = d->first[k + 1] - first;
	choir_tensor *place = choir_constant(f, CHOIR_I64, CHOIR_SHAPE(count), d->place + first);
	choir_shape shape = s->values->shape;
	shape.dim[0] = count;
	choir_tensor *const in[] = { s->values, place };
	scatter own = { .variable = s->variable->shard[k],
		.how = s->how,
		.indices = choir_constant(f, CHOIR_I64, CHOIR_SHAPE(count), d->row + first) };
	if (place != NULL)
		own.values = chi_op_kernel(f, "gather", 2, in, NULL, s->values->dtype, &shape);
	return own.indices == NULL || own.values == NULL ? chi_frame_status(f) : write_all(&own);
}

static choir_status write_shards(const scatter *s)
{
	choir_frame *f = s->values->frame;
	choir_variable *v = s->variable;
	const int64_t n = s->indices->shape.dim[0];
	int64_t *rows = chi_arena_alloc(&f->arena, (size_t) (n + 1) * sizeof *rows);
	const choir_tensor *slices = chi_slices_new(s->values, s->indices, v->shape.dim[0]);
	chi_dealt_rows d;
	if (rows == NULL)
		return chi_frame_record_error(f);
	CHOIR_TRY(chi_frame_made(f, slices));
	CHOIR_TRY(chi_variable_check_defined(v, 0, f));
	if (chi_slices_indices_to_host(slices, rows) != CHOIR_OK)
		return chi_frame_record_error(f);
	CHOIR_TRY(chi_shards_deal(f, v, n, rows, &d));
	bool written = false;
	for (int k = 0; k < v->shards; k++) {
		if (d.first[k] == d.first[k + 1])
			continue;
		const choir_status status = write_shard(s, k, &d);
		if (status != CHOIR_OK && written)
			chi_variable_undefine(v);
		CHOIR_TRY(status);
		written = true;
	}
	return CHOIR_OK;
}

// Rows are written one by one, so operands must not overlap the variable.
static choir_status set_apart(scatter *s)
{
	choir_frame *f = s->values->frame;
	s->indices = chi_variable_apart(s->variable, s->indices);
	s->values = chi_variable_apart(s->variable, s->values);
	return s->indices == NULL || s->values == NULL ? chi_frame_status(f) : CHOIR_OK;
}

static choir_status write_all(const scatter *given)
{
	choir_frame *f = given->values->frame;
	scatter s = *given;
	CHOIR_TRY(set_apart(&s));
	if (s.variable->shards > 0)
		return write_shards(&s);
	if (chi_variable_enter(s.variable) != CHOIR_OK)
		return chi_frame_record_error(f);
	choir_status status = write_copies(&s);
	if (status == CHOIR_OK && s.variable->concurrency == CHI_LOCKED)
		status = chi_stream_wait(f->stream);
	chi_variable_leave(s.variable);
	return status;
}

static choir_tensor *brought(choir_cross *x, const choir_variable *v, const char *name)
{
	choir_value *given = choir_cross_arg(x, name);
	if (given == NULL)
		return NULL;
	if (v->aggregation != CHOIR_AGGREGATION_ONLY_FIRST_REPLICA)
		return choir_cross_gather(x, given, 0);
	return v->strategy->process_group != NULL ? chi_broadcast(x, given, 0)
											  : chi_value_view(x->frame, given->component[0]);
}

static choir_status aggregate_and_write(choir_cross *x, void *user)
{
	scatter s = *(const scatter *) user;
	const choir_value *number = choir_cross_arg(x, "number");
	CHOIR_TRY(chi_frame_made(x->frame, number));
	CHOIR_TRY(chi_write_check_number(x, s.variable, number));
	s.indices = brought(x, s.variable, "indices");
	s.values = brought(x, s.variable, "values");
	if (s.variable->aggregation == CHOIR_AGGREGATION_MEAN && s.values != NULL)
		s.values =
				choir_divide(s.values, choir_number(x->frame, chi_cross_of(x)->strategy->in_sync));
	return s.indices == NULL || s.values == NULL ? chi_frame_status(x->frame) : write_all(&s);
}

static choir_status write_in_replica(choir_replica *replica, scatter *s)
{
	const chi_merge_call c = { methods[s->how].name, aggregate_and_write, s, s->variable,
		(uint64_t) s->how + 100, s->variable->name };
	const chi_named given[] = { { "indices", choir_cast(s->indices, CHOIR_I64) },
		{ "values", s->values }, { "number", s->number } };
	return chi_merge_own(chi_replica_of(replica), &c, 3, given);
}

static choir_status write_in_update(choir_update *update, scatter *s)
{
	chi_update *u = (chi_update *) (void *) update;
	CHOIR_TRY(chi_update_may_scatter(update, s->variable));
	const int copy = chi_update_copy_of(u, s->variable);
	CHOIR_TRY(chi_variable_check_defined(s->variable, copy, update->frame));
	CHOIR_TRY(set_apart(s));
	return chi_update_wrote(u, s->variable, write_copy(s, copy, update->frame));
}

static choir_status write_across(const scatter *s)
{
	choir_frame *f = s->values->frame;
	if (chi_remote_refresh_to_write(s->variable->strategy) != CHOIR_OK)
		return chi_frame_record_error(f);
	CHOIR_TRY(write_all(s));
	const choir_status status = chi_stream_wait(f->stream);
	return status == CHOIR_OK ? status : chi_frame_record_error(f);
}

static choir_status check_variable(const scatter *s, choir_frame *f, bool aggregates)
{
	const choir_variable *v = s->variable;
	const char *name = methods[s->how].name;
	if (v->synchronization == CHOIR_SYNCHRONIZATION_ON_READ)
		return chi_frame_fail(f, CHOIR_UNSUPPORTED,
				"variable \"%s\": it is ON_READ; such variables have no %s", v->name, name);
	if (aggregates && !methods[s->how].aggregates &&
			(v->aggregation == CHOIR_AGGREGATION_SUM || v->aggregation == CHOIR_AGGREGATION_MEAN))
		return chi_frame_fail(f, CHOIR_UNSUPPORTED,
				"variable \"%s\": %s does not support aggregation "
				"%s; NONE or ONLY_FIRST_REPLICA is needed",
				v->name, name, v->aggregation == CHOIR_AGGREGATION_SUM ? "SUM" : "MEAN");
	if (v->shape.rank == 0)
		return chi_frame_fail(
				f, CHOIR_INVALID, "variable \"%s\": %s: a scalar has no rows", v->name, name);
	return CHOIR_OK;
}

static choir_status fit_values(scatter *s, choir_frame *f)
{
	char have[CHI_SHAPE_TEXT], need[CHI_SHAPE_TEXT];
	const choir_variable *v = s->variable;
	const choir_tensor *indices = s->indices;
	if (indices->shape.rank != 1 || (indices->dtype != CHOIR_I32 && indices->dtype != CHOIR_I64))
		return chi_frame_fail(f, CHOIR_INVALID,
				"variable \"%s\": %s: indices are %s %s; a vector of i32 or i64 is needed",
				v->name, methods[s->how].name, choir_dtype_name(indices->dtype),
				chi_shape_print(&indices->shape, have));
	choir_shape rows = v->shape;
	rows.dim[0] = indices->shape.dim[0];
	if (s->values->is_number)
		s->values = choir_fill(f, v->dtype, rows, s->values->number);
	CHOIR_TRY(chi_frame_made(f, s->values));
	if (s->values->dtype == v->dtype && chi_shape_equal(&s->values->shape, &rows))
		return CHOIR_OK;
	return chi_frame_fail(f, CHOIR_INVALID,
			"variable \"%s\": %s: values are %s %s; %s %s is needed", v->name,
			methods[s->how].name, choir_dtype_name(s->values->dtype),
			chi_shape_print(&s->values->shape, have), choir_dtype_name(v->dtype),
			chi_shape_print(&rows, need));
}

static choir_status check_indices(const scatter *s, choir_frame *f)
{
	char what[200];
	const choir_variable *v = s->variable;
	snprintf(what, sizeof what, "variable \"%.150s\": %s", v->name, methods[s->how].name);
	const choir_tensor *slices = chi_slices_new(s->values, s->indices, v->shape.dim[0]);
	return slices == NULL ? chi_frame_status(f) : chi_slices_check_indices(slices, what);
}

static choir_status check_operands(scatter *s, choir_frame *f)
{
	choir_tensor **operands[] = { &s->indices, &s->values };
	for (int i = 0; i < 2; i++) {
		choir_tensor **t = operands[i];
		if ((*t)->frame != f)
			return chi_frame_fail(f, CHOIR_INVALID,
					"variable \"%s\": %s: indices and values "
					"belong to two frames; copy one to the other's",
					s->variable->name, methods[s->how].name);
		if (chi_tensor_check(*t) != CHOIR_OK)
			return chi_frame_record_error(f);
		if ((*t)->component && (*t = chi_tensor_alias(f, *t)) == NULL)
			return chi_frame_status(f);
	}
	return CHOIR_OK;
}

static choir_status refuse(choir_frame *f, const choir_variable *v, choir_scatter how)
{
	if (v == NULL)
		choir_fail(CHOIR_INVALID, "scatter: the variable is NULL");
	else
		choir_fail(CHOIR_INVALID, "variable \"%s\": scatter method %d does not exist", v->name,
				(int) how);
	return f == NULL ? choir_error_status() : chi_frame_record_error(f);
}

choir_status choir_variable_scatter(
		choir_variable *v, choir_scatter how, choir_tensor *indices, choir_tensor *values)
{
	choir_frame *f = choir_tensor_frame(values != NULL ? values : indices);
	if (v == NULL || (unsigned) how > CHOIR_SCATTER_UPDATE)
		return refuse(f, v, how);
	if (indices == NULL || values == NULL) {
		chi_frame_null_argument(f, methods[how].name);
		return chi_frame_status(f);
	}
	if (chi_remote_refuse(v->strategy, methods[how].name) != CHOIR_OK)
		return chi_frame_record_error(f);
	scatter s = { v, how, indices, values, NULL };
	const bool in_update = f->context_kind == CHI_IN_UPDATE;
	const bool in_replica =
			f->context_kind == CHI_IN_REPLICA && !chi_replica_is_default(f->context);
	if (in_update)
		s.variable = v = chi_update_shard(f->context, v);
	else if (in_replica)
		CHOIR_TRY(chi_write_check_replica(f->context, v, methods[how].name));
	else
		CHOIR_TRY(chi_write_check_across(f, v, methods[how].name));
	CHOIR_TRY(check_operands(&s, f));
	CHOIR_TRY(check_variable(&s, f, !in_update));
	if (in_replica)
		CHOIR_TRY(chi_write_check_aggregation(f->context, v));
	if (in_replica)
		s.number = choir_number(f, s.values->is_number ? s.values->number : (double) NAN);
	CHOIR_TRY(fit_values(&s, f));
	CHOIR_TRY(check_indices(&s, f));
	return in_replica	? write_in_replica(f->context, &s)
			: in_update ? write_in_update(f->context, &s)
						: write_across(&s);
}
