// The copies of a variable in 16 bits: one for each version, which all reads share.
#include "value/narrow_copy.h"

#include "base/alloc.h"
#include "op/plain/half.h"
#include "test.h"

static choir_device *cpu[2];
static chi_layout layout = { 2, cpu };

static int find_devices(void **state)
{
	(void) state;
	cpu[0] = choir_device_find("cpu:0");
	cpu[1] = choir_device_find("cpu:1");
	return 0;
}

static choir_variable *make(choir_dtype dtype, chi_concurrency concurrency)
{
	const chi_variable_plan plan = { .name = "v",
		.shape = CHOIR_SHAPE(2, 3),
		.layout = &layout,
		.concurrency = concurrency,
		.options = { .size = sizeof(choir_variable_options),
				.dtype = dtype,
				.initializer = CHOIR_INITIALIZER_ONES } };
	return chi_variable_new(&plan);
}

static choir_tensor *narrow(choir_tensor *t, choir_dtype dtype)
{
	return t->source->narrow(t, dtype);
}

TEST(reads_share_the_copy_until_a_write)
{
	choir_variable *v = make(CHOIR_F32, CHI_EXCLUSIVE);
	choir_frame *f = choir_frame_new(cpu[0]), *other = choir_frame_new(cpu[1]);
	const float values[] = { 0, 1.001f, -2.7f, 1e-9f, 3, 4 };
	choir_tensor *a = narrow(chi_variable_alias(v, 0, f), CHOIR_BF16);
	choir_tensor *b = narrow(chi_variable_alias(v, 0, other), CHOIR_BF16);
	choir_tensor *c = narrow(chi_variable_alias(v, 0, f), CHOIR_F16);
	assert_ptr_equal(a->data, b->data);
	assert_ptr_not_equal(a->data, c->data);
	assert_int_equal(chi_variable_from_host(v, values), CHOIR_OK);
	assert_int_equal(chi_tensor_check(a), CHOIR_STATE); // stale, as the read itself
	choir_frame_clear(f);
	a = narrow(chi_variable_alias(v, 0, f), CHOIR_BF16);
	assert_int_equal(choir_tensor_dtype(a), CHOIR_BF16);
	for (int i = 0; i < 6; i++)
		assert_int_equal(((const uint16_t *) a->data)[i], chi_bf16_of_f32(values[i]));
	// Not made again: a value that is planted stays.
	((uint16_t *) a->data)[0] = 0x3f80;
	assert_int_equal(
			((const uint16_t *) narrow(chi_variable_alias(v, 0, f), CHOIR_BF16)->data)[0], 0x3f80);
	choir_frame_free(f);
	choir_frame_free(other);
	chi_variable_free(v);
}

// Writes i + add to each element of v as an update does, and follows the first `followed` of them.
static void update(choir_variable *v, float add, int64_t followed)
{
	chi_copy *c = &v->copy[0];
	chi_stream *s = chi_stream_new(cpu[0]);
	float *at = c->buffer->memory;
	chi_narrow_copy_begin(c);
	for (int i = 0; i < 6; i++)
		at[i] = (float) i + add;
	for (int64_t first = 0; first < followed; first += 3)
		assert_int_equal(chi_narrow_copy_follow(c, s, first, 3), CHOIR_OK);
	chi_narrow_copy_end(c);
	chi_variable_bump_version(v, 0);
	chi_stream_free(s);
}

// Plants a value in the copy: a read that makes the copy again overwrites it.
static bool is_kept(choir_variable *v, float add, choir_dtype dtype)
{
	choir_frame *f = choir_frame_new(cpu[0]);
	uint16_t *planted = v->copy[0].narrow[dtype == CHOIR_BF16].buffer->memory;
	planted[0] = 0x1234;
	const uint16_t *got = narrow(chi_variable_alias(v, 0, f), dtype)->data;
	const bool kept = got[0] == 0x1234;
	for (int i = kept; i < 6; i++)
		assert_int_equal(got[i],
				dtype == CHOIR_BF16 ? chi_bf16_of_f32((float) i + add)
									: chi_f16_of_f32((float) i + add));
	choir_frame_free(f);
	return kept;
}

TEST(updates_keep_the_copies_that_are_read)
{
	static const choir_dtype halves[] = { CHOIR_F16, CHOIR_BF16 };
	for (int i = 0; i < 2; i++) {
		choir_variable *v = make(CHOIR_F32, CHI_EXCLUSIVE);
		choir_frame *f = choir_frame_new(cpu[0]);
		assert_non_null(narrow(chi_variable_alias(v, 0, f), halves[i]));
		choir_frame_free(f);
		update(v, 0.7f, 6);
		assert_true(is_kept(v, 0.7f, halves[i]));
		update(v, 1.7f, 3); // only a part is rounded
		assert_false(is_kept(v, 1.7f, halves[i]));
		update(v, 2.7f, 6);
		update(v, 3.7f, 6); // nothing has read the copy since
		assert_false(is_kept(v, 3.7f, halves[i]));
		chi_narrow_copy_begin(&v->copy[0]); // an update that is skipped
		assert_true(is_kept(v, 3.7f, halves[i]));
		update(v, 4.7f, 6);
		assert_true(is_kept(v, 4.7f, halves[i]));
		chi_variable_free(v);
	}
}

// The caller casts these.
TEST(what_has_no_copy)
{
	choir_variable *v = make(CHOIR_F32, CHI_EXCLUSIVE), *wide = make(CHOIR_F64, CHI_EXCLUSIVE),
				   *locked = make(CHOIR_F32, CHI_LOCKED);
	choir_frame *f = choir_frame_new(cpu[0]);
	choir_tensor *all = chi_variable_alias(v, 0, f);
	assert_null(narrow(chi_tensor_rows(f, all, 1, 1), CHOIR_BF16));
	assert_non_null(narrow(chi_tensor_reshape(all, &CHOIR_SHAPE(6)), CHOIR_BF16));
	assert_null(narrow(chi_variable_alias(wide, 0, f), CHOIR_BF16));
	assert_null(narrow(chi_variable_alias(locked, 0, f), CHOIR_BF16));
	assert_int_equal(choir_frame_status(f), CHOIR_OK);
	choir_frame_free(f);
	chi_variable_free(v);
	chi_variable_free(wide);
	chi_variable_free(locked);
}

TEST(without_memory)
{
	choir_status status = CHOIR_NO_MEMORY;
	for (uint64_t n = 1; status != CHOIR_OK; n++) {
		choir_variable *v = make(CHOIR_F32, CHI_EXCLUSIVE);
		choir_frame *f = choir_frame_new(cpu[0]);
		choir_tensor *t = chi_variable_alias(v, 0, f);
		chi_alloc_fail(n, false);
		choir_tensor *half = narrow(t, CHOIR_BF16);
		chi_alloc_fail(0, false);
		status = choir_frame_status(f);
		assert_true((half != NULL) == (status == CHOIR_OK));
		if (status != CHOIR_OK)
			assert_int_equal(status, CHOIR_NO_MEMORY);
		choir_frame_clear(f);
		assert_non_null(narrow(chi_variable_alias(v, 0, f), CHOIR_BF16));
		choir_frame_free(f);
		chi_variable_free(v);
	}
}

TEST_GROUP(find_devices, NULL)
