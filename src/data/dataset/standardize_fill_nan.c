// Standardization, and values for NaN. One moment per number of an example, or of its last axis.
#include "data/dataset.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fpenv.h"
#include "base/hash.h"
#include "choir/dataset.h"

typedef struct {
	choir_dataset base;
	size_t column, values, times;
	float *mean, *factor; // NULL: mean replaces NaN
} standardize;

static void apply(const standardize *s, float *x, int64_t examples)
{
	const int64_t times = examples * (int64_t) s->times;
	for (int64_t i = 0; i < times && x; i++, x += s->values)
		for (size_t k = 0; k < s->values; k++)
			if (s->factor)
				x[k] = (x[k] - s->mean[k]) * s->factor[k];
			else if (isnan(x[k]))
				x[k] = s->mean[k];
}

static choir_status standardize_range(
		choir_dataset *d, void *const column[], int64_t first, int64_t count)
{
	const standardize *s = (standardize *) d;
	CHOIR_TRY(d->from[0]->stage->range(d->from[0], column, first, count));
	apply(s, column[s->column], count);
	return CHOIR_OK;
}

static choir_status standardize_read(
		choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	const standardize *s = (standardize *) d;
	CHOIR_TRY(chi_dataset_read(d->from[0], column, want, got));
	apply(s, column[s->column], *got);
	return CHOIR_OK;
}

static const void *standardize_peek(choir_dataset *d, size_t column, int64_t first, int64_t count)
{
	return column == ((standardize *) d)->column
			? NULL
			: chi_dataset_peek(d->from[0], column, first, count);
}

static uint64_t standardize_signature(const choir_dataset *d)
{
	const standardize *s = (const standardize *) d;
	const size_t numbers = (s->factor ? 2 : 1) * s->values;
	return chi_hash_bytes(s->mean, numbers * sizeof *s->mean) + s->column;
}

// clang-format off
#define STAGE(NAME) { \
	.name = NAME, \
	.range = standardize_range, \
	.read = standardize_read, \
	.rewind = chi_rewind_from, \
	.peek = standardize_peek, \
	.reorderable = true, \
	.seek = chi_seek_from, \
	.signature = standardize_signature, \
}
// clang-format on
static const chi_stage standardize_stage = STAGE("standardize");
static const chi_stage fill_nan_stage = STAGE("fill_nan");

static choir_status check_column(const choir_dataset *d, const char *what, const char *column,
		size_t n, size_t *at, size_t *times)
{
	*at = chi_column_find(d, column);
	if (*at == d->spec.n)
		return chi_no_column(d, what, column);
	const choir_column *c = &d->spec.column[*at];
	if (c->dtype != CHOIR_F32 || chi_shape_varies(&c->shape))
		return choir_fail(CHOIR_UNSUPPORTED,
				"%s: column \"%s\" is %s%s; f32 of a fixed shape needed", what, column,
				choir_dtype_name(c->dtype),
				chi_shape_varies(&c->shape) ? " of a shape that varies" : "");
	const int64_t values = choir_shape_elements(&c->shape);
	const int rank = c->shape.rank;
	const bool axis = rank > 1 && (uint64_t) c->shape.dim[rank - 1] == n;
	*times = axis ? (size_t) values / n : 1;
	if (!axis && (uint64_t) values != n)
		return choir_fail(CHOIR_INVALID,
				"%s: %zu numbers given, column \"%s\" has %lld per example", what, n, column,
				(long long) values);
	return CHOIR_OK;
}

// Owns from. n factors follow n means.
static standardize *make(const chi_stage *stage, choir_dataset *from, const char *column, size_t n,
		const float mean[])
{
	size_t at, times;
	if (check_column(from, stage->name, column, n, &at, &times) != CHOIR_OK)
		return chi_dataset_discard(from);
	standardize *s = chi_transform_new(stage, sizeof *s, from);
	if (!s)
		return NULL;
	s->base.random = from->random;
	s->column = at;
	s->values = n;
	s->times = times;
	s->base.memory = s->mean = chi_alloc_array(n, 2 * sizeof *s->mean);
	if (!s->mean)
		return chi_dataset_discard(&s->base);
	memcpy(s->mean, mean, n * sizeof *mean);
	return s;
}

