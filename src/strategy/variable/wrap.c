// A variable in memory of the program.
#include "strategy/context.h"
#include "strategy/variable/create.h"

choir_variable *choir_variable_wrap(
		const char *name, choir_dtype dtype, choir_shape shape, void *memory)
{
	choir_strategy *s = choir_strategy_current();
	if (s == NULL || chi_context_need_cross(s, "variable_wrap") != CHOIR_OK)
		return NULL;
	if (memory == NULL)
		return chi_fail_null(CHOIR_INVALID, "variable \"%s\": the memory to wrap is NULL",
				name == NULL ? "" : name);
	const chi_context *c = chi_context_current();
	const choir_variable_options o = { .size = sizeof o, .dtype = dtype };
	return chi_strategy_make_variable(s,
			&(chi_creation){ .name = name,
					.shape = &shape,
					.options = &o,
					.colocated_with = c == NULL ? NULL : c->colocate,
					.non_slot = c != NULL && c->non_slot,
					.wrap = memory });
}
