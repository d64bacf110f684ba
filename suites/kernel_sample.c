// Random numbers and memory of samples, and the table of operations. The functions that make the
// samples of layers are in layer_sample.c.
#include "kernel_sample.h"

#include "layer_sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The finisher of SplitMix64 (kernel_table.h).
static uint64_t next(chi_sample *s)
{
	uint64_t x = s->seed += 0x9E3779B97F4A7C15;
	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
	x = (x ^ x >> 27) * 0x94D049BB133111EB;
	return x ^ x >> 31;
}

double chi_sample_number(chi_sample *s, double low, double high)
{
	return low + (high - low) * ((double) (next(s) >> 11) * 0x1p-53);
}

int64_t chi_sample_integer(chi_sample *s, int64_t low, int64_t high)
{
	return low + (int64_t) (next(s) % (uint64_t) (high - low + 1));
}

static size_t bytes_of(choir_dtype dtype)
{
	static const size_t bytes[] = { [CHOIR_F32] = 4,
		[CHOIR_F64] = 8,
		[CHOIR_I32] = 4,
		[CHOIR_I64] = 8,
		[CHOIR_U8] = 1,
		[CHOIR_BOOL] = 1,
		[CHOIR_F16] = 2,
		[CHOIR_BF16] = 2 };
	return bytes[dtype];
}

size_t chi_sample_bytes(const choir_buffer *b)
{
	return (size_t) choir_shape_elements(&b->shape) * bytes_of(b->dtype);
}

choir_status chi_sample_allocate(choir_buffer *b)
{
	const size_t bytes = chi_sample_bytes(b);
	b->data = NULL;
	if (posix_memalign(&b->data, 64, bytes > 0 ? bytes : 1) != 0)
		return choir_fail(CHOIR_NO_MEMORY, "suite: a tensor of %zu bytes", bytes);
	return CHOIR_OK;
}

choir_status chi_sample_cast(choir_device *cpu, const choir_buffer *from, choir_buffer *to)
{
	const choir_kernel_call call = { .size = sizeof call, .n = 1, .in = from, .out = to };
	return choir_kernel_run(cpu, "cast", "plain", &call);
}

// Fills a tensor with random numbers.
static choir_status fill(chi_sample *s, choir_buffer *to, double low, double high, double grid)
{
	choir_buffer numbers = { .dtype = CHOIR_F64, .shape = to->shape };
	CHOIR_TRY(chi_sample_allocate(&numbers));
	double *number = numbers.data;
	for (int64_t i = choir_shape_elements(&to->shape); i-- > 0;) {
		number[i] = chi_sample_number(s, low, high);
		if (grid > 0)
			number[i] = rint(number[i] / grid) * grid;
	}
	const choir_status status = chi_sample_cast(s->cpu, &numbers, to);
	free(numbers.data);
	return status;
}

// Whole numbers and bools cannot have all values of a row.
static bool is_whole(choir_dtype dtype)
{
	return dtype == CHOIR_I32 || dtype == CHOIR_I64 || dtype == CHOIR_U8 || dtype == CHOIR_BOOL;
}

choir_buffer *chi_sample_add_range(
		chi_sample *s, choir_dtype dtype, choir_shape shape, double low, double high)
{
	choir_buffer *b = &s->in[s->n++];
	const bool natural = dtype == CHOIR_U8 || dtype == CHOIR_BOOL;
	*b = (choir_buffer){ .dtype = dtype, .shape = shape };
	if (s->status == CHOIR_OK)
		s->status = chi_sample_allocate(b);
	if (s->status == CHOIR_OK)
		s->status = fill(s, b, natural && low < 0 ? 0 : low, dtype == CHOIR_BOOL ? 1 : high,
				is_whole(dtype) ? 1 : s->row->grid);
	return b;
}

choir_buffer *chi_sample_add(chi_sample *s, choir_dtype dtype, choir_shape shape)
{
	return chi_sample_add_range(s, dtype, shape, s->row->low, s->row->high);
}

void chi_sample_set(chi_sample *s, const void *attributes, size_t bytes)
{
	memcpy(s->attributes, attributes, bytes);
}

