// A batch of values is concatenated and cut into packs, one collective each. A pack may end inside
// a value.
#pragma once

#include "base/size.h"

// n packs of total / n elements, the last with the rest; one pack if n > total. Returns the number
// of packs.
size_t chi_packs_by_number(int64_t total, int64_t n, int64_t ends[]);
// A pack takes whole values until it exceeds bytes_per_pack.
size_t chi_packs_by_bytes(size_t n, const int64_t elements[], size_t element_bytes,
		int64_t bytes_per_pack, int64_t ends[]);
