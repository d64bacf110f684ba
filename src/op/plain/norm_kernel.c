// Norms of rows, and of channels, whose sums are a separate kernel, since they may be added over
// replicas.
#include "op/plain/cast_kernel.h"

#include <math.h>
#include <string.h>

typedef struct {
	const chi_norm_loops *loops;
	int64_t rows, n;
} table;

static table table_of(const choir_buffer *x)
{
	const int64_t n = x->shape.dim[x->shape.rank - 1];
	return (table){ chi_loops_best()->real[x->dtype]->norm, chi_elements(x) / n, n };
}

static choir_status run_row_moments(const choir_kernel_call *call)
{
	const choir_norm_attributes *a = call->attributes;
	const table t = table_of(&call->in[0]);
	for (int64_t i = 0; i < t.rows; i++)
		t.loops->moments(chi_element(call->out, 2 * i), chi_element(&call->in[0], i * t.n), t.n,
				a->centered, a->epsilon);
	return CHOIR_OK;
}

static choir_status run_row_norm(const choir_kernel_call *call)
{
	const choir_buffer *in = call->in, *moments = &in[call->n - 1];
	const table t = table_of(&in[0]);
	for (int64_t i = 0; i < t.rows; i++)
		t.loops->row(chi_element(call->out, i * t.n), chi_element(&in[0], i * t.n),
				chi_element(moments, 2 * i), in[1].data, call->n > 3 ? in[2].data : NULL, t.n);
	return CHOIR_OK;
}

static choir_status run_row_norm_gradient(const choir_kernel_call *call)
{
	const choir_norm_attributes *a = call->attributes;
	const choir_buffer *in = call->in;
	const table t = table_of(&in[0]);
	for (int64_t i = 0; i < t.rows; i++)
		t.loops->row_gradient(chi_element(call->out, i * t.n), chi_element(&in[0], i * t.n),
				chi_element(&in[2], 2 * i), in[1].data, chi_element(&in[3], i * t.n), t.n,
				a->centered);
	return CHOIR_OK;
}

typedef struct {
	double normal[CHI_COLUMNS], plain[CHI_COLUMNS];
} sums;

static int64_t columns_from(const table *t, int64_t j)
{
	return t->n - j < CHI_COLUMNS ? t->n - j : CHI_COLUMNS;
}

typedef void row_sums_fn(double *normal, double *plain, const void *x, const void *moments,
		const void *dy, int64_t rows, int64_t stride, int64_t n);

static void sum_rows(const choir_kernel_call *call, const void *moments, row_sums_fn *row_sums)
{
	const choir_buffer *in = call->in;
	const int64_t width = in[0].shape.dim[in[0].shape.rank - 1];
	const table t = { NULL, chi_elements(&in[0]) / width, width };
	for (int64_t j = 0; j < t.n; j += CHI_COLUMNS) {
		const int64_t count = columns_from(&t, j);
		sums s = { 0 };
		row_sums(s.normal, s.plain, chi_element(&in[0], j), moments, chi_element(&in[2], j),
				t.rows, t.n, count);
		chi_narrow(call->out->dtype, chi_element(call->out, j), s.normal, count);
		chi_narrow(call->out->dtype, chi_element(call->out, t.n + j), s.plain, count);
	}
}

static choir_status run_row_norm_sums(const choir_kernel_call *call)
{
	sum_rows(call, call->in[1].data, table_of(&call->in[0]).loops->row_sums);
	return CHOIR_OK;
}

static int score_row_sums_half(const choir_kernel_call *call)
{
	return call->in[2].dtype == call->in[0].dtype;
}

static size_t row_sums_half_scratch(const choir_kernel_call *call)
{
	const choir_buffer *moments = &call->in[1];
	return chi_dtype_is_half(moments->dtype) ? (size_t) chi_elements(moments) * sizeof(float) : 0;
}

static choir_status run_row_sums_half(const choir_kernel_call *call)
{
	const choir_buffer *moments = &call->in[1];
	const chi_half_loops *half = chi_half_loops_best(call->in[0].dtype);
	const bool wide = !chi_dtype_is_half(moments->dtype);
	if (!wide)
		half->widen(call->scratch, moments->data, chi_elements(moments));
	sum_rows(call, wide ? moments->data : call->scratch, half->row_sums);
	return CHOIR_OK;
}

static choir_status run_channel_sums(const choir_kernel_call *call)
{
	const table t = table_of(&call->in[0]);
	double *out = call->out->data;
	memset(out, 0, (size_t) (2 * t.n) * sizeof *out);
	for (int64_t j = 0; j < t.n; j += CHI_COLUMNS)
		t.loops->column_moments(out + j, out + t.n + j, chi_element(&call->in[0], j), t.rows, t.n,
				columns_from(&t, j));
	out[2 * t.n] = (double) t.rows;
	return CHOIR_OK;
}

static choir_status run_channel_moments(const choir_kernel_call *call)
{
	const int64_t n = (chi_elements(call->out) - 1) / 2;
	const double *sum = call->in[0].data, rows = sum[2 * n];
	double *out = call->out->data;
	for (int64_t j = 0; j < n; j++) {
		const double mean = rows > 0 ? sum[j] / rows : 0;
		const double variance = rows > 0 ? sum[n + j] / rows - mean * mean : 0;
		out[j] = mean;
		out[n + j] = variance < 0 ? 0 : variance; // a NAN stays
	}
	out[2 * n] = rows;
	return CHOIR_OK;
}

