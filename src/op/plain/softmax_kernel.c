// Softmax and its losses, row by row. Sums in f64 keep the digits of many classes.
#include "op/plain/cast_kernel.h"

#include <math.h>

typedef struct {
	choir_dtype dtype;
	const chi_real_loops *real;
	const chi_number_loops *number;
	int64_t rows, classes;
} rows_of;

static rows_of split(const choir_buffer *x)
{
	const int rank = x->shape.rank;
	const int64_t classes = rank > 0 ? x->shape.dim[rank - 1] : 1;
	return (rows_of){
		.dtype = x->dtype,
		.real = chi_loops_best()->real[x->dtype],
		.number = chi_loops_best()->number[x->dtype],
		.rows = classes > 0 ? chi_elements(x) / classes : 0,
		.classes = classes,
	};
}

static double value_at(const choir_buffer *x, int64_t i)
{
	return x->dtype == CHOIR_F32 ? (double) ((const float *) x->data)[i]
								 : ((const double *) x->data)[i];
}

static void softmax_row(const rows_of *r, void *out, const void *x, double by)
{
	chi_total sum = { 0 };
	r->real->exp_minus(out, x, r->real->max(x, r->classes), r->classes);
	r->number->sum(&sum, out, r->classes);
	r->real->scale(out, out, by / sum.real, r->classes);
}

static choir_status run_softmax(const choir_kernel_call *call)
{
	const choir_buffer *x = &call->in[0];
	const rows_of r = split(x);
	for (int64_t i = 0; i < r.rows; i++)
		softmax_row(&r, chi_element(call->out, i * r.classes), chi_element(x, i * r.classes), 1);
	return CHOIR_OK;
}

static choir_status run_softmax_gradient(const choir_kernel_call *call)
{
	const rows_of r = split(&call->in[0]);
	for (int64_t at = 0; at < r.rows * r.classes; at += r.classes)
		r.real->softmax_gradient(chi_element(call->out, at), chi_element(&call->in[0], at),
				chi_element(&call->in[1], at), r.classes);
	return CHOIR_OK;
}

// dx = dy - exp(y) sum(dy)
static choir_status run_log_softmax_gradient(const choir_kernel_call *call)
{
	const rows_of r = split(&call->in[0]);
	for (int64_t i = 0; i < r.rows; i++) {
		const void *dy = chi_element(&call->in[1], i * r.classes);
		chi_total sum = { 0 };
		r.number->sum(&sum, dy, r.classes);
		r.real->minus_exp(chi_element(call->out, i * r.classes), dy,
				chi_element(&call->in[0], i * r.classes), sum.real, r.classes);
	}
	return CHOIR_OK;
}

static choir_status check_labels(const choir_buffer *labels, const rows_of *r)
{
	for (int64_t i = 0; i < r->rows; i++) {
		const int64_t label = chi_index_at(labels, i);
		if (label < 0 || label >= r->classes)
			return choir_fail(CHOIR_INVALID,
					"label %lld of example %lld is not a class; classes are 0 to %lld",
					(long long) label, (long long) i, (long long) r->classes - 1);
	}
	return CHOIR_OK;
}

static void subtract(const rows_of *r, void *out, const void *x, double by)
{
	double in_dtype = by;
	chi_narrow(r->dtype, &in_dtype, &by, 1);
	r->number->binary(CHI_SUBTRACT, out, x, &in_dtype, r->classes, false, true);
}

// log(sum(exp(x - max))) without max, which could absorb it, and *below, the mean of x - max.
static double log_sum(const rows_of *r, const void *x, size_t size, double max, double *below)
{
	enum { BLOCK = 256 };
	double block[BLOCK]; // floats for f32
	chi_total sum = { 0 }, less = { 0 };
	rows_of part = *r;
	for (int64_t i = 0; i < r->classes; i += BLOCK) {
		const void *from = (const char *) x + (size_t) i * size;
		part.classes = r->classes - i < BLOCK ? r->classes - i : BLOCK;
		r->real->exp_minus(block, from, max, part.classes);
		r->number->sum(&sum, block, part.classes);
		if (below) {
			subtract(&part, block, from, max);
			r->number->sum(&less, block, part.classes);
		}
	}
	if (below)
		*below = less.real / (double) r->classes;
	return log(sum.real);
}

// From the left: x - max - log(sum(exp(x - max))).
static choir_status run_log_softmax(const choir_kernel_call *call)
{
	const choir_buffer *x = &call->in[0];
	const rows_of r = split(x);
	for (int64_t i = 0; i < r.rows; i++) {
		const void *row = chi_element(x, i * r.classes);
		void *out = chi_element(call->out, i * r.classes);
		const double max = r.real->max(row, r.classes);
		const double less = log_sum(&r, row, chi_dtype_size(r.dtype), max, NULL);
		subtract(&r, out, row, max);
		subtract(&r, out, out, less);
	}
	return CHOIR_OK;
}

