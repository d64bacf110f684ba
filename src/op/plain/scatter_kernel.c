// In place; an index that occurs twice is applied twice.
#include "op/plain/plain.h"

#include <string.h>

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
	{ "scatter_update", CHI_ALL, 0, run_update, NULL, NULL, NULL },
	{ "scatter_add", CHI_ARITHMETIC, 0, run_binary, NULL, NULL, &binary_ops[0] },
	{ "scatter_subtract", CHI_ARITHMETIC, 0, run_binary, NULL, NULL, &binary_ops[1] },
	{ "scatter_multiply", CHI_ARITHMETIC, 0, run_binary, NULL, NULL, &binary_ops[2] },
	{ "scatter_divide", CHI_ARITHMETIC, 0, run_binary, NULL, NULL, &binary_ops[3] },
	{ "scatter_minimum", CHI_ARITHMETIC, 0, run_binary, NULL, NULL, &binary_ops[4] },
	{ "scatter_maximum", CHI_ARITHMETIC, 0, run_binary, NULL, NULL, &binary_ops[5] },
};
const chi_kernel_list chi_plain_scatter = { specs, sizeof specs / sizeof specs[0] };
