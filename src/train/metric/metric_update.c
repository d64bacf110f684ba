// In f64, whole numbers are exact up to 2^53, so counts do not depend on which replica gets an
// example.
#include "train/metric/metric.h"

#include "choir/nn.h"
#include "op/op.h"
#include "tensor/tensor.h"

#include <inttypes.h>
#include <stdio.h>

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

choir_tensor *chi_metric_weigh(const choir_metric *m, choir_tensor *x, choir_tensor *weights)
{
	char have[CHI_SHAPE_TEXT], need[CHI_SHAPE_TEXT];
	if (weights == NULL || x == NULL)
		return x;
	choir_tensor *product = choir_multiply(x, choir_cast(weights, CHOIR_F64));
	if (product == NULL || chi_shape_equal(&product->shape, &x->shape))
		return product;
	return chi_frame_fail_null(x->frame, CHOIR_INVALID,
			"metric \"%s\": weights %s do not broadcast to labels %s", m->name,
			chi_shape_print(&weights->shape, have), chi_shape_print(&x->shape, need));
}

choir_status chi_metric_check_classes(
		const choir_metric *m, const choir_tensor *scores, const choir_tensor *labels)
{
	char have[CHI_SHAPE_TEXT], also[CHI_SHAPE_TEXT], classes[32] = "classes";
	const choir_shape *s = &scores->shape, *l = &labels->shape;
	const int64_t known = m->kind == CHI_METRIC_PER_CLASS ? m->k : m->classes;
	if (s->rank == 2 && l->rank == 1 && s->dim[0] == l->dim[0] &&
			!chi_dtype_is_float(labels->dtype) && (known == 0 || known == s->dim[1]))
		return CHOIR_OK;
	if (known != 0)
		snprintf(classes, sizeof classes, "%" PRId64, known);
	return chi_frame_fail(scores->frame, CHOIR_INVALID,
			"metric \"%s\": %s needs scores [n, %s] and integer labels [n]; they are %s and %s %s",
			m->name, m->kind == CHI_METRIC_CONFUSION ? "a confusion matrix" : "accuracy", classes,
			chi_shape_print(s, have), choir_dtype_name(labels->dtype), chi_shape_print(l, also));
}

static choir_status count_accuracy(const choir_metric *m, choir_tensor *scores,
		choir_tensor *labels, choir_tensor *weights, choir_tensor **total, choir_tensor **count)
{
	CHOIR_TRY(chi_metric_check_classes(m, scores, labels));
	choir_tensor *off = choir_subtract(choir_argmax(scores, 1), choir_cast(labels, CHOIR_I64));
	choir_tensor *wrong = choir_cast(choir_cast(off, CHOIR_BOOL), CHOIR_F64);
	*total = choir_sum(chi_metric_weigh(m, wrong, weights), CHOIR_ALL_AXES);
	*count = weights == NULL
			? choir_number(scores->frame, (double) scores->shape.dim[0])
			: choir_sum(chi_metric_weigh(m, choir_fill(scores->frame, CHOIR_F64, labels->shape, 1),
								weights),
					  CHOIR_ALL_AXES);
	return CHOIR_OK;
}

choir_status chi_metric_check_labels(const choir_metric *m, choir_tensor *labels, int64_t classes)
{
	if (labels == NULL)
		return choir_error_status();
	choir_tensor *ones = choir_fill(labels->frame, CHOIR_F64, labels->shape, 1);
	choir_tensor *rows = ones == NULL ? NULL : chi_slices_new(ones, labels, classes);
	char what[96];
	snprintf(what, sizeof what, "metric \"%.60s\": labels", m->name);
	return rows == NULL ? chi_frame_status(labels->frame) : chi_slices_check_indices(rows, what);
}

// The matrix's index is label * classes + answer; dense slices add up equal ones.
static choir_status count_confusion(const choir_metric *m, choir_tensor *scores,
		choir_tensor *labels, choir_tensor **total, choir_tensor **count)
{
	choir_frame *f = scores->frame;
	const int64_t n = scores->shape.rank == 0 ? 0 : scores->shape.dim[0];
	CHOIR_TRY(chi_metric_check_classes(m, scores, labels));
	choir_tensor *ones = choir_fill(f, CHOIR_F64, CHOIR_SHAPE(n), 1);
	choir_tensor *label = choir_cast(labels, CHOIR_I64);
	CHOIR_TRY(chi_metric_check_labels(m, label, m->classes));
	choir_tensor *size = choir_fill(f, CHOIR_I64, CHOIR_SCALAR, (double) m->classes);
	choir_tensor *place = choir_add(choir_multiply(label, size), choir_argmax(scores, 1));
	choir_tensor *counts =
			choir_to_dense(choir_indexed_slices(ones, place, m->classes * m->classes));
	*total = choir_reshape(counts, CHOIR_SHAPE(m->classes, m->classes));
	*count = NULL;
	return CHOIR_OK;
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

choir_status chi_metric_compare(const choir_metric *m, choir_tensor *scores, choir_tensor *labels,
		choir_tensor **said, choir_tensor **are)
{
	char have[CHI_SHAPE_TEXT], also[CHI_SHAPE_TEXT];
	if (!chi_shape_equal(&scores->shape, &labels->shape))
		return chi_frame_fail(scores->frame, CHOIR_INVALID,
				"metric \"%s\": scores are %s and labels %s; equal shapes are needed", m->name,
				chi_shape_print(&scores->shape, have), chi_shape_print(&labels->shape, also));
	*said = said_yes(m, scores);
	*are = choir_cast(choir_cast(labels, CHOIR_BOOL), CHOIR_F64);
	return CHOIR_OK;
}

static choir_status count_found(const choir_metric *m, choir_tensor *scores, choir_tensor *labels,
		choir_tensor *weights, choir_tensor **total, choir_tensor **count)
{
	choir_tensor *said, *are;
	CHOIR_TRY(chi_metric_compare(m, scores, labels, &said, &are));
	if (m->kind == CHI_METRIC_PRECISION)
		said = chi_metric_weigh(m, said, weights);
	else
		are = chi_metric_weigh(m, are, weights);
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
