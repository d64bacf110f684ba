// Expressions on tensors, recorded if a tape is on. Shapes broadcast from the right; dtypes must agree
// but for plain numbers. Threads: the operands' frame's.
#pragma once

#include "tensor.h"

CHOIR_C_BEGIN

typedef choir_tensor *choir_binary_op(choir_tensor *a, choir_tensor *b);
typedef choir_tensor *choir_unary_op(choir_tensor *x);
choir_binary_op choir_add, choir_subtract, choir_multiply, choir_divide, choir_maximum;
choir_unary_op choir_square, choir_sqrt, choir_exp, choir_log, choir_relu, choir_tanh, choir_sigmoid;
choir_unary_op choir_gelu; // tanh form, Hendrycks and Gimpel 2016
choir_unary_op choir_softmax; // along the last axis
choir_unary_op choir_stop_gradient;
choir_tensor *choir_scale(choir_tensor *x, double by);
// Reductions drop their axes. argmax gives i64, the lowest index of equals.
choir_tensor *choir_sum(choir_tensor *x, choir_axes axes);
choir_tensor *choir_mean(choir_tensor *x, choir_axes axes);
choir_tensor *choir_argmax(choir_tensor *x, int axis);

choir_tensor *choir_reshape(choir_tensor *x, choir_shape shape); // one dim may be CHOIR_NONE
choir_tensor *choir_cast(choir_tensor *x, choir_dtype dtype);
typedef enum { CHOIR_TRANSPOSED_NONE = 0, CHOIR_TRANSPOSED_A, CHOIR_TRANSPOSED_B } choir_transposed;
choir_tensor *choir_matmul(choir_tensor *a, choir_tensor *b, choir_transposed which); // [.., m, k] [.., k, n]
choir_tensor *choir_bias_add(choir_tensor *x, choir_tensor *bias);
// x [n, h, w, c], filter [kh, kw, c, out]. padding: -1 same (TensorFlow's SAME), else pixels a side.
choir_tensor *choir_conv2d(choir_tensor *x, choir_tensor *filter, int stride, int padding);
choir_tensor *choir_max_pool2d(choir_tensor *x, int size, int stride, int padding);
choir_tensor *choir_average_pool2d(choir_tensor *x, int size, int stride, int padding);
choir_tensor *choir_dropout(choir_tensor *x, double rate, uint64_t seed); // x unchanged without a tape

// One loss an example: [n, classes] and integer labels [n] give [n]; [n, ...] twice give [n].
choir_tensor *choir_softmax_cross_entropy(choir_tensor *logits, choir_tensor *labels);
choir_tensor *choir_squared_error(choir_tensor *x, choir_tensor *target);
// One's own operation on packed host memory, on the tape like the others. The functions run on the
// replica's thread and call nothing of Choir but choir_fail. gradient[i].data NULL: not wanted.
typedef struct {
	void *data;
	choir_dtype dtype;
	choir_shape shape;
} choir_buffer;
typedef struct {
	size_t size;
	const char *name; // in messages and traces
	choir_status (*shape)(size_t n, const choir_buffer in[], choir_buffer *out, void *user); // NULL: as in[0]
	choir_status (*forward)(size_t n, const choir_buffer in[], choir_buffer *out, void *user);
	choir_status (*backward)(size_t n, const choir_buffer in[], const choir_buffer *out, const choir_buffer *out_gradient, choir_buffer gradient[], void *user);
} choir_custom_op;
choir_tensor *choir_custom(const choir_custom_op *op, void *user, size_t n, choir_tensor *const inputs[]);

CHOIR_C_END
