// The table of a kernel: one operation on one kind of device for one dtype. The operations, their
// inputs and their attributes are listed below; shapes and dtypes were checked before a kernel is
// asked, and out's shape is set.
#pragma once

#include "../op.h"
#include "device.h"

CHOIR_C_BEGIN

typedef enum {
	CHOIR_ACTIVATE_LINEAR = 0,
	CHOIR_ACTIVATE_RELU,
	CHOIR_ACTIVATE_TANH,
	CHOIR_ACTIVATE_SIGMOID
} choir_activate;

// Elementwise, two inputs that broadcast from the right to out: "add" "subtract" "multiply" "divide"
// "maximum" (no attributes). "maximum_gradient" (a, b, dy; attribute side): dy where a >= b (side 0)
// or where a < b (side 1), else 0.
typedef struct {
	int side;
} choir_maximum_gradient_attributes;

// One input of out's shape: "square" "sqrt" "exp" "log" "relu" "tanh" "sigmoid" "gelu" and "scale".
// Their gradients: "square_gradient" (x, dy), "sqrt_gradient" (y, dy), "relu_gradient" (y, dy),
// "tanh_gradient" (y, dy), "sigmoid_gradient" (y, dy), "gelu_gradient" (x, dy).
typedef struct {
	double by;
} choir_scale_attributes;

// "fill" (no input): every element is value.
typedef struct {
	double value;
} choir_fill_attributes;

// "sum": over the axes whose bit is set (bit i: axis i of the input). "argmax": along axis, out i64,
// the lowest index of equals. "broadcast": the input's elements repeated from the right. "cast": the
// kernel's dtype is the input's.
typedef struct {
	uint32_t axes;
} choir_sum_attributes;
typedef struct {
	int axis;
} choir_argmax_attributes;

// "matmul": a [.., m, k] (transposed: [.., k, m]) times b [.., k, n] (transposed: [.., n, k]); b may
// have rank 2 for all of a's leading axes, else leading axes are equal.
typedef struct {
	choir_transposed transposed;
} choir_matmul_attributes;

// "dense": x [m, k], w [k, n], bias [n]; out [m, n] = activate(x w + bias).
typedef struct {
	choir_activate activate;
} choir_dense_attributes;

// "conv2d": x [n, h, w, c], filter [kh, kw, c, out] and, if there is a third input, bias [out]; out
// [n, oh, ow, out] = activate(x * filter + bias). "conv2d_gradient_input": filter, dy (before the
// activation); out is dx. "conv2d_gradient_filter": x, dy; out is the filter's gradient.
typedef struct {
	int stride;
	int top, left, bottom, right; // zeros around x
	choir_activate activate;
} choir_conv2d_attributes;

// "max_pool2d", "average_pool2d": x [n, h, w, c]; the mean is over the elements inside x.
// "max_pool2d_gradient": x, y, dy; the first maximum of a window (by row, then column) gets it.
// "average_pool2d_gradient": dy; out is dx.
typedef struct {
	int window, stride;
	int top, left, bottom, right;
} choir_pool2d_attributes;

// "softmax" along the last axis; "softmax_gradient": y, dy. "softmax_cross_entropy": logits
// [n, classes], labels [n] (u8, i32 or i64; one outside the classes is CHOIR_INVALID naming it where
// the host can see it, else NAN); out [n]. "softmax_cross_entropy_gradient": logits, labels, dlosses
// [n]; out like logits.

// "dropout": elements are kept with probability 1 - rate and divided by it; its gradient is itself.
// "random_normal" (no input). Element i uses the Philox block of the key at index i / 4 (dropout: word
// i % 4) or i / 2 (normal: number i % 2).
typedef struct {
	uint64_t seed, step;
	uint32_t replica, place;
	double rate; // dropout
} choir_random_attributes;

// Updates write their inputs but the last, the gradient: "sgd_update" (w, g), "momentum_update"
// (w, velocity, g), "adam_update" (w, m, v, g); out is in[0]. Formulas: optimizer.h.
typedef struct {
	double rate, momentum;
	double beta1, beta2, epsilon;
	double decay; // times rate times w is subtracted first (AdamW)
	double correction; // Adam: sqrt(1 - beta2^t) / (1 - beta1^t)
	double gradient_scale; // the gradient is multiplied by it first
	bool nesterov;
} choir_update_attributes;

// "chunk_squares": out f64 [ceil(elements / chunk)], the sum of squares of each chunk of the input.
typedef struct {
	int64_t chunk;
} choir_chunk_squares_attributes;

typedef struct {
	size_t size;
	void *stream; // of the device's table
	size_t n;
	const choir_buffer *in;
	choir_buffer *out;
	const void *attributes;
	void *scratch; // on the device, 64-byte aligned, as many bytes as asked for
	const void *user; // the table's
} choir_kernel_call;

typedef struct choir_kernel_table {
	size_t size;
	uint32_t version;
	const char *operation, *kind, *name; // "matmul", "cuda", "cublas"
	choir_dtype dtype; // of in[0]; without inputs, of out
	const void *user;
	int (*score)(const choir_kernel_call *call); // 0: cannot; the highest wins. NULL: 1
	size_t (*scratch)(const choir_kernel_call *call); // bytes. NULL: none
	choir_status (*run)(const choir_kernel_call *call); // queues, where the device is asynchronous
} choir_kernel_table;

// Copies the table; before the first operation, from one thread.
choir_status choir_register_kernel(const choir_kernel_table *table);

CHOIR_C_END
