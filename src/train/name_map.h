// A map of names: lines that say what tensors of a file are called here.
#pragma once

#include "base/text.h"
#include "choir/tensor.h"

enum { CHI_NAME_MAP_AXES = CHOIR_MAX_RANK };

typedef struct {
	chi_text name; // of the variable; to be freed
	bool left_out;
	int axes; // 0: they stay
	int axis[CHI_NAME_MAP_AXES];
} chi_mapped_name;

// Whether map, which may be NULL, is one. CHOIR_INVALID: the line that is wrong, and why.
choir_status chi_name_map_check(const char *map);
// What a tensor is called by a map that was checked. CHOIR_NO_MEMORY.
choir_status chi_name_map_find(const char *map, const char *tensor, chi_mapped_name *found);
