// Operations in pieces: the same bits alone and with teams of any size, the values of the whole,
// and a failure of one piece is the operation's.
#include "op/cut.h"

#include "base/alloc.h"
#include "base/team.h"
#include "choir/nn.h"
#include "choir/op.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

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
			drawn(f, 3, CHOIR_SHAPE(48)), CHOIR_ACTIVATE_TANH);
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

static making *const all[] = { product, product_with_transposed, product_of_transposed,
	product_of_three_axes, dense, attention, add, add_a_number, add_a_row, gelu, norm };
enum { CASES = sizeof all / sizeof all[0], MOST = 700 * 1100 };
static float alone[MOST], shared[MOST];

static size_t make(making *fn, bool small, float *to)
{
	choir_frame *f = choir_frame_new(NULL);
	choir_tensor *t = fn(f, small);
	if (t == NULL)
		fail_msg("%s", choir_error());
	const size_t n = (size_t) choir_shape_elements(choir_tensor_shape(t));
	assert_in_range(n, 1, MOST);
	assert_int_equal(choir_tensor_fetch(t, to, n * sizeof *to), CHOIR_OK);
	choir_frame_free(f);
	return n;
}

static void the_same_bits_by_any_team(void **state)
{
	(void) state;
	for (int threads = 2; threads <= 4; threads++) {
		chi_team *t = chi_team_new(&(chi_team_options){ .name = "team", .threads = threads });
		for (int i = 0; i < CASES; i++) {
			const size_t n = make(all[i], false, alone);
			assert_null(chi_team_use(t));
			assert_int_equal(make(all[i], false, shared), n);
			(void) chi_team_use(NULL);
			assert_memory_equal(alone, shared, n * sizeof *alone);
		}
		chi_team_free(t);
	}
}

// Row for row the values of calls that are too small to be cut.
static void the_values_of_the_whole(void **state)
{
	(void) state;
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
	choir_kernel_call first;
	choir_buffer in[CHI_MAX_INPUTS], out;
	return chi_cut_first(operation, call, &first, in, &out);
}

static void what_is_cut(void **state)
{
	(void) state;
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
}

static void every_allocation_fails(void **state)
{
	(void) state;
	chi_team *t = chi_team_new(&(chi_team_options){ .name = "team", .threads = 2 });
	for (int i = 0; i < CASES; i++)
		for (uint64_t n = 1;; n++) {
			choir_frame *f = choir_frame_new(NULL);
			chi_buffer_trim();
			(void) chi_team_use(t);
			chi_alloc_fail(n, false);
			choir_tensor *y = all[i](f, false);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_bits_by_any_team),
		cmocka_unit_test(the_values_of_the_whole),
		cmocka_unit_test(what_is_cut),
		cmocka_unit_test(every_allocation_fails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
