// A read of some rows of a variable that other workers change: a tensor without values, which only
// chi_variable_gather_rows uses.
#pragma once

#include "value/variable.h"

bool chi_variable_allows_sparse_read(const choir_variable *v, const choir_frame *f);
choir_tensor *chi_variable_sparse_read(choir_variable *v, int copy, choir_frame *f);
static inline bool chi_variable_is_sparse_read(const choir_tensor *t)
{
	return t->data == NULL && choir_shape_elements(&t->shape) > 0;
}
choir_status chi_variable_gather_rows(
		const choir_tensor *table, const choir_tensor *indices, choir_tensor *out);
// All values, as chi_variable_alias. NULL: recorded in its frame.
choir_tensor *chi_variable_fill_sparse_read(choir_tensor *sparse_read);
