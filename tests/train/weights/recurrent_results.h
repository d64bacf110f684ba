// What tests of weights of recurrent layers from PyTorch and Keras share: the nets' sizes, the
// weights' numbers, and the comparison with the library's results.
#pragma once

#include "choir/layer.h"
#include "choir/op.h"
#include "test.h"

#include <math.h>

enum { IN = 3, UNITS = 2, N = 2, STEPS = 3, OUT = N * STEPS * 2 * UNITS };

static inline float pattern(int i)
{
	return (float) (i * 37 % 23 - 11) / 16;
}

static inline void assert_results(choir_layer *net, const char *name, const float results[OUT])
{
	float x[N * STEPS * IN];
	for (int i = 0; i < N * STEPS * IN; i++)
		x[i] = pattern(i + 5);
	choir_frame *f = choir_frame_new(NULL);
	const float *y = choir_tensor_data(
			choir_layer_apply(net, choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(N, STEPS, IN), x)));
	assert_non_null(y);
	for (int i = 0; i < OUT; i++)
		if (!(fabsf(y[i] - results[i]) < 2e-6f))
			fail_msg("%s, element %d: %.9g; %.9g is needed", name, i, (double) y[i],
					(double) results[i]);
	choir_frame_free(f);
}
