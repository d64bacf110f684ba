// Winograd's convolutions (op/kernel/suite_test.c compares them with plain ones): which calls they
// serve; neither threads nor what lay in memory change their bits; NANs.
#include "base/team.h"
#include "op/kernel_oracles.h"
#include "op/winograd/winograd.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// A filter of 3 x 3, channels in whole vectors, any zeros around x; at least 64 tiles.
static kernel_case forward_case(uint64_t *seed)
{
	const int64_t h = kernels_integer(seed, 14, 17), w = kernels_integer(seed, 14, 17);
	const int64_t c = 16 * kernels_integer(seed, 1, 3);
	const int64_t out = c == 16 ? 64 : 16 * kernels_integer(seed, 2, 3);
	const int64_t n = 2;
	kernel_case k = { .n = (size_t) kernels_integer(seed, 2, 3) };
	choir_conv2d_attributes *a = &k.conv2d;
	*a = (choir_conv2d_attributes){ .stride = 1, .dilation = 1, .groups = 1 };
	a->top = (int) kernels_integer(seed, 0, 3);
	a->bottom = (int) kernels_integer(seed, 0, 3);
	a->left = (int) kernels_integer(seed, 0, 3);
	a->right = (int) kernels_integer(seed, 0, 3);
	a->activation = (choir_activation) kernels_integer(seed, 0, 1);
	k.in[0] = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(n, h, w, c));
	k.in[1] = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(3, 3, c, out));
	k.in[2] = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(out));
	k.out = kernels_buffer(CHOIR_F32,
			CHOIR_SHAPE(n, h + a->top + a->bottom - 2, w + a->left + a->right - 2, out));
	for (int i = 0; i < 3; i++)
		kernels_fill(&k.in[i], seed, -1, 1);
	return k;
}

static choir_status try(const char *operation, kernel_case *c)
{
	return kernels_run(chi_winograd_list, operation, c->n, c->in, &c->out, &c->conv2d);
}

static void run(const char *operation, kernel_case *c)
{
	const choir_status status = try(operation, c);
	if (status != CHOIR_OK)
		fail_msg("%s: %s: %s", operation, choir_status_name(status), choir_error());
}

// One of the three.
typedef struct {
	const char *operation;
	kernel_case (*of)(kernel_case *forward, uint64_t *seed); // NULL: the forward case itself
} way;

static const way ways[] = {
	{ "conv2d", NULL },
	{ "conv2d_gradient_input", conv2d_gradient_input_case },
	{ "conv2d_gradient_filter", conv2d_gradient_filter_case },
};

static kernel_case random_case(const way *w, uint64_t *seed)
{
	kernel_case f = forward_case(seed);
	return w->of ? w->of(&f, seed) : f;
}

TEST(what_is_left_to_others)
{
	uint64_t seed = 92;
	kernel_case c = forward_case(&seed);
	assert_int_equal(try("conv2d", &c), CHOIR_OK);
	c.conv2d.activation = CHOIR_TANH;
	assert_int_equal(try("conv2d", &c), CHOIR_UNSUPPORTED);
	c.conv2d.activation = CHOIR_LINEAR;
	c.conv2d.stride = 2;
	assert_int_equal(try("conv2d", &c), CHOIR_UNSUPPORTED);
	c.conv2d.stride = 1;
	c.conv2d.dilation = 2;
	assert_int_equal(try("conv2d", &c), CHOIR_UNSUPPORTED);
	c.conv2d.dilation = 1;
	c.conv2d.groups = 2;
	assert_int_equal(try("conv2d", &c), CHOIR_UNSUPPORTED);
	c.conv2d.groups = 1;
	c.in[1].shape.dim[0] = 2;
	assert_int_equal(try("conv2d", &c), CHOIR_UNSUPPORTED);
	c.in[1].shape.dim[0] = 3;
	c.in[0].shape.dim[3]--; // no whole vectors
	assert_int_equal(try("conv2d", &c), CHOIR_UNSUPPORTED);
	c.in[0].shape.dim[3] = 8; // too few channels
	assert_int_equal(try("conv2d", &c), CHOIR_UNSUPPORTED);
	kernel_case_free(&c);
}

TEST(the_same_bits_by_any_team)
{
	uint64_t seed = 93;
	for (int i = 0; i < 3; i++) {
		kernel_case c = random_case(&ways[i], &seed);
		const size_t bytes = (size_t) choir_shape_elements(&c.out.shape) * sizeof(float);
		float *alone = malloc(bytes);
		assert_non_null(alone);
		run(ways[i].operation, &c);
		memcpy(alone, c.out.data, bytes);
		for (int threads = 2; threads <= 3; threads++) {
			chi_team *t = chi_team_new(&(chi_team_options){ .name = "team", .threads = threads });
			assert_non_null(t);
			memset(c.out.data, 0xff, bytes);
			(void) chi_team_use(t);
			run(ways[i].operation, &c);
			(void) chi_team_use(NULL);
			assert_memory_equal(c.out.data, alone, bytes);
			chi_team_free(t);
		}
		free(alone);
		kernel_case_free(&c);
	}
}

// It spoils what its tile makes, with or without ReLU, and nothing of other images.
TEST(a_nan_is_seen)
{
	uint64_t seed = 94;
	kernel_case c = forward_case(&seed);
	const int64_t image = choir_shape_elements(&c.out.shape) / c.out.shape.dim[0];
	for (int relu = 0; relu < 2; relu++) {
		c.conv2d.activation = relu ? CHOIR_RELU : CHOIR_LINEAR;
		kernels_set(&c.in[0], 5 * c.in[0].shape.dim[3], NAN);
		run("conv2d", &c);
		int64_t spoilt = 0;
		for (int64_t i = 0; i < image; i++)
			if (isnan(kernels_get(&c.out, i)))
				spoilt++;
		assert_true(spoilt >= c.out.shape.dim[3] && spoilt <= image / 2);
		for (int64_t i = image; i < 2 * image; i++)
			assert_true(kernels_get(&c.out, i) == kernels_get(&c.out, i));
	}
	kernel_case_free(&c);
}

int main(void)
{
	uint64_t seed = 90;
	kernel_case c = forward_case(&seed);
	const bool here = try("conv2d", &c) == CHOIR_OK;
	kernel_case_free(&c);
	return here ? tests_run() : 77; // the processor has no loops
}
