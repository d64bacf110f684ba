// Reductions whose result one thread needs.
#include "strategy/cross/reduce.h"

#include "base/text.h"
#include "choir/op.h"
#include "collective/tree.h"
#include "strategy/worker_sync.h"
#include "strategy/cross/reduce_indexed_slices.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

choir_status chi_check_reduce_op(choir_frame *f, const char *what, choir_reduce_op op)
{
	if (op == CHOIR_SUM || op == CHOIR_MEAN)
		return CHOIR_OK;
	return chi_frame_fail(
			f, CHOIR_INVALID, "%s: the operation is %d; it must be SUM or MEAN", what, (int) op);
}

choir_status chi_mean_divisor(
		choir_strategy *s, choir_frame *f, int n, choir_tensor *const tensors[], double *divisor)
{
	int counted = 0;
	double sum = 0;
	for (int i = 0; i < n; i++)
		if (tensors[i]->count != CHOIR_NONE) {
			counted++;
			sum += (double) tensors[i]->count;
		}
	if (counted != 0 && counted != n)
		return chi_frame_fail(f, CHOIR_INVALID,
				"reduce: %d of %d replicas' values have a "
				"count; for a mean, all or none must have one",
				counted, n);
	// n may count components of a parameter server's workers.
	const int all = s->process_group == NULL ? n : s->in_sync;
	*divisor = counted == 0 ? all : sum;
	return counted == 0 ? CHOIR_OK : chi_strategy_add_counts(s, divisor);
}

static bool find_tensor(void *self, int lo, int hi, int level, const void **sum)
{
	(void) level;
	*sum = ((choir_tensor *const *) self)[lo];
	return hi - lo == 1;
}

static const void *add_tensors(void *self, const void *left, const void *right, int level)
{
	(void) self, (void) level;
	return choir_add((choir_tensor *) (uintptr_t) left, (choir_tensor *) (uintptr_t) right);
}

static choir_tensor *sum_node(choir_frame *f, int lo, int hi, choir_tensor *const tensors[])
{
	static const chi_tree_adder adder = { find_tensor, add_tensors };
	const void *sum = chi_tree_sum(&adder, (void *) (uintptr_t) tensors, lo, hi, 0);
	return f->failed ? NULL : (choir_tensor *) (uintptr_t) sum;
}

choir_tensor *chi_sum_to_half(choir_tensor *sum, choir_dtype dtype)
{
	return chi_dtype_is_half(dtype) ? choir_cast(sum, dtype) : sum;
}

// f64 for 32 and 64 bits, f32 for fewer.
choir_tensor *chi_for_mean(choir_tensor *t)
{
	if (t == NULL || chi_dtype_is_float(t->dtype))
		return t;
	return choir_cast(t, chi_dtype_size(t->dtype) >= 4 ? CHOIR_F64 : CHOIR_F32);
}

bool chi_needs_checked_sum(choir_reduce_op op, const choir_tensor *t)
{
#ifdef NDEBUG
	(void) op, (void) t;
	return false;
#else
	return op == CHOIR_SUM && t->dtype == CHOIR_U8 && !chi_is_slices(t);
#endif
}

// The cast saturates; the difference is the overflow.
choir_tensor *chi_checked_sum_to_u8(choir_tensor *sum, const char *what)
{
	choir_tensor *out = choir_cast(sum, CHOIR_U8);
	choir_tensor *lost = choir_subtract(sum, choir_cast(out, CHOIR_I32));
	lost = choir_sum(choir_cast(lost, CHOIR_F64), CHOIR_ALL_AXES);
	if (lost == NULL)
		return NULL;
	const double over = choir_tensor_number(lost);
	if (over == 0)
		return out;
	return chi_frame_fail_null(sum->frame, CHOIR_INVALID,
			"%s: a SUM of u8 exceeds 255, by %g in all elements together; cast the values before",
			what, over);
}

