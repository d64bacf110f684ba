// Packs: values that travel as one. They are laid one behind another and the whole is cut again
// where packs end, so a pack may end in the middle of a value. Sums are made element by element,
// so no cut changes a bit.
#pragma once

#include "base/size.h"

// At most n packs of total elements: total / n each, the last one with the rest (10 in 3: 3, 3,
// 4; 2 in 3: 2). ends (room for n) becomes where each ends; the number of packs, of which none is
// empty.
size_t chi_packs_by_number(int64_t total, int64_t n, int64_t ends[]);
// Whole values of so many elements each, in order: a pack takes up values until it is larger than
// bytes_per_pack. ends has room for n.
size_t chi_packs_by_bytes(size_t n, const int64_t elements[], size_t element_bytes,
		int64_t bytes_per_pack, int64_t ends[]);