void chi_sample_give(chi_sample *s, choir_dtype dtype, choir_shape shape)
{
	s->out = (choir_buffer){ .dtype = dtype, .shape = shape };
}

int64_t chi_sample_size(chi_sample *s)
{
	static const int64_t sizes[] = { 1, 16, 31, 64, 100, 145 };
	return s->large ? sizes[chi_sample_integer(s, 0, 5)] : chi_sample_integer(s, 1, 9);
}

choir_shape chi_sample_shape(chi_sample *s, int least_rank)
{
	choir_shape shape = { .rank = (int) chi_sample_integer(s, least_rank, s->large ? 2 : 4) };
	for (int i = 0; i < shape.rank; i++)
		shape.dim[i] = chi_sample_size(s);
	return shape;
}

// Inputs of one shape, as many as the row's detail.
static void elementwise(chi_sample *s)
{
	const choir_shape shape = chi_sample_shape(s, 0);
	for (int i = 0; i < s->row->detail; i++)
		(void) chi_sample_add(s, s->dtype, shape);
	chi_sample_give(s, s->dtype, shape);
	s->takes_nan = s->row->detail == 1;
	if (strcmp(s->row->operation, "scale") == 0)
		chi_sample_set(s, &(choir_scale_attributes){ -1.7 }, sizeof(choir_scale_attributes));
	if (strncmp(s->row->operation, "huber", 5) == 0)
		chi_sample_set(s, &(choir_huber_attributes){ 1.25 }, sizeof(choir_huber_attributes));
	if (strcmp(s->row->operation, "dropout") == 0)
		chi_sample_set(s,
				&(choir_random_attributes){
						.seed = s->seed, .step = 3, .replica_id = 1, .place = 7, .rate = 0.3 },
				sizeof(choir_random_attributes));
}

// A part of a shape that broadcasts to it.
static choir_shape repeated(chi_sample *s, const choir_shape *shape)
{
	choir_shape part = { .rank = (int) chi_sample_integer(s, 0, shape->rank) };
	for (int i = 0; i < part.rank; i++) {
		const int64_t all = shape->dim[shape->rank - part.rank + i];
		part.dim[i] = chi_sample_integer(s, 0, 2) == 0 ? 1 : all;
	}
	return part;
}

// A shape that broadcasts with part to shape.
static choir_shape remaining(chi_sample *s, const choir_shape *shape, const choir_shape *part)
{
	choir_shape other = *shape;
	for (int i = 0; i < part->rank; i++) {
		const int axis = shape->rank - part->rank + i;
		if (part->dim[i] == shape->dim[axis] && chi_sample_integer(s, 0, 2) == 0)
			other.dim[axis] = 1;
	}
	return other;
}

enum { CHOICE = 1, COMPARISON, SIDE };

static void broadcasting(chi_sample *s)
{
	const choir_shape shape = chi_sample_shape(s, 0), part = repeated(s, &shape);
	const choir_shape other = remaining(s, &shape, &part);
	const bool swapped = chi_sample_integer(s, 0, 1) != 0;
	const int detail = s->row->detail;
	(void) chi_sample_add(s, s->dtype, swapped ? other : part);
	(void) chi_sample_add(s, s->dtype, swapped ? part : other);
	if (detail == CHOICE)
		(void) chi_sample_add(s, CHOIR_BOOL, repeated(s, &shape));
	if (detail == SIDE) {
		(void) chi_sample_add(s, s->dtype, shape);
		chi_sample_set(s,
				&(choir_maximum_gradient_attributes){ (int) chi_sample_integer(s, 0, 1) },
				sizeof(choir_maximum_gradient_attributes));
	}
	s->takes_nan = true;
	chi_sample_give(s, detail == COMPARISON ? CHOIR_BOOL : s->dtype, shape);
}

static void filled(chi_sample *s)
{
	chi_sample_set(s, &(choir_fill_attributes){ 2.6 }, sizeof(choir_fill_attributes));
	chi_sample_give(s, s->dtype, chi_sample_shape(s, 0));
}

