// Metrics whose state is a few sums: errors, R2, F1, positives and negatives, top-k accuracy. A
// kind is a row: the number of sums, what a batch adds to each, and the result.
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

static double ratio(const double sum[])
{
	return sum[1] == 0 ? (double) NAN : sum[0] / sum[1];
}

static double first(const double sum[])
{
	return sum[0];
}

// ---- Errors. predictions and targets have one shape.

static choir_status errors(const choir_metric *m, choir_tensor *predictions, choir_tensor *targets,
		choir_tensor **error)
{
	char have[CHI_SHAPE_TEXT], also[CHI_SHAPE_TEXT];
	if (!chi_shape_equal(&predictions->shape, &targets->shape))
		return chi_frame_fail(predictions->frame, CHOIR_INVALID,
				"metric \"%s\": predictions are %s and targets %s; equal shapes are needed",
				m->name, chi_shape_print(&predictions->shape, have),
				chi_shape_print(&targets->shape, also));
	*error = choir_subtract(choir_cast(predictions, CHOIR_F64), choir_cast(targets, CHOIR_F64));
	return CHOIR_OK;
}

static choir_status add_squares(const choir_metric *m, choir_tensor *predictions,
		choir_tensor *targets, choir_tensor *weights, choir_tensor *sum[])
{
	choir_tensor *error;
	CHOIR_TRY(errors(m, predictions, targets, &error));
	sum[0] = sum_all(m, choir_square(error), weights);
	sum[1] = sum_all(m, ones_like(error), weights);
	return CHOIR_OK;
}

static choir_status add_absolutes(const choir_metric *m, choir_tensor *predictions,
		choir_tensor *targets, choir_tensor *weights, choir_tensor *sum[])
{
	choir_tensor *error;
	CHOIR_TRY(errors(m, predictions, targets, &error));
	sum[0] = sum_all(m, choir_maximum(error, choir_scale(error, -1)), weights);
	sum[1] = sum_all(m, ones_like(error), weights);
	return CHOIR_OK;
}

static double root(const double sum[])
{
	return sqrt(ratio(sum));
}

static choir_status add_variance(const choir_metric *m, choir_tensor *predictions,
		choir_tensor *targets, choir_tensor *weights, choir_tensor *sum[])
{
	CHOIR_TRY(add_squares(m, predictions, targets, weights, sum));
	choir_tensor *target = choir_cast(targets, CHOIR_F64);
	sum[2] = sum_all(m, target, weights);
	sum[3] = sum_all(m, choir_square(target), weights);
	return CHOIR_OK;
}

static double determination(const double sum[])
{
	const double spread = sum[3] - sum[2] * sum[2] / sum[1];
	return spread > 0 ? 1 - sum[0] / spread : (double) NAN;
}

// ---- Scores above a threshold.

static choir_status add_f1(const choir_metric *m, choir_tensor *scores, choir_tensor *labels,
		choir_tensor *weights, choir_tensor *sum[])
{
	choir_tensor *said, *are;
	CHOIR_TRY(chi_metric_compare(m, scores, labels, &said, &are));
	sum[0] = sum_all(m, choir_multiply(said, are), weights);
	sum[1] = sum_all(m, choir_add(said, are), weights);
	return CHOIR_OK;
}

static double twice(const double sum[])
{
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

// ---- Top k.

// The index of each example's label in the flattened scores.
static choir_tensor *places(choir_tensor *labels, int64_t n, int64_t classes)
{
	int64_t *start = chi_alloc_array((size_t) n + 1, sizeof *start);
	if (start == NULL) {
		chi_frame_record_error(labels->frame);
		return NULL;
	}
	for (int64_t i = 0; i < n; i++)
		start[i] = i * classes;
	choir_tensor *first_places = choir_constant(labels->frame, CHOIR_I64, CHOIR_SHAPE(n), start);
	chi_free(start);
	return choir_add(first_places, labels);
}

static choir_status add_top_k(const choir_metric *m, choir_tensor *scores, choir_tensor *labels,
		choir_tensor *weights, choir_tensor *sum[])
{
	CHOIR_TRY(chi_metric_check_classes(m, scores, labels));
	const int64_t n = scores->shape.dim[0], classes = scores->shape.dim[1];
	choir_tensor *all = choir_cast(scores, CHOIR_F64), *label = choir_cast(labels, CHOIR_I64);
	CHOIR_TRY(chi_metric_check_labels(m, label, classes));
	choir_tensor *own =
			choir_gather(choir_reshape(all, CHOIR_SHAPE(n * classes)), places(label, n, classes));
	choir_tensor *above = choir_relu(choir_subtract(all, choir_reshape(own, CHOIR_SHAPE(n, 1))));
	choir_tensor *higher =
			choir_sum(choir_cast(choir_cast(above, CHOIR_BOOL), CHOIR_F64), CHOIR_AXIS(1));
	choir_tensor *k = choir_fill(scores->frame, CHOIR_F64, CHOIR_SHAPE(n), (double) m->k);
	choir_tensor *hit =
			choir_cast(choir_cast(choir_relu(choir_subtract(k, higher)), CHOIR_BOOL), CHOIR_F64);
	sum[0] = sum_all(m, hit, weights);
	sum[1] = sum_all(m, ones_like(hit), weights);
	return CHOIR_OK;
}

static const chi_metric_sums kinds[] = {
	[CHI_METRIC_MSE] = { 2, add_squares, ratio },
	[CHI_METRIC_RMSE] = { 2, add_squares, root },
	[CHI_METRIC_MAE] = { 2, add_absolutes, ratio },
	[CHI_METRIC_R2] = { 4, add_variance, determination },
	[CHI_METRIC_F1] = { 2, add_f1, twice },
	[CHI_METRIC_TRUE_POSITIVES] = { 1, add_found, first },
	[CHI_METRIC_FALSE_POSITIVES] = { 1, add_found, first },
	[CHI_METRIC_TRUE_NEGATIVES] = { 1, add_found, first },
	[CHI_METRIC_FALSE_NEGATIVES] = { 1, add_found, first },
	[CHI_METRIC_TOP_K] = { 2, add_top_k, ratio },
};

const chi_metric_sums *chi_metric_sums_of(chi_metric_kind kind)
{
	return (size_t) kind < sizeof kinds / sizeof kinds[0] && kinds[kind].sums > 0 ? &kinds[kind]
																				  : NULL;
}
