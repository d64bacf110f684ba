// Metrics: making, updates, results. Each replica has a component, so updates need no
// synchronization.
#include "train/metric/metric.h"

#include "base/alloc.h"
#include "base/text.h"
#include "choir/op.h"
#include "op/op.h"
#include "strategy/replica/replica.h"
#include "strategy/variable/create.h"

#include <math.h>
#include <string.h>

void chi_metric_free(void *self)
{
	choir_metric *m = self;
	chi_free(m->name);
	chi_free(m);
}

static choir_variable *make_part(const choir_metric *m, const char *what, choir_shape shape)
{
	const choir_variable_options o = { .size = sizeof o,
		.dtype = CHOIR_F64,
		.synchronization = CHOIR_SYNCHRONIZATION_ON_READ,
		.aggregation = CHOIR_AGGREGATION_SUM };
	chi_text name = { 0 };
	chi_text_add(&name, "%s/%s", m->name, what);
	choir_variable *v = name.failed
			? NULL
			: chi_strategy_make_variable(m->strategy,
					  &(chi_creation){ .name = name.data, .shape = &shape, .options = &o });
	chi_text_free(&name);
	if (v == NULL)
		chi_error_prefix("metric \"%s\"", m->name);
	else
		v->slot = true;
	return v;
}

static choir_metric *give_up(choir_metric *m, choir_variable *total, choir_variable *count)
{
	if (count != NULL)
		chi_strategy_delete_variable(count);
	if (total != NULL)
		chi_strategy_delete_variable(total);
	if (m != NULL)
		chi_metric_free(m);
	return NULL;
}

choir_metric *chi_metric_make(const char *name, const choir_metric *like)
{
	choir_strategy *s = choir_strategy_current();
	if (s == NULL || chi_strategy_check(s) != CHOIR_OK ||
			chi_context_need_cross(s, "making a metric") != CHOIR_OK)
		return NULL;
	if (name == NULL || name[0] == '\0') {
		choir_fail(CHOIR_INVALID, "metric: has no name; one is needed");
		return NULL;
	}
	choir_metric *m = chi_alloc(sizeof *m);
	if (m == NULL)
		return NULL;
	*m = *like;
	m->strategy = s->owner;
	const chi_metric_sums *sums = chi_metric_sums_of(m->kind);
	const bool counts = m->classes == 0 && sums == NULL;
	const choir_shape shape = sums != NULL ? CHOIR_SHAPE(chi_metric_elements(m, sums))
			: counts					   ? CHOIR_SCALAR
										   : CHOIR_SHAPE(m->classes, m->classes);
	if ((m->name = chi_strdup(name)) == NULL ||
			(m->total = make_part(m,
					 counts					? "total"
							 : sums != NULL ? "sums"
											: "matrix",
					 shape)) == NULL ||
			(counts && (m->count = make_part(m, "count", CHOIR_SCALAR)) == NULL))
		return give_up(m, m->total, m->count);
	choir_variable *total = m->total, *count = m->count;
	return chi_strategy_own_stateful(s, &chi_metric_state, m) == CHOIR_OK
			? m
			: give_up(NULL, total, count);
}

choir_metric *choir_metric_new(const char *name, choir_metric_kind kind)
{
	if ((unsigned) kind <= CHOIR_METRIC_PERPLEXITY)
		return chi_metric_make(name, &(choir_metric){ .kind = (chi_metric_kind) kind });
	choir_fail(CHOIR_INVALID,
			"metric: kind %d of \"%s\" is unknown; known: CHOIR_METRIC_MEAN, _ACCURACY, "
			"_MEAN_SQUARED_ERROR, _ROOT_MEAN_SQUARED_ERROR, _MEAN_ABSOLUTE_ERROR, _R2 and "
			"_PERPLEXITY",
			(int) kind, name == NULL ? "" : name);
	return NULL;
}

static choir_status add(choir_metric *m, choir_variable *v, choir_tensor *sum)
{
	choir_frame *f = sum->frame;
	const choir_replica *r = choir_frame_replica(f);
	if (r != NULL && !chi_replica_is_default(chi_replica_of(r)))
		return choir_variable_assign_add(v, sum);
	if (chi_context_need_cross(m->strategy, "updating a metric") != CHOIR_OK)
		return chi_frame_record_error(f);
	if (m->strategy->replica_offset > 0)
		return CHOIR_OK; // once for all workers
	const int part = choir_strategy_current()->first_replica;
	choir_tensor *now = chi_variable_view(v, part, f);
	choir_tensor *then = now == NULL ? NULL : choir_add(now, sum);
	return then == NULL ? chi_frame_status(f) : chi_variable_write(v, part, CHI_ASSIGN, then);
}

static choir_status update(
		choir_metric *m, choir_tensor *values, choir_tensor *more, choir_tensor *weights)
{
	choir_tensor *total = NULL, *count = NULL;
	if (chi_dtype_is_half(values->dtype) && (values = choir_cast(values, CHOIR_F32)) == NULL)
		return choir_error_status();
	CHOIR_TRY(chi_metric_count(m, values, more, weights, &total, &count));
	if (total == NULL || (count == NULL && m->count != NULL))
		return chi_frame_status(values->frame);
	CHOIR_TRY(add(m, m->total, total));
	return m->count == NULL ? CHOIR_OK : add(m, m->count, count);
}

