// What the public header promises of frames and tensors and no other test looks at.
#include "tensor/dlpack.h"
#include "tensor/tensor.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

static const char *const devices[] = { "cpu:0", "far:0" };
static const float numbers[6] = { 1, 2, 3, 4, 5, 6 };

static choir_frame *frame(const char *name)
{
	choir_frame *f = choir_frame_new(choir_device_find(name));
	assert_non_null(f);
	return f;
}

TEST(shapes_and_axes)
{
	int calls = 0;
	choir_frame *f = frame("cpu:0");

	const choir_shape shape = CHOIR_SHAPE(2, ++calls, 3);
	assert_int_equal(calls, 1);
	assert_int_equal(shape.rank, 3);
	assert_int_equal(choir_shape_elements(&shape), 6);
	assert_int_equal(choir_shape_elements(&CHOIR_SCALAR), 1);
	assert_true(_Generic(CHOIR_AXIS(1), uint32_t : false, default : true)); // and so not an axis
	assert_int_equal(CHOIR_AXES(0, 3).bits, 9);
	assert_int_equal(CHOIR_AXIS(-1).bits, 0x80000000u);
	assert_int_equal(CHOIR_ALL_AXES.bits & CHOIR_AXIS(-8).bits, CHOIR_AXIS(-8).bits);
	assert_int_equal(CHOIR_NO_AXIS.bits, 0);
	choir_shape wrong = { .rank = CHOIR_MAX_RANK + 1 };
	assert_int_equal(choir_shape_elements(&wrong), CHOIR_NONE);
	assert_null(choir_constant(f, CHOIR_F32, wrong, numbers));
	assert_int_equal(choir_error_status(), CHOIR_INVALID);
	assert_text_holds(choir_error(), "[rank 9]");
	wrong.rank = -1;
	assert_null(choir_borrow(f, CHOIR_F32, wrong, numbers));
	assert_text_holds(choir_error(), "[rank -1]");
	choir_frame_free(f);
}

TEST(only_emptying_forgets_a_failure)
{
	for (size_t i = 0; i < 2; i++) {
		choir_frame *f = frame(devices[i]);
		const size_t mark = choir_frame_mark(f);
		assert_null(choir_constant(f, CHOIR_F32, CHOIR_SHAPE(2), NULL));
		choir_frame_rewind(f, mark);
		assert_int_equal(choir_frame_status(f), CHOIR_INVALID);
		choir_frame_clear(f);
		assert_int_equal(choir_frame_status(f), CHOIR_OK);
		assert_int_equal(choir_error_status(), CHOIR_INVALID); // the thread's stays
		assert_text_holds(choir_error(), "constant:*NULL");
		choir_frame_free(f);
	}
}

TEST(a_mark_of_the_future_is_nothing)
{
	choir_frame *f = frame("cpu:0");

	choir_tensor *t = choir_constant(f, CHOIR_F32, CHOIR_SHAPE(6), numbers);
	choir_frame_rewind(f, choir_frame_mark(f));
	choir_frame_rewind(f, choir_frame_mark(f) + 1000);
	assert_memory_equal(choir_tensor_data(t), numbers, sizeof(numbers));
	const void *data = choir_tensor_data(t);
	choir_constant(f, CHOIR_F32, CHOIR_SHAPE(6), numbers);
	assert_ptr_equal(choir_tensor_data(t), data); // in place until the frame is emptied
	choir_frame_free(f);
}

// Also within a frame, and of memory that is only borrowed.
TEST(a_move_is_a_copy)
{
	for (size_t i = 0; i < 2; i++) {
		choir_frame *f = frame("cpu:0"), *to = frame(devices[i]);
		float mine[2] = { 7, 8 }, back[2];
		choir_tensor *t = choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(2), mine);
		choir_tensor *moved = choir_copy(t, to), *beside = choir_copy(t, f);
		mine[0] = 0;
		choir_frame *const frames[] = { to, f };
		choir_tensor *const copies[] = { moved, beside };
		for (int k = 0; k < 2; k++) {
			assert_ptr_equal(choir_tensor_frame(copies[k]), frames[k]);
			assert_int_equal(choir_tensor_to_host(copies[k], back, sizeof(back)), CHOIR_OK);
			assert_true(back[0] == 7 && back[1] == 8);
		}
		choir_tensor *number = choir_copy(choir_number(f, 0.25), to);
		assert_true(number->is_number && choir_tensor_number(number) == 0.25);
		assert_null(choir_copy(t, NULL));
		assert_int_equal(choir_frame_status(f), CHOIR_INVALID);
		choir_frame_free(f);
		choir_frame_free(to);
	}
}

TEST(texts_have_the_length_of_the_whole)
{
	char text[8] = "+++++++";
	choir_frame *f = frame("cpu:0");

	choir_tensor *t = choir_constant(f, CHOIR_F32, CHOIR_SHAPE(2), numbers);
	const size_t length = strlen("f32 [2] [1, 2]");
	assert_int_equal(choir_tensor_print(t, NULL, 0), length);
	assert_int_equal(choir_tensor_print(t, text, sizeof(text)), length);
	assert_string_equal(text, "f32 [2]");
	choir_frame_free(f);
}

TEST(scalars_and_empty_tensors_can_be_exported)
{
	choir_frame *f = frame("cpu:0");

	struct DLManagedTensorVersioned *m = choir_tensor_to_dlpack(choir_number(f, 4));
	assert_int_equal(m->tensor.rank, 0);
	assert_true(*(const double *) m->tensor.data == 4);
	choir_tensor *t = choir_from_dlpack(f, m); // and come back
	assert_int_equal(choir_tensor_shape(t)->rank, 0);
	assert_true(choir_tensor_number(t) == 4);
	m = choir_tensor_to_dlpack(choir_constant(f, CHOIR_I64, CHOIR_SHAPE(3, 0), NULL));
	assert_non_null(m);
	t = choir_from_dlpack(f, m);
	assert_int_equal(choir_tensor_dtype(t), CHOIR_I64);
	assert_int_equal(choir_tensor_shape(t)->dim[0], 3);
	assert_int_equal(choir_tensor_shape(t)->dim[1], 0);
	assert_int_equal(choir_frame_status(f), CHOIR_OK);
	choir_frame_free(f);
}
