// to_float and flatten: values, shapes, before and after batch, from memory and from streams.
#include "data/elements.h"
#include "test.h"

#include <math.h>
#include <string.h>

enum { N = 5, PIXELS = 6 };

// n examples [2, 3] of a dtype with values 0, 1, 2, ... and a column of labels.
typedef struct {
	uint8_t u8[N * PIXELS], label[N];
	int32_t i32[N * PIXELS];
	int64_t i64[N * PIXELS];
	float f32[N * PIXELS];
	double f64[N * PIXELS];
} values;
static values v;

static const void *fill(choir_dtype dtype)
{
	for (int i = 0; i < N * PIXELS; i++) {
		v.u8[i] = (uint8_t) i;
		v.i32[i] = i;
		v.i64[i] = i;
		v.f32[i] = (float) i;
		v.f64[i] = i;
	}
	for (int i = 0; i < N; i++)
		v.label[i] = (uint8_t) (90 + i);
	switch (dtype) {
	case CHOIR_F32:
		return v.f32;
	case CHOIR_F64:
		return v.f64;
	case CHOIR_I32:
		return v.i32;
	case CHOIR_I64:
		return v.i64;
	default:
		return v.u8;
	}
}

static choir_dataset *images(choir_dtype dtype)
{
	const choir_column columns[2] = {
		{ .name = "image", .dtype = dtype, .shape = { 2, { 2, 3 } }, .data = fill(dtype) },
		{ .name = "label", .dtype = CHOIR_U8, .data = v.label },
	};
	return choir_memory_dataset_new(N, 2, columns, false);
}

// Reads all in elements of at most so many and compares with value i * scale.
static void check(choir_dataset *d, float scale)
{
	assert_int_equal(chi_dataset_spec(d)->column[0].dtype, CHOIR_F32);
	int64_t unit = chi_dataset_spec(d)->batch ? chi_dataset_spec(d)->batch : 1, at = 0;
	float image[N * PIXELS];
	uint8_t label[N];
	chi_element e = { .column = { image, label }, .capacity = unit };
	while (chi_dataset_next(d, &e) == CHOIR_OK) {
		for (int64_t i = 0; i < e.examples * PIXELS; i++)
			assert_true(image[i] == (float) (at * PIXELS + i) * scale);
		for (int64_t i = 0; i < e.examples; i++)
			assert_int_equal(label[i], 90 + at + i);
		at += e.examples;
	}
	assert_int_equal(at, N);
	choir_dataset_free(d);
}

TEST(every_dtype_becomes_f32)
{
	static const choir_dtype dtypes[] = { CHOIR_F32, CHOIR_F64, CHOIR_I32, CHOIR_I64, CHOIR_U8,
		CHOIR_BOOL };
	for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
		check(choir_dataset_to_float(images(dtypes[i]), "image", 0.25), 0.25f);
		check(choir_dataset_batch(choir_dataset_to_float(images(dtypes[i]), "image", 0.25), 2),
				0.25f);
		check(choir_dataset_to_float(choir_dataset_batch(images(dtypes[i]), 2), "image", 0.25),
				0.25f);
		// repeat makes a stream of it.
		check(choir_dataset_to_float(choir_dataset_repeat(images(dtypes[i]), 1), "image", 0.25),
				0.25f);
		check(choir_dataset_to_float(
					  choir_dataset_to_float(images(dtypes[i]), "image", 0.5), "image", 0.5),
				0.25f);
	}
}

TEST(products_are_made_where_they_are_exact)
{
	const int64_t big = (INT64_C(1) << 40) + 1;
	const double third = 1.0 / 3;
	choir_column c[2] = { { .name = "big", .dtype = CHOIR_I64, .data = &big },
		{ .name = "third", .dtype = CHOIR_F64, .data = &third } };
	choir_dataset *d = choir_memory_dataset_new(1, 2, c, false);
	d = choir_dataset_to_float(choir_dataset_to_float(d, "big", 1e-3), "third", 3);
	float x, y;
	chi_element e = { .column = { &x, &y }, .capacity = 1 };
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	assert_true(x == (float) ((double) big * 1e-3));
	assert_true(y == 1.0f);
	choir_dataset_free(d);
}

// More than the scratch block holds, by a stream and by random access without a view.
TEST(large_blocks_go_through_the_scratch)
{
	for (int kind = 0; kind < 2; kind++) {
		choir_dataset *d = choir_synthetic_digits_dataset_new(300, 2);
		d = choir_dataset_to_float(kind ? choir_dataset_repeat(d, 1) : d, "image", 1);
		d = choir_dataset_zip(
				choir_dataset_batch(d, 300), choir_dataset_batch(numbers_in_memory(300), 300));
		static float image[300 * 784];
		static uint8_t label[300];
		static int64_t number[300];
		chi_element e = { .column = { image, label, number }, .capacity = 300 };
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
		choir_dataset_free(d);

		d = choir_synthetic_digits_dataset_new(300, 2);
		static uint8_t one[784];
		chi_element o = { .column = { one }, .capacity = 1 };
		for (int i = 0; i < 300; i++) {
			assert_int_equal(chi_dataset_next(d, &o), CHOIR_OK);
			for (int j = 0; j < 784; j++)
				assert_true(image[i * 784 + j] == (float) one[j]);
		}
		choir_dataset_free(d);
	}
}

TEST(flatten_changes_the_shape_only)
{
	choir_dataset *d =
			choir_dataset_flatten(choir_dataset_flatten(images(CHOIR_F32), "image"), "label");
	const chi_spec *spec = chi_dataset_spec(d);
	assert_int_equal(spec->column[0].shape.rank, 1);
	assert_int_equal(spec->column[0].shape.dim[0], 6);
	assert_int_equal(spec->column[1].shape.rank, 1);
	assert_int_equal(spec->column[1].shape.dim[0], 1);
	check(d, 1);
	check(choir_dataset_flatten(choir_dataset_batch(images(CHOIR_F32), 3), "image"), 1);
	check(choir_dataset_batch(
				  choir_dataset_flatten(choir_dataset_repeat(images(CHOIR_F32), 1), "image"), 3),
			1);
}

TEST(what_cannot_be_converted_is_refused)
{
	const uint16_t half = 0;
	choir_column c = { .name = "half", .dtype = CHOIR_F16, .data = &half };
	assert_refused(choir_dataset_to_float(choir_memory_dataset_new(1, 1, &c, false), "half", 1),
			CHOIR_UNSUPPORTED, "to_float:*\"half\"*f16");
	static const double scales[] = { NAN, INFINITY, -INFINITY, 1e300 };
	for (int i = 0; i < 4; i++)
		assert_refused(choir_dataset_to_float(images(CHOIR_U8), "image", scales[i]), CHOIR_INVALID,
				"to_float:*scale");
}
