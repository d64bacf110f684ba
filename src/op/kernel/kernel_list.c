// Registers the built-in kernels, one dtype at a time.
#include "op/kernel/kernel_list.h"

static void register_spec(const chi_kernel_spec *spec, const char *name)
{
	for (int dtype = CHOIR_F32; dtype <= CHOIR_BF16; dtype++) {
		if (!(spec->dtypes >> dtype & 1))
			continue;
		const choir_kernel_table table = {
			.size = sizeof table,
			.version = CHOIR_TABLE_VERSION,
			.operation = spec->operation,
			.kind = "cpu",
			.name = name,
			.dtype = (choir_dtype) dtype,
			.user = spec->user,
			.score = spec->score,
			.scratch = spec->scratch,
			.run = spec->run,
		};
		// Without memory, the first lookup of a missing kernel fails.
		if (choir_register_kernel(&table) != CHOIR_OK)
			return;
	}
}

void chi_kernel_register(chi_kernel_lists *lists, const char *name)
{
	for (size_t index = 0; lists(index).count; index++)
		for (size_t i = 0; i < lists(index).count; i++)
			register_spec(&lists(index).specs[i], name);
}
