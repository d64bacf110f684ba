// Casts are recorded operations, so gradients have the dtypes of their tensors. A backward pass
// ignores the rules: operations run in the dtype of their operands.
#include "op/precision/precision.h"

#include "base/clock.h"
#include "op/tape/tape.h"

#include <stdlib.h>
#include <string.h>

#define ALL UINT32_MAX
#define ALLOW CHOIR_PRECISION_ALLOW
#define KEEP CHOIR_PRECISION_KEEP
#define PROMOTE CHOIR_PRECISION_PROMOTE

enum { FIRST = 1, FIRST_TWO = 3 };

// By name. Biases, and the parameters and statistics of norms, stay f32.
static const choir_precision_row rows[] = {
	{ "abs", PROMOTE, ALL, false },
	{ "add", PROMOTE, ALL, false },
	{ "atan2", KEEP, ALL, false },
	{ "attention", ALLOW, ALL, false },
	{ "average_pool2d", PROMOTE, ALL, false },
	{ "average_pool2d_gradient", PROMOTE, ALL, false },
	{ "broadcast", PROMOTE, ALL, false },
	{ "channel_norm", PROMOTE, FIRST, false },
	{ "concat", PROMOTE, ALL, false },
	{ "conv2d", ALLOW, FIRST_TWO, false },
	{ "conv2d_gradient_filter", ALLOW, ALL, true },
	{ "conv2d_gradient_input", ALLOW, ALL, false },
	{ "cos", KEEP, ALL, false },
	{ "cumsum", KEEP, ALL, false },
	{ "dense", ALLOW, FIRST_TWO, false },
	{ "divide", PROMOTE, ALL, false },
	{ "dropout", PROMOTE, ALL, false },
	{ "equal", PROMOTE, ALL, false },
	{ "erf", KEEP, ALL, false },
	{ "exp", KEEP, ALL, false },
	{ "expm1", KEEP, ALL, false },
	{ "flip", PROMOTE, ALL, false },
	{ "gather", PROMOTE, 0, false },
	{ "gather_gradient", PROMOTE, 0, false },
	{ "gelu", PROMOTE, ALL, false },
	{ "gelu_tanh", PROMOTE, ALL, false },
	{ "gru", ALLOW, FIRST_TWO, false },
	{ "huber", KEEP, ALL, false },
	{ "less", PROMOTE, ALL, false },
	{ "less_equal", PROMOTE, ALL, false },
	{ "log", KEEP, ALL, false },
	{ "log1p", KEEP, ALL, false },
	{ "log_softmax", KEEP, ALL, false },
	{ "lstm", ALLOW, FIRST_TWO, false },
	{ "matmul", ALLOW, ALL, false },
	{ "max", PROMOTE, ALL, false },
	{ "max_pool2d", PROMOTE, ALL, false },
	{ "max_pool2d_gradient", PROMOTE, ALL, false },
	{ "max_pool2d_take", PROMOTE, ALL, false },
	{ "maximum", PROMOTE, ALL, false },
	{ "maximum_gradient", PROMOTE, ALL, false },
	{ "min", PROMOTE, ALL, false },
	{ "minimum", PROMOTE, ALL, false },
	{ "multiply", PROMOTE, ALL, false },
	{ "negate", PROMOTE, ALL, false },
	{ "not_equal", PROMOTE, ALL, false },
	{ "pow", KEEP, ALL, false },
	{ "relu", PROMOTE, ALL, false },
	{ "row_norm", PROMOTE, FIRST, false },
	{ "rsqrt", KEEP, ALL, false },
	{ "scale", PROMOTE, ALL, false },
	{ "sigmoid", PROMOTE, ALL, false },
	{ "sign", PROMOTE, ALL, false },
	{ "silu", PROMOTE, ALL, false },
	{ "sin", KEEP, ALL, false },
	{ "slice", PROMOTE, ALL, false },
	{ "slice_gradient", PROMOTE, ALL, false },
	{ "softmax", KEEP, ALL, false },
	{ "softmax_cross_entropy", PROMOTE, FIRST, true },
	{ "softplus", KEEP, ALL, false },
	{ "sqrt", KEEP, ALL, false },
	{ "square", KEEP, ALL, false },
	{ "subtract", PROMOTE, ALL, false },
	{ "sum", PROMOTE, ALL, true },
	{ "tan", KEEP, ALL, false },
	{ "tanh", PROMOTE, ALL, false },
	{ "transpose", PROMOTE, ALL, false },
	{ "where", PROMOTE, FIRST_TWO, false },
};
enum { ROWS = sizeof rows / sizeof rows[0] };

