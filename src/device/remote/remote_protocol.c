// The hello of a program and of a server of devices.
#include "base/instruction_set.h"
#include "choir/library.h"
#include "device/remote/remote_protocol.h"

#include <stdlib.h>

choir_status chi_remote_hello(chi_hello *h, const char *role, int index, uint64_t job)
{
	const char *kernels = getenv("CHOIR_KERNELS");
	const int version = choir_version();
	CHOIR_TRY(chi_hello_make(h, role, index, job, "devices"));
	h->facts = 0; // programs and files may differ
	CHOIR_TRY(chi_hello_add(h, "build", "choir %d.%d.%d, %s, protocol %d", version / 10000,
			version / 100 % 100, version % 100, __VERSION__, CHI_REMOTE_PROTOCOL));
	CHOIR_TRY(chi_hello_add(
			h, "instruction set", "%s", chi_instruction_set_name(chi_instruction_set_use())));
	return chi_hello_add(
			h, "CHOIR_KERNELS", "%s", kernels == NULL || kernels[0] == '\0' ? "all" : kernels);
}
