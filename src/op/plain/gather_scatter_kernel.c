// Rows by index. Scatters are in place; an index that occurs twice is applied twice.
#include "op/plain/plain.h"

#include "base/atomic.h"
#include "base/thresholds.h"

#include <string.h>

static choir_status check_indices(const choir_buffer *indices, int64_t rows)
{
	const int64_t n = chi_elements(indices);
	for (int64_t i = 0; i < n; i++) {
		const int64_t row = chi_index_at(indices, i);
		if (row < 0 || row >= rows)
			return choir_fail(CHOIR_INVALID,
					"index %lld at position %lld is not a row; rows are 0 to %lld",
					(long long) row, (long long) i, (long long) rows - 1);
	}
	return CHOIR_OK;
}

// A large table's next rows are not cached.
static void fetch_row(const char *row, size_t bytes)
{
	for (size_t i = 0; i < bytes && i < CHI_FETCHED_ROW_BYTES; i += CHI_LINE)
		__builtin_prefetch(row + i);
}

static choir_status run_gather(const choir_kernel_call *call)
{
	const choir_buffer *x = &call->in[0], *indices = &call->in[1];
	const int64_t rows = x->shape.dim[0], row = chi_elements(x) / rows, n = chi_elements(indices);
	const size_t bytes = (size_t) row * chi_dtype_size(x->dtype);
	char *to = call->out->data;
	CHOIR_TRY(check_indices(indices, rows));
	for (int64_t i = 0; i < n; i++, to += bytes) {
		if (i + CHI_FETCHED_ROWS < n)
			fetch_row(chi_element(x, chi_index_at(indices, i + CHI_FETCHED_ROWS) * row), bytes);
		memcpy(to, chi_element(x, chi_index_at(indices, i) * row), bytes);
	}
	return CHOIR_OK;
}

static choir_status run_gather_gradient(const choir_kernel_call *call)
{
	const choir_buffer *dy = &call->in[0], *indices = &call->in[1];
	const chi_number_loops *loops = chi_loops_best()->number[dy->dtype];
	const int64_t n = chi_elements(indices), row = chi_elements(dy) / n;
	CHOIR_TRY(check_indices(indices, call->out->shape.dim[0]));
	memset(call->out->data, 0, (size_t) chi_elements(call->out) * chi_dtype_size(dy->dtype));
	for (int64_t i = 0; i < n; i++) {
		void *to = chi_element(call->out, chi_index_at(indices, i) * row);
		loops->binary(CHI_ADD, to, to, chi_element(dy, i * row), row, false, false);
	}
	return CHOIR_OK;
}

static const chi_binary binary_ops[] = { CHI_ADD, CHI_SUBTRACT, CHI_MULTIPLY, CHI_DIVIDE,
	CHI_MINIMUM, CHI_MAXIMUM };

static choir_status run_binary(const choir_kernel_call *call)
{
	const choir_buffer *target = &call->in[0], *indices = &call->in[1], *values = &call->in[2];
	const chi_binary op = *(const chi_binary *) call->user;
	const chi_number_loops *loops = chi_loops_best()->number[target->dtype];
	const int64_t n = chi_elements(indices), width = chi_elements(values) / n;
	for (int64_t i = 0; i < n; i++) {
		void *row = chi_element(target, chi_index_at(indices, i) * width);
		loops->binary(op, row, row, chi_element(values, i * width), width, false, false);
	}
	return CHOIR_OK;
}

static choir_status run_update(const choir_kernel_call *call)
{
	const choir_buffer *target = &call->in[0], *indices = &call->in[1], *values = &call->in[2];
	const int64_t n = chi_elements(indices), width = chi_elements(values) / n;
	const size_t bytes = (size_t) width * chi_dtype_size(target->dtype);
	for (int64_t i = 0; i < n; i++)
		memcpy(chi_element(target, chi_index_at(indices, i) * width),
				chi_element(values, i * width), bytes);
	return CHOIR_OK;
}

static const chi_kernel_spec specs[] = {
	{ "gather", CHI_ALL, 0, run_gather, NULL, NULL, NULL },
	{ "gather_gradient", CHI_REAL, 0, run_gather_gradient, NULL, NULL, NULL },
	{ "scatter_update", CHI_ALL, 0, run_update, NULL, NULL, NULL },
	{ "scatter_add", CHI_ARITHMETIC, 0, run_binary, NULL, NULL, &binary_ops[0] },
	{ "scatter_subtract", CHI_ARITHMETIC, 0, run_binary, NULL, NULL, &binary_ops[1] },
	{ "scatter_multiply", CHI_ARITHMETIC, 0, run_binary, NULL, NULL, &binary_ops[2] },
	{ "scatter_divide", CHI_ARITHMETIC, 0, run_binary, NULL, NULL, &binary_ops[3] },
	{ "scatter_minimum", CHI_ARITHMETIC, 0, run_binary, NULL, NULL, &binary_ops[4] },
	{ "scatter_maximum", CHI_ARITHMETIC, 0, run_binary, NULL, NULL, &binary_ops[5] },
};
const chi_kernel_list chi_plain_gather_scatter = { specs, sizeof specs / sizeof specs[0] };
