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
