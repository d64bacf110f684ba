// The variable for each tensor of a file, and the tensor's rearrangement.
#pragma once

#include "base/text.h"
#include "choir/tensor.h"

enum { CHI_NAME_MAP_AXES = CHOIR_MAX_RANK };

// A reshape, then a transpose.
typedef struct {
	bool gates_swapped; // first exchanges the first and the second third of the first axis
	bool reshaped; // then only the number of elements must match
	choir_shape shape;
	choir_shape file; // by parentheses in the map; rank 0: not said
	int axes; // 0: no transpose
	int axis[CHI_NAME_MAP_AXES];
} chi_rearrangement;

typedef enum {
	CHI_CONVENTION_NONE = 0,
	CHI_CONVENTION_TORCH,
	CHI_CONVENTION_KERAS
} chi_convention;

typedef struct chi_name_map_line chi_name_map_line;
typedef struct {
	size_t n, capacity;
	chi_name_map_line *line; // without a star by tensor, then the others in order
	size_t plain;
	chi_convention convention;
	bool permutes;
} chi_name_map;

typedef struct {
	chi_text name; // the variable's or the tensor's; freed by the caller
	bool left_out;
	bool by_line;
	bool recurrent; // of PyTorch's recurrent layers
	int halves; // 0: the whole variable; 1 or 2: one of two tensors, whose sum it is
	chi_rearrangement how;
} chi_mapped_name;

// map may be NULL and must outlive *m. CHOIR_INVALID names the line. Always free *m.
choir_status chi_name_map_read(const char *map, chi_name_map *m);
void chi_name_map_free(chi_name_map *m);
choir_status chi_name_map_find(const chi_name_map *m, const char *tensor, chi_mapped_name *found);
// The first line that gives the variable. CHOIR_INVALID: no tensor's name gives it.
choir_status chi_name_map_find_tensor(
		const chi_name_map *m, const char *variable, chi_mapped_name *found);