static choir_tensor *sum_of_all(
		choir_strategy *s, choir_frame *f, const char *name, choir_tensor *const tensors[])
{
	chi_process_group *p = s->process_group;
	const int nodes = chi_process_group_node_count(p, p->worker);
	choir_partial_sum *part = chi_arena_alloc(&f->arena, (size_t) nodes * sizeof *part);
	choir_tensor *t = NULL;
	char *sum = NULL;
	for (int i = 0; part != NULL && i < nodes; i++) {
		part[i] = p->partial_sum[p->first_node[p->worker] + i];
		t = sum_node(f, part[i].lo - s->replica_offset, part[i].hi - s->replica_offset, tensors);
		if (t != NULL && t->is_number)
			t = choir_fill(f, CHOIR_F64, CHOIR_SCALAR, t->number);
		const size_t bytes = t == NULL ? 0 : chi_tensor_bytes(t);
		sum = t == NULL || sum != NULL ? sum : chi_arena_alloc(&f->arena, bytes);
		part[i].data = t == NULL ? NULL : chi_arena_alloc(&f->arena, bytes);
		if (sum == NULL || part[i].data == NULL ||
				choir_tensor_to_host(t, part[i].data, bytes) != CHOIR_OK)
			return chi_frame_record_null(f);
	}
	const choir_collective c = { .name = name,
		.kind = CHOIR_ALL_REDUCE,
		.dtype = t == NULL ? 0 : t->dtype,
		.elements = t == NULL ? 0 : choir_shape_elements(&t->shape) };
	if (t == NULL || chi_process_group_all_reduce(p, 0, &c, part, sum) != CHOIR_OK)
		return chi_frame_record_null(f);
	return choir_constant(f, t->dtype, t->shape, sum);
}

choir_status chi_check_sum(choir_frame *f, const char *what, choir_reduce_op op, choir_dtype dtype)
{
	const bool mean = op == CHOIR_MEAN;
	if (dtype <= CHOIR_U8 || chi_dtype_is_half(dtype) || (mean && dtype == CHOIR_BOOL))
		return CHOIR_OK;
	return chi_frame_fail(f, CHOIR_UNSUPPORTED,
			"%s: %s does not support %s; supported: f32, f64, i32, i64, u8, f16, bf16%s", what,
			mean ? "MEAN" : "SUM", choir_dtype_name(dtype), mean ? ", bool" : "");
}

choir_status chi_check_alike(const choir_strategy *s, choir_frame *f, choir_reduce_op op, int n,
		choir_tensor *const tensors[], bool numbers)
{
	const int id = chi_strategy_id(s, 0);
	char a[CHI_SHAPE_TEXT], b[CHI_SHAPE_TEXT];
	const choir_tensor *first = tensors[0];
	for (int i = 0; i < n; i++) {
		const choir_tensor *t = tensors[i];
		if (t == NULL)
			return chi_frame_fail(f, CHOIR_INVALID, "reduce: replica %d has no value", id + i);
		if (chi_tensor_check_any(t) != CHOIR_OK)
			return chi_frame_record_error(f);
		if (!t->is_number)
			CHOIR_TRY(chi_check_sum(f, "reduce", op, t->dtype));
		if (chi_is_slices(t) && chi_dtype_is_half(t->dtype))
			return chi_frame_fail(f, CHOIR_UNSUPPORTED,
					"reduce: replica %d has slices of %s; cast their values to f32", id + i,
					choir_dtype_name(t->dtype));
		if (chi_is_slices(first))
			continue;
		if (chi_is_slices(t))
			return chi_frame_fail(f, CHOIR_INVALID,
					"reduce: replica %d has a tensor, replica "
					"%d slices; all replicas need the same",
					id, id + i);
		const bool any_dtype = numbers && (t->is_number || first->is_number);
		if ((t->dtype != first->dtype && !any_dtype) || !chi_shape_equal(&t->shape, &first->shape))
			return chi_frame_fail(f, CHOIR_INVALID,
					"reduce: replica %d has %s %s, replica %d %s "
					"%s; all replicas need the same dtype and shape",
					id, choir_dtype_name(first->dtype), chi_shape_print(&first->shape, a), id + i,
					choir_dtype_name(t->dtype), chi_shape_print(&t->shape, b));
	}
	return CHOIR_OK;
}

