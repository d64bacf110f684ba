// What the files of the plain kernels share: their lists, loops over broadcast shapes, and the
// matrix product on which matmul, dense and the convolutions stand.
#pragma once

#include "op/kernel_list.h"
#include "op/plain/loops.h"
#include "tensor/tensor.h"

extern const chi_kernel_list chi_plain_attention, chi_plain_cast, chi_plain_conv2d,
		chi_plain_elementwise, chi_plain_matmul, chi_plain_move, chi_plain_norm, chi_plain_pool2d,
		chi_plain_random, chi_plain_recurrent, chi_plain_reduce, chi_plain_scatter,
		chi_plain_softmax, chi_plain_update;

// Loops over the elements of a shape, with a stride (in elements) for each of its operands, which
// broadcast to it. Dimensions that can be walked as one are one; the last is the loop for the
// kernel.
enum { CHI_BROADCAST_OPERANDS = 3 };
typedef struct {
	int rank; // at least 1
	int64_t dim[CHOIR_MAX_RANK];
	int64_t stride[CHI_BROADCAST_OPERANDS][CHOIR_MAX_RANK];
	int64_t index[CHOIR_MAX_RANK]; // of the dimensions before the last
	int64_t at[CHI_BROADCAST_OPERANDS]; // where each operand is
	bool done;
} chi_broadcast_iterator;

void chi_broadcast_iterator_init(chi_broadcast_iterator *it, const choir_shape *shape, size_t n,
		const choir_buffer operands[]);
// Moves on by one run of the last dimension; done is set after the last run.
void chi_broadcast_iterator_next(chi_broadcast_iterator *it);
static inline int64_t chi_broadcast_iterator_run(const chi_broadcast_iterator *it)
{
	return it->dim[it->rank - 1];
}
// Whether an operand has one element for the whole run.
static inline bool chi_broadcast_iterator_repeats(const chi_broadcast_iterator *it, size_t operand)
{
	return it->stride[operand][it->rank - 1] == 0;
}

static inline int64_t chi_elements(const choir_buffer *b)
{
	return choir_shape_elements(&b->shape);
}

// A pointer to the i-th element.
static inline void *chi_element(const choir_buffer *b, int64_t i)
{
	return (char *) b->data + (size_t) i * chi_dtype_size(b->dtype);
}

// Element i of labels or indices: u8, i32 or i64.
static inline int64_t chi_index_at(const choir_buffer *b, int64_t i)
{
	if (b->dtype == CHOIR_U8)
		return ((const uint8_t *) b->data)[i];
	return b->dtype == CHOIR_I32 ? ((const int32_t *) b->data)[i] : ((const int64_t *) b->data)[i];
}

// Writes n numbers as the dtype: rounded to even, integers truncated and saturated (a NAN is 0),
// bool whether it is not 0.
void chi_narrow(choir_dtype dtype, void *out, const double *x, int64_t n);
// Numbers of the dtype as f64, which holds all of them but large i64 exactly.
void chi_widen(choir_dtype dtype, double *out, const void *x, int64_t n);

// c [m, n] = (accumulate ? c : 0) + a b, for f32 or f64; each element is added in the order of k.
// a's element (i, p) is at i * a_row + p * a_column, b's (p, j) at p * b_row + j * b_column; c's
// rows are c_row apart.
typedef struct {
	choir_dtype dtype;
	int64_t m, n, k;
	const void *a, *b;
	int64_t a_row, a_column, b_row, b_column, c_row;
	void *c;
	bool accumulate;
	void *scratch; // chi_gemm_scratch bytes
} chi_gemm;

void chi_gemm_run(const chi_gemm *p);
size_t chi_gemm_scratch(choir_dtype dtype);

// How kernels that are made of many products have them made: their spec's user. Others than the
// plain way need no scratch memory for them.
typedef struct {
	choir_status (*gemm)(const chi_gemm *p);
} chi_gemm_kernel;
extern const chi_gemm_kernel chi_plain_gemm;

// Kernels whose products are made in the way of the call's user, for every library's list.
choir_status chi_attention(const choir_kernel_call *call);
choir_status chi_attention_gradient(const choir_kernel_call *call);
size_t chi_attention_scratch(const choir_kernel_call *call);
choir_status chi_lstm(const choir_kernel_call *call);
choir_status chi_lstm_gradient(const choir_kernel_call *call);
choir_status chi_gru(const choir_kernel_call *call);
choir_status chi_gru_gradient(const choir_kernel_call *call);
choir_status chi_recurrent_gradient(const choir_kernel_call *call);
size_t chi_recurrent_scratch(const choir_kernel_call *call);

// out [rows, n] = activate(out + bias); bias may be NULL.
void chi_finish(choir_dtype dtype, void *out, int64_t rows, int64_t n, const void *bias,
		choir_activate activate);
