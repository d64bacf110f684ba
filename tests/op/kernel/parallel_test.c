// Operations in pieces: the same bits alone and with teams of any size, the values of the whole,
// and a failure of one piece is the operation's.
#include "op/kernel/parallel.h"

#include "base/alloc.h"
#include "base/team.h"
#include "choir/nn.h"
#include "choir/op.h"
#include "op/kernel_calls.h"
#include "short.h"
#include "test.h"

#include <math.h>
#include <string.h>

typedef choir_tensor *making(choir_frame *f, bool small);

static choir_tensor *drawn(choir_frame *f, uint64_t seed, choir_shape shape)
{
	return choir_random_normal(f, CHOIR_F32, shape, seed);
}

// Of so many rows, which is cut; or of the first of them, which is not.
static choir_tensor *rows(choir_frame *f, uint64_t seed, int64_t n, int64_t width, bool small)
{
	choir_tensor *all = drawn(f, seed, CHOIR_SHAPE(n, width));
	return small ? choir_slice(all, 0, 0, 20) : all;
}

static choir_tensor *product(choir_frame *f, bool small)
{
	return choir_matmul(
			rows(f, 1, 700, 96, small), drawn(f, 2, CHOIR_SHAPE(96, 80)), CHOIR_TRANSPOSED_NONE);
}

static choir_tensor *product_with_transposed(choir_frame *f, bool small)
{
	return choir_matmul(
			rows(f, 1, 700, 96, small), drawn(f, 2, CHOIR_SHAPE(80, 96)), CHOIR_TRANSPOSED_B);
}

static choir_tensor *product_of_transposed(choir_frame *f, bool small)
{
	choir_tensor *a = drawn(f, 1, CHOIR_SHAPE(64, 700));
	if (small)
		a = choir_slice(a, 1, 0, 20);
	return choir_matmul(a, drawn(f, 2, CHOIR_SHAPE(64, 80)), CHOIR_TRANSPOSED_A);
}

// Of long sums, with rows of a page.
static choir_tensor *long_product_of_transposed(choir_frame *f, bool small)
{
	choir_tensor *a = choir_scale(drawn(f, 1, CHOIR_SHAPE(512, 1100)), 0.1);
	if (small)
		a = choir_slice(a, 1, 0, 20);
	return choir_matmul(a, drawn(f, 2, CHOIR_SHAPE(512, 42)), CHOIR_TRANSPOSED_A);
}

static choir_tensor *product_of_three_axes(choir_frame *f, bool small)
{
	choir_tensor *a =
			choir_reshape(rows(f, 1, 700, 96, small), CHOIR_SHAPE(small ? 4 : 140, 5, 96));
	choir_tensor *y = choir_matmul(a, drawn(f, 2, CHOIR_SHAPE(96, 80)), CHOIR_TRANSPOSED_NONE);
	return choir_reshape(y, CHOIR_SHAPE(small ? 20 : 700, 80));
}

static choir_tensor *dense(choir_frame *f, bool small)
{
	return chi_dense(rows(f, 1, 600, 64, small), drawn(f, 2, CHOIR_SHAPE(64, 48)),
			drawn(f, 3, CHOIR_SHAPE(48)), CHOIR_TANH);
}

static choir_tensor *attention(choir_frame *f, bool small)
{
	choir_tensor *x = drawn(f, 1, CHOIR_SHAPE(6, 70, 3 * 64));
	return choir_self_attention(small ? choir_slice(x, 0, 0, 1) : x,
			CHOIR_OPTIONS(choir_attention_options, .heads = 4, .causal = CHOIR_ON));
}

static choir_tensor *add(choir_frame *f, bool small)
{
	return choir_add(rows(f, 1, 1100, 70, small), rows(f, 2, 1100, 70, small));
}

static choir_tensor *add_a_number(choir_frame *f, bool small)
{
	return choir_multiply(rows(f, 1, 1100, 70, small), choir_fill(f, CHOIR_F32, CHOIR_SCALAR, 3));
}

static choir_tensor *add_a_row(choir_frame *f, bool small) // which is not cut
{
	return choir_add(rows(f, 1, 1100, 70, small), drawn(f, 2, CHOIR_SHAPE(70)));
}

static choir_tensor *gelu(choir_frame *f, bool small)
{
	return choir_gelu(rows(f, 1, 1100, 70, small));
}

