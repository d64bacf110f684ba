// Handles: made, borrowed, looked at, printed, dropped, moved and seen through views, on both
// kinds of memory.
#include "base/alloc.h"
#include "comma.h"
#include "tensor/tensor.h"
#include "test.h"

#include <math.h>
#include <string.h>

static const char *const devices[] = { "cpu:0", "far:0" };
static float numbers[6] = { 1, 2, 3, 4, 5, 6 };

static choir_frame *frame(const char *name)
{
	choir_device *d = choir_device_find(name);
	assert_non_null(d);
	choir_frame *f = choir_frame_new(d);
	assert_non_null(f);
	return f;
}

static void holds(const choir_tensor *t, const float *expected, size_t n)
{
	float found[6];
	assert_non_null(t);
	assert_int_equal(choir_tensor_to_host(t, found, n * sizeof(float)), CHOIR_OK);
	assert_memory_equal(found, expected, n * sizeof(float));
}

static void fails(choir_status status, const char *text)
{
	assert_int_equal(choir_error_status(), status);
	if (!text_holds(choir_error(), text))
		fail_msg("'%s' is not in '%s'", text, choir_error());
}

TEST(constants_are_copies)
{
	for (size_t i = 0; i < 2; i++) {
		choir_frame *f = frame(devices[i]);
		float mine[2] = { 7, 8 };
		choir_tensor *t = choir_constant(f, CHOIR_F32, CHOIR_SHAPE(2), mine);
		mine[0] = 0;
		holds(t, (const float[]){ 7, 8 }, 2);
		assert_int_equal(choir_tensor_shape(t)->dim[0], 2);
		assert_int_equal(choir_tensor_dtype(t), CHOIR_F32);
		assert_ptr_equal(choir_tensor_frame(t), f);
		assert_string_equal(choir_device_name(choir_tensor_device(t)), devices[i]);
		t = choir_constant(f, CHOIR_F32, CHOIR_SHAPE(0, 3), NULL);
		assert_int_equal(choir_tensor_to_host(t, NULL, 0), CHOIR_OK);
		assert_null(choir_constant(f, CHOIR_F32, CHOIR_SHAPE(2), NULL));
		fails(CHOIR_INVALID, "constant:*NULL");
		assert_null(choir_constant(f, (choir_dtype) 50, CHOIR_SHAPE(2), mine));
		fails(CHOIR_INVALID, "dtype 50");
		assert_null(choir_constant(f, CHOIR_F64, CHOIR_SHAPE(INT64_MAX / 4), mine));
		fails(CHOIR_INVALID, "a size that fits");
		choir_frame_free(f);
	}
}

TEST(borrowed_memory_is_used_in_place)
{
	choir_frame *f = frame("cpu:0"), *far = frame("far:0"), *other = frame("cpu:1");

	choir_tensor *t = choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(2, 3), numbers);
	assert_ptr_equal(choir_tensor_data(t), numbers);
	assert_true(t->borrowed);
	choir_tensor *kept = chi_tensor_retain(other, t);
	holds(kept, numbers, 6);
	assert_ptr_not_equal(kept->data, numbers);
	holds(choir_borrow(far, CHOIR_F32, CHOIR_SHAPE(6), numbers), numbers, 6);
	assert_null(choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(6), NULL));
	fails(CHOIR_INVALID, "borrow:*NULL");
	assert_non_null(choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(0), NULL));
	choir_frame_free(f);
	choir_frame_free(other);
	choir_frame_free(far);
}

TEST(numbers_are_exact)
{
	for (size_t i = 0; i < 2; i++) {
		choir_frame *f = frame(devices[i]);
		choir_tensor *t = choir_number(f, 0.1);
		double back = 0;
		assert_true(t->is_number);
		assert_true(choir_tensor_number(t) == 0.1);
		assert_int_equal(choir_tensor_to_host(t, &back, sizeof(back)), CHOIR_OK);
		assert_true(back == 0.1);
		assert_true(choir_tensor_number(choir_constant(f, CHOIR_U8, CHOIR_SHAPE(1), "*")) == 42);
		assert_true(isnan(choir_tensor_number(NULL)));
		assert_true(
				isnan(choir_tensor_number(choir_constant(f, CHOIR_F32, CHOIR_SHAPE(6), numbers))));
		fails(CHOIR_INVALID, "number:*[6]");
		choir_frame_free(f);
	}
}

