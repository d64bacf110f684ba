// Setting and restoring the floating-point environment, cheap enough for an empty replica call.
#include "base/fpenv.h"

#ifdef __SSE2__

#include <emmintrin.h>

// All exceptions masked, round to nearest, denormals neither flushed nor taken for zero.
enum { DEFAULT_CONTROL = 0x1f80 };

void chi_fpenv_enter(chi_fpenv *saved)
{
	saved->control = _mm_getcsr();
	if (saved->control != DEFAULT_CONTROL)
		_mm_setcsr(DEFAULT_CONTROL);
}

void chi_fpenv_leave(const chi_fpenv *saved)
{
	if (_mm_getcsr() != saved->control)
		_mm_setcsr(saved->control);
}

#else

void chi_fpenv_enter(chi_fpenv *saved)
{
	fegetenv(&saved->host);
	fesetenv(FE_DFL_ENV);
}

void chi_fpenv_leave(const chi_fpenv *saved)
{
	fesetenv(&saved->host);
}

#endif
