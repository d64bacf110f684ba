// Frames: they own tensors, are emptied and rewound without losing memory, and keep their first
// failure.
#include "base/alloc.h"
#include "tensor/tensor.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

static const char *const devices[] = { "cpu:0", "far:0" };
static const float numbers[6] = { 1, 2, 3, 4, 5, 6 };

static choir_frame *frame(const char *name)
{
	choir_device *d = choir_device_find(name);
	assert_non_null(d);
	choir_frame *f = choir_frame_new(d);
	assert_non_null(f);
	return f;
}

TEST(without_a_device_it_is_the_first_cpu)
{
	choir_frame *f = choir_frame_new(NULL);

	assert_non_null(f);
	assert_string_equal(choir_device_name(f->device), "cpu:0");
	assert_false(choir_frame_is_training(f));
	choir_frame_free(f);
	choir_frame_free(NULL);
	choir_frame_clear(NULL);
	choir_frame_rewind(NULL, 0);
	assert_int_equal(choir_frame_mark(NULL), 0);
	assert_int_equal(choir_frame_status(NULL), CHOIR_OK);
}

TEST(emptying_gives_memory_back_and_keeps_it)
{
	for (size_t i = 0; i < 2; i++) {
		choir_frame *f = frame(devices[i]);
		uint64_t before = 0;
		for (int round = 0; round < 3; round++) {
			if (round == 2)
				before = chi_alloc_count();
			for (int k = 0; k < 100; k++) {
				choir_tensor *t = choir_constant(f, CHOIR_F32, CHOIR_SHAPE(2, 3), numbers);
				assert_non_null(t);
				if (k % 2)
					chi_tensor_drop(t);
			}
			assert_true(chi_buffer_in_use(f->device) >= 50 * 64);
			choir_frame_clear(f);
			assert_int_equal(chi_buffer_in_use(f->device), 0);
		}
		if (f->device->host_memory) // far's queue is its own affair
			assert_int_equal(chi_alloc_count(), before);
		choir_frame_free(f);
	}
	chi_buffer_trim();
}

TEST(rewinding_drops_what_came_after)
{
	for (size_t i = 0; i < 2; i++) {
		choir_frame *f = frame(devices[i]);
		choir_tensor *kept = choir_constant(f, CHOIR_F32, CHOIR_SHAPE(6), numbers);
		const size_t mark = choir_frame_mark(f), bytes = chi_buffer_in_use(f->device);
		for (int k = 0; k < 1000; k++) {
			assert_non_null(choir_constant(f, CHOIR_F32, CHOIR_SHAPE(6), numbers));
			assert_non_null(chi_tensor_alias(f, kept));
			choir_frame_rewind(f, mark);
			assert_int_equal(choir_frame_mark(f), mark);
			assert_int_equal(chi_buffer_in_use(f->device), bytes);
		}
		float back[6];
		assert_int_equal(choir_tensor_to_host(kept, back, sizeof(back)), CHOIR_OK);
		assert_memory_equal(back, numbers, sizeof(back));
		choir_frame_rewind(f, 0);
		assert_int_equal(chi_buffer_in_use(f->device), 0);
		choir_frame_free(f);
	}
	chi_buffer_trim();
}

// Work queued in a frame may still use what it dropped, so nobody else gets that memory before the
// frame has waited; the frame itself may, since its stream keeps the order.
TEST(memory_dropped_while_queued_stays_in_its_frame)
{
	choir_frame *f = frame("far:0"), *other = frame("far:0");

	choir_tensor *t = choir_constant(f, CHOIR_F32, CHOIR_SHAPE(6), numbers);
	choir_tensor *shared = choir_constant(f, CHOIR_F32, CHOIR_SHAPE(6), numbers);
	choir_tensor *alias = chi_tensor_alias(other, shared);
	const void *memory = t->data, *held = shared->data;
	chi_tensor_drop(t);
	chi_tensor_drop(shared);
	chi_tensor_drop(alias);
	choir_frame_clear(other); // the last to let go has not waited for the first
	assert_int_equal(chi_buffer_in_use(f->device), 128);
	for (int i = 0; i < 3; i++) {
		choir_tensor *theirs = choir_constant(other, CHOIR_F32, CHOIR_SHAPE(6), numbers);
		assert_true(theirs->data != memory && theirs->data != held);
	}
	assert_ptr_equal(choir_constant(f, CHOIR_F32, CHOIR_SHAPE(6), numbers)->data, memory);
	assert_ptr_not_equal(choir_constant(f, CHOIR_F32, CHOIR_SHAPE(6), numbers)->data, held);
	choir_frame_free(f);
	choir_frame_free(other);
	chi_buffer_trim();
}