TEST(nothing_gives_nothing)
{
	chi_error_clear();
	assert_null(choir_constant(NULL, CHOIR_F32, CHOIR_SHAPE(1), numbers));
	fails(CHOIR_INVALID, "constant:*frame");
	choir_fail(CHOIR_IO, "the cause");
	assert_null(choir_number(NULL, 1));
	assert_null(choir_borrow(NULL, CHOIR_F32, CHOIR_SHAPE(1), numbers));
	assert_null(choir_copy(NULL, NULL));
	assert_int_equal(choir_tensor_to_host(NULL, numbers, 4), CHOIR_IO);
	assert_null(choir_tensor_data(NULL));
	assert_null(choir_tensor_frame(NULL));
	assert_null(choir_tensor_device(NULL));
	assert_int_equal(choir_tensor_shape(NULL)->rank, 0);
	assert_text_holds(choir_error(), "cause");
}

TEST(memory_the_host_cannot_reach_has_no_pointer)
{
	choir_frame *far = frame("far:0"), *f = frame("cpu:0");
	char bytes[3];

	choir_tensor *t = choir_constant(far, CHOIR_F32, CHOIR_SHAPE(6), numbers);
	assert_null(choir_tensor_data(t));
	fails(CHOIR_UNSUPPORTED, "0*memory");
	t = choir_constant(f, CHOIR_F32, CHOIR_SHAPE(6), numbers);
	assert_int_equal(choir_tensor_to_host(t, bytes, 3), CHOIR_INVALID);
	fails(CHOIR_INVALID, "f32*[6]*24 bytes");
	assert_int_equal(choir_tensor_to_host(t, NULL, 24), CHOIR_INVALID);
	choir_frame_free(far);
	choir_frame_free(f);
}

TEST(moving_copies_between_all_memories)
{
	const char *const all[] = { "cpu:0", "cpu:1", "far:0", "far:1" };

	for (size_t i = 0; i < 16; i++) {
		choir_frame *from = frame(all[i / 4]), *to = frame(all[i % 4]);
		choir_tensor *t = choir_constant(from, CHOIR_F32, CHOIR_SHAPE(2, 3), numbers);
		choir_tensor *moved = choir_copy(t, to), *kept = chi_tensor_retain(to, t);
		choir_tensor *number = chi_tensor_retain(to, choir_number(from, 2.5));
		assert_ptr_equal(moved->frame, to);
		const bool shares = chi_device_shares(from->device, to->device);
		assert_int_equal(kept->buffer == t->buffer, shares);
		assert_ptr_not_equal(moved->buffer, t->buffer);
		choir_frame_free(from);
		holds(moved, numbers, 6);
		holds(kept, numbers, 6);
		assert_true(number->is_number && choir_tensor_number(number) == 2.5);
		choir_frame_free(to);
	}
}

TEST(views_share_memory)
{
	choir_frame *f = frame("cpu:0"), *other = frame("cpu:1"), *far = frame("far:0");
	char text[100];

	choir_tensor *t = choir_constant(f, CHOIR_F32, CHOIR_SHAPE(3, 2), numbers);
	t->count = 9;
	choir_tensor *row = chi_tensor_rows(other, t, 1, 1), *all = chi_tensor_rows(other, t, 0, 3);
	holds(row, numbers + 2, 2);
	assert_int_equal(row->count, CHOIR_NONE);
	assert_int_equal(all->count, 9);
	assert_int_equal(choir_tensor_shape(chi_tensor_rows(other, t, 3, 0))->dim[0], 0);
	assert_ptr_equal(row->buffer, t->buffer);
	choir_tensor *flat = chi_tensor_reshape(t, &CHOIR_SHAPE(6));
	chi_tensor_drop(t);
	holds(flat, numbers, 6);
	choir_frame_free(f);
	holds(row, numbers + 2, 2);
	assert_null(chi_tensor_rows(other, row, 1, 1));
	fails(CHOIR_INVALID, "rows:*[1, 2]");
	assert_null(chi_tensor_rows(other, row, INT64_MAX, 1));
	assert_null(chi_tensor_reshape(row, &CHOIR_SHAPE(3)));
	fails(CHOIR_INVALID, "reshape:*[1, 2]*[3]");
	assert_null(chi_tensor_alias(far, row));
	fails(CHOIR_INVALID, "0*tensor");
	choir_tensor_print(row, text, sizeof(text));
	assert_string_equal(text, "f32 [1, 2] [[3, 4]]");
	choir_frame_free(other);
	choir_frame_free(far);
}

