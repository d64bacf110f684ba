// Metrics: a total and a count in f64, each with a part for every replica, so that an update meets
// nobody. They are state of an evaluation, not weights, so they are not saved with those.
#include "choir/metric.h"

#include "base/alloc.h"
#include "base/text.h"
#include "choir/op.h"
#include "op/op.h"
#include "strategy/merge/merge.h"

#include <math.h>

struct choir_metric {
	choir_strategy *strategy;
	choir_metric_kind kind;
	char *name;
	choir_variable *total, *count; // ACCURACY: total of those that are wrong
};

static void free_metric(void *self)
{
	choir_metric *m = self;
	chi_free(m->name);
	chi_free(m);
}

static choir_variable *make_part(const choir_metric *m, const char *what)
{
	const choir_variable_options o = { .size = sizeof o, .dtype = CHOIR_F64,
		.synchronization = CHOIR_SYNCHRONIZATION_ON_READ, .aggregation = CHOIR_AGGREGATION_SUM };
	chi_text name = { 0 };
	chi_text_add(&name, "%s/%s", m->name, what);
	choir_variable *v = name.failed ? NULL
			: chi_strategy_make_variable(m->strategy,
			&(chi_creation){ .name = name.data, .shape = &CHOIR_SCALAR, .options = &o });
	chi_text_free(&name);
	if (v == NULL)
		chi_error_prefix("metric \"%s\"", m->name);
	else
		v->slot = true;
	return v;
}

// Takes back what was made.
static choir_metric *give_up(choir_metric *m, choir_variable *total, choir_variable *count)
{
	if (count != NULL)
		chi_strategy_unmake_variable(count);
	if (total != NULL)
		chi_strategy_unmake_variable(total);
	if (m != NULL)
		free_metric(m);
	return NULL;
}

choir_metric *choir_metric_new(choir_metric_kind kind, const char *name)
{
	choir_strategy *s = choir_strategy_current();
	if (s == NULL || chi_strategy_check(s) != CHOIR_OK ||
			chi_context_need_cross(s, "making a metric") != CHOIR_OK)
		return NULL;
	if (name == NULL || name[0] == '\0' || (unsigned) kind > CHOIR_METRIC_ACCURACY) {
		choir_fail(CHOIR_INVALID,
				"metric: kind %d, name \"%s\": CHOIR_METRIC_MEAN or "
				"CHOIR_METRIC_ACCURACY and a name are needed",
				(int) kind, name == NULL ? "" : name);
		return NULL;
	}
	choir_metric *m = chi_alloc(sizeof *m);
	if (m == NULL)
		return NULL;
	m->strategy = s->home;
	m->kind = kind;
	if ((m->name = chi_strdup(name)) == NULL || (m->total = make_part(m, "total")) == NULL ||
			(m->count = make_part(m, "count")) == NULL)
		return give_up(m, m->total, m->count);
	choir_variable *total = m->total, *count = m->count;
	return chi_strategy_own(s, free_metric, m) == CHOIR_OK ? m : give_up(NULL, total, count);
}

// Adds a sum to what the context of its frame may write: in a replica its own part, outside the
// first.
static choir_status add(choir_metric *m, choir_variable *v, choir_tensor *sum)
{
	choir_frame *f = sum->frame;
	const choir_replica *r = choir_frame_replica(f);
	if (r != NULL && !chi_replica_stands(chi_replica_of(r)))
		return choir_variable_assign_add(v, sum);
	if (chi_context_need_cross(m->strategy, "updating a metric") != CHOIR_OK)
		return chi_frame_keep(f);
	const int part = choir_strategy_current()->first_replica; // this worker's first
	choir_tensor *now = chi_variable_view(v, part, f);
	choir_tensor *then = now == NULL ? NULL : choir_add(now, sum);
	return then == NULL ? chi_frame_report(f) : chi_variable_write(v, part, CHI_ASSIGN, then);
}

static choir_status add_both(choir_metric *m, choir_tensor *total, choir_tensor *count)
{
	if (total == NULL || count == NULL)
		return chi_frame_report(choir_tensor_frame(total == NULL ? count : total));
	CHOIR_TRY(add(m, m->total, total));
	return add(m, m->count, count);
}

