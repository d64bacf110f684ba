// The floating-point environment of replicas. The default environment of C is what is wanted; on
// x86 the flush-to-zero and denormals-are-zero bits are the processor's own, and not every C
// library counts them in, so they are cleared by hand.
#include "base/fpenv.h"

#ifdef __SSE2__
#include <emmintrin.h>

enum { FLUSH_TO_ZERO = 0x8000, DENORMALS_ARE_ZERO = 0x0040 };
#endif

void chi_fpenv_enter(chi_fpenv *saved)
{
	fegetenv(&saved->host);
	fesetenv(FE_DFL_ENV);
#ifdef __SSE2__
	unsigned control = _mm_getcsr();
	unsigned wanted = control & ~(unsigned) (FLUSH_TO_ZERO | DENORMALS_ARE_ZERO);
	if (control != wanted)
		_mm_setcsr(wanted);
#endif
}

void chi_fpenv_leave(const chi_fpenv *saved)
{
	fesetenv(&saved->host);
}
