// Kinds of metrics: the number of sums, what a batch adds to them, the result. In f64, whole
// numbers are exact up to 2^53, so counts do not depend on which replica gets an example.
#include "train/metric/metric.h"

#include "base/alloc.h"
#include "choir/nn.h"
#include "op/op.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

// weights must broadcast to x's shape; NULL: none. NULL result: recorded.
static choir_tensor *weigh(const choir_metric *m, choir_tensor *x, choir_tensor *weights)
{
	char have[CHI_SHAPE_TEXT], need[CHI_SHAPE_TEXT];
	if (weights == NULL || x == NULL)
		return x;
	weights = chi_match_last_axis(weights, &x->shape);
	choir_tensor *product = choir_multiply(x, choir_cast(weights, CHOIR_F64));
	if (product == NULL || chi_shape_equal(&product->shape, &x->shape))
		return product;
	return chi_frame_fail_null(x->frame, CHOIR_INVALID,
			"metric \"%s\": weights %s do not broadcast to labels %s", m->name,
			chi_shape_print(&weights->shape, have), chi_shape_print(&x->shape, need));
}

// *labels loses a last axis of 1, unless that is the axis of a single class.
static choir_status check_classes(
		const choir_metric *m, const choir_tensor *scores, choir_tensor **labels)
{
	char have[CHI_SHAPE_TEXT], also[CHI_SHAPE_TEXT], classes[32] = "classes";
	const choir_shape *s = &scores->shape, *l = &(*labels)->shape;
	const int64_t known = m->kind == CHI_METRIC_PER_CLASS ? m->k : m->classes;
	choir_shape rows = *s;
	rows.rank -= rows.rank > 0;
	if (s->rank > 0 && s->dim[rows.rank] != 1 &&
			(*labels = chi_match_last_axis(*labels, &rows)) == NULL)
		return choir_error_status();
	if (s->rank >= 2 && chi_shape_equal(&rows, &(*labels)->shape) &&
			!chi_dtype_is_float((*labels)->dtype) && (known == 0 || known == s->dim[rows.rank]))
		return CHOIR_OK;
	if (known != 0)
		snprintf(classes, sizeof classes, "%" PRId64, known);
	return chi_frame_fail(scores->frame, CHOIR_INVALID,
			"metric \"%s\": %s needs scores [n, .., %s] and integer labels [n, ..]; they are %s "
			"and %s %s",
			m->name, m->kind == CHI_METRIC_CONFUSION ? "a confusion matrix" : "accuracy", classes,
			chi_shape_print(s, have), choir_dtype_name((*labels)->dtype),
			chi_shape_print(l, also));
}

// x in one axis.
static choir_tensor *flat(choir_tensor *x)
{
	return x == NULL ? NULL : choir_reshape(x, CHOIR_SHAPE(choir_shape_elements(&x->shape)));
}

static choir_status check_labels(const choir_metric *m, choir_tensor *labels, int64_t classes)
{
	if ((labels = flat(labels)) == NULL)
		return choir_error_status();
	choir_tensor *ones = choir_fill(labels->frame, CHOIR_F64, labels->shape, 1);
	choir_tensor *rows = ones == NULL ? NULL : chi_slices_new(ones, labels, classes);
	char what[96];
	snprintf(what, sizeof what, "metric \"%.60s\": labels", m->name);
	return rows == NULL ? chi_frame_status(labels->frame) : chi_slices_check_indices(rows, what);
}

// Labels or targets in the shape of scores or predictions. NULL: recorded.
static choir_tensor *match(const choir_metric *m, choir_tensor *labels, const choir_tensor *scores)
{
	char have[CHI_SHAPE_TEXT], also[CHI_SHAPE_TEXT];
	choir_tensor *matched = chi_match_last_axis(labels, &scores->shape);
	if (matched == NULL || chi_shape_equal(&scores->shape, &matched->shape))
		return matched;
	return chi_frame_fail_null(scores->frame, CHOIR_INVALID,
			"metric \"%s\": scores are %s and labels %s; equal shapes are needed", m->name,
			chi_shape_print(&scores->shape, have), chi_shape_print(&labels->shape, also));
}

