// DLPack: in and out without a copy where that is right, with one where it must be, and every
// managed object deleted once, on the right thread.
#include "base/alloc.h"
#include "base/thread.h"
#include "tensor/dlpack.h"
#include "tensor/tensor.h"
#include "test.h"

#include <string.h>

typedef struct {
	struct DLManagedTensorVersioned managed;
	int64_t shape[2], strides[2];
	int deleted;
	pthread_t by;
} object;

static float numbers[6] = { 1, 2, 3, 4, 5, 6 };

static void delete_object(struct DLManagedTensorVersioned *managed)
{
	object *o = managed->context;
	o->deleted++;
	o->by = pthread_self();
}

static void open_object(object *o)
{
	*o = (object){ .shape = { 2, 3 }, .strides = { 3, 1 } };
	o->managed = (struct DLManagedTensorVersioned){
		.version = { 1, 0 },
		.context = o,
		.deleter = delete_object,
		.tensor = { .data = numbers,
				.device = { DL_CPU, 0 },
				.rank = 2,
				.type = { DL_FLOAT, 32, 1 },
				.shape = o->shape,
				.strides = o->strides },
	};
}

static void holds(const choir_tensor *t, const float expected[6])
{
	float found[6];
	assert_non_null(t);
	assert_int_equal(choir_tensor_to_host(t, found, sizeof(found)), CHOIR_OK);
	assert_memory_equal(found, expected, sizeof(found));
}

TEST(packed_memory_is_shared)
{
	object o;

	for (int strides = 0; strides < 2; strides++) {
		choir_frame *f = choir_frame_new(NULL), *other = choir_frame_new(NULL);
		open_object(&o);
		o.managed.tensor.strides = strides ? o.strides : NULL;
		choir_tensor *t = choir_from_dlpack(f, &o.managed);
		assert_ptr_equal(choir_tensor_data(t), numbers);
		choir_tensor *kept = chi_tensor_retain(other, t);
		assert_ptr_equal(choir_tensor_data(kept), numbers);
		choir_frame_free(f);
		assert_int_equal(o.deleted, 0);
		choir_frame_free(other);
		assert_int_equal(o.deleted, 1);
	}
}

TEST(the_rest_is_copied)
{
	static const float transposed[6] = { 1, 4, 2, 5, 3, 6 };
	choir_frame *f = choir_frame_new(NULL), *far = choir_frame_new(choir_device_find("far:0"));
	object o;

	open_object(&o);
	memcpy(o.shape, (int64_t[]){ 3, 2 }, sizeof(o.shape));
	memcpy(o.strides, (int64_t[]){ 1, 3 }, sizeof(o.strides));
	holds(choir_from_dlpack(f, &o.managed), transposed);
	assert_int_equal(o.deleted, 1);
	holds(choir_from_dlpack(far, &o.managed), transposed);
	assert_int_equal(o.deleted, 2);
	open_object(&o);
	holds(choir_from_dlpack(far, &o.managed), numbers);
	assert_int_equal(o.deleted, 1);
	open_object(&o);
	o.shape[0] = 0;
	o.managed.tensor.data = NULL;
	assert_int_equal(choir_tensor_shape(choir_from_dlpack(f, &o.managed))->dim[1], 3);
	assert_int_equal(o.deleted, 1);
	char bytes[sizeof(numbers) + 8];
	memcpy(bytes + 1, numbers, sizeof(numbers));
	open_object(&o);
	o.managed.tensor.data = bytes; // not aligned
	o.managed.tensor.byte_offset = 1;
	holds(choir_from_dlpack(f, &o.managed), numbers);
	assert_int_equal(o.deleted, 1);
	choir_frame_free(f);
	choir_frame_free(far);
}

static void refused(object *o, choir_status status, const char *text)
{
	choir_frame *f = choir_frame_new(NULL);
	assert_null(choir_from_dlpack(f, &o->managed));
	assert_int_equal(o->deleted, 1);
	assert_int_equal(choir_frame_status(f), status);
	if (!text_holds(choir_error(), text))
		fail_msg("'%s' is not in '%s'", text, choir_error());
	choir_frame_free(f);
}