static void normal(chi_sample *s)
{
	chi_sample_set(s,
			&(choir_random_attributes){ .seed = s->seed, .step = 2, .replica_id = 1, .place = 5 },
			sizeof(choir_random_attributes));
	chi_sample_give(s, s->dtype, chi_sample_shape(s, 0));
}

// Sums and extremes over a set of axes.
static void reduction(chi_sample *s)
{
	const choir_shape in = chi_sample_shape(s, 1);
	const uint32_t axes = (uint32_t) chi_sample_integer(s, 1, (1 << in.rank) - 1);
	choir_shape out = { 0 };
	for (int i = 0; i < in.rank; i++)
		if ((axes >> i & 1) == 0)
			out.dim[out.rank++] = in.dim[i];
	(void) chi_sample_add(s, s->dtype, in);
	chi_sample_set(s, &(choir_sum_attributes){ axes }, sizeof(choir_sum_attributes));
	chi_sample_give(s, s->dtype, out);
}

static void extreme_index(chi_sample *s)
{
	const choir_shape in = chi_sample_shape(s, 1);
	const int axis = (int) chi_sample_integer(s, 0, in.rank - 1);
	choir_shape out = { 0 };
	for (int i = 0; i < in.rank; i++)
		if (i != axis)
			out.dim[out.rank++] = in.dim[i];
	(void) chi_sample_add(s, s->dtype, in);
	chi_sample_set(s, &(choir_argmax_attributes){ axis }, sizeof(choir_argmax_attributes));
	chi_sample_give(s, CHOIR_I64, out);
}

static void cumulative(chi_sample *s)
{
	const choir_shape in = chi_sample_shape(s, 1);
	const choir_cumsum_attributes a = { .axis = (int) chi_sample_integer(s, 0, in.rank - 1),
		.exclusive = chi_sample_integer(s, 0, 1) != 0,
		.reverse = chi_sample_integer(s, 0, 1) != 0 };
	(void) chi_sample_add(s, s->dtype, in);
	chi_sample_set(s, &a, sizeof a);
	chi_sample_give(s, s->dtype, in);
}

static void largest(chi_sample *s)
{
	choir_shape shape = chi_sample_shape(s, 1);
	(void) chi_sample_add(s, s->dtype, shape);
	int64_t *last = &shape.dim[shape.rank - 1];
	*last = chi_sample_integer(s, 1, *last);
	chi_sample_set(s, &(choir_top_k_attributes){ *last }, sizeof(choir_top_k_attributes));
	chi_sample_give(s, CHOIR_I64, shape);
}

static void broadcast(chi_sample *s)
{
	const choir_shape shape = chi_sample_shape(s, 0);
	(void) chi_sample_add(s, s->dtype, repeated(s, &shape));
	chi_sample_give(s, s->dtype, shape);
}

static void cast(chi_sample *s)
{
	const choir_shape shape = chi_sample_shape(s, 0);
	(void) chi_sample_add(s, s->dtype, shape);
	chi_sample_give(s, (choir_dtype) chi_sample_integer(s, CHOIR_F32, CHOIR_BF16), shape);
}

enum { SLICE, SLICE_GRADIENT, CONCAT, FLIP };

static void along_an_axis(chi_sample *s)
{
	const choir_shape whole = chi_sample_shape(s, 1);
	choir_shape part = whole, rest = whole;
	choir_slice_attributes a = { .axis = (int) chi_sample_integer(s, 0, whole.rank - 1) };
	const int64_t n = whole.dim[a.axis];
	const int detail = s->row->detail;
	part.dim[a.axis] = chi_sample_integer(s, 1, n);
	rest.dim[a.axis] = n - part.dim[a.axis];
	if (detail == SLICE || detail == SLICE_GRADIENT)
		a.first = chi_sample_integer(s, 0, n - part.dim[a.axis]);
	(void) chi_sample_add(s, s->dtype, detail == SLICE || detail == FLIP ? whole : part);
	if (detail == CONCAT && rest.dim[a.axis] > 0)
		(void) chi_sample_add(s, s->dtype, rest);
	if (detail == FLIP)
		chi_sample_set(s, &(choir_flip_attributes){ a.axis }, sizeof(choir_flip_attributes));
	else
		chi_sample_set(s, &a, sizeof a);
	chi_sample_give(s, s->dtype, detail == SLICE ? part : whole);
}