static choir_tensor *said_yes(const choir_metric *m, choir_tensor *scores)
{
	if (!chi_dtype_is_float(scores->dtype))
		scores = choir_cast(scores, CHOIR_F64);
	choir_tensor *threshold = scores == NULL
			? NULL
			: choir_fill(scores->frame, scores->dtype, CHOIR_SCALAR, m->threshold);
	choir_tensor *above = choir_relu(choir_subtract(scores, threshold));
	return choir_cast(choir_cast(above, CHOIR_BOOL), CHOIR_F64);
}

// 1 where a score is above the threshold and where a label is not 0, in f64; compared in the
// scores' dtype, as in Keras.
static choir_status compare(const choir_metric *m, choir_tensor *scores, choir_tensor *labels,
		choir_tensor **said, choir_tensor **are)
{
	if ((labels = match(m, labels, scores)) == NULL)
		return choir_error_status();
	*said = said_yes(m, scores);
	*are = choir_cast(choir_cast(labels, CHOIR_BOOL), CHOIR_F64);
	return CHOIR_OK;
}

static choir_tensor *sum_all(const choir_metric *m, choir_tensor *x, choir_tensor *weights)
{
	return choir_sum(weigh(m, x, weights), CHOIR_ALL_AXES);
}

static choir_tensor *ones_like(const choir_tensor *x)
{
	return x == NULL ? NULL : choir_fill(x->frame, CHOIR_F64, x->shape, 1);
}

static choir_tensor *one_minus(choir_tensor *x)
{
	return choir_subtract(ones_like(x), x);
}

static double ratio(const choir_metric *m, const double sum[])
{
	(void) m;
	return sum[1] == 0 ? (double) NAN : sum[0] / sum[1];
}

static double first(const choir_metric *m, const double sum[])
{
	(void) m;
	return sum[0];
}

static choir_status add_errors(const choir_metric *m, choir_tensor *predictions,
		choir_tensor *targets, choir_tensor *weights, choir_tensor *sum[])
{
	if ((targets = match(m, targets, predictions)) == NULL)
		return choir_error_status();
	choir_tensor *error =
			choir_subtract(choir_cast(predictions, CHOIR_F64), choir_cast(targets, CHOIR_F64));
	sum[0] = sum_all(m,
			m->kind == CHI_METRIC_MAE ? choir_maximum(error, choir_scale(error, -1))
									  : choir_square(error),
			weights);
	sum[1] = sum_all(m, ones_like(error), weights);
	return CHOIR_OK;
}

static double root(const choir_metric *m, const double sum[])
{
	return sqrt(ratio(m, sum));
}

static choir_status add_variance(const choir_metric *m, choir_tensor *predictions,
		choir_tensor *targets, choir_tensor *weights, choir_tensor *sum[])
{
	CHOIR_TRY(add_errors(m, predictions, targets, weights, sum));
	choir_tensor *target = choir_cast(match(m, targets, predictions), CHOIR_F64);
	sum[2] = sum_all(m, target, weights);
	sum[3] = sum_all(m, choir_square(target), weights);
	return CHOIR_OK;
}

// Sums of n equal targets are rounded up to n times: their spread need not be 0.
static double determination(const choir_metric *m, const double sum[])
{
	(void) m;
	const double spread = sum[3] - sum[2] * sum[2] / sum[1];
	const double rounding = DBL_EPSILON * fmax(sum[1], 1) * sum[3];
	return spread > rounding ? 1 - sum[0] / spread : (double) NAN;
}

static choir_status add_f1(const choir_metric *m, choir_tensor *scores, choir_tensor *labels,
		choir_tensor *weights, choir_tensor *sum[])
{
	choir_tensor *said, *are;
	CHOIR_TRY(compare(m, scores, labels, &said, &are));
	sum[0] = sum_all(m, choir_multiply(said, are), weights);
	sum[1] = sum_all(m, choir_add(said, are), weights);
	return CHOIR_OK;
}

static double twice(const choir_metric *m, const double sum[])
{
	(void) m;
	return sum[1] == 0 ? 0 : 2 * sum[0] / sum[1];
}