choir_dataset *choir_dataset_standardize(choir_dataset *from, const char *column, size_t n,
		const float mean[], const float deviation[])
{
	if (!chi_dataset_given(from, standardize_stage.name))
		return NULL;
	if (!mean || !deviation)
		return chi_refuse(from, CHOIR_INVALID, "standardize: the %s are NULL",
				mean ? "deviations" : "means");
	standardize *s = make(&standardize_stage, from, column, n, mean);
	if (!s)
		return NULL;
	s->factor = s->mean + n;
	chi_fpenv host;
	chi_fpenv_enter(&host);
	for (size_t k = 0; k < n; k++)
		s->factor[k] = deviation[k] > 0 ? 1 / deviation[k] : 1;
	chi_fpenv_leave(&host);
	return &s->base;
}

choir_dataset *choir_dataset_fill_nan(
		choir_dataset *from, const char *column, size_t n, const float value[])
{
	if (!chi_dataset_given(from, fill_nan_stage.name))
		return NULL;
	if (!value)
		return chi_refuse(from, CHOIR_INVALID, "fill_nan: the values are NULL");
	standardize *s = make(&fill_nan_stage, from, column, n, value);
	return s ? &s->base : NULL;
}

// Welford's algorithm.
typedef struct {
	double mean, squares;
	int64_t count;
} sums;

static choir_status add_pass(
		choir_dataset *d, size_t column, size_t n, size_t times, sums sum[], int64_t *examples)
{
	chi_row_buffer rows;
	const int64_t unit = chi_dataset_unit(d);
	if (!chi_row_buffer_new(d, unit, &rows))
		return CHOIR_NO_MEMORY;
	chi_element e = { .capacity = unit };
	e.column[column] = rows.column[column];
	choir_status status;
	while ((status = chi_dataset_next(d, &e)) == CHOIR_OK)
		for (int64_t i = 0; i < e.examples * (int64_t) times; i++) {
			const float *x = (const float *) rows.column[column] + (size_t) i * n;
			++*examples;
			for (size_t k = 0; k < n; k++) {
				if (isnan(x[k]))
					continue;
				const double away = (double) x[k] - sum[k].mean;
				sum[k].mean += away / (double) ++sum[k].count;
				sum[k].squares += away * ((double) x[k] - sum[k].mean);
			}
		}
	chi_row_buffer_free(&rows);
	return status == CHOIR_END ? CHOIR_OK : status;
}

choir_status choir_dataset_moments(
		choir_dataset *d, const char *column, size_t n, float mean[], float deviation[])
{
	size_t at, times;
	int64_t examples = 0;
	if (!chi_dataset_given(d, "moments"))
		return choir_error_status();
	if (!mean || !deviation)
		return choir_fail(CHOIR_INVALID, "moments: an array for the results is NULL");
	CHOIR_TRY(check_column(d, "moments", column, n, &at, &times));
	if (d->spec.endless)
		return choir_fail(
				CHOIR_INVALID, "moments: the dataset repeats for ever; a finite one needed");
	sums *sum = chi_alloc_array(n, sizeof *sum);
	CHOIR_TRY(chi_made(sum));
	chi_fpenv host;
	chi_fpenv_enter(&host);
	choir_status status = add_pass(d, at, n, times, sum, &examples);
	if (status == CHOIR_OK && examples == 0)
		status = choir_fail(CHOIR_INVALID, "moments: column \"%s\" has no examples", column);
	for (size_t k = 0; k < n && status == CHOIR_OK; k++) {
		mean[k] = (float) sum[k].mean;
		deviation[k] = (float) sqrt(sum[k].squares / (double) (sum[k].count ? sum[k].count : 1));
	}
	chi_free(sum);
	const choir_status back = chi_dataset_begin(d, d->pass);
	chi_fpenv_leave(&host);
	return status == CHOIR_OK ? back : status;
}