TEST(what_cannot_be_is_refused_and_deleted)
{
	object o;

	open_object(&o);
	o.managed.version.major = 2;
	refused(&o, CHOIR_UNSUPPORTED, "2.0*1.x");
	open_object(&o);
	o.managed.tensor.device.type = DL_CUDA;
	refused(&o, CHOIR_UNSUPPORTED, "type*2;");
	open_object(&o);
	o.managed.tensor.type.bits = 4;
	refused(&o, CHOIR_UNSUPPORTED, "code 2*4");
	open_object(&o);
	o.managed.tensor.type.lanes = 2;
	refused(&o, CHOIR_UNSUPPORTED, "2*lanes");
	open_object(&o);
	o.managed.tensor.rank = 9;
	refused(&o, CHOIR_INVALID, "rank*9");
	open_object(&o);
	o.shape[1] = -3;
	refused(&o, CHOIR_INVALID, "[2, -3]");
	open_object(&o);
	memcpy(o.shape, (int64_t[]){ INT64_MAX, INT64_MAX }, sizeof(o.shape));
	refused(&o, CHOIR_INVALID, "[9223372036854775807, 9223372036854775807]");
	open_object(&o);
	o.managed.tensor.data = NULL;
	refused(&o, CHOIR_INVALID, "NULL");
	open_object(&o);
	assert_null(choir_from_dlpack(NULL, &o.managed));
	assert_int_equal(o.deleted, 1);
}

static void release_elsewhere(void *arg)
{
	choir_frame_free(arg);
}

TEST(deleters_wait_for_the_right_thread)
{
	chi_thread thread = { 0 };
	object o;

	open_object(&o);
	choir_frame *f = choir_frame_new(NULL);
	assert_non_null(choir_from_dlpack(f, &o.managed));
	assert_int_equal(chi_thread_start(&thread, "replica", release_elsewhere, f), CHOIR_OK);
	chi_thread_join(&thread);
	assert_int_equal(o.deleted, 0);
	chi_dlpack_run_deleters();
	assert_int_equal(o.deleted, 1);
	assert_true(pthread_equal(o.by, pthread_self()));

	open_object(&o);
	f = choir_frame_new(NULL);
	assert_non_null(choir_from_dlpack(f, &o.managed));
	chi_dlpack_hold(true);
	choir_frame_free(f);
	chi_dlpack_hold(false);
	assert_int_equal(o.deleted, 0);
	chi_dlpack_run_deleters();
	chi_dlpack_run_deleters();
	assert_int_equal(o.deleted, 1);
}

TEST(exported_memory_outlives_the_frame)
{
	choir_frame *f = choir_frame_new(NULL);

	choir_tensor *t = choir_constant(f, CHOIR_F32, CHOIR_SHAPE(2, 3), numbers);
	const void *memory = choir_tensor_data(t);
	struct DLManagedTensorVersioned *out = choir_tensor_to_dlpack(t);
	assert_non_null(out);
	assert_int_equal(out->version.major, 1);
	assert_int_equal(out->flags, DL_READ_ONLY);
	assert_int_equal(out->tensor.rank, 2);
	assert_int_equal(out->tensor.strides[0], 3);
	assert_int_equal(out->tensor.type.code, DL_FLOAT);
	assert_int_equal(out->tensor.device.type, DL_CPU);
	choir_frame_clear(f);
	assert_ptr_equal(out->tensor.data, memory);
	assert_memory_equal(out->tensor.data, numbers, sizeof(numbers));
	holds(choir_from_dlpack(f, out), numbers); // and back, without a copy
	assert_ptr_equal(f->tensors->data, memory);
	choir_frame_free(f);
	assert_int_equal(chi_buffer_in_use(choir_device_find("cpu:0")), 0);
}

TEST(what_may_change_is_exported_as_a_copy)
{
	choir_frame *f = choir_frame_new(NULL), *far = choir_frame_new(choir_device_find("far:0"));

	choir_tensor *t = choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(6), numbers);
	struct DLManagedTensorVersioned *out = choir_tensor_to_dlpack(t);
	assert_int_equal(out->flags, DL_IS_COPIED);
	assert_ptr_not_equal(out->tensor.data, numbers);
	choir_frame_clear(f);
	assert_memory_equal(out->tensor.data, numbers, sizeof(numbers));
	out->deleter(out);
	assert_null(choir_tensor_to_dlpack(NULL));
	assert_null(choir_tensor_to_dlpack(choir_number(far, 1)));
	assert_int_equal(choir_error_status(), CHOIR_UNSUPPORTED);
	choir_frame_free(f);
	choir_frame_free(far);
}

TEST(every_allocation_may_fail)
{
	bool failed = true;

	chi_buffer_trim();
	for (uint64_t n = 1; failed; n++) {
		choir_frame *f = choir_frame_new(NULL);
		object o;
		open_object(&o);
		chi_alloc_fail(n, false);
		choir_tensor *t = choir_from_dlpack(f, &o.managed);
		if (t)
			t->borrowed = true; // so that there is a copy to fail
		struct DLManagedTensorVersioned *out = choir_tensor_to_dlpack(t);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(out == NULL, failed);
		if (out)
			out->deleter(out);
		else
			assert_int_equal(choir_frame_status(f), CHOIR_NO_MEMORY);
		choir_frame_free(f);
		assert_int_equal(o.deleted, 1);
		chi_buffer_trim();
	}
}