static choir_status add_found(const choir_metric *m, choir_tensor *scores, choir_tensor *labels,
		choir_tensor *weights, choir_tensor *sum[])
{
	choir_tensor *said, *are;
	CHOIR_TRY(compare(m, scores, labels, &said, &are));
	const bool negatives =
			m->kind == CHI_METRIC_TRUE_NEGATIVES || m->kind == CHI_METRIC_FALSE_NEGATIVES;
	const bool actual =
			m->kind == CHI_METRIC_TRUE_POSITIVES || m->kind == CHI_METRIC_FALSE_NEGATIVES;
	sum[0] = sum_all(m,
			choir_multiply(negatives ? one_minus(said) : said, actual ? are : one_minus(are)),
			weights);
	return CHOIR_OK;
}

static choir_status add_top_k(const choir_metric *m, choir_tensor *scores, choir_tensor *labels,
		choir_tensor *weights, choir_tensor *sum[])
{
	CHOIR_TRY(check_classes(m, scores, &labels));
	const int64_t classes = scores->shape.dim[labels->shape.rank];
	choir_shape column = labels->shape;
	column.dim[column.rank++] = 1;
	choir_tensor *all = choir_cast(scores, CHOIR_F64), *label = choir_cast(labels, CHOIR_I64);
	CHOIR_TRY(check_labels(m, label, classes));
	choir_tensor *here = choir_one_hot(label, classes, CHOIR_BOOL);
	choir_tensor *at_label = choir_max(
			choir_where(here, all, choir_number(scores->frame, -INFINITY)), CHOIR_AXIS(-1));
	choir_tensor *below = // NAN is not
			at_label == NULL ? NULL : choir_less_equal(all, choir_reshape(at_label, column));
	choir_tensor *others = choir_sum(choir_cast(below, CHOIR_F64), CHOIR_AXIS(-1));
	choir_tensor *hit = choir_cast(
			choir_greater(others, choir_number(scores->frame, (double) classes - (double) m->k)),
			CHOIR_F64);
	sum[0] = sum_all(m, hit, weights);
	sum[1] = sum_all(m, ones_like(hit), weights);
	return CHOIR_OK;
}

static choir_status add_per_class(const choir_metric *m, choir_tensor *scores,
		choir_tensor *labels, choir_tensor *weights, choir_tensor *sum[])
{
	CHOIR_TRY(check_classes(m, scores, &labels));
	choir_tensor *label = choir_cast(labels, CHOIR_I64);
	CHOIR_TRY(check_labels(m, label, m->k));
	choir_tensor *hit = choir_cast(choir_equal(choir_argmax(scores, -1), label), CHOIR_F64);
	choir_tensor *is = choir_one_hot(flat(label), m->k, CHOIR_F64);
	const choir_shape column = CHOIR_SHAPE(choir_shape_elements(&labels->shape), 1);
	choir_tensor *const counted[] = { weigh(m, hit, weights), weigh(m, ones_like(hit), weights) };
	for (int i = 0; i < 2; i++)
		sum[i] = counted[i] == NULL
				? NULL
				: choir_sum(choir_multiply(is, choir_reshape(counted[i], column)), CHOIR_AXIS(0));
	return CHOIR_OK;
}

static double mean_of_classes(const choir_metric *m, const double sum[])
{
	double all = 0, classes = 0;
	for (int64_t i = 0; i < m->k; i++)
		if (sum[m->k + i] > 0) {
			all += sum[i] / sum[m->k + i];
			classes++;
		}
	return classes > 0 ? all / classes : (double) NAN;
}

// Keras' thresholds: the first is below 0 and the last above 1.
static choir_tensor *thresholds(const choir_metric *m, choir_frame *f)
{
	const double beyond = 1e-7;
	double *at = chi_alloc_array((size_t) m->k, sizeof *at);
	if (at == NULL) {
		chi_frame_record_error(f);
		return NULL;
	}
	for (int64_t i = 0; i < m->k; i++)
		at[i] = (double) i / (double) (m->k - 1);
	at[0] = -beyond;
	at[m->k - 1] = 1 + beyond;
	choir_tensor *t = choir_constant(f, CHOIR_F64, CHOIR_SHAPE(m->k), at);
	chi_free(at);
	return t;
}