static choir_tensor *norm(choir_frame *f, bool small)
{
	return choir_layer_norm(rows(f, 1, 1300, 40, small), drawn(f, 2, CHOIR_SHAPE(40)),
			drawn(f, 3, CHOIR_SHAPE(40)), 1e-5);
}

enum { IMAGES = 37, SIZE = 12 };

static choir_tensor *images(choir_frame *f, uint64_t seed, int64_t size, int64_t c, bool small)
{
	choir_tensor *x = drawn(f, seed, CHOIR_SHAPE(IMAGES, size, size, c));
	return small ? choir_slice(x, 0, 0, 1) : x;
}

static choir_tensor *convolution(choir_frame *f, bool small)
{
	return choir_conv2d(images(f, 1, SIZE, 32, small), drawn(f, 2, CHOIR_SHAPE(3, 3, 32, 32)),
			CHOIR_OPTIONS(choir_conv_options, .padding = 1));
}

static choir_tensor *convolution_with_stride(choir_frame *f, bool small)
{
	return choir_conv2d(images(f, 1, SIZE, 16, small), drawn(f, 2, CHOIR_SHAPE(3, 3, 16, 24)),
			CHOIR_OPTIONS(choir_conv_options, .stride = 2, .padding = 1));
}

static const choir_conv2d_attributes same = {
	.stride = 1, .top = 1, .left = 1, .bottom = 1, .right = 1, .dilation = 1, .groups = 1
};

static choir_tensor *input_gradient(choir_frame *f, bool small)
{
	choir_tensor *dy = images(f, 1, SIZE, 32, small),
				 *filter = drawn(f, 2, CHOIR_SHAPE(3, 3, 32, 32));
	choir_tensor *const in[] = { filter, dy };
	return chi_op_kernel(
			f, "conv2d_gradient_input", 2, in, &same, CHOIR_F32, choir_tensor_shape(dy));
}

static choir_tensor *max_pool(choir_frame *f, bool small)
{
	return choir_max_pool2d(images(f, 1, 2 * SIZE, 8, small), 2, 2, 0);
}

static choir_tensor *average_pool(choir_frame *f, bool small)
{
	return choir_average_pool2d(images(f, 1, 2 * SIZE, 8, small), 3, 2, 1);
}

static making *const all[] = { product, product_with_transposed, product_of_transposed,
	long_product_of_transposed, product_of_three_axes, dense, attention, add, add_a_number,
	add_a_row, gelu, norm, convolution, convolution_with_stride, input_gradient, max_pool,
	average_pool };
enum { CASES = sizeof all / sizeof all[0], MAX = 700 * 1100 };
static float alone[MAX], shared[MAX];

// Sums over examples, and what needs such sums: no row of them is that of a part.
static choir_tensor *filter_gradient_of(choir_frame *f, int64_t in, int64_t out)
{
	choir_tensor *const inputs[] = { images(f, 1, SIZE, in, false),
		images(f, 2, SIZE, out, false) };
	return chi_op_kernel(
			f, "conv2d_gradient_filter", 2, inputs, &same, CHOIR_F32, &CHOIR_SHAPE(3, 3, in, out));
}

static choir_tensor *filter_gradient(choir_frame *f, bool small)
{
	(void) small;
	return filter_gradient_of(f, 32, 32);
}

static choir_tensor *filter_gradient_of_few_channels(choir_frame *f, bool small)
{
	(void) small;
	return filter_gradient_of(f, 3, 16);
}

// All gradients of a batch norm and a max pool behind it, in one.
static choir_tensor *gradients_of_norm_and_pool(choir_frame *f, bool small)
{
	(void) small;
	choir_tensor *in[3] = { images(f, 1, SIZE, 32, false), drawn(f, 2, CHOIR_SHAPE(32)),
		drawn(f, 3, CHOIR_SHAPE(32)) };
	choir_tape *tape = choir_tape_begin(f);
	choir_tensor *y = choir_max_pool2d(choir_batch_norm(in[0], in[1], in[2], NULL), 2, 2, 0);
	choir_tensor *gradient[3];
	if (choir_tape_gradient(tape, choir_mean(choir_square(y), CHOIR_ALL_AXES), 3, in, gradient) !=
			CHOIR_OK)
		return NULL;
	choir_tensor *sum = choir_add(gradient[0], gradient[1]);
	return choir_add(sum, gradient[2]);
}

