// Slices as handles: what they are made of, where they can go, and that nothing takes their values
// for the whole.
#include "tensor/tensor.h"

#include "base/alloc.h"
#include "test.h"

#include <string.h>

static const float numbers[] = { 1, 2, 3, 4, 5, 6 };
static const int32_t narrow[] = { 4, 0, 4 };
static const int64_t wide[] = { 4, 0, 4 };

static choir_tensor *make(choir_frame *f, choir_dtype dtype)
{
	return choir_indexed_slices(choir_constant(f, CHOIR_F32, CHOIR_SHAPE(3, 2), numbers),
			choir_constant(
					f, dtype, CHOIR_SHAPE(3), dtype == CHOIR_I32 ? (const void *) narrow : wide),
			5);
}

static void check(choir_tensor *t)
{
	float have[6];
	int64_t rows[3];
	assert_true(choir_tensor_is_slices(t));
	assert_int_equal(choir_slices_rows(t), 5);
	assert_int_equal(choir_tensor_shape(t)->dim[0], 3);
	assert_int_equal(choir_tensor_to_host(choir_slices_values(t), have, sizeof have), CHOIR_OK);
	assert_memory_equal(have, numbers, sizeof have);
	assert_int_equal(chi_slices_indices_to_host(t, rows), CHOIR_OK);
	assert_memory_equal(rows, wide, sizeof rows);
	const choir_shape whole = chi_dense_shape(t);
	assert_true(chi_shape_equal(&whole, &CHOIR_SHAPE(5, 2)));
}

TEST(made_and_moved)
{
	static const char *const devices[] = { "cpu:0", "far:0", "far:1" };
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++)
			for (int w = 0; w < 2; w++) {
				choir_frame *a = choir_frame_new(choir_device_find(devices[i]));
				choir_frame *b = choir_frame_new(choir_device_find(devices[k]));
				choir_tensor *t = make(a, w == 0 ? CHOIR_I32 : CHOIR_I64);
				check(t);
				check(chi_tensor_alias(a, t));
				choir_tensor *moved = choir_copy(t, b), *kept = chi_tensor_retain(b, t);
				choir_frame_free(a);
				check(moved);
				check(kept);
				chi_tensor_drop(kept);
				check(moved);
				assert_int_equal(choir_tensor_dtype(choir_slices_indices(moved)),
						w == 0 ? CHOIR_I32 : CHOIR_I64);
				choir_frame_free(b);
			}
}

// The program's memory may change after the call.
TEST(borrowed_indices_are_copied)
{
	choir_frame *f = choir_frame_new(NULL);
	int64_t own[3];
	memcpy(own, wide, sizeof own);
	choir_tensor *t =
			choir_indexed_slices(choir_constant(f, CHOIR_F32, CHOIR_SHAPE(3, 2), numbers),
					choir_borrow(f, CHOIR_I64, CHOIR_SHAPE(3), own), 5);
	memset(own, 0x7f, sizeof own);
	check(t);
	choir_frame_free(f);
}

static void assert_refused(choir_frame *f, choir_status status, const char *text)
{
	assert_int_equal(choir_frame_status(f), status);
	assert_text_holds(choir_error(), text);
	choir_frame_clear(f);
}