// Smoothed: 1 - smoothing for the right class, plus smoothing / classes for each.
static double loss_of(const rows_of *r, const choir_buffer *row, int64_t label, double smoothing)
{
	const double max = r->real->max(row->data, r->classes);
	double target = value_at(row, label) - max, below;
	const double all =
			log_sum(r, row->data, chi_dtype_size(r->dtype), max, smoothing > 0 ? &below : NULL);
	if (smoothing > 0)
		target += smoothing * (below - target);
	return all - target;
}

static choir_status run_cross_entropy(const choir_kernel_call *call)
{
	const choir_cross_entropy_attributes *a = call->attributes;
	const choir_buffer *x = &call->in[0], *labels = &call->in[1];
	const rows_of r = split(x);
	CHOIR_TRY(check_labels(labels, &r));
	for (int64_t i = 0; i < r.rows; i++) {
		const choir_buffer row = { chi_element(x, i * r.classes), r.dtype, { 1, { r.classes } } };
		const double loss = loss_of(&r, &row, chi_index_at(labels, i), a->smoothing);
		chi_narrow(r.dtype, chi_element(call->out, i), &loss, 1);
	}
	return CHOIR_OK;
}

static size_t one_row(const choir_kernel_call *call)
{
	const choir_shape *x = &call->in[0].shape;
	return x->rank > 0 ? (size_t) x->dim[x->rank - 1] * sizeof(float) : sizeof(float);
}

// Widens a row at a time. The f32 loss is rounded.
static choir_status run_cross_entropy_half(const choir_kernel_call *call)
{
	const choir_cross_entropy_attributes *a = call->attributes;
	const choir_buffer *x = &call->in[0], *labels = &call->in[1];
	const choir_buffer wide = { call->scratch, CHOIR_F32, x->shape };
	const rows_of r = split(&wide);
	CHOIR_TRY(check_labels(labels, &r));
	for (int64_t i = 0; i < r.rows; i++) {
		chi_half_loops_best(x->dtype)->widen(wide.data, chi_element(x, i * r.classes), r.classes);
		const double loss =
				(double) (float) loss_of(&r, &wide, chi_index_at(labels, i), a->smoothing);
		chi_narrow(call->out->dtype, chi_element(call->out, i), &loss, 1);
	}
	return CHOIR_OK;
}

// dx = (softmax(x) - targets) dloss
static choir_status run_cross_entropy_gradient(const choir_kernel_call *call)
{
	const choir_cross_entropy_attributes *a = call->attributes;
	const choir_buffer *x = &call->in[0], *labels = &call->in[1];
	const rows_of r = split(x);
	CHOIR_TRY(check_labels(labels, &r));
	for (int64_t i = 0; i < r.rows; i++) {
		const double dloss = value_at(&call->in[2], i);
		const int64_t at = i * r.classes + chi_index_at(labels, i);
		softmax_row(
				&r, chi_element(call->out, i * r.classes), chi_element(x, i * r.classes), dloss);
		if (a->smoothing > 0) {
			void *row = chi_element(call->out, i * r.classes);
			subtract(&r, row, row, dloss * a->smoothing / (double) r.classes);
		}
		const double right = value_at(call->out, at) - dloss * (1 - a->smoothing);
		chi_narrow(r.dtype, chi_element(call->out, at), &right, 1);
	}
	return CHOIR_OK;
}

static const chi_kernel_spec specs[] = {
	{ "softmax", CHI_REAL, 0, run_softmax, NULL, NULL, NULL },
	{ "softmax_gradient", CHI_REAL, 0, run_softmax_gradient, NULL, NULL, NULL },
	{ "log_softmax", CHI_REAL, 0, run_log_softmax, NULL, NULL, NULL },
	{ "log_softmax_gradient", CHI_REAL, 0, run_log_softmax_gradient, NULL, NULL, NULL },
	{ "softmax_cross_entropy", CHI_REAL, sizeof(choir_cross_entropy_attributes), run_cross_entropy,
			NULL, NULL, NULL },
	{ "softmax_cross_entropy", CHI_HALF, sizeof(choir_cross_entropy_attributes),
			run_cross_entropy_half, one_row, NULL, NULL },
	{ "softmax_cross_entropy_gradient", CHI_REAL, sizeof(choir_cross_entropy_attributes),
			run_cross_entropy_gradient, NULL, NULL, NULL },
};
const chi_kernel_list chi_plain_softmax = { specs, sizeof specs / sizeof specs[0] };
