// For tests that use kernels in several threads: the thread sanitizer, to which oneDNN's own locks
// are invisible, gets the plain ones. Before main, as they are chosen once.
#pragma once

#if defined(__SANITIZE_THREAD__)

#include <stdlib.h>

__attribute__((constructor)) static void use_plain_kernels(void)
{
	setenv("CHOIR_KERNELS", "plain", 1);
}

#endif
