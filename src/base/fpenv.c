// Only registers that change are written, so an empty replica call stays cheap.
#include "base/fpenv.h"

#if defined(__x86_64__)

#include <emmintrin.h>

enum { DEFAULT_CONTROL = 0x1f80, OLD_DEFAULT_CONTROL = 0x037f, FLAGS = 0x3f };

static unsigned short old_control(void)
{
	unsigned short word;
	__asm__ volatile("fnstcw %0" : "=m"(word));
	return word;
}

static unsigned short old_status(void)
{
	unsigned short word;
	__asm__ volatile("fnstsw %0" : "=m"(word));
	return word;
}

static void set_old_control(unsigned short word)
{
	__asm__ volatile("fldcw %0" : : "m"(word));
}

void chi_fpenv_enter(chi_fpenv *saved)
{
	saved->control = _mm_getcsr();
	saved->old_control = old_control();
	saved->old_status = old_status();
	if (saved->old_control != OLD_DEFAULT_CONTROL)
		set_old_control(OLD_DEFAULT_CONTROL);
	if (saved->control != DEFAULT_CONTROL)
		_mm_setcsr(DEFAULT_CONTROL);
}

void chi_fpenv_leave(const chi_fpenv *saved)
{
	if ((old_status() & FLAGS) != (saved->old_status & FLAGS)) {
		fenv_t now;
		fegetenv(&now);
		now.__status_word = saved->old_status;
		fesetenv(&now);
	}
	if (old_control() != saved->old_control)
		set_old_control(saved->old_control);
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
