// Makes `far` known to the program that this folder is linked with, as a program with a device of
// its own would: by the public tables, before the first operation.
#include "far/far.h"

choir_status far_register(void)
{
	CHOIR_TRY(choir_register_device(&far_table));
	return far_register_kernels();
}

#ifndef CHI_UNDER_A_SCHEDULER
__attribute__((constructor)) static void register_before_main(void)
{
	CHOIR_CHECK(far_register());
}
#endif