const choir_precision_row *choir_precision_rules(size_t *count)
{
	if (count != NULL)
		*count = ROWS;
	return rows;
}

static int by_name(const void *name, const void *row)
{
	return strcmp(name, ((const choir_precision_row *) row)->operation);
}

static const choir_precision_row *find(const char *operation)
{
	return bsearch(operation, rows, ROWS, sizeof rows[0], by_name);
}

const char *choir_precision_name(choir_precision p)
{
	static const char *const names[] = { "default", "f32", "tf32", "mixed_bf16", "mixed_f16",
		"auto" };
	return (unsigned) p < sizeof names / sizeof names[0] ? names[p] : "unknown";
}

choir_dtype chi_precision_dtype(choir_precision p)
{
	return p == CHOIR_PRECISION_MIXED_BF16	 ? CHOIR_BF16
			: p == CHOIR_PRECISION_MIXED_F16 ? CHOIR_F16
											 : CHOIR_F32;
}

static bool has_kernel(const chi_op *op, choir_frame *f, choir_dtype dtype)
{
	return op->forward != NULL || chi_kernel_exists(f->device, op->name, dtype);
}

bool choir_precision_is_narrow(choir_precision p, const char *operation, choir_device *d)
{
	const choir_dtype dtype = chi_precision_dtype(p);
	const choir_precision_row *row = operation == NULL ? NULL : find(operation);
	if (d == NULL)
		d = choir_device_find("cpu:0");
	if (p == CHOIR_PRECISION_TF32)
		return operation != NULL && d != NULL && chi_kernel_has_tf32(d, operation);
	return dtype != CHOIR_F32 && row != NULL && row->rule != KEEP && d != NULL &&
			chi_kernel_exists(d, operation, dtype);
}

bool choir_precision_is_native(choir_precision p)
{
	return p == CHOIR_PRECISION_MIXED_BF16 && chi_kernel_has_native_bf16();
}

// Plain numbers have no dtype of their own.
static bool counts(const choir_tensor *t)
{
	return !t->is_number && (t->dtype == CHOIR_F32 || chi_dtype_is_half(t->dtype));
}

// F64: as the operands are.
static choir_dtype promoted(uint32_t operands, size_t n, choir_tensor *const in[])
{
	choir_dtype half = CHOIR_F64;
	for (size_t i = 0; i < n; i++) {
		if ((operands >> i & 1) == 0 || !counts(in[i]))
			continue;
		if (chi_dtype_is_half(in[i]->dtype))
			half = half == CHOIR_F64 || half == in[i]->dtype ? in[i]->dtype : CHOIR_F32;
		else if (in[i]->source == NULL)
			return CHOIR_F32;
	}
	return half;
}

static choir_dtype dtype_for(
		const choir_frame *f, const choir_precision_row *row, size_t n, choir_tensor *const in[])
{
	const bool backward = f->tape != NULL && f->tape->used;
	if (backward || (row != NULL && row->rule == PROMOTE))
		return promoted(row == NULL ? ALL : row->operands, n, in);
	return row != NULL && row->rule == ALLOW ? f->narrow : CHOIR_F32;
}

// A whole variable's 16 bits, which its reads share; NULL: t is none.
static choir_tensor *shared(choir_tensor *t, choir_dtype dtype)
{
	if (t->source == NULL || t->source->narrow == NULL || !chi_dtype_is_half(dtype))
		return NULL;
	return t->source->narrow(t, dtype);
}