static choir_status add_auc(const choir_metric *m, choir_tensor *scores, choir_tensor *labels,
		choir_tensor *weights, choir_tensor *sum[])
{
	choir_tensor *said, *are;
	CHOIR_TRY(compare(m, scores, labels, &said, &are));
	choir_tensor *score = choir_cast(scores, CHOIR_F64);
	const choir_shape column = CHOIR_SHAPE(choir_shape_elements(&scores->shape), 1);
	choir_tensor *above = score == NULL
			? NULL
			: choir_greater(choir_reshape(score, column), thresholds(m, scores->frame));
	choir_tensor *const kinds_of[] = { are, one_minus(are) };
	above = choir_cast(above, CHOIR_F64);
	for (int i = 0; i < 2; i++) {
		choir_tensor *w = weigh(m, kinds_of[i], weights);
		sum[i] = choir_sum(w, CHOIR_ALL_AXES);
		sum[2 + i] = w == NULL
				? NULL
				: choir_sum(choir_multiply(above, choir_reshape(w, column)), CHOIR_AXIS(0));
	}
	return CHOIR_OK;
}

static double area(const choir_metric *m, const double sum[])
{
	const double *found = sum + 2, *wrong = found + m->k;
	double twice_area = 0;
	for (int64_t i = 0; i + 1 < m->k; i++)
		twice_area += (wrong[i] - wrong[i + 1]) * (found[i] + found[i + 1]);
	return sum[0] > 0 && sum[1] > 0 ? twice_area / (2 * sum[0] * sum[1]) : (double) NAN;
}

static choir_status add_losses(const choir_metric *m, choir_tensor *logits, choir_tensor *labels,
		choir_tensor *weights, choir_tensor *sum[])
{
	choir_tensor *losses =
			choir_sparse_softmax_cross_entropy(labels, choir_cast(logits, CHOIR_F64));
	sum[0] = sum_all(m, losses, weights);
	sum[1] = sum_all(m, ones_like(losses), weights);
	return CHOIR_OK;
}

static double exponential(const choir_metric *m, const double sum[])
{
	return exp(ratio(m, sum));
}

static const chi_metric_sums kinds[] = {
	[CHI_METRIC_MSE] = { 2, 0, add_errors, ratio },
	[CHI_METRIC_RMSE] = { 2, 0, add_errors, root },
	[CHI_METRIC_MAE] = { 2, 0, add_errors, ratio },
	[CHI_METRIC_R2] = { 4, 0, add_variance, determination },
	[CHI_METRIC_F1] = { 2, 0, add_f1, twice },
	[CHI_METRIC_TRUE_POSITIVES] = { 1, 0, add_found, first },
	[CHI_METRIC_FALSE_POSITIVES] = { 1, 0, add_found, first },
	[CHI_METRIC_TRUE_NEGATIVES] = { 1, 0, add_found, first },
	[CHI_METRIC_FALSE_NEGATIVES] = { 1, 0, add_found, first },
	[CHI_METRIC_TOP_K] = { 2, 0, add_top_k, ratio },
	[CHI_METRIC_PER_CLASS] = { 0, 2, add_per_class, mean_of_classes },
	[CHI_METRIC_AUC] = { 2, 2, add_auc, area },
	[CHI_METRIC_PERPLEXITY] = { 2, 0, add_losses, exponential },
};

const chi_metric_sums *chi_metric_sums_of(chi_metric_kind kind)
{
	return (size_t) kind < sizeof kinds / sizeof kinds[0] && kinds[kind].add != NULL ? &kinds[kind]
																					 : NULL;
}

int64_t chi_metric_elements(const choir_metric *m, const chi_metric_sums *kind)
{
	return (int64_t) kind->sums + (int64_t) kind->of_k * m->k;
}