static choir_tensor *reduce_tensors(choir_strategy *s, choir_frame *f, const char *what,
		choir_reduce_op op, int n, choir_tensor *const tensors[])
{
	double divisor = 1;
	char name[CHI_SUM_NAME];
	choir_tensor **here = chi_arena_alloc(&f->arena, (size_t) n * sizeof *here);
	if (here == NULL)
		return chi_frame_record_null(f);
	if (chi_check_alike(s, f, op, n, tensors, true) != CHOIR_OK)
		return NULL;
	if (op == CHOIR_MEAN && chi_mean_divisor(s, f, n, tensors, &divisor) != CHOIR_OK)
		return NULL;
	if (choir_tensor_is_slices(tensors[0]))
		return chi_reduce_slices(s, f, op, CHOIR_SLICES_CONCATENATED, n, tensors, divisor);
	const bool wide = chi_needs_checked_sum(op, tensors[0]);
	for (int i = 0; i < n; i++) {
		here[i] = chi_value_view(f, tensors[i]);
		if (op == CHOIR_MEAN)
			here[i] = chi_for_mean(here[i]);
		else if (wide && tensors[i]->dtype == CHOIR_U8)
			here[i] = choir_cast(here[i], CHOIR_I32);
		if (chi_dtype_is_half(tensors[i]->dtype))
			here[i] = choir_cast(here[i], CHOIR_F32);
	}
	if (s->process_group != NULL)
		chi_worker_sum_name(what, op, tensors[0]->dtype, tensors[0], name);
	choir_tensor *sum =
			s->process_group == NULL ? sum_node(f, 0, n, here) : sum_of_all(s, f, name, here);
	if (wide)
		return chi_checked_sum_to_u8(sum, "reduce");
	if (op == CHOIR_MEAN)
		sum = choir_divide(sum, choir_number(f, divisor));
	return sum == NULL ? NULL : chi_sum_to_half(sum, tensors[0]->dtype);
}

choir_tensor *chi_reduce_tensors(choir_strategy *s, choir_frame *f, const char *what,
		choir_reduce_op op, int n, choir_tensor *const tensors[])
{
	return chi_strategy_abort_if_null(s, f, reduce_tensors(s, f, what, op, n, tensors));
}

static choir_tensor *read_first(choir_variable *v, const char *what, choir_frame *f)
{
	choir_tensor *t = chi_variable_view(v, 0, f);
	return t == NULL || v->strategy->process_group == NULL
			? t
			: chi_worker_broadcast(v->strategy, f, 0, t, what);
}

choir_tensor *chi_broadcast(choir_cross *x, choir_value *v, int from)
{
	choir_strategy *s = chi_cross_of(x)->strategy;
	char what[48];
	const int here = from - s->replica_offset;
	const bool mine = here >= 0 && here < s->replicas;
	snprintf(what, sizeof what, "broadcast from replica %d", from);
	choir_tensor *t = !mine ? NULL : v->component[v->kind == CHOIR_VALUE_PER_REPLICA ? here : 0];
	return chi_worker_broadcast(s, x->frame, chi_worker_of_replica(s, from), t, what);
}

static choir_tensor *read_aggregated(choir_variable *v, choir_frame *f)
{
	char what[64];
	chi_text_fit(v->name, what, sizeof what);
	if (v->aggregation == CHOIR_AGGREGATION_ONLY_FIRST_REPLICA)
		return read_first(v, what, f);
	choir_tensor **parts = chi_arena_alloc(&f->arena, (size_t) v->copies * sizeof *parts);
	if (parts == NULL)
		return chi_frame_record_null(f);
	for (int i = 0; i < v->copies; i++)
		if ((parts[i] = chi_variable_view(v, i, f)) == NULL)
			return NULL;
	return chi_reduce_tensors(v->strategy, f, what,
			v->aggregation == CHOIR_AGGREGATION_SUM ? CHOIR_SUM : CHOIR_MEAN, v->copies, parts);
}

// Checks come first: failures of all workers abort nothing.
choir_tensor *chi_read_aggregated(choir_variable *v, choir_frame *f)
{
	if (v->aggregation == CHOIR_AGGREGATION_NONE)
		return chi_frame_fail_null(f, CHOIR_INVALID,
				"variable \"%s\": it is ON_READ without an aggregation, so it has no value "
				"outside a replica",
				v->name);
	for (int i = 0; i < v->copies; i++)
		if (chi_variable_check_defined(v, i, f) != CHOIR_OK)
			return NULL;
	return chi_strategy_abort_if_null(v->strategy, f, read_aggregated(v, f));
}

static choir_tensor *along(choir_tensor *t, choir_reduce_op op, choir_axes axes)
{
	choir_tensor *sum = choir_sum(op == CHOIR_MEAN ? chi_for_mean(t) : t, axes);
	if (sum == NULL || op == CHOIR_SUM)
		return sum;
	int64_t count = 1;
	for (int i = 0; i < t->shape.rank; i++)
		if ((axes.bits & CHOIR_AXES(i, i - t->shape.rank).bits) != 0)
			count *= t->shape.dim[i];
	return choir_with_count(sum, count);
}