static making *const sums[] = { filter_gradient, filter_gradient_of_few_channels,
	gradients_of_norm_and_pool };
enum { SUMS = sizeof sums / sizeof sums[0] };

static size_t make(making *fn, bool small, float *to)
{
	choir_frame *f = choir_frame_new(NULL);
	choir_tensor *t = fn(f, small);
	if (t == NULL)
		fail_msg("%s", choir_error());
	const size_t n = (size_t) choir_shape_elements(choir_tensor_shape(t));
	assert_in_range(n, 1, MAX);
	assert_int_equal(choir_tensor_to_host(t, to, n * sizeof *to), CHOIR_OK);
	choir_frame_free(f);
	return n;
}

static making *case_of(int i)
{
	return i < CASES ? all[i] : sums[i - CASES];
}

TEST(the_same_bits_by_any_team)
{
	for (int threads = 2; threads <= 4; threads += 1 + SHORT) {
		chi_team *t = chi_team_new(&(chi_team_options){ .name = "team", .threads = threads });
		for (int i = 0; i < CASES + SUMS; i++) {
			const size_t n = make(case_of(i), false, alone);
			assert_null(chi_team_use(t));
			assert_int_equal(make(case_of(i), false, shared), n);
			(void) chi_team_use(NULL);
			assert_memory_equal(alone, shared, n * sizeof *alone);
		}
		chi_team_free(t);
	}
}

// Of all examples at once, by a plain kernel.
TEST(sums_of_the_whole)
{
	choir_frame *f = choir_frame_new(NULL);
	choir_tensor *x = images(f, 1, SIZE, 32, false), *dy = images(f, 2, SIZE, 32, false);
	choir_buffer in[2] = { kernels_buffer(CHOIR_F32, *choir_tensor_shape(x)),
		kernels_buffer(CHOIR_F32, *choir_tensor_shape(dy)) };
	choir_buffer whole = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(3, 3, 32, 32));
	const size_t bytes = (size_t) choir_shape_elements(&in[0].shape) * sizeof(float);
	assert_int_equal(choir_tensor_to_host(x, in[0].data, bytes), CHOIR_OK);
	assert_int_equal(choir_tensor_to_host(dy, in[1].data, bytes), CHOIR_OK);
	choir_frame_free(f);
	kernels_plain("conv2d_gradient_filter", 2, in, &whole, &same);
	const size_t n = make(filter_gradient, false, shared);
	for (size_t i = 0; i < n; i++)
		kernels_assert_near(
				"filter", &whole, (int64_t) i, (double) shared[i], 1e-6 * IMAGES * SIZE * SIZE);
	kernels_free(2, in);
	kernels_free(1, &whole);
}

// Row for row the values of calls that are too small to be cut.
TEST(the_values_of_the_whole)
{
	for (int i = 0; i < CASES; i++) {
		make(all[i], false, alone);
		const size_t n = make(all[i], true, shared);
		for (size_t k = 0; k < n; k++)
			if (fabsf(alone[k] - shared[k]) > 1e-4f)
				fail_msg("case %d: [%zu] is %g, needed %g", i, k, (double) alone[k],
						(double) shared[k]);
	}
}

static int64_t pieces_of(const char *operation, const choir_kernel_call *call)
{
	chi_parallel_plan plan;
	chi_parallel_plan_make(operation, call, &plan);
	return plan.chunks;
}

TEST(what_is_cut)
{
	const choir_matmul_attributes none = { CHOIR_TRANSPOSED_NONE }, a = { CHOIR_TRANSPOSED_A };
	choir_buffer in[2] = { { alone, CHOIR_F32, { 2, { 600, 64 } } },
		{ alone, CHOIR_F32, { 2, { 64, 100 } } } };
	choir_buffer out = { shared, CHOIR_F32, { 2, { 600, 100 } } };
	choir_kernel_call call = { .n = 2, .in = in, .out = &out, .attributes = &none };
	assert_int_equal(pieces_of("matmul", &call), 3); // 256, 256, 88
	assert_int_equal(pieces_of("nothing", &call), 1);
	call.attributes = &a;
	assert_int_equal(pieces_of("matmul", &call), 1); // the kernel does it
	call.attributes = &none;
	in[0].shape.dim[0] = out.shape.dim[0] = 256;
	assert_int_equal(pieces_of("matmul", &call), 1);
	in[0].shape.dim[0] = out.shape.dim[0] = 257;
	assert_int_equal(pieces_of("matmul", &call), 2);
	in[1].shape.dim[1] = out.shape.dim[1] = 10; // too little
	assert_int_equal(pieces_of("matmul", &call), 1);
	in[0].shape = in[1].shape = (choir_shape){ 4, { 33, 8, 8, 16 } };
	out.shape = (choir_shape){ 4, { 3, 3, 16, 16 } };
	assert_int_equal(pieces_of("conv2d_gradient_filter", &call), 3); // 16, 16, 1
	in[0].shape.dim[0] = in[1].shape.dim[0] = 16;
	assert_int_equal(pieces_of("conv2d_gradient_filter", &call), 1);
	call.n = 1;
	in[0].shape.dim[0] = 65; // of 64 as many have 65536 elements
	assert_int_equal(pieces_of("channel_sums", &call), 2);
}