typedef struct {
	double mean[CHI_COLUMNS], factor[CHI_COLUMNS]; // floats for f32, as below
	double factor_f64[CHI_COLUMNS];
} normal;

static normal normal_of(choir_dtype dtype, const choir_buffer *moments, int64_t n, int64_t j,
		int64_t count, double epsilon)
{
	const double *mean = moments->data, *variance = mean + n;
	normal v;
	for (int64_t k = 0; k < count; k++)
		v.factor_f64[k] = 1 / sqrt(variance[j + k] + epsilon);
	chi_narrow(dtype, v.mean, mean + j, count);
	chi_narrow(dtype, v.factor, v.factor_f64, count);
	return v;
}

static void weigh(choir_dtype dtype, void *to, const choir_buffer *scale, int64_t j,
		const double factor[], int64_t count)
{
	double weight[CHI_COLUMNS];
	chi_widen(dtype, weight, chi_element(scale, j), count);
	for (int64_t k = 0; k < count; k++)
		weight[k] *= factor[k];
	chi_narrow(dtype, to, weight, count);
}

static choir_status run_channel_norm(const choir_kernel_call *call)
{
	const choir_norm_attributes *a = call->attributes;
	const choir_buffer *in = call->in;
	const table t = table_of(&in[0]);
	for (int64_t j = 0; j < t.n; j += CHI_COLUMNS) {
		const int64_t count = columns_from(&t, j);
		const normal v = normal_of(in[0].dtype, &in[3], t.n, j, count, a->epsilon);
		double by[CHI_COLUMNS];
		weigh(in[0].dtype, by, &in[1], j, v.factor_f64, count);
		for (int64_t i = j; i < t.rows * t.n; i += t.n)
			t.loops->column(chi_element(call->out, i), chi_element(&in[0], i), v.mean, by,
					chi_element(&in[2], j), count);
	}
	return CHOIR_OK;
}

static choir_status run_channel_norm_sums(const choir_kernel_call *call)
{
	const choir_norm_attributes *a = call->attributes;
	const choir_buffer *in = call->in;
	const table t = table_of(&in[0]);
	double *out = call->out->data;
	memset(out, 0, (size_t) (2 * t.n) * sizeof *out);
	for (int64_t j = 0; j < t.n; j += CHI_COLUMNS) {
		const int64_t count = columns_from(&t, j);
		const normal v = normal_of(in[0].dtype, &in[1], t.n, j, count, a->epsilon);
		t.loops->column_sums(out + j, out + t.n + j, chi_element(&in[0], j), v.mean, v.factor,
				chi_element(&in[2], j), t.rows, t.n, count);
	}
	return CHOIR_OK;
}

static choir_status run_channel_norm_gradient(const choir_kernel_call *call)
{
	const choir_norm_attributes *a = call->attributes;
	const choir_buffer *in = call->in;
	const choir_dtype dtype = in[0].dtype;
	const table t = table_of(&in[0]);
	const double *total = in[4].data, rows = ((const double *) in[2].data)[2 * t.n];
	for (int64_t j = 0; j < t.n; j += CHI_COLUMNS) {
		const int64_t count = columns_from(&t, j);
		const normal v = normal_of(dtype, &in[2], t.n, j, count, a->epsilon);
		double by[CHI_COLUMNS], tilt[CHI_COLUMNS], level[CHI_COLUMNS];
		double tilt_f64[CHI_COLUMNS], level_f64[CHI_COLUMNS];
		for (int64_t k = 0; k < count; k++) {
			tilt_f64[k] = total[j + k] / rows * v.factor_f64[k];
			level_f64[k] = total[t.n + j + k] / rows;
		}
		chi_narrow(dtype, tilt, tilt_f64, count);
		chi_narrow(dtype, level, level_f64, count);
		weigh(dtype, by, &in[1], j, v.factor_f64, count);
		for (int64_t i = j; i < t.rows * t.n; i += t.n)
			t.loops->column_gradient(chi_element(call->out, i), chi_element(&in[0], i),
					chi_element(&in[3], i), v.mean, by, tilt, level, count);
	}
	return CHOIR_OK;
}

enum { ATTRIBUTES = sizeof(choir_norm_attributes) };

static const chi_kernel_spec specs[] = {
	{ "row_moments", CHI_REAL, ATTRIBUTES, run_row_moments, NULL, NULL, NULL },
	{ "row_norm", CHI_REAL, ATTRIBUTES, run_row_norm, NULL, NULL, NULL },
	{ "row_norm_gradient", CHI_REAL, ATTRIBUTES, run_row_norm_gradient, NULL, NULL, NULL },
	{ "row_norm_sums", CHI_REAL, 0, run_row_norm_sums, NULL, NULL, NULL },
	{ "row_norm_sums", CHI_HALF, 0, run_row_sums_half, row_sums_half_scratch, score_row_sums_half,
			NULL },
	{ "channel_sums", CHI_REAL, 0, run_channel_sums, NULL, NULL, NULL },
	{ "channel_moments", CHI_F64, 0, run_channel_moments, NULL, NULL, NULL },
	{ "channel_norm", CHI_REAL, ATTRIBUTES, run_channel_norm, NULL, NULL, NULL },
	{ "channel_norm_sums", CHI_REAL, ATTRIBUTES, run_channel_norm_sums, NULL, NULL, NULL },
	{ "channel_norm_gradient", CHI_REAL, ATTRIBUTES, run_channel_norm_gradient, NULL, NULL, NULL },
};
const chi_kernel_list chi_plain_norm = { specs, sizeof specs / sizeof specs[0] };