TEST(the_dead_and_the_stale_are_told)
{
	for (size_t i = 0; i < 2; i++) {
		choir_frame *f = frame(devices[i]);
		chi_source source = { .name = "hidden/w" };
		choir_tensor *t = choir_constant(f, CHOIR_F32, CHOIR_SHAPE(6), numbers);
		t->source = &source;
		choir_tensor *alias = chi_tensor_alias(f, t), *kept = chi_tensor_retain(f, t);
		assert_int_equal(chi_tensor_check(alias), CHOIR_OK);
		chi_atomic64_add(&source.version, 1);
		assert_int_equal(chi_tensor_check(alias), CHOIR_STATE);
		fails(CHOIR_STATE, "hidden/w:*changed");
		assert_int_equal(choir_frame_status(f), CHOIR_STATE);
		holds(kept, numbers, 6);
		assert_null(choir_copy(t, f));
		chi_tensor_drop(kept);
		chi_tensor_drop(kept);
		chi_tensor_drop(NULL);
		assert_null(choir_tensor_data(kept));
		fails(CHOIR_STATE, "f32*[6]");
		choir_frame_free(f);
	}
}

TEST(a_decimal_point_is_a_point)
{
	const float x[2] = { 1.5f, -0.25f };
	char text[64];

	if (!comma_set())
		skip();
	choir_frame *f = frame("cpu:0");
	choir_tensor_print(choir_constant(f, CHOIR_F32, CHOIR_SHAPE(2), x), text, sizeof(text));
	setlocale(LC_ALL, "C");
	assert_string_equal(text, "f32 [2] [1.5, -0.25]");
	choir_frame_free(f);
}

TEST(printing)
{
	char text[400], few[8];

	for (size_t i = 0; i < 2; i++) {
		choir_frame *f = frame(devices[i]);
		choir_tensor *t = choir_constant(f, CHOIR_F32, CHOIR_SHAPE(2, 3), numbers);
		const char *expected = "f32 [2, 3] [[1, 2, 3], [4, 5, 6]]";
		assert_int_equal(choir_tensor_print(t, text, sizeof(text)), strlen(expected));
		assert_string_equal(text, expected);
		assert_int_equal(choir_tensor_print(t, few, sizeof(few)), strlen(expected));
		assert_string_equal(few, "f32 [2,");
		assert_int_equal(choir_tensor_print(t, NULL, 0), strlen(expected));
		const int64_t large = INT64_MIN;
		choir_tensor_print(choir_constant(f, CHOIR_I64, CHOIR_SCALAR, &large), text, sizeof(text));
		assert_string_equal(text, "i64 [] -9223372036854775808");
		uint8_t bytes[100] = { 1, 0 };
		choir_tensor_print(
				choir_constant(f, CHOIR_BOOL, CHOIR_SHAPE(2), bytes), text, sizeof(text));
		assert_string_equal(text, "bool [2] [true, false]");
		choir_tensor_print(
				choir_constant(f, CHOIR_U8, CHOIR_SHAPE(100), bytes), text, sizeof(text));
		assert_string_equal(text, "u8 [100] [1, 0, 0, ..., 0, 0, 0]");
		choir_tensor_print(
				choir_constant(f, CHOIR_U8, CHOIR_SHAPE(0, 4), NULL), text, sizeof(text));
		assert_string_equal(text, "u8 [0, 4] []");
		choir_tensor_print(NULL, text, sizeof(text));
		assert_string_equal(text, "(null)");
		chi_alloc_fail(1, false);
		assert_int_equal(choir_tensor_print(t, text, sizeof(text)), 0);
		chi_alloc_fail(0, false);
		assert_string_equal(text, "");
		fails(CHOIR_NO_MEMORY, "memory");
		choir_frame_free(f);
	}
}