// What runs along the last axis takes all of a vector, however long it is.
TEST(a_vector_is_whole)
{
	enum { LONG = 100000 };
	choir_frame *f = choir_frame_new(NULL);
	choir_tensor *x = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(LONG), 1);
	choir_tensor *y = choir_softmax(x);
	assert_non_null(y);
	const float *at = choir_tensor_data(y);
	assert_true(at[0] > 0.99e-5f && at[0] < 1.01e-5f && at[LONG - 1] == at[0]);
	at = choir_tensor_data(choir_log_softmax(x));
	assert_true(fabsf(at[LONG - 1] + 11.512925f) < 1e-4f); // ln 100000
	choir_frame_free(f);
	choir_buffer in[5], out = { shared, CHOIR_F32, { 1, { LONG } } };
	for (int i = 0; i < 5; i++)
		in[i] = (choir_buffer){ alone, CHOIR_F32, { 1, { LONG } } };
	static const struct {
		const char *operation;
		size_t n;
	} calls[] = { { "softmax", 1 }, { "softmax_gradient", 2 }, { "log_softmax", 1 },
		{ "log_softmax_gradient", 2 }, { "channel_sums", 1 }, { "channel_norm", 4 },
		{ "channel_norm_sums", 3 }, { "channel_norm_gradient", 5 } };
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
		const choir_kernel_call call = { .n = calls[i].n, .in = in, .out = &out };
		assert_int_equal(pieces_of(calls[i].operation, &call), 1);
	}
}

TEST(every_allocation_fails)
{
	chi_team *t = chi_team_new(&(chi_team_options){ .name = "team", .threads = 2 });
	for (int i = 0; i < CASES + SUMS; i++)
		for (uint64_t n = 1 + (uint64_t) i % STRIDE;; n += STRIDE) {
			choir_frame *f = choir_frame_new(NULL);
			chi_buffer_trim();
			(void) chi_team_use(t);
			chi_alloc_fail(n, false);
			choir_tensor *y = case_of(i)(f, false);
			const bool failed = chi_alloc_failed();
			chi_alloc_fail(0, false);
			(void) chi_team_use(NULL);
			assert_int_equal(y == NULL, failed);
			if (failed)
				assert_int_equal(choir_frame_status(f), CHOIR_NO_MEMORY);
			choir_frame_free(f);
			if (!failed)
				break;
		}
	chi_team_free(t);
}

static size_t more_for_fewer_rows(const choir_kernel_call *call)
{
	return 10000 - (size_t) call->in[0].shape.dim[0];
}

TEST(the_last_chunk_may_need_more_scratch_memory)
{
	static float a[300 * 64], b[64 * 64], c[300 * 64];
	const choir_matmul_attributes attributes = { CHOIR_TRANSPOSED_NONE };
	const choir_buffer in[] = { { a, CHOIR_F32, CHOIR_SHAPE(300, 64) },
		{ b, CHOIR_F32, CHOIR_SHAPE(64, 64) } };
	choir_buffer out = { c, CHOIR_F32, CHOIR_SHAPE(300, 64) };
	const choir_kernel_call call = {
		.size = sizeof call, .n = 2, .in = in, .out = &out, .attributes = &attributes
	};
	const choir_kernel_table kernel = { .scratch = more_for_fewer_rows };
	chi_parallel_plan plan;
	chi_parallel_plan_make("matmul", &call, &plan);
	assert_int_equal(plan.chunks, 2);
	assert_int_equal(chi_parallel_scratch(&plan, &kernel, &call), chi_whole_lines(10000 - 44));
}
