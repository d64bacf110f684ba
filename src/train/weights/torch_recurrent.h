// PyTorch's recurrent layers, for torch_keras_convention.c.
#pragma once

#include "train/weights/name_map.h"
#include "train/weights/weights.h"

// As chi_convention_find. Sets m->recurrent if the tensor or variable is of a recurrent layer.
choir_status chi_torch_recurrent_find(const chi_weights *w, chi_mapped_name *m, size_t *i);
choir_status chi_torch_recurrent_find_tensor(const chi_name_map *map, const chi_weights *w,
		const choir_variable *v, chi_mapped_name *m, chi_text *zeros);
// In v's layer, the variable whose last word is word; w->n: none.
size_t chi_recurrent_variable(const chi_weights *w, const choir_variable *v, const char *word);
// Of v's layer; w->n: none.
size_t chi_torch_recurrent_kernel(const chi_weights *w, const choir_variable *v);
// Between the gates r, z, n of PyTorch's GRU and z, r, n of Choir's, along the first axis.
choir_tensor *chi_torch_swap_gates(choir_tensor *x);
