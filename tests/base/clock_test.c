// The clock and its deadlines.
#include "base/clock.h"
#include "test.h"

#include <math.h>

TEST(test_never_goes_back)
{
	double last = chi_clock_now();
	for (int i = 0; i < 10000; i++) {
		double now = chi_clock_now();
		assert_true(now >= last);
		last = now;
	}
}

TEST(test_deadline)
{
	double now = chi_clock_now(), deadline = chi_clock_deadline(5);
	assert_true(deadline >= now + 5 && deadline < now + 65);
	assert_true(chi_clock_deadline(-1) == HUGE_VAL);
	assert_true(chi_clock_deadline(-HUGE_VAL) == HUGE_VAL);
	assert_true(chi_clock_deadline(NAN) == HUGE_VAL);
	assert_true(chi_clock_deadline(HUGE_VAL) == HUGE_VAL);
}

TEST(test_timespec)
{
	struct timespec t;
	assert_true(chi_clock_timespec(12.25, &t));
	assert_int_equal(t.tv_sec, 12);
	assert_int_equal(t.tv_nsec, 250000000);
	assert_true(chi_clock_timespec(nextafter(3, 0), &t)); // the last moment of a second
	assert_int_equal(t.tv_sec, 2);
	assert_true(t.tv_nsec >= 0 && t.tv_nsec < 1000000000);
	assert_true(chi_clock_timespec(-4, &t)); // the system knows no time before 0
	assert_int_equal(t.tv_sec, 0);
	assert_int_equal(t.tv_nsec, 0);
	assert_false(chi_clock_timespec(HUGE_VAL, &t));
	assert_false(chi_clock_timespec(NAN, &t));
}

// Seconds since 1970: after this was written, and as fast as the other clock.
TEST(test_wall)
{
	const double before = chi_clock_wall(), start = chi_clock_now();
	assert_true(before > 1.7e9);
	while (chi_clock_now() - start < 0.01)
		;
	assert_true(chi_clock_wall() - before > 0.005);
}
