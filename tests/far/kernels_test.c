// Kernels on the far device: the same bits as on the CPU, for what is queued after the call's own
// memory is gone; failures come with the next wait.
#include "base/status.h"
#include "device/device.h"
#include "op/kernel_oracles.h"
#include "op/op.h"
#include "test.h"

#include <string.h>

static size_t bytes_of(const choir_buffer *b)
{
	return (size_t) choir_shape_elements(&b->shape) * chi_dtype_size(b->dtype);
}

static choir_buffer to_device(chi_stream *s, const choir_buffer *host)
{
	choir_buffer b = *host;
	assert_int_equal(chi_device_allocate(s->device, bytes_of(host), &b.data), CHOIR_OK);
	assert_int_equal(chi_stream_copy(s, b.data, host->data, bytes_of(host)), CHOIR_OK);
	return b;
}

// Runs an operation on a device and copies its result to result.
static choir_status run_on(const char *device, const char *operation, size_t n,
		const choir_buffer in[], choir_buffer *result, const void *attributes,
		size_t attribute_bytes)
{
	choir_device *d = choir_device_find(device);
	assert_non_null(d);
	chi_stream *s = chi_stream_new(d);
	assert_non_null(s);
	choir_buffer there[4], out = to_device(s, result);
	unsigned char copy[128];
	for (size_t i = 0; i < n; i++)
		there[i] = to_device(s, &in[i]);
	memcpy(copy, attributes, attribute_bytes);
	choir_status status = chi_kernel_run(s, operation, n, there, &out, copy);
	memset(copy, 0xff, sizeof copy); // the kernel may run only now
	for (size_t i = 0; i < n; i++)
		there[i].dtype = CHOIR_BOOL;
	if (status == CHOIR_OK)
		status = chi_stream_copy(s, result->data, out.data, bytes_of(result));
	const choir_status waited = chi_stream_wait(s);
	for (size_t i = 0; i < n; i++)
		chi_device_release(d, there[i].data, bytes_of(&in[i]));
	chi_device_release(d, out.data, bytes_of(&out));
	chi_stream_free(s);
	return status != CHOIR_OK ? status : waited;
}

static void compare(const char *operation, kernel_case *c, const void *attributes, size_t bytes)
{
	choir_buffer far = kernels_buffer(c->out.dtype, c->out.shape);
	assert_int_equal(
			run_on("cpu:0", operation, c->n, c->in, &c->out, attributes, bytes), CHOIR_OK);
	assert_int_equal(run_on("far:0", operation, c->n, c->in, &far, attributes, bytes), CHOIR_OK);
	assert_memory_equal(far.data, c->out.data, bytes_of(&far));
	kernels_free(1, &far);
	kernel_case_free(c);
}

TEST(far_has_the_bits_of_the_cpu)
{
	uint64_t seed = 61;
	for (int i = 0; i < 10; i++) {
		const choir_dtype dtype = i % 2 ? CHOIR_F32 : CHOIR_F64;
		kernel_case c = matmul_case(dtype, &seed, i > 7);
		compare("matmul", &c, &(choir_matmul_attributes){ c.matmul.transposed }, sizeof c.matmul);
		c = dense_case(dtype, &seed, i > 7);
		const choir_dense_attributes dense = c.dense;
		compare("dense", &c, &dense, sizeof dense);
		c = conv2d_case(dtype, &seed, i > 7);
		const choir_conv2d_attributes conv2d = c.conv2d;
		compare("conv2d", &c, &conv2d, sizeof conv2d);
		c = pool2d_case(dtype, &seed);
		const choir_pool2d_attributes pool2d = c.pool2d;
		compare("max_pool2d", &c, &pool2d, sizeof pool2d);
	}
}

// Which kernel serves a piece may differ from what would serve all of the call: small images have
// too few tiles for Winograd's in one piece, and enough in all.
TEST(far_is_cut_as_the_cpu)
{
	uint64_t seed = 63;
	kernel_case c = { .n = 2,
		.in = { kernels_buffer(CHOIR_F32, CHOIR_SHAPE(64, 2, 2, 64)),
				kernels_buffer(CHOIR_F32, CHOIR_SHAPE(3, 3, 64, 64)) },
		.out = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(64, 2, 2, 64)) };
	const choir_conv2d_attributes conv2d = {
		.stride = 1, .dilation = 1, .groups = 1, .top = 1, .bottom = 1, .left = 1, .right = 1
	};
	kernels_fill(&c.in[0], &seed, -1, 1);
	kernels_fill(&c.in[1], &seed, -1, 1);
	compare("conv2d", &c, &conv2d, sizeof conv2d);
}

TEST(operations_without_inputs_or_attributes)
{
	kernel_case c = { .out = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(100)) };
	const choir_random_attributes random = { .seed = 5, .step = 6, .replica_id = 1, .place = 2 };
	compare("random_normal", &c, &random, sizeof random);
	uint64_t seed = 62;
	c = (kernel_case){ .n = 1,
		.in = { kernels_buffer(CHOIR_F32, CHOIR_SHAPE(100)) },
		.out = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(100)) };
	kernels_fill(&c.in[0], &seed, -1, 1);
	compare("tanh", &c, "", 0);
}

TEST(a_bad_label_is_reported_by_the_wait)
{
	choir_buffer in[2] = { kernels_buffer(CHOIR_F32, CHOIR_SHAPE(2, 3)),
		kernels_buffer(CHOIR_I64, CHOIR_SHAPE(2)) };
	choir_buffer loss = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(2));
	const choir_cross_entropy_attributes hard = { 0 };
	kernels_set(&in[1], 1, 3);
	chi_error_clear();
	assert_int_equal(run_on("far:0", "softmax_cross_entropy", 2, in, &loss, &hard, sizeof hard),
			CHOIR_INVALID);
	assert_text_holds(choir_error(), "label 3*example 1*0*2");
	kernels_free(2, in);
	kernels_free(1, &loss);
	chi_error_clear();
}