TEST(what_cannot_be)
{
	choir_frame *f = choir_frame_new(NULL), *g = choir_frame_new(NULL);
	const int32_t high[] = { 0, 5, 1 }, low[] = { 0, -1, 1 };
	struct {
		choir_shape values, indices;
		choir_dtype dtype;
		const void *rows;
		int64_t all;
		const char *text;
	} const bad[] = {
		{ CHOIR_SHAPE(3, 2), CHOIR_SHAPE(3), CHOIR_I32, high, 5, "indices[1] is 5" },
		{ CHOIR_SHAPE(3, 2), CHOIR_SHAPE(3), CHOIR_I32, low, 5, "indices[1] is -1" },
		{ CHOIR_SHAPE(3, 2), CHOIR_SHAPE(3), CHOIR_F32, numbers, 5, "not a vector of i32 or i64" },
		{ CHOIR_SHAPE(3, 2), CHOIR_SHAPE(3, 1), CHOIR_I32, narrow, 5, "not a vector" },
		{ CHOIR_SHAPE(2, 3), CHOIR_SHAPE(3), CHOIR_I32, narrow, 5, "a row for each index" },
		{ CHOIR_SCALAR, CHOIR_SHAPE(3), CHOIR_I32, narrow, 5, "a row for each index" },
		{ CHOIR_SHAPE(3, 2), CHOIR_SHAPE(3), CHOIR_I32, narrow, -5, "-5 rows cannot be" },
		{ CHOIR_SHAPE(3, 2), CHOIR_SHAPE(3), CHOIR_I32, narrow, INT64_MAX, "rows cannot be" },
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_null(choir_indexed_slices(choir_constant(f, CHOIR_F32, bad[i].values, numbers),
				choir_constant(f, bad[i].dtype, bad[i].indices, bad[i].rows), bad[i].all));
		assert_refused(f, CHOIR_INVALID, bad[i].text);
	}
	assert_null(choir_indexed_slices(choir_constant(f, CHOIR_F32, CHOIR_SHAPE(3, 2), numbers),
			choir_constant(g, CHOIR_I32, CHOIR_SHAPE(3), narrow), 5));
	assert_refused(f, CHOIR_INVALID, "frames");
	assert_null(
			choir_slices_values(choir_constant(f, CHOIR_F32, CHOIR_SHAPE(2), (float[2]){ 1, 1 })));
	assert_refused(f, CHOIR_INVALID, "tensor");
	assert_null(choir_slices_indices(
			choir_constant(f, CHOIR_F32, CHOIR_SHAPE(2), (float[2]){ 1, 1 })));
	assert_refused(f, CHOIR_INVALID, "tensor");
	assert_null(choir_slices_values(NULL));
	assert_null(choir_slices_indices(NULL));
	assert_false(choir_tensor_is_slices(NULL));
	assert_int_equal(choir_slices_rows(NULL), 0);
	chi_error_clear();
	assert_null(choir_indexed_slices(NULL, NULL, 3));
	assert_int_equal(choir_error_status(), CHOIR_INVALID);
	choir_frame_free(f);
	choir_frame_free(g);
}

TEST(nothing_takes_them_for_the_whole)
{
	choir_frame *f = choir_frame_new(NULL);
	const char *text = "f32 [3, 2] are slices of [5, 2]; choir_to_dense";
	float have[6];
	assert_null(choir_tensor_data(make(f, CHOIR_I32)));
	assert_refused(f, CHOIR_UNSUPPORTED, text);
	assert_int_equal(
			choir_tensor_to_host(make(f, CHOIR_I32), have, sizeof have), CHOIR_UNSUPPORTED);
	assert_refused(f, CHOIR_UNSUPPORTED, text);
	assert_null(chi_tensor_rows(f, make(f, CHOIR_I32), 0, 1));
	assert_refused(f, CHOIR_UNSUPPORTED, text);
	assert_null(chi_tensor_reshape(make(f, CHOIR_I32), &CHOIR_SHAPE(6)));
	assert_refused(f, CHOIR_UNSUPPORTED, text);
	assert_null(choir_tensor_to_dlpack(make(f, CHOIR_I32)));
	assert_refused(f, CHOIR_UNSUPPORTED, text);
	assert_int_equal(choir_tensor_print(make(f, CHOIR_I32), NULL, 0), 0);
	assert_refused(f, CHOIR_UNSUPPORTED, text);
	choir_frame_free(f);
}

TEST(allocations_may_fail)
{
	static const char *const devices[] = { "cpu:0", "far:0" };
	for (int i = 0; i < 2; i++) {
		bool failed = true;
		for (uint64_t n = 1; failed; n++) {
			choir_frame *f = choir_frame_new(choir_device_find(devices[i]));
			choir_frame *g = choir_frame_new(choir_device_find("far:1"));
			chi_buffer_trim();
			chi_alloc_fail(n, false);
			choir_tensor *t = choir_copy(make(f, CHOIR_I32), g);
			failed = chi_alloc_failed();
			chi_alloc_fail(0, false);
			assert_int_equal(t == NULL, failed);
			if (failed)
				assert_int_equal(choir_error_status(), CHOIR_NO_MEMORY);
			choir_frame_free(f);
			choir_frame_free(g);
		}
	}
}
