// Samples of products, convolutions, pools, normalization, attention and recurrence, and what the
// functions that make samples share.
#pragma once

#include "kernel_sample.h"

// The kinds of kernels of an operation: detail in chi_kernel_row.
enum {
	CHI_FORWARD,
	CHI_GRADIENT_INPUT,
	CHI_GRADIENT_FILTER,
	CHI_MAX_GRADIENT,
	CHI_MAX_TAKE,
	CHI_MOMENTS,
	CHI_SUMS
};

double chi_sample_number(chi_sample *s, double low, double high);
int64_t chi_sample_integer(chi_sample *s, int64_t low, int64_t high); // both included
int64_t chi_sample_size(chi_sample *s); // of a dimension
choir_shape chi_sample_shape(chi_sample *s, int least_rank);
// Adds an input of random numbers, of the row's range or another. A failure is kept in the sample.
choir_buffer *chi_sample_add(chi_sample *s, choir_dtype dtype, choir_shape shape);
choir_buffer *chi_sample_add_range(
		chi_sample *s, choir_dtype dtype, choir_shape shape, double low, double high);
void chi_sample_set(chi_sample *s, const void *attributes, size_t bytes);
void chi_sample_give(chi_sample *s, choir_dtype dtype, choir_shape shape); // what out is

void chi_sample_matmul(chi_sample *s);
void chi_sample_dense(chi_sample *s);
void chi_sample_conv2d(chi_sample *s);
void chi_sample_pool2d(chi_sample *s);
void chi_sample_rows(chi_sample *s); // detail: inputs
void chi_sample_cross_entropy(chi_sample *s);
void chi_sample_attention(chi_sample *s);
void chi_sample_recurrent(chi_sample *s); // detail: gates
void chi_sample_recurrent_gradient(chi_sample *s); // detail: gates
void chi_sample_recurrent_weights(chi_sample *s);
void chi_sample_row_norm(chi_sample *s);
void chi_sample_channel_norm(chi_sample *s);
void chi_sample_channel_moments(chi_sample *s);