static choir_status update_mean(choir_metric *m, choir_tensor *values, choir_tensor *weights)
{
	choir_frame *f = values->frame;
	const double elements = (double) choir_shape_elements(&values->shape);
	choir_tensor *x = choir_cast(values, CHOIR_F64);
	if (weights == NULL)
		return add_both(m, choir_sum(x, CHOIR_ALL_AXES), choir_number(f, elements));
	choir_tensor *w = choir_cast(weights, CHOIR_F64), *product = choir_multiply(x, w);
	if (product == NULL)
		return chi_frame_report(f);
	char have[CHI_SHAPE_TEXT], need[CHI_SHAPE_TEXT];
	if (!chi_shape_equal(&product->shape, &values->shape))
		return chi_frame_fail(f, CHOIR_INVALID, "metric \"%s\": weights %s for values %s", m->name,
				chi_shape_print(&weights->shape, have), chi_shape_print(&values->shape, need));
	// Each weight stands for as many values as it was repeated for.
	const double own = (double) choir_shape_elements(&w->shape);
	return add_both(m, choir_sum(product, CHOIR_ALL_AXES),
			choir_scale(choir_sum(w, CHOIR_ALL_AXES), own == 0 ? 0 : elements / own));
}

static choir_status update_accuracy(choir_metric *m, choir_tensor *scores, choir_tensor *labels)
{
	choir_frame *f = scores->frame;
	char have[CHI_SHAPE_TEXT], also[CHI_SHAPE_TEXT];
	if (labels == NULL)
		return chi_frame_report(f);
	const choir_shape *s = &scores->shape, *l = &labels->shape;
	if (s->rank != 2 || l->rank != 1 || s->dim[0] != l->dim[0] ||
			chi_dtype_is_float(labels->dtype))
		return chi_frame_fail(f, CHOIR_INVALID,
				"metric \"%s\": accuracy needs scores [n, classes] "
				"and integer labels [n], got %s and %s %s",
				m->name, chi_shape_print(s, have), choir_dtype_name(labels->dtype),
				chi_shape_print(l, also));
	choir_tensor *best = choir_argmax(scores, 1);
	choir_tensor *off = choir_subtract(best, choir_cast(labels, CHOIR_I64));
	choir_tensor *wrong = choir_cast(choir_cast(off, CHOIR_BOOL), CHOIR_F64);
	return add_both(m, choir_sum(wrong, CHOIR_ALL_AXES), choir_number(f, (double) s->dim[0]));
}

choir_status choir_metric_update(choir_metric *m, choir_tensor *values, choir_tensor *more)
{
	choir_frame *f = choir_tensor_frame(values != NULL ? values : more);
	if (m == NULL) {
		chi_frame_null(f, "metric");
		return choir_error_status();
	}
	if (values == NULL)
		return chi_frame_report(f);
	// What is measured needs no gradient.
	choir_tape *tape = f->tape;
	f->tape = NULL;
	choir_status status = m->kind == CHOIR_METRIC_MEAN ? update_mean(m, values, more)
	                                                   : update_accuracy(m, values, more);
	f->tape = tape;
	if (status == CHOIR_OK && f->failed)
		status = chi_frame_report(f);
	return status;
}

// The sum of all parts, in the order of replicas.
static choir_status sum_parts(const choir_metric *m, choir_variable *v, double *sum)
{
	*sum = 0;
	for (int i = 0; i < v->copies; i++) {
		double part;
		if (chi_variable_to_host(v, i, &part) != CHOIR_OK)
			return chi_error_prefix("metric \"%s\"", m->name);
		*sum += part;
	}
	return CHOIR_OK;
}

static choir_status check(const choir_metric *m, const char *what)
{
	if (m == NULL)
		return choir_fail(CHOIR_INVALID, "%s: the metric is NULL", what);
	CHOIR_TRY(chi_strategy_check(m->strategy));
	return chi_context_need_cross(m->strategy, what);
}

double choir_metric_result(choir_metric *m)
{
	double total, count;
	if (check(m, "metric_result") != CHOIR_OK || sum_parts(m, m->total, &total) != CHOIR_OK ||
			sum_parts(m, m->count, &count) != CHOIR_OK || count == 0)
		return (double) NAN;
	return (m->kind == CHOIR_METRIC_ACCURACY ? count - total : total) / count;
}

choir_status choir_metric_reset(choir_metric *m)
{
	const double zero = 0;
	CHOIR_TRY(check(m, "metric_reset"));
	CHOIR_TRY(chi_variable_from_host(m->total, &zero));
	return chi_variable_from_host(m->count, &zero);
}
