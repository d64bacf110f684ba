// The inner loops of the plain kernels: over packed memory, with no shapes. They are compiled once
// for each instruction set (loops.c, loops.avx2.c, loops.avx512.c, all from loops.inc) and the
// widest that the machine has is chosen at run time. Their bits do not depend on the choice:
// contraction is off, and every sum has a fixed number of partial sums in a fixed order.
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

enum {
	CHI_COLUMNS = 64, // most columns of one call of sum_rows
	CHI_ROUND = 16, // elements that loops take at a time: rows of whole ones have no rest
	CHI_ARITHMETIC_DTYPES = CHOIR_U8 + 1, // f32 f64 i32 i64 u8: those with a chi_number_loops
	CHI_REAL_DTYPES = CHOIR_F64 + 1
};

// What a sum is collected in: integers wrap, and are narrowed at the end.
typedef union {
	double real;
	uint64_t integer;
} chi_total;

// For each arithmetic dtype. out may be an input, but not overlap one otherwise.
typedef struct {
	// An operand that repeats has one element. Integers wrap; divided by zero they are 0.
	void (*binary)(chi_binary op, void *out, const void *a, const void *b, int64_t n,
			bool a_repeats, bool b_repeats);
	void (*square)(void *out, const void *x, int64_t n);
	// Adds to *total the sum of n elements.
	void (*sum)(chi_total *total, const void *x, int64_t n);
	// Adds to total[j], for each of n <= CHI_COLUMNS columns, rows elements that lie stride apart.
	void (*sum_rows)(chi_total *total, const void *x, int64_t rows, int64_t stride, int64_t n);
} chi_number_loops;

typedef struct {
	int64_t n, h, w, c; // of x
	int64_t out_h, out_w;
	const choir_pool2d_attributes *attributes;
} chi_pool;

// What norms do: rows [n] are normalised by a mean and a factor of their own, columns by one for
// each column. Sums go to f64.
typedef struct {
	// The mean of x (0 unless centered) and 1 / sqrt(variance + epsilon), around that mean.
	void (*moments)(void *moments, const void *x, int64_t n, bool centered, double epsilon);
	// out = (x - mean) factor scale + offset; offset may be NULL.
	void (*row)(void *out, const void *x, const void *moments, const void *scale,
			const void *offset, int64_t n);
	void (*row_gradient)(void *dx, const void *x, const void *moments, const void *scale,
			const void *dy, int64_t n, bool centered);
	// Adds to normal[j] and plain[j], of n <= CHI_COLUMNS columns, dy times the normalised x, and
	// dy, of rows rows that lie stride apart, with moments of each row.
	void (*row_sums)(double *normal, double *plain, const void *x, const void *moments,
			const void *dy, int64_t rows, int64_t stride, int64_t n);

	// Adds to sum[j] and square[j] the elements of rows rows and their squares, in f64.
	void (*column_moments)(
			double *sum, double *square, const void *x, int64_t rows, int64_t stride, int64_t n);
	// out = (x - mean) factor + offset.
	void (*column)(void *out, const void *x, const void *mean, const void *factor,
			const void *offset, int64_t n);
	// Adds to normal[j] and plain[j] as row_sums, with a mean and a factor of each column.
	void (*column_sums)(double *normal, double *plain, const void *x, const void *mean,
			const void *factor, const void *dy, int64_t rows, int64_t stride, int64_t n);
	// dx = by (dy - plain - (x - mean) normal).
	void (*column_gradient)(void *dx, const void *x, const void *dy, const void *mean,
			const void *by, const void *normal, const void *plain, int64_t n);
} chi_norm_loops;

// One place of one sequence of a recurrent layer with h elements of state. row is where the
// place's values are kept, as extend/kernel_table.h lists them; c and h without before are in it.
typedef struct {
	// row has the sums of gates and products; the rest of it is made.
	void (*lstm)(void *row, const void *cell_before, int64_t h);
	// dz [4 h] from dh (what comes from above and from the place behind, added up) and dc, which
	// becomes that of the place before.
	void (*lstm_gradient)(void *dz, void *dc, const void *dh, const void *row,
			const void *cell_before, int64_t h);
	// row has q in its first three parts.
	void (*gru)(void *row, const void *gates, const void *state_before, int64_t h);
	// dgates and dq [3 h], and in dh, in place, what goes to the state before without a product.
	void (*gru_gradient)(void *dgates, void *dq, void *dh, const void *row,
			const void *state_before, int64_t h);
} chi_recurrent_loops;

