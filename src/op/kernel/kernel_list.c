// Registers the built-in kernels, one dtype at a time.
#include "op/kernel/kernel_list.h"

#include "op/kernel/kernel.h"

static choir_status register_spec(const chi_kernel_spec *spec, const char *name)
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
		CHOIR_TRY(chi_kernel_add_builtin(&table));
	}
	return CHOIR_OK;
}

choir_status chi_kernel_register(chi_kernel_lists *lists, const char *name)
{
	for (size_t index = 0; lists(index).count; index++)
		for (size_t i = 0; i < lists(index).count; i++)
			CHOIR_TRY(register_spec(&lists(index).specs[i], name));
	return CHOIR_OK;
}
