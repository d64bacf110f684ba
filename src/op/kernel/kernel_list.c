// Registers built-in kernels by dtype.
#include "op/kernel/kernel_list.h"

#include "op/kernel/kernel.h"

choir_status chi_kernel_add_dtypes(choir_kernel_table table, uint32_t dtypes)
{
	table.size = sizeof table;
	table.version = CHOIR_TABLE_VERSION;
	for (int dtype = CHOIR_F32; dtype <= CHOIR_BF16; dtype++) {
		table.dtype = (choir_dtype) dtype;
		if (dtypes >> dtype & 1)
			CHOIR_TRY(chi_kernel_add_builtin(&table));
	}
	return CHOIR_OK;
}

static choir_status register_spec(const chi_kernel_spec *spec, const char *name)
{
	const choir_kernel_table table = { .operation = spec->operation,
		.kind = "cpu",
		.name = name,
		.user = spec->user,
		.score = spec->score,
		.scratch = spec->scratch,
		.run = spec->run };
	return chi_kernel_add_dtypes(table, spec->dtypes);
}

choir_status chi_kernel_register(chi_kernel_lists *lists, const char *name)
{
	for (size_t index = 0; lists(index).count; index++)
		for (size_t i = 0; i < lists(index).count; i++)
			CHOIR_TRY(register_spec(&lists(index).specs[i], name));
	return CHOIR_OK;
}