// For f32 and f64.
typedef struct {
	void (*unary)(chi_unary op, void *out, const void *x, int64_t n);
	// by: the input of square, both forms of gelu, silu and softplus, the result of the others.
	void (*gradient)(chi_unary op, void *out, const void *by, const void *dy, int64_t n);
	// dy where a < b is less, else 0.
	void (*maximum_gradient)(void *out, const void *a, const void *b, const void *dy, int64_t n,
			bool a_repeats, bool b_repeats, bool less);
	void (*scale)(void *out, const void *x, double by, int64_t n);
	// x^2 / 2 up to the bound, a line beyond it; and dy times x, bounded by it, over the bound.
	void (*huber)(void *out, const void *x, double bound, int64_t n);
	void (*huber_gradient)(void *out, const void *x, const void *dy, double bound, int64_t n);
	// x times by, or 0 where the upper 24 bits of the element's word are below threshold.
	void (*dropout)(void *out, const void *x, const uint32_t *words, uint32_t threshold, double by,
			int64_t n);
	void (*exp_minus)(void *out, const void *x, double by, int64_t n); // exp(x - by)
	// dy - by exp(y)
	void (*minus_exp)(void *out, const void *dy, const void *y, double by, int64_t n);
	double (*max)(const void *x, int64_t n); // n > 0
	double (*dot)(const void *a, const void *b, int64_t n); // collected in f64
	// Makes exp(row - largest) of n > 0 elements, and 0 of the others up to room, a whole number
	// of rounds; the sum.
	double (*exp_row)(void *row, int64_t n, int64_t capacity);
	// dx = y (dy - sum(y dy))
	void (*softmax_gradient)(void *dx, const void *y, const void *dy, int64_t n);

	void (*sgd)(void *w, const void *g, const choir_update_attributes *a, int64_t n);
	void (*momentum)(
			void *w, void *velocity, const void *g, const choir_update_attributes *a, int64_t n);
	void (*adam)(
			void *w, void *m, void *v, const void *g, const choir_update_attributes *a, int64_t n);
	void (*rmsprop)(
			void *w, void *v, void *m, const void *g, const choir_update_attributes *a, int64_t n);

	const chi_norm_loops *norm;
	const chi_recurrent_loops *recurrent;

	void (*max_pool)(const chi_pool *p, void *out, const void *x);
	void (*max_pool_gradient)(
			const chi_pool *p, void *dx, const void *x, const void *y, const void *dy);
	void (*average_pool)(const chi_pool *p, void *out, const void *x);
	void (*average_pool_gradient)(const chi_pool *p, void *dx, const void *dy);

	// c [tile_rows, tile_columns], rows c_row apart, = (first ? 0 : c) + a b, added in the order
	// of k. a is packed [k, tile_rows], b [k, tile_columns].
	int64_t tile_rows, tile_columns;
	void (*tile)(int64_t k, const void *a, const void *b, void *c, int64_t c_row, bool first);
} chi_real_loops;

typedef struct {
	const char *name;
	const chi_number_loops *number[CHI_ARITHMETIC_DTYPES];
	const chi_real_loops *real[CHI_REAL_DTYPES];
	// Blocks of four words of Philox4x32-10, of counters that go up from counter[0] and
	// counter[1].
	void (*philox)(
			uint32_t *words, const uint32_t counter[4], const uint32_t key[2], int64_t blocks);
	void (*add_f16)(void *out, const void *a, const void *b, int64_t n);
	void (*add_bf16)(void *out, const void *a, const void *b, int64_t n);
} chi_loops;

extern const chi_loops chi_loops_baseline;
#ifdef CHI_HAS_X86_KERNELS
extern const chi_loops chi_loops_avx2, chi_loops_avx512;
#endif

// The index-th variant that this machine can run, the widest first; NULL: no more.
const chi_loops *chi_loops_variant(size_t index);
const chi_loops *chi_loops_best(void);