static void transposed(chi_sample *s)
{
	const choir_shape in = chi_sample_shape(s, 1);
	choir_shape out = in;
	choir_transpose_attributes a = { 0 };
	for (int i = 0; i < in.rank; i++)
		a.axes[i] = i;
	for (int i = in.rank - 1; i > 0; i--) {
		const int64_t other = chi_sample_integer(s, 0, i);
		const int axis = a.axes[i];
		a.axes[i] = a.axes[other];
		a.axes[other] = axis;
	}
	for (int i = 0; i < in.rank; i++)
		out.dim[i] = in.dim[a.axes[i]];
	(void) chi_sample_add(s, s->dtype, in);
	chi_sample_set(s, &a, sizeof a);
	chi_sample_give(s, s->dtype, out);
}

enum { GATHER, GATHER_GRADIENT, SCATTER };

static void by_index(chi_sample *s)
{
	static const choir_dtype dtypes[] = { CHOIR_I32, CHOIR_I64, CHOIR_U8 };
	choir_shape rows = chi_sample_shape(s, 1), some = rows;
	const int detail = s->row->detail;
	const choir_dtype dtype = dtypes[chi_sample_integer(s, 0, detail == SCATTER ? 1 : 2)];
	some.dim[0] = chi_sample_size(s);
	(void) chi_sample_add(s, s->dtype, detail == GATHER_GRADIENT ? some : rows);
	(void) chi_sample_add_range(
			s, dtype, (choir_shape){ 1, { some.dim[0] } }, 0, (double) rows.dim[0] - 1);
	if (detail == SCATTER)
		(void) chi_sample_add(s, s->dtype, some);
	s->in_place = detail == SCATTER;
	chi_sample_give(s, s->dtype, detail == GATHER ? some : rows);
}

static void chunk_squares(chi_sample *s)
{
	const choir_shape in = chi_sample_shape(s, 1);
	const int64_t chunk = chi_sample_integer(s, 1, 70), n = choir_shape_elements(&in);
	(void) chi_sample_add(s, s->dtype, in);
	chi_sample_set(
			s, &(choir_chunk_squares_attributes){ chunk }, sizeof(choir_chunk_squares_attributes));
	chi_sample_give(s, CHOIR_F64, (choir_shape){ 1, { (n + chunk - 1) / chunk } });
}

static void update_gate(chi_sample *s)
{
	const int64_t variables = chi_sample_size(s);
	const choir_update_gate_attributes a = { .scale = 4,
		.clip = (double) chi_sample_integer(s, 0, 2),
		.any = chi_sample_integer(s, 0, 1) == 1 };
	const choir_buffer *ends =
			chi_sample_add_range(s, CHOIR_I64, (choir_shape){ 1, { variables } }, 0, 5);
	if (s->status != CHOIR_OK || s->dtype != CHOIR_F64)
		return;
	int64_t *end = ends->data;
	for (int64_t i = 1; i < variables; i++)
		end[i] += end[i - 1];
	end[variables - 1]++;
	(void) chi_sample_add(s, CHOIR_F64, (choir_shape){ 1, { end[variables - 1] } });
	const choir_buffer squares = s->in[1];
	s->in[1] = s->in[0];
	s->in[0] = squares;
	chi_sample_set(s, &a, sizeof a);
	chi_sample_give(s, CHOIR_F64, (choir_shape){ 1, { 4 } });
}

// detail: the number of inputs, and 10 times the index of the one that is never negative.
static void update(chi_sample *s)
{
	const choir_shape shape = chi_sample_shape(s, 0);
	const choir_update_attributes a = { .rate = 0.1,
		.momentum = 0.9,
		.beta1 = 0.9,
		.beta2 = 0.99,
		.epsilon = 1e-3,
		.decay = 0.01,
		.correction = 0.4,
		.gradient_scale = 0.3,
		.nesterov = chi_sample_integer(s, 0, 1) != 0,
		.rho = 0.9,
		.m_factor = 0.7,
		.g_factor = 0.2,
		.v_factor = 1.5,
		.initial_accumulator = 0.1 };
	for (int i = 0; i < s->row->detail % 10; i++)
		(void) chi_sample_add_range(s, s->dtype, shape,
				i > 0 && i == s->row->detail / 10 ? 0.1 : s->row->low, s->row->high);
	s->in_place = true;
	chi_sample_set(s, &a, sizeof a);
	chi_sample_give(s, s->dtype, shape);
}

