// A kind is a row: the numbers of sums, what a batch adds to each, and the result.
#include "train/metric/metric.h"

#include "base/alloc.h"
#include "choir/nn.h"
#include "tensor/tensor.h"

#include <math.h>

static choir_tensor *sum_all(const choir_metric *m, choir_tensor *x, choir_tensor *weights)
{
	return choir_sum(chi_metric_weigh(m, x, weights), CHOIR_ALL_AXES);
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
	char have[CHI_SHAPE_TEXT], also[CHI_SHAPE_TEXT];
	if (!chi_shape_equal(&predictions->shape, &targets->shape))
		return chi_frame_fail(predictions->frame, CHOIR_INVALID,
				"metric \"%s\": predictions are %s and targets %s; equal shapes are needed",
				m->name, chi_shape_print(&predictions->shape, have),
				chi_shape_print(&targets->shape, also));
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
	choir_tensor *target = choir_cast(targets, CHOIR_F64);
	sum[2] = sum_all(m, target, weights);
	sum[3] = sum_all(m, choir_square(target), weights);
	return CHOIR_OK;
}

static double determination(const choir_metric *m, const double sum[])
{
	(void) m;
	const double spread = sum[3] - sum[2] * sum[2] / sum[1];
	return spread > 0 ? 1 - sum[0] / spread : (double) NAN;
}

static choir_status add_f1(const choir_metric *m, choir_tensor *scores, choir_tensor *labels,
		choir_tensor *weights, choir_tensor *sum[])
{
	choir_tensor *said, *are;
	CHOIR_TRY(chi_metric_compare(m, scores, labels, &said, &are));
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
	CHOIR_TRY(chi_metric_compare(m, scores, labels, &said, &are));
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
	CHOIR_TRY(chi_metric_check_classes(m, scores, labels));
	const int64_t n = scores->shape.dim[0], classes = scores->shape.dim[1];
	choir_tensor *all = choir_cast(scores, CHOIR_F64), *label = choir_cast(labels, CHOIR_I64);
	CHOIR_TRY(chi_metric_check_labels(m, label, classes));
	choir_tensor *here = choir_one_hot(label, classes, CHOIR_BOOL);
	choir_tensor *at_label =
			choir_max(choir_where(here, all, choir_number(all->frame, -INFINITY)), CHOIR_AXIS(1));
	choir_tensor *above = at_label == NULL
			? NULL
			: choir_greater(all, choir_reshape(at_label, CHOIR_SHAPE(n, 1)));
	choir_tensor *higher = choir_sum(choir_cast(above, CHOIR_F64), CHOIR_AXIS(1));
	choir_tensor *hit =
			choir_cast(choir_less(higher, choir_number(all->frame, (double) m->k)), CHOIR_F64);
	sum[0] = sum_all(m, hit, weights);
	sum[1] = sum_all(m, ones_like(hit), weights);
	return CHOIR_OK;
}

static choir_status add_per_class(const choir_metric *m, choir_tensor *scores,
		choir_tensor *labels, choir_tensor *weights, choir_tensor *sum[])
{
	CHOIR_TRY(chi_metric_check_classes(m, scores, labels));
	choir_tensor *label = choir_cast(labels, CHOIR_I64);
	CHOIR_TRY(chi_metric_check_labels(m, label, m->k));
	choir_tensor *hit = choir_cast(choir_equal(choir_argmax(scores, 1), label), CHOIR_F64);
	choir_tensor *is = choir_one_hot(label, m->k, CHOIR_F64);
	const choir_shape column = CHOIR_SHAPE(labels->shape.dim[0], 1);
	choir_tensor *const counted[] = { chi_metric_weigh(m, hit, weights),
		chi_metric_weigh(m, ones_like(hit), weights) };
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
	CHOIR_TRY(chi_metric_compare(m, scores, labels, &said, &are));
	choir_tensor *score = choir_cast(scores, CHOIR_F64);
	const choir_shape column = CHOIR_SHAPE(choir_shape_elements(&scores->shape), 1);
	choir_tensor *above = score == NULL
			? NULL
			: choir_greater(choir_reshape(score, column), thresholds(m, scores->frame));
	choir_tensor *const kinds_of[] = { are, one_minus(are) };
	above = choir_cast(above, CHOIR_F64);
	for (int i = 0; i < 2; i++) {
		choir_tensor *w = chi_metric_weigh(m, kinds_of[i], weights);
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