// 1: all are the same. 0: an error.
static int seen(choir_frame *f, const choir_strategy *s, choir_value *v, choir_tensor ***tensors)
{
	choir_variable *variable = v->variable;
	if (chi_cross_check_variable(s, f, variable, "reduce") != CHOIR_OK)
		return 0;
	const bool parts =
			variable != NULL && variable->synchronization == CHOIR_SYNCHRONIZATION_ON_READ;
	const int n = parts ? s->replicas : v->kind == CHOIR_VALUE_PER_REPLICA ? v->count : 1;
	if (v->kind == CHOIR_VALUE_DESTINATION || (n != 1 && n != s->replicas)) {
		chi_frame_fail(f, CHOIR_INVALID,
				v->kind == CHOIR_VALUE_DESTINATION
						? "reduce: a destination has no value"
						: "reduce: the value has %d replicas, the strategy %d",
				n, s->replicas);
		return 0;
	}
	*tensors = chi_arena_alloc(&f->arena, (size_t) n * sizeof **tensors);
	if (*tensors == NULL || chi_value_materialize(v) != CHOIR_OK) {
		chi_frame_record_error(f);
		return 0;
	}
	for (int i = 0; i < n; i++) {
		if (parts)
			(*tensors)[i] = chi_variable_view(variable, s->first_replica + i, f);
		else
			(*tensors)[i] = variable != NULL ? choir_variable_read(variable, f)
											 : chi_value_view(f, v->component[i]);
		if ((*tensors)[i] == NULL) {
			chi_frame_status(f);
			return 0;
		}
	}
	return n;
}

static choir_tensor *reduce_value(
		choir_frame *f, choir_strategy *s, choir_reduce_op op, choir_value *v, choir_axes axes)
{
	choir_tensor **own = NULL;
	const int n = seen(f, s, v, &own);
	if (n == 0)
		return NULL;
	const bool plain = n == 1 && v->kind != CHOIR_VALUE_PER_REPLICA;
	if (plain && axes.bits == 0) {
		if (op == CHOIR_SUM && s->in_sync > 1 && !(own[0]->is_number && own[0]->number == 0))
			return chi_frame_fail_null(f, CHOIR_INVALID,
					"reduce: the value is the same for all "
					"%d replicas, so it has no SUM over them",
					s->in_sync);
		return own[0];
	}
	char what[48] = "reduce";
	if (axes.bits == 0)
		return chi_reduce_tensors(s, f, what, op, n, own);
	snprintf(what, sizeof what, "reduce along %" PRIx64, (uint64_t) axes.bits);
	choir_tensor **parts = chi_arena_alloc(&f->arena, (size_t) s->replicas * sizeof *parts);
	if (parts == NULL)
		return chi_frame_record_null(f);
	for (int i = 0; i < s->replicas; i++)
		if ((parts[i] = along(own[n == 1 ? 0 : i], op, axes)) == NULL)
			return NULL;
	choir_tensor *t = chi_reduce_tensors(s, f, what, op, s->replicas, parts);
	return t == NULL ? NULL : chi_sum_to_half(t, own[0]->dtype);
}

choir_tensor *choir_strategy_reduce(
		choir_strategy *s, choir_reduce_op op, choir_value *v, choir_axes axes)
{
	if (v == NULL || chi_strategy_check(s) != CHOIR_OK ||
			chi_context_need_cross(s, "reduce") != CHOIR_OK)
		return NULL;
	choir_frame *f = v->frame;
	if (f == NULL) {
		choir_cross *x = choir_strategy_cross(s);
		if (x == NULL)
			return NULL;
		f = x->frame;
	}
	if (chi_check_reduce_op(f, "reduce", op) != CHOIR_OK)
		return NULL;
	chi_fpenv host;
	chi_fpenv_enter(&host);
	choir_tensor *t = chi_strategy_abort_if_null(s, f, reduce_value(f, s, op, v, axes));
	chi_fpenv_leave(&host);
	return t;
}

choir_tensor *choir_cross_reduce(
		choir_cross *x, choir_reduce_op op, choir_value *v, choir_axes axes)
{
	if (v == NULL || chi_cross_check(x, "reduce") != CHOIR_OK ||
			chi_check_reduce_op(x->frame, "reduce", op) != CHOIR_OK)
		return NULL;
	choir_strategy *s = chi_cross_of(x)->strategy;
	return chi_strategy_abort_if_null(s, x->frame, reduce_value(x->frame, s, op, v, axes));
}