TEST(the_first_failure_stays)
{
	choir_frame *f = frame("cpu:0");

	snprintf(f->prefix, sizeof(f->prefix), "replica 1: ");
	assert_null(choir_constant(f, CHOIR_F32, CHOIR_SHAPE(-1), numbers));
	assert_int_equal(choir_frame_status(f), CHOIR_INVALID);
	assert_text_holds(choir_error(), "replica 1: tensor:*[-1]");
	assert_int_equal(chi_frame_fail(f, CHOIR_IO, "second"), CHOIR_IO);
	assert_text_holds(choir_error(), "replica 1:*second");
	assert_int_equal(choir_frame_status(f), CHOIR_INVALID);
	assert_int_equal(chi_frame_status(f), CHOIR_INVALID);
	assert_text_holds(choir_error(), "[-1]");
	choir_frame_clear(f);
	assert_int_equal(choir_frame_status(f), CHOIR_OK);
	choir_fail(CHOIR_NOT_FOUND, "replica 1: has its prefix");
	assert_int_equal(chi_frame_record_error(f), CHOIR_NOT_FOUND);
	assert_text_holds(choir_error(), "replica 1:*prefix");
	assert_int_equal(choir_frame_status(f), CHOIR_NOT_FOUND);
	choir_frame_clear(f);
	chi_error_clear(); // what failed left no text
	assert_int_equal(chi_frame_record_error(f), CHOIR_INTERNAL);
	assert_int_equal(choir_frame_status(f), CHOIR_INTERNAL);
	assert_text_holds(choir_error(), "replica 1:*without a reason");
	chi_error_clear();
	assert_int_equal(chi_frame_record_error(NULL), CHOIR_INTERNAL);
	choir_frame_free(f);
}

TEST(a_long_failure_is_cut)
{
	choir_frame *f = frame("cpu:0");
	char text[CHI_ERROR_SIZE];

	snprintf(f->prefix, sizeof(f->prefix), "replica 1: ");
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	chi_frame_fail(f, CHOIR_IO, "%s", text);
	assert_int_equal(strlen(choir_error()), CHI_ERROR_SIZE - 1);
	assert_memory_equal(choir_error(), "replica 1: xxx", 14);
	choir_frame_free(f);
}

TEST(every_allocation_may_fail)
{
	for (size_t i = 0; i < 2; i++) {
		bool failed = true;
		for (uint64_t n = 1; failed; n++) {
			choir_device *d = choir_device_find(devices[i]);
			chi_alloc_fail(n, false);
			choir_frame *f = choir_frame_new(d);
			choir_tensor *t = f ? choir_constant(f, CHOIR_F32, CHOIR_SHAPE(6), numbers) : NULL;
			failed = chi_alloc_failed();
			chi_alloc_fail(0, false);
			assert_int_equal(t == NULL, failed);
			if (failed) {
				assert_int_equal(choir_error_status(), CHOIR_NO_MEMORY);
				assert_string_not_equal(choir_error(), "");
			}
			if (f && failed)
				assert_int_equal(choir_frame_status(f), CHOIR_NO_MEMORY);
			if (f) {
				choir_frame_clear(f);
				assert_non_null(choir_constant(f, CHOIR_F32, CHOIR_SHAPE(6), numbers));
			}
			choir_frame_free(f);
			chi_buffer_trim();
		}
	}
}