static choir_status count_mean(const choir_metric *m, choir_tensor *values, choir_tensor *weights,
		choir_tensor **total, choir_tensor **count)
{
	choir_frame *f = values->frame;
	const double elements = (double) choir_shape_elements(&values->shape);
	choir_tensor *x = choir_cast(values, CHOIR_F64);
	if (weights == NULL) {
		*total = choir_sum(x, CHOIR_ALL_AXES);
		*count = choir_number(f, elements);
		return CHOIR_OK;
	}
	choir_tensor *w = choir_cast(weights, CHOIR_F64), *product = choir_multiply(x, w);
	if (product == NULL)
		return chi_frame_status(f);
	char have[CHI_SHAPE_TEXT], need[CHI_SHAPE_TEXT];
	if (!chi_shape_equal(&product->shape, &values->shape))
		return chi_frame_fail(f, CHOIR_INVALID,
				"metric \"%s\": weights %s do not broadcast to values %s", m->name,
				chi_shape_print(&weights->shape, have), chi_shape_print(&values->shape, need));
	// A weight counts for each value that it is broadcast to.
	const double own = (double) choir_shape_elements(&w->shape);
	*total = choir_sum(product, CHOIR_ALL_AXES);
	*count = choir_scale(choir_sum(w, CHOIR_ALL_AXES), own == 0 ? 0 : elements / own);
	return CHOIR_OK;
}

static choir_status count_accuracy(const choir_metric *m, choir_tensor *scores,
		choir_tensor *labels, choir_tensor *weights, choir_tensor **total, choir_tensor **count)
{
	CHOIR_TRY(check_classes(m, scores, &labels));
	choir_tensor *off = choir_subtract(choir_argmax(scores, -1), choir_cast(labels, CHOIR_I64));
	choir_tensor *wrong = choir_cast(choir_cast(off, CHOIR_BOOL), CHOIR_F64);
	*total = choir_sum(weigh(m, wrong, weights), CHOIR_ALL_AXES);
	*count = weights == NULL
			? choir_number(scores->frame, (double) choir_shape_elements(&labels->shape))
			: choir_sum(weigh(m, choir_fill(scores->frame, CHOIR_F64, labels->shape, 1), weights),
					  CHOIR_ALL_AXES);
	return CHOIR_OK;
}

// The index is label * classes + answer; dense slices add up equal ones.
static choir_status count_confusion(const choir_metric *m, choir_tensor *scores,
		choir_tensor *labels, choir_tensor **total, choir_tensor **count)
{
	choir_frame *f = scores->frame;
	CHOIR_TRY(check_classes(m, scores, &labels));
	choir_tensor *label = choir_cast(flat(labels), CHOIR_I64), *ones = ones_like(label);
	CHOIR_TRY(check_labels(m, label, m->classes));
	choir_tensor *size = choir_fill(f, CHOIR_I64, CHOIR_SCALAR, (double) m->classes);
	choir_tensor *place = choir_add(choir_multiply(label, size), flat(choir_argmax(scores, -1)));
	choir_tensor *counts =
			choir_to_dense(choir_indexed_slices(ones, place, m->classes * m->classes));
	*total = choir_reshape(counts, CHOIR_SHAPE(m->classes, m->classes));
	*count = NULL;
	return CHOIR_OK;
}

static choir_status count_found(const choir_metric *m, choir_tensor *scores, choir_tensor *labels,
		choir_tensor *weights, choir_tensor **total, choir_tensor **count)
{
	choir_tensor *said, *are;
	CHOIR_TRY(compare(m, scores, labels, &said, &are));
	if (m->kind == CHI_METRIC_PRECISION)
		said = weigh(m, said, weights);
	else
		are = weigh(m, are, weights);
	*total = choir_sum(choir_multiply(said, are), CHOIR_ALL_AXES);
	*count = choir_sum(m->kind == CHI_METRIC_PRECISION ? said : are, CHOIR_ALL_AXES);
	return CHOIR_OK;
}

static choir_status count_sums(const choir_metric *m, const chi_metric_sums *kind,
		choir_tensor *scores, choir_tensor *labels, choir_tensor *weights, choir_tensor **total)
{
	choir_tensor *sum[CHI_METRIC_SUMS] = { NULL };
	CHOIR_TRY(kind->add(m, scores, labels, weights, sum));
	for (size_t i = 0; i < kind->sums + kind->of_k; i++)
		sum[i] = choir_reshape(sum[i], CHOIR_SHAPE(i < kind->sums ? 1 : m->k));
	*total = choir_concat(kind->sums + kind->of_k, sum, 0);
	return CHOIR_OK;
}