bool chi_precision_fit(const chi_op *op, choir_frame *f, size_t n, choir_tensor *in[])
{
	if (op == &chi_cast_op)
		return true;
	const choir_precision_row *row = op->foreign ? NULL : find(op->name);
	const bool failed = f->failed;
	choir_dtype dtype = dtype_for(f, row, n, in);
	if (dtype == CHOIR_F64)
		return true;
	if (dtype != CHOIR_F32 && !has_kernel(op, f, dtype))
		dtype = CHOIR_F32;
	const uint32_t operands = row == NULL ? ALL : row->operands;
	for (size_t i = 0; i < n; i++) {
		if ((operands >> i & 1) == 0 || !counts(in[i]) || in[i]->dtype == dtype)
			continue;
		choir_tensor *same = shared(in[i], dtype);
		if (f->failed && !failed)
			return false;
		in[i] = same != NULL ? chi_cast_record(in[i], same) : choir_cast(in[i], dtype);
		if (in[i] == NULL)
			return false;
	}
	return true;
}

choir_tensor *chi_precision_narrow(choir_tensor *y)
{
	if (y == NULL || y->frame->narrow == CHOIR_F32 || y->dtype != CHOIR_F32)
		return y;
	return choir_cast(y, y->frame->narrow);
}

bool chi_precision_takes_wide(const choir_tensor *t)
{
	return chi_dtype_is_half(t->dtype) && t->node != NULL && t->node->op == &chi_cast_op &&
			t->node->in[0]->dtype == CHOIR_F32;
}

enum { MEASURED_ROWS = 512, MEASURED_WIDTH = 256, TIMES = 5 };

static choir_tensor *block(choir_tensor *x, choir_tensor *up, choir_tensor *down)
{
	choir_tensor *y = choir_gelu(choir_matmul(x, up, CHOIR_TRANSPOSED_NONE));
	y = choir_add(x, choir_matmul(y, down, CHOIR_TRANSPOSED_NONE));
	return choir_sum(choir_multiply(y, y), CHOIR_ALL_AXES);
}

static choir_status run_once(choir_frame *f, choir_precision p, double *seconds)
{
	const choir_shape x = CHOIR_SHAPE(MEASURED_ROWS, MEASURED_WIDTH);
	const choir_shape up = CHOIR_SHAPE(MEASURED_WIDTH, 4 * MEASURED_WIDTH);
	const choir_shape down = CHOIR_SHAPE(4 * MEASURED_WIDTH, MEASURED_WIDTH);
	choir_frame_clear(f);
	choir_frame_set_precision(f, CHOIR_PRECISION_F32);
	choir_tensor *const sources[] = { choir_random_normal(f, CHOIR_F32, x, 1),
		choir_random_normal(f, CHOIR_F32, up, 2), choir_random_normal(f, CHOIR_F32, down, 3) };
	choir_tensor *gradients[3];
	choir_tape *tape = choir_tape_begin(f);
	CHOIR_TRY(f->failed ? chi_frame_status(f) : chi_stream_wait(f->stream));
	choir_frame_set_precision(f, p);
	const double start = chi_clock_now();
	choir_tensor *y = block(sources[0], sources[1], sources[2]);
	CHOIR_TRY(choir_tape_gradient(tape, y, 3, sources, gradients));
	CHOIR_TRY(chi_stream_wait(f->stream));
	const double taken = chi_clock_now() - start;
	*seconds = *seconds == 0 || taken < *seconds ? taken : *seconds;
	return CHOIR_OK;
}

choir_status choir_precision_measure(choir_precision p, choir_device *d, double *cost)
{
	if (p < CHOIR_PRECISION_F32 || p > CHOIR_PRECISION_MIXED_F16)
		return choir_fail(CHOIR_INVALID,
				"precision: %s cannot be measured; F32, TF32, MIXED_BF16 or MIXED_F16 is needed",
				choir_precision_name(p));
	choir_frame *f = choir_frame_new(d);
	choir_status status = chi_made(f);
	double wide = 0, narrow = 0;
	for (int i = 0; i < TIMES && status == CHOIR_OK; i++) {
		status = run_once(f, CHOIR_PRECISION_F32, &wide);
		if (status == CHOIR_OK)
			status = run_once(f, p, &narrow);
	}
	choir_frame_free(f);
	*cost = wide > 0 ? narrow / wide : 1;
	return status;
}
