// A map of names: lines that say what tensors of a file are called here, and how their elements
// are put in another order.
#pragma once

#include "base/text.h"
#include "choir/tensor.h"

enum { CHI_NAME_MAP_AXES = CHOIR_MAX_RANK };

// What is done with a tensor: another shape of the same elements, then another order of axes.
typedef struct {
	bool reshaped; // to shape; what comes of it has the variable's shape, if it has its elements
	choir_shape shape;
	int axes; // 0: they stay
	int axis[CHI_NAME_MAP_AXES];
} chi_rearrangement;

typedef struct chi_name_map_line chi_name_map_line;
typedef struct {
	size_t n, capacity;
	chi_name_map_line *line; // without a star by their tensors, then those with one in their order
	size_t plain; // without a star
} chi_name_map;

typedef struct {
	chi_text name; // of the variable; to be freed
	bool left_out;
	chi_rearrangement how;
} chi_mapped_name;

// Reads a map, which may be NULL and stays as long as *m is used. CHOIR_INVALID: the line that is
// wrong, and why. *m is to be freed whatever happens.
choir_status chi_name_map_read(const char *map, chi_name_map *m);
void chi_name_map_free(chi_name_map *m);
// What a tensor is called by a map. CHOIR_NO_MEMORY.
choir_status chi_name_map_find(const chi_name_map *m, const char *tensor, chi_mapped_name *found);