#define EXACT 0, 1
#define NEAR 16, 1
#define SUM 128, 0

const chi_kernel_row chi_kernel_rows[] = {
	{ "add", broadcasting, -4, 4, 0, NEAR, 0 },
	{ "subtract", broadcasting, -4, 4, 0, NEAR, 0 },
	{ "multiply", broadcasting, -4, 4, 0, NEAR, 0 },
	{ "divide", broadcasting, 1, 4, 0, NEAR, 0 },
	{ "maximum", broadcasting, -4, 4, 1, EXACT, 0 },
	{ "minimum", broadcasting, -4, 4, 1, EXACT, 0 },
	{ "pow", broadcasting, 0.25, 4, 0, NEAR, 0 },
	{ "atan2", broadcasting, -4, 4, 0, NEAR, 0 },
	{ "equal", broadcasting, -4, 4, 1, EXACT, COMPARISON },
	{ "not_equal", broadcasting, -4, 4, 1, EXACT, COMPARISON },
	{ "less", broadcasting, -4, 4, 1, EXACT, COMPARISON },
	{ "less_equal", broadcasting, -4, 4, 1, EXACT, COMPARISON },
	{ "logical_and", broadcasting, 0, 1, 1, EXACT, 0 },
	{ "logical_or", broadcasting, 0, 1, 1, EXACT, 0 },
	{ "where", broadcasting, -4, 4, 0, EXACT, CHOICE },
	{ "maximum_gradient", broadcasting, -4, 4, 1, EXACT, SIDE },
	{ "square", elementwise, -4, 4, 0, NEAR, 1 },
	{ "abs", elementwise, -4, 4, 0, EXACT, 1 },
	{ "negate", elementwise, -4, 4, 0, EXACT, 1 },
	{ "sign", elementwise, -4, 4, 1, EXACT, 1 },
	{ "sqrt", elementwise, 0, 4, 0, NEAR, 1 },
	{ "rsqrt", elementwise, 0.1, 4, 0, NEAR, 1 },
	{ "exp", elementwise, -8, 8, 0, NEAR, 1 },
	{ "expm1", elementwise, -4, 4, 0, NEAR, 1 },
	{ "log", elementwise, 0.01, 9, 0, NEAR, 1 },
	{ "log1p", elementwise, -0.9, 4, 0, NEAR, 1 },
	{ "floor", elementwise, -4, 4, 0.5, EXACT, 1 },
	{ "ceil", elementwise, -4, 4, 0.5, EXACT, 1 },
	{ "round", elementwise, -4, 4, 0.5, EXACT, 1 },
	{ "sin", elementwise, -20, 20, 0, NEAR, 1 },
	{ "cos", elementwise, -20, 20, 0, NEAR, 1 },
	{ "tan", elementwise, -4, 4, 0, NEAR, 1 },
	{ "erf", elementwise, -4, 4, 0, NEAR, 1 },
	{ "relu", elementwise, -4, 4, 0, EXACT, 1 },
	{ "tanh", elementwise, -9, 9, 0, NEAR, 1 },
	{ "sigmoid", elementwise, -9, 9, 0, NEAR, 1 },
	{ "gelu", elementwise, -6, 6, 0, NEAR, 1 },
	{ "gelu_tanh", elementwise, -6, 6, 0, NEAR, 1 },
	{ "silu", elementwise, -9, 9, 0, NEAR, 1 },
	{ "softplus", elementwise, -9, 9, 0, NEAR, 1 },
	{ "huber", elementwise, -4, 4, 0, NEAR, 1 },
	{ "scale", elementwise, -4, 4, 0, NEAR, 1 },
	{ "dropout", elementwise, -4, 4, 0, NEAR, 1 },
	{ "random_normal", normal, 0, 0, 0, NEAR, 0 },
	{ "square_gradient", elementwise, -4, 4, 0, NEAR, 2 },
	{ "sqrt_gradient", elementwise, 0.1, 4, 0, NEAR, 2 },
	{ "relu_gradient", elementwise, -4, 4, 1, EXACT, 2 },
	{ "tanh_gradient", elementwise, -1, 1, 0, NEAR, 2 },
	{ "sigmoid_gradient", elementwise, -1, 1, 0, NEAR, 2 },
	{ "gelu_gradient", elementwise, -6, 6, 0, NEAR, 2 },
	{ "gelu_tanh_gradient", elementwise, -6, 6, 0, 64, 1, 2 },
	{ "silu_gradient", elementwise, -9, 9, 0, NEAR, 2 },
	{ "softplus_gradient", elementwise, -9, 9, 0, NEAR, 2 },
	{ "huber_gradient", elementwise, -4, 4, 0, NEAR, 2 },
	{ "fill", filled, 0, 0, 0, EXACT, 0 },
	{ "sum", reduction, -2, 2, 0, SUM, 0 },
	{ "max", reduction, -4, 4, 0, EXACT, 0 },
	{ "min", reduction, -4, 4, 0, EXACT, 0 },
	{ "argmax", extreme_index, -4, 4, 1, EXACT, 0 },
	{ "argmin", extreme_index, -4, 4, 1, EXACT, 0 },
	{ "cumsum", cumulative, -2, 2, 0, SUM, 0 },
	{ "top_k", largest, -4, 4, 1, EXACT, 0 },
	{ "chunk_squares", chunk_squares, -4, 4, 0, SUM, 0 },
	{ "broadcast", broadcast, -4, 4, 0, EXACT, 0 },
	{ "cast", cast, -300, 300, 0.25, EXACT, 0 },
	{ "slice", along_an_axis, -4, 4, 0, EXACT, SLICE },
	{ "slice_gradient", along_an_axis, -4, 4, 0, EXACT, SLICE_GRADIENT },
	{ "concat", along_an_axis, -4, 4, 0, EXACT, CONCAT },
	{ "flip", along_an_axis, -4, 4, 0, EXACT, FLIP },
	{ "transpose", transposed, -4, 4, 0, EXACT, 0 },
	{ "gather", by_index, -4, 4, 0, EXACT, GATHER },
	{ "gather_gradient", by_index, -4, 4, 0, SUM, GATHER_GRADIENT },
	{ "scatter_update", by_index, -4, 4, 0, EXACT, SCATTER },
	{ "scatter_add", by_index, -4, 4, 0, SUM, SCATTER },
	{ "scatter_subtract", by_index, -4, 4, 0, SUM, SCATTER },
	{ "scatter_multiply", by_index, 1, 1.4, 0, SUM, SCATTER },
	{ "scatter_divide", by_index, 1, 1.4, 0, SUM, SCATTER },
	{ "scatter_minimum", by_index, -4, 4, 0, EXACT, SCATTER },
	{ "scatter_maximum", by_index, -4, 4, 0, EXACT, SCATTER },
	{ "sgd_update", update, -2, 2, 0, NEAR, 2 },
	{ "momentum_update", update, -2, 2, 0, NEAR, 3 },
	{ "adagrad_update", update, -2, 2, 0, NEAR, 13 },
	{ "lion_update", update, -2, 2, 0, NEAR, 3 },
	{ "adam_update", update, -2, 2, 0, NEAR, 24 },
	{ "rmsprop_update", update, -2, 2, 0, NEAR, 14 },
	{ "nadam_update", update, -2, 2, 0, NEAR, 24 },
	{ "lamb_update", update, -2, 2, 0, NEAR, 24 },
	{ "update_gate", update_gate, 0, 4, 0, EXACT, 0 },
	{ "matmul", chi_sample_matmul, -1, 1, 0, SUM, 0 },
	{ "dense", chi_sample_dense, -1, 1, 0, SUM, 0 },
	{ "conv2d", chi_sample_conv2d, -1, 1, 0, SUM, CHI_FORWARD },
	{ "conv2d_gradient_input", chi_sample_conv2d, -1, 1, 0, SUM, CHI_GRADIENT_INPUT },
	{ "conv2d_gradient_filter", chi_sample_conv2d, -1, 1, 0, SUM, CHI_GRADIENT_FILTER },
	{ "max_pool2d", chi_sample_pool2d, -4, 4, 1, EXACT, CHI_FORWARD },
	{ "max_pool2d_gradient", chi_sample_pool2d, -4, 4, 1, SUM, CHI_MAX_GRADIENT },
	{ "max_pool2d_take", chi_sample_pool2d, -4, 4, 1, EXACT, CHI_MAX_TAKE },
	{ "average_pool2d", chi_sample_pool2d, -4, 4, 0, SUM, CHI_FORWARD },
	{ "average_pool2d_gradient", chi_sample_pool2d, -4, 4, 0, SUM, CHI_GRADIENT_INPUT },
	{ "softmax", chi_sample_rows, -4, 4, 0, SUM, 1 },
	{ "softmax_gradient", chi_sample_rows, -1, 1, 0, SUM, 2 },
	{ "log_softmax", chi_sample_rows, -4, 4, 0, SUM, 1 },
	{ "log_softmax_gradient", chi_sample_rows, -4, 1, 0, SUM, 2 },
	{ "softmax_cross_entropy", chi_sample_cross_entropy, -4, 4, 0, SUM, CHI_FORWARD },
	{ "softmax_cross_entropy_gradient", chi_sample_cross_entropy, -4, 4, 0, SUM,
			CHI_GRADIENT_INPUT },
	{ "attention", chi_sample_attention, -1, 1, 0, SUM, CHI_FORWARD },
	{ "attention_gradient", chi_sample_attention, -1, 1, 0, SUM, CHI_GRADIENT_INPUT },
	{ "lstm", chi_sample_recurrent, -1, 1, 0, SUM, 4 },
	{ "lstm_gradient", chi_sample_recurrent_gradient, -1, 1, 0, SUM, 4 },
	{ "gru", chi_sample_recurrent, -1, 1, 0, SUM, 3 },
	{ "gru_gradient", chi_sample_recurrent_gradient, -1, 1, 0, SUM, 3 },
	{ "recurrent_gradient", chi_sample_recurrent_weights, -1, 1, 0, SUM, 0 },
	{ "row_moments", chi_sample_row_norm, -4, 4, 0, SUM, CHI_MOMENTS },
	{ "row_norm", chi_sample_row_norm, -2, 2, 0, SUM, CHI_FORWARD },
	{ "row_norm_gradient", chi_sample_row_norm, -2, 2, 0, SUM, CHI_GRADIENT_INPUT },
	{ "row_norm_sums", chi_sample_row_norm, -2, 2, 0, SUM, CHI_SUMS },
	{ "channel_sums", chi_sample_channel_norm, -2, 2, 0, SUM, CHI_MOMENTS },
	{ "channel_moments", chi_sample_channel_moments, -2, 2, 0, SUM, 0 },
	{ "channel_norm", chi_sample_channel_norm, -2, 2, 0, SUM, CHI_FORWARD },
	{ "channel_norm_sums", chi_sample_channel_norm, -2, 2, 0, SUM, CHI_SUMS },
	{ "channel_norm_gradient", chi_sample_channel_norm, -2, 2, 0, SUM, CHI_GRADIENT_INPUT },
	{ .operation = NULL },
};

choir_status chi_sample_make(
		chi_sample *s, const chi_kernel_row *row, choir_dtype dtype, uint64_t seed, bool large)
{
	choir_device *cpu = choir_device_find("cpu:0");
	*s = (chi_sample){ .row = row, .cpu = cpu, .dtype = dtype, .seed = seed, .large = large };
	if (cpu == NULL)
		return choir_error_status();
	row->make(s);
	CHOIR_TRY(s->status);
	if (!s->in_place)
		return chi_sample_allocate(&s->out);
	s->out.data = s->in[0].data;
	return CHOIR_OK;
}

void chi_sample_free(chi_sample *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->in[i].data);
	if (!s->in_place)
		free(s->out.data);
}
