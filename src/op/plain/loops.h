// Inner loops on packed memory, compiled for each instruction set. All give the same bits: no
// fused multiply-adds, and each sum has a fixed number and order of partial sums.
#pragma once

#include "choir/extend/kernel_table.h"

typedef enum {
	CHI_ADD,
	CHI_SUBTRACT,
	CHI_MULTIPLY,
	CHI_DIVIDE,
	CHI_MAXIMUM,
	CHI_MINIMUM
} chi_binary;
typedef enum {
	CHI_SQUARE,
	CHI_SQRT,
	CHI_EXP,
	CHI_LOG,
	CHI_RELU,
	CHI_TANH,
	CHI_SIGMOID,
	CHI_GELU_TANH,
	CHI_GELU,
	CHI_SILU,
	CHI_SOFTPLUS
} chi_unary;
typedef enum { CHI_NUMBER_SQUARE, CHI_ABS, CHI_NEGATE, CHI_SIGN } chi_number_unary;
typedef enum { CHI_EQUAL, CHI_NOT_EQUAL, CHI_LESS, CHI_LESS_EQUAL } chi_comparison;
// In the order of float_loops.inc's tables.
typedef enum {
	CHI_FLOOR,
	CHI_CEIL,
	CHI_ROUND_EVEN,
	CHI_SIN,
	CHI_COS,
	CHI_TAN,
	CHI_RSQRT,
	CHI_LOG1P,
	CHI_EXPM1,
	CHI_ERF
} chi_library;
typedef enum { CHI_POW, CHI_ATAN2 } chi_library2;

enum {
	CHI_COLUMNS = 64,
	CHI_ROUND = 16,
	CHI_ARITHMETIC_DTYPES = CHOIR_U8 + 1,
	CHI_REAL_DTYPES = CHOIR_F64 + 1
};

// Integers wrap, and are narrowed at the end.
typedef union {
	double real;
	uint64_t integer;
} chi_total;

// Updates with one slot, and with two.
typedef enum {
	CHI_UPDATE_MOMENTUM,
	CHI_UPDATE_ADAGRAD,
	CHI_UPDATE_LION,
	CHI_UPDATES1
} chi_update1;
typedef enum {
	CHI_UPDATE_ADAM,
	CHI_UPDATE_RMSPROP,
	CHI_UPDATE_NADAM,
	CHI_UPDATE_LAMB,
	CHI_UPDATES2
} chi_update2;

// out may be an input, but must not overlap one otherwise.
typedef struct {
	// A repeating operand has one element. Integers wrap; x / 0 is 0.
	void (*binary)(chi_binary op, void *out, const void *a, const void *b, int64_t n,
			bool a_repeats, bool b_repeats);
	void (*unary)(chi_number_unary op, void *out, const void *x, int64_t n);
	void (*compare)(chi_comparison op, uint8_t *out, const void *a, const void *b, int64_t n,
			bool a_repeats, bool b_repeats);
	// *total too: the largest (CHI_MAXIMUM) or smallest.
	void (*extreme)(chi_binary op, void *total, const void *x, int64_t n);
	void (*cumsum)(void *out, const void *x, int64_t n, int64_t step, bool exclusive);
	// Indices, largest first.
	void (*top_k)(int64_t *out, const void *x, int64_t n, int64_t k);
	void (*sum)(chi_total *total, const void *x, int64_t n);
	// Adds `rows` elements, stride apart, to total[j] of n <= CHI_COLUMNS columns.
	void (*sum_rows)(chi_total *total, const void *x, int64_t rows, int64_t stride, int64_t n);
} chi_number_loops;

typedef struct {
	int64_t n, h, w, c;
	int64_t out_h, out_w;
	const choir_pool2d_attributes *attributes;
} chi_pool;

// Norms with a mean and a factor per row or column. Sums are in f64.
typedef struct {
	// The mean (0 unless centered), 1 / sqrt(variance + epsilon).
	void (*moments)(void *moments, const void *x, int64_t n, bool centered, double epsilon);
	// (x - mean) factor scale + offset; offset may be NULL.
	void (*row)(void *out, const void *x, const void *moments, const void *scale,
			const void *offset, int64_t n);
	void (*row_gradient)(void *dx, const void *x, const void *moments, const void *scale,
			const void *dy, int64_t n, bool centered);
	// For n <= CHI_COLUMNS columns adds dy times the normalised x to normal[j], dy to plain[j].
	void (*row_sums)(double *normal, double *plain, const void *x, const void *moments,
			const void *dy, int64_t rows, int64_t stride, int64_t n);

	void (*column_moments)(
			double *sum, double *square, const void *x, int64_t rows, int64_t stride, int64_t n);
	// (x - mean) factor + offset
	void (*column)(void *out, const void *x, const void *mean, const void *factor,
			const void *offset, int64_t n);
	void (*column_sums)(double *normal, double *plain, const void *x, const void *mean,
			const void *factor, const void *dy, int64_t rows, int64_t stride, int64_t n);
	// by (dy - plain - (x - mean) normal)
	void (*column_gradient)(void *dx, const void *x, const void *dy, const void *mean,
			const void *by, const void *normal, const void *plain, int64_t n);
} chi_norm_loops;

