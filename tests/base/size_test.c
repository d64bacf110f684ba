// Checked arithmetic: what fits is exact, what does not is refused and changes nothing.
#include "base/size.h"
#include "test.h"

TEST(test_sizes)
{
	size_t out = 99;
	assert_true(chi_size_add(SIZE_MAX - 5, 5, &out));
	assert_true(out == SIZE_MAX);
	assert_false(chi_size_add(SIZE_MAX - 5, 6, &out));
	assert_true(out == SIZE_MAX);
	assert_true(chi_size_multiply(SIZE_MAX / 3, 3, &out));
	assert_true(out == SIZE_MAX / 3 * 3);
	out = 99;
	assert_false(chi_size_multiply(SIZE_MAX / 3 + 1, 3, &out));
	assert_false(chi_size_multiply(SIZE_MAX, SIZE_MAX, &out)); // whose product wraps to 1
	assert_int_equal(out, 99);
	assert_true(chi_size_multiply(SIZE_MAX, 0, &out));
	assert_int_equal(out, 0);
}

TEST(test_signed)
{
	int64_t out = 99;
	assert_true(chi_int64_add(INT64_MAX, -1, &out));
	assert_true(out == INT64_MAX - 1);
	out = 99;
	assert_false(chi_int64_add(INT64_MAX, 1, &out));
	assert_false(chi_int64_add(INT64_MIN, -1, &out));
	assert_false(chi_int64_multiply(INT64_MIN, -1, &out));
	assert_false(chi_int64_multiply(INT64_C(1) << 32, INT64_C(1) << 31, &out));
	assert_int_equal(out, 99);
	assert_true(chi_int64_multiply(-(INT64_C(1) << 32), INT64_C(1) << 31, &out));
	assert_true(out == INT64_MIN);
}

TEST(test_round_up)
{
	size_t out;
	static const size_t cases[][3] = { { 0, 16, 0 }, { 1, 16, 16 }, { 16, 16, 16 }, { 17, 16, 32 },
		{ 5, 1, 5 } };
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(chi_size_round_up(cases[i][0], cases[i][1], &out));
		assert_int_equal(out, cases[i][2]);
	}
	assert_true(chi_size_round_up(SIZE_MAX - 63, 64, &out));
	assert_true(out == SIZE_MAX - 63);
	assert_false(chi_size_round_up(SIZE_MAX - 62, 64, &out));
}
