// Shapes: sizes that do not fit are found, and texts are never too long.
#include "tensor/tensor.h"
#include "test.h"

#include <string.h>

TEST(elements_are_checked)
{
	choir_shape s = CHOIR_SHAPE(3, 4, 5);
	size_t bytes = 7;

	assert_int_equal(choir_shape_elements(&s), 60);
	s = CHOIR_SCALAR;
	assert_int_equal(choir_shape_elements(&s), 1);
	s = CHOIR_SHAPE(INT64_MAX, 2);
	assert_int_equal(choir_shape_elements(&s), CHOIR_NONE);
	assert_false(chi_shape_bytes(&s, CHOIR_U8, &bytes));
	s = CHOIR_SHAPE(INT64_MAX, 2, 0);
	assert_int_equal(choir_shape_elements(&s), 0);
	s = CHOIR_SHAPE(2, -1);
	assert_int_equal(choir_shape_elements(&s), CHOIR_NONE);
	s = CHOIR_SHAPE(INT64_MAX / 2);
	assert_true(chi_shape_bytes(&s, CHOIR_U8, &bytes));
	assert_false(chi_shape_bytes(&s, CHOIR_F64, &bytes));
	assert_int_equal(bytes, INT64_MAX / 2);
	s.rank = CHOIR_MAX_RANK + 1;
	assert_int_equal(choir_shape_elements(&s), CHOIR_NONE);
	s.rank = -1;
	assert_int_equal(choir_shape_elements(&s), CHOIR_NONE);
}

TEST(texts)
{
	char text[CHI_SHAPE_TEXT];
	choir_shape s = CHOIR_SHAPE(16, 784);

	assert_string_equal(chi_shape_print(&s, text), "[16, 784]");
	assert_string_equal(chi_shape_print(&CHOIR_SCALAR, text), "[]");
	s = CHOIR_SHAPE(INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN,
			INT64_MIN);
	chi_shape_print(&s, text);
	assert_int_equal(strlen(text), CHI_SHAPE_TEXT - 1);
	assert_int_equal(text[strlen(text) - 1], ']');
	s.rank = 100;
	assert_string_equal(chi_shape_print(&s, text), "[rank 100]");
}

TEST(equality)
{
	choir_shape a = CHOIR_SHAPE(2, 3), b = CHOIR_SHAPE(2, 3, 1), c = CHOIR_SHAPE(2, 4);

	assert_true(chi_shape_equal(&a, &a));
	assert_false(chi_shape_equal(&a, &b));
	assert_false(chi_shape_equal(&a, &c));
}