choir_status chi_metric_count(const choir_metric *m, choir_tensor *values, choir_tensor *more,
		choir_tensor *weights, choir_tensor **total, choir_tensor **count)
{
	if (weights != NULL && (m->kind == CHI_METRIC_MEAN || m->kind == CHI_METRIC_CONFUSION))
		return chi_frame_fail(values->frame, CHOIR_INVALID, "metric \"%s\": %s", m->name,
				m->kind == CHI_METRIC_MEAN
						? "a mean's weights are choir_metric_update's third argument"
						: "a confusion matrix counts whole examples, without weights");
	if (m->kind == CHI_METRIC_MEAN)
		return count_mean(m, values, more, total, count);
	if (more == NULL)
		return chi_frame_status(values->frame);
	const chi_metric_sums *sums = chi_metric_sums_of(m->kind);
	if (sums != NULL)
		return count_sums(m, sums, values, more, weights, total);
	switch (m->kind) {
	case CHI_METRIC_ACCURACY:
		return count_accuracy(m, values, more, weights, total, count);
	case CHI_METRIC_CONFUSION:
		return count_confusion(m, values, more, total, count);
	default:
		return count_found(m, values, more, weights, total, count);
	}
}

enum { MAX_CLASSES = 1 << 15 };

choir_metric *choir_top_k_accuracy_new(const char *name, int64_t k)
{
	if (k > 0)
		return chi_metric_make(name, &(choir_metric){ .kind = CHI_METRIC_TOP_K, .k = k });
	choir_fail(CHOIR_INVALID, "metric \"%s\": k is %lld; 1 or more is needed",
			name == NULL ? "" : name, (long long) k);
	return NULL;
}

static choir_metric *make_of_classes(const char *name, int64_t classes, const choir_metric *like)
{
	if (classes > 0 && classes <= MAX_CLASSES)
		return chi_metric_make(name, like);
	choir_fail(CHOIR_INVALID, "metric \"%s\": %lld classes; 1 to %d are needed",
			name == NULL ? "" : name, (long long) classes, MAX_CLASSES);
	return NULL;
}

choir_metric *choir_confusion_matrix_new(const char *name, int64_t classes)
{
	return make_of_classes(
			name, classes, &(choir_metric){ .kind = CHI_METRIC_CONFUSION, .classes = classes });
}

choir_metric *choir_mean_per_class_accuracy_new(const char *name, int64_t classes)
{
	return make_of_classes(
			name, classes, &(choir_metric){ .kind = CHI_METRIC_PER_CLASS, .k = classes });
}

choir_metric *choir_auc_new(const char *name, int64_t thresholds)
{
	const choir_metric auc = { .kind = CHI_METRIC_AUC, .k = thresholds == 0 ? 200 : thresholds };
	if (auc.k >= 2 && auc.k <= MAX_CLASSES)
		return chi_metric_make(name, &auc);
	choir_fail(CHOIR_INVALID, "metric \"%s\": %lld thresholds; 2 to %d are needed, or 0 for 200",
			name == NULL ? "" : name, (long long) thresholds, MAX_CLASSES);
	return NULL;
}

choir_tensor *choir_metric_confusion_matrix(choir_metric *m, choir_frame *f)
{
	if (f == NULL || f->failed)
		return NULL;
	if (chi_metric_check(m, "metric_confusion_matrix") != CHOIR_OK) {
		chi_frame_record_error(f);
		return NULL;
	}
	if (m->kind != CHI_METRIC_CONFUSION)
		return chi_frame_fail_null(f, CHOIR_INVALID,
				"metric \"%s\": is a number, not a "
				"confusion matrix; use choir_metric_result",
				m->name);
	double *sum = chi_alloc_array((size_t) (m->classes * m->classes), sizeof *sum);
	choir_tensor *out = NULL;
	if (sum == NULL)
		chi_strategy_abort(m->strategy, chi_frame_record_error(f));
	else if (chi_metric_totals(m, NULL, sum, NULL) != CHOIR_OK)
		chi_frame_record_error(f);
	else
		out = choir_cast(choir_constant(f, CHOIR_F64, m->total->shape, sum), CHOIR_I64);
	chi_free(sum);
	return out;
}
