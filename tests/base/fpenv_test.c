// The floating-point environment: whatever the host has set, a replica finds the default one, and
// the host finds its own again.
#include "base/fpenv.h"
#include "base/thread.h"
#include "test.h"

#include <float.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

// Without volatile the compiler would do the arithmetic, in its own environment.
static double product(double a, double b)
{
	volatile double x = a, y = b;
	return x * y;
}

static double third(void)
{
	volatile double one = 1, three = 3;
	return one / three;
}

TEST(test_rounding)
{
	double nearest = third();
	fesetround(FE_UPWARD);
	double upward = third();
	chi_fpenv saved;
	chi_fpenv_enter(&saved);
	double inside = third();
	int mode_inside = fegetround();
	chi_fpenv_leave(&saved);
	double after = third();
	int mode_after = fegetround();
	fesetround(FE_TONEAREST);
	assert_true(upward > nearest);
	assert_true(inside == nearest);
	assert_true(after == upward);
	assert_int_equal(mode_inside, FE_TONEAREST);
	assert_int_equal(mode_after, FE_UPWARD);
}

// The flags that the host may look at are as before, whatever the replica raised.
TEST(test_flags)
{
	feclearexcept(FE_ALL_EXCEPT);
	feraiseexcept(FE_INEXACT);
	chi_fpenv saved;
	chi_fpenv_enter(&saved);
	feraiseexcept(FE_OVERFLOW);
	chi_fpenv_leave(&saved);
	int flags = fetestexcept(FE_INEXACT | FE_OVERFLOW);
	feclearexcept(FE_ALL_EXCEPT);
	assert_int_equal(flags, FE_INEXACT);
}

// A host that traps on invalid operations would be killed by a replica's NaN.
TEST(test_traps)
{
	int before = feenableexcept(FE_INVALID);
	if (before == -1)
		skip(); // a processor that cannot trap, as most of Arm
	chi_fpenv saved;
	chi_fpenv_enter(&saved);
	int inside = fegetexcept();
	chi_fpenv_leave(&saved);
	int after = fegetexcept();
	fedisableexcept(FE_ALL_EXCEPT);
	assert_int_equal(inside & FE_INVALID, 0);
	assert_true(after & FE_INVALID);
}

#ifdef __SSE2__

static void see_denormal(void *arg)
{
	double *seen = arg;
	seen[0] = product(DBL_MIN, 0.5); // as inherited
	chi_fpenv saved;
	chi_fpenv_enter(&saved);
	seen[1] = product(DBL_MIN, 0.5);
	seen[2] = product(seen[1], 1);
	chi_fpenv_leave(&saved);
}

// What a host linked with -ffast-math has set when Choir starts threads.
TEST(test_flush_to_zero)
{
	unsigned before = _mm_getcsr();
	_mm_setcsr(before | 0x8040);
	double seen[3];
	chi_thread thread;
	choir_status status = chi_thread_start(&thread, "denormal", see_denormal, seen);
	chi_thread_join(&thread);
	chi_fpenv saved;
	chi_fpenv_enter(&saved);
	unsigned inside = _mm_getcsr();
	chi_fpenv_leave(&saved);
	unsigned after = _mm_getcsr();
	_mm_setcsr(before);
	assert_int_equal(status, CHOIR_OK);
	assert_true(seen[0] == DBL_MIN / 2); // a thread of Choir does not inherit it
	assert_true(seen[1] == DBL_MIN / 2);
	assert_true(seen[2] == DBL_MIN / 2);
	assert_int_equal(inside & 0x8040, 0);
	assert_int_equal(after & 0x8040, 0x8040);
}

#else

TEST(test_flush_to_zero)
{
	assert_true(product(DBL_MIN, 0.5) == DBL_MIN / 2);
}

#endif