// A time step. extend/kernel_table.h lists the parts of row; "_before": the previous step's.
typedef struct {
	// From the gates' sums.
	void (*lstm)(void *row, const void *cell_before, int64_t h);
	// dz [4 h] from dh, of the output and the next time step. dc becomes the previous step's.
	void (*lstm_gradient)(void *dz, void *dc, const void *dh, const void *row,
			const void *cell_before, int64_t h);
	// row begins with q's three parts.
	void (*gru)(void *row, const void *gates, const void *state_before, int64_t h);
	// dgates and dq [3 h]. dh becomes the previous state's part that passes no product.
	void (*gru_gradient)(void *dgates, void *dq, void *dh, const void *row,
			const void *state_before, int64_t h);
} chi_recurrent_loops;

typedef struct {
	void (*unary)(chi_unary op, void *out, const void *x, int64_t n);
	void (*library)(chi_library function, void *out, const void *x, int64_t n);
	void (*library2)(chi_library2 function, void *out, const void *a, const void *b, int64_t n,
			bool a_repeats, bool b_repeats);
	// by: the input of square, gelu, silu and softplus, the result of the others.
	void (*gradient)(chi_unary op, void *out, const void *by, const void *dy, int64_t n);
	// dy where (a < b) == less, else 0.
	void (*maximum_gradient)(void *out, const void *a, const void *b, const void *dy, int64_t n,
			bool a_repeats, bool b_repeats, bool less);
	void (*scale)(void *out, const void *x, double by, int64_t n);
	// x^2 / 2 up to the bound, then a line; dy times the clamped x.
	void (*huber)(void *out, const void *x, double bound, int64_t n);
	void (*huber_gradient)(void *out, const void *x, const void *dy, double bound, int64_t n);
	// x by, or 0 where the word's upper 24 bits are below threshold.
	void (*dropout)(void *out, const void *x, const uint32_t *words, uint32_t threshold, double by,
			int64_t n);
	void (*exp_minus)(void *out, const void *x, double by, int64_t n); // exp(x - by)
	// dy - by exp(y)
	void (*minus_exp)(void *out, const void *dy, const void *y, double by, int64_t n);
	double (*max)(const void *x, int64_t n);
	double (*dot)(const void *a, const void *b, int64_t n); // in f64
	// exp(row - maximum), then zeros up to capacity, a multiple of CHI_ROUND. Returns the sum.
	double (*exp_row)(void *row, int64_t n, int64_t capacity);
	// dx = y (dy - sum(y dy))
	void (*softmax_gradient)(void *dx, const void *y, const void *dy, int64_t n);

	void (*sgd)(void *w, const void *g, const choir_update_attributes *a, int64_t n);
	// Indexed by chi_update1 and chi_update2.
	void (*update1[CHI_UPDATES1])(
			void *w, void *slot, const void *g, const choir_update_attributes *a, int64_t n);
	void (*update2[CHI_UPDATES2])(void *w, void *slot, void *second, const void *g,
			const choir_update_attributes *a, int64_t n);

	const chi_norm_loops *norm;
	const chi_recurrent_loops *recurrent;

	void (*max_pool)(const chi_pool *p, void *out, const void *x);
	void (*max_pool_gradient)(
			const chi_pool *p, void *dx, const void *x, const void *y, const void *dy);
	// out [of y]: u, shaped like x, where x first equals the window's y.
	void (*max_pool_take)(
			const chi_pool *p, void *out, const void *x, const void *y, const void *u);
	void (*average_pool)(const chi_pool *p, void *out, const void *x);
	void (*average_pool_gradient)(const chi_pool *p, void *dx, const void *dy);

	// c [tile_rows, tile_columns] = (first ? 0 : c) + a b in the order of k. a is packed [k,
	// tile_rows], b [k, tile_columns]; rows of c are c_row apart.
	int64_t tile_rows, tile_columns;
	void (*tile)(int64_t k, const void *a, const void *b, void *c, int64_t c_row, bool first);
} chi_real_loops;

typedef struct {
	void (*add)(void *out, const void *a, const void *b, int64_t n);
	void (*widen)(void *out, const void *x, int64_t n);
	void (*narrow)(void *out, const void *x, int64_t n);
	void (*relu)(void *out, const void *x, int64_t n);
	void (*relu_gradient)(void *out, const void *y, const void *dy, int64_t n);
	// With the bits of f32's.
	void (*sum_rows)(chi_total *total, const void *x, int64_t rows, int64_t stride, int64_t n);
	// As chi_real_loops'. The gradient is for windows that do not overlap.
	void (*max_pool)(const chi_pool *p, void *out, const void *x);
	void (*max_pool_gradient)(
			const chi_pool *p, void *dx, const void *x, const void *y, const void *dy);
	// As chi_norm_loops', with moments of f32 and the bits of f32's.
	void (*row_sums)(double *normal, double *plain, const void *x, const void *moments,
			const void *dy, int64_t rows, int64_t stride, int64_t n);
} chi_half_loops;

typedef struct {
	const char *name;
	const chi_number_loops *number[CHI_ARITHMETIC_DTYPES];
	const chi_real_loops *real[CHI_REAL_DTYPES];
	// Blocks of four words, counting up counter[0] and counter[1].
	void (*philox)(
			uint32_t *words, const uint32_t counter[4], const uint32_t key[2], int64_t blocks);
	const chi_half_loops *f16, *bf16;
} chi_loops;

extern const chi_loops chi_loops_baseline;
#ifdef CHI_HAS_X86_KERNELS
extern const chi_loops chi_loops_avx2, chi_loops_avx512;
#endif

// Widest first; NULL after the last.
const chi_loops *chi_loops_variant(size_t index);
const chi_loops *chi_loops_best(void);
static inline const chi_half_loops *chi_half_loops_best(choir_dtype dtype)
{
	return dtype == CHOIR_F16 ? chi_loops_best()->f16 : chi_loops_best()->bf16;
}
