// Element types: names, sizes, what fits in them, and halves against their definition.
#include "tensor/tensor.h"
#include "test.h"

#include <math.h>

TEST(names_and_sizes)
{
	assert_string_equal(choir_dtype_name(CHOIR_F32), "f32");
	assert_string_equal(choir_dtype_name(CHOIR_BOOL), "bool");
	assert_string_equal(choir_dtype_name((choir_dtype) 77), "unknown");
	assert_int_equal(chi_dtype_size(CHOIR_I64), 8);
	assert_int_equal(chi_dtype_size(CHOIR_BF16), 2);
	assert_int_equal(chi_dtype_size((choir_dtype) 8), 0);
	assert_true(chi_dtype_is_float(CHOIR_F16));
	assert_false(chi_dtype_is_float(CHOIR_I32));
}

TEST(integers_hold_whole_numbers_in_range)
{
	assert_true(chi_dtype_holds(CHOIR_U8, 255));
	assert_false(chi_dtype_holds(CHOIR_U8, 256));
	assert_false(chi_dtype_holds(CHOIR_U8, -1));
	assert_false(chi_dtype_holds(CHOIR_I32, 0.5));
	assert_true(chi_dtype_holds(CHOIR_I32, -0x1p31));
	assert_false(chi_dtype_holds(CHOIR_I64, 0x1p63));
	assert_false(chi_dtype_holds(CHOIR_I64, NAN));
	assert_false(chi_dtype_holds(CHOIR_I64, INFINITY));
	assert_true(chi_dtype_holds(CHOIR_F32, NAN));
	assert_false(chi_dtype_holds(CHOIR_BOOL, 2));
}

TEST(halves_go_there_and_back)
{
	for (uint32_t bits = 0; bits < 65536; bits++) {
		uint16_t half = (uint16_t) bits, again;
		for (choir_dtype type = CHOIR_F16; type <= CHOIR_BF16; type++) {
			const double value = chi_dtype_load(type, &half, 0);
			chi_dtype_store(type, &again, 0, value);
			if (isnan(value))
				assert_true(isnan(chi_dtype_load(type, &again, 0)));
			else
				assert_int_equal(again, half);
		}
	}
}

static uint16_t half(choir_dtype type, double value)
{
	uint16_t bits;
	chi_dtype_store(type, &bits, 0, value);
	return bits;
}

TEST(halves_round_to_even)
{
	assert_int_equal(half(CHOIR_F16, 1), 0x3c00);
	assert_int_equal(half(CHOIR_F16, 1 + 0x1p-11), 0x3c00); // a tie
	assert_int_equal(half(CHOIR_F16, 1 + 3 * 0x1p-11), 0x3c02);
	assert_int_equal(half(CHOIR_F16, 2047.9), 0x6800); // carries into the exponent
	assert_int_equal(half(CHOIR_F16, 65519), 0x7bff);
	assert_int_equal(half(CHOIR_F16, 65520), 0x7c00);
	assert_int_equal(half(CHOIR_F16, -0.0), 0x8000);
	assert_int_equal(half(CHOIR_F16, 0x1p-24), 1);
	assert_int_equal(half(CHOIR_F16, 0x1p-25), 0);
	assert_int_equal(half(CHOIR_BF16, 1 + 0x1p-8), 0x3f80);
	assert_int_equal(half(CHOIR_BF16, 1 + 3 * 0x1p-8), 0x3f82);
}
