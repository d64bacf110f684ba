// Sorting: every order of few items, and many random ones.
#include "base/sort.h"
#include "test.h"

static bool less(const void *a, const void *b)
{
	return *(const int *) a < *(const int *) b;
}

static void sorted(int *values, size_t n)
{
	void *items[1000];
	long before = 0, after = 0;
	for (size_t i = 0; i < n; i++) {
		items[i] = &values[i];
		before += values[i];
	}
	chi_heap_sort(items, n, less);
	for (size_t i = 0; i < n; i++) {
		after += *(int *) items[i];
		assert_true(i == 0 || *(int *) items[i - 1] <= *(int *) items[i]);
		for (size_t k = 0; k < i; k++)
			assert_ptr_not_equal(items[i], items[k]);
	}
	assert_int_equal(before, after);
}

TEST(few)
{
	for (int code = 0; code < 4 * 4 * 4 * 4 * 4; code++) {
		int values[5];
		for (int i = 0, rest = code; i < 5; i++, rest /= 4)
			values[i] = rest % 4;
		for (size_t n = 0; n <= 5; n++)
			sorted(values, n);
	}
}

TEST(many)
{
	int values[1000];
	uint32_t x = 1;
	for (int i = 0; i < 1000; i++) {
		x = x * 1664525u + 1013904223u;
		values[i] = (int) (x >> 20);
	}
	for (size_t n = 990; n <= 1000; n++)
		sorted(values, n);
}