static choir_status update_untaped(
		choir_metric *m, choir_tensor *values, choir_tensor *more, choir_tensor *weights)
{
	choir_frame *f = choir_tensor_frame(values != NULL ? values : more);
	if (m == NULL) {
		chi_frame_null_argument(f, "metric");
		return choir_error_status();
	}
	if (values == NULL)
		return chi_frame_status(f);
	choir_tape *tape = f->tape;
	f->tape = NULL;
	choir_status status = update(m, values, more, weights);
	f->tape = tape;
	if (status == CHOIR_OK && f->failed)
		status = chi_frame_status(f);
	return status;
}

choir_status choir_metric_update(
		choir_metric *m, choir_tensor *labels_or_values, choir_tensor *scores_or_weights)
{
	return m != NULL && m->kind == CHI_METRIC_MEAN
			? update_untaped(m, labels_or_values, scores_or_weights, NULL)
			: update_untaped(m, scores_or_weights, labels_or_values, NULL);
}

choir_status choir_metric_update_weighted(
		choir_metric *m, choir_tensor *labels, choir_tensor *scores, choir_tensor *weights)
{
	if (weights == NULL)
		return chi_frame_status(choir_tensor_frame(scores != NULL ? scores : labels));
	return update_untaped(m, scores, labels, weights);
}

static choir_status own_parts(const choir_strategy *group, choir_variable *v, char *part)
{
	for (int i = 0; i < group->replicas; i++)
		CHOIR_TRY(chi_variable_to_host(
				v, chi_strategy_copy(group, v, i), part + (size_t) i * chi_variable_bytes(v)));
	return CHOIR_OK;
}

static choir_status sum_parts(
		const choir_metric *m, const choir_strategy *group, choir_variable *v, double sum[])
{
	const size_t n = (size_t) choir_shape_elements(&v->shape);
	const int parts = group != NULL				 ? group->replicas
			: v->strategy->process_group == NULL ? v->copies
												 : v->strategy->in_sync;
	memset(sum, 0, n * sizeof *sum);
	double *part = chi_alloc_array((size_t) parts, chi_variable_bytes(v));
	const choir_status status = part == NULL
			? chi_strategy_abort(v->strategy, choir_error_status())
			: group != NULL ? own_parts(group, v, (char *) part)
							: chi_strategy_all_parts(v, part);
	for (int i = 0; status == CHOIR_OK && i < parts; i++)
		for (size_t k = 0; k < n; k++)
			sum[k] += part[(size_t) i * n + k];
	chi_free(part);
	return status == CHOIR_OK ? status : chi_error_prefix("metric \"%s\"", m->name);
}

choir_status chi_metric_check(const choir_metric *m, const char *what)
{
	if (m == NULL)
		return choir_fail(CHOIR_INVALID, "%s: the metric is NULL", what);
	CHOIR_TRY(chi_strategy_check(m->strategy));
	return chi_context_need_cross(m->strategy, what);
}

choir_status chi_metric_totals(
		const choir_metric *m, const choir_strategy *group, double total[], double *count)
{
	CHOIR_TRY(sum_parts(m, group, m->total, total));
	return count == NULL ? CHOIR_OK : sum_parts(m, group, m->count, count);
}

static double result_of_sums(const choir_metric *m, const chi_metric_sums *kind)
{
	double *sum = chi_alloc_array((size_t) chi_metric_elements(m, kind), sizeof *sum);
	const bool known = sum != NULL && chi_metric_totals(m, NULL, sum, NULL) == CHOIR_OK;
	const double result = known ? kind->result(m, sum) : (double) NAN;
	chi_free(sum);
	return result;
}

double choir_metric_result(choir_metric *m)
{
	double total, count;
	if (chi_metric_check(m, "metric_result") != CHOIR_OK)
		return (double) NAN;
	const chi_metric_sums *sums = chi_metric_sums_of(m->kind);
	if (sums != NULL)
		return result_of_sums(m, sums);
	if (m->count == NULL) {
		choir_fail(CHOIR_INVALID,
				"metric \"%s\": a confusion matrix is not a "
				"number; use choir_metric_confusion_matrix",
				m->name);
		return (double) NAN;
	}
	if (chi_metric_totals(m, NULL, &total, &count) != CHOIR_OK)
		return (double) NAN;
	if (m->kind == CHI_METRIC_PRECISION || m->kind == CHI_METRIC_RECALL)
		return count == 0 ? 0 : total / count;
	if (count == 0)
		return (double) NAN;
	return (m->kind == CHI_METRIC_ACCURACY ? count - total : total) / count;
}

choir_status choir_metric_reset(choir_metric *m)
{
	CHOIR_TRY(chi_metric_check(m, "metric_reset"));
	const size_t n = (size_t) choir_shape_elements(&m->total->shape);
	double *zero = chi_alloc_array(n, sizeof *zero);
	if (zero == NULL)
		return choir_error_status();
	memset(zero, 0, n * sizeof *zero);
	choir_status status = chi_variable_from_host(m->total, zero);
	if (status == CHOIR_OK && m->count != NULL)
		status = chi_variable_from_host(m->count, zero);
	chi_free(zero);
	return status;
}
