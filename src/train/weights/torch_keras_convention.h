// Names and layouts of PyTorch and Keras, and maps that would silently be wrong.
#pragma once

#include "train/weights/name_map.h"
#include "train/weights/weights.h"

// The map's lines have changed the tensor's name. *i: the variable's index, or w->n. Sets m->how
// if no line has, and m->left_out. CHOIR_UNSUPPORTED: several tensors hold the variable.
choir_status chi_convention_find(
		const chi_name_map *map, const chi_weights *w, chi_mapped_name *m, size_t *i);
// zeros: gets the name of another tensor that must be zeros, or stays.
choir_status chi_convention_find_tensor(const chi_name_map *map, const chi_weights *w,
		const choir_variable *v, chi_mapped_name *m, chi_text *zeros);
// The other bias if v is a GRU's bias, and Keras' tensor has both; else w->n.
size_t chi_keras_second_bias(const chi_name_map *map, const chi_weights *w,
		const choir_variable *v, const chi_rearrangement *how);
// CHOIR_INVALID: shapes fit but the elements would have another order.
choir_status chi_convention_check(const chi_name_map *map, const choir_variable *v,
		const chi_mapped_name *m, const char *path, const char *tensor);
