// Selects the plain kernels under the thread sanitizer, which does not see oneDNN's locks. It does
// so before main, because kernels are selected once.
#pragma once

#if defined(__SANITIZE_THREAD__)

#include <stdlib.h>

__attribute__((constructor)) static void use_plain_kernels(void)
{
	setenv("CHOIR_KERNELS", "plain", 1);
}

#endif
