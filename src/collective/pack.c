// Computes where packs end.
#include "collective/pack.h"

size_t chi_packs_by_number(int64_t total, int64_t n, int64_t ends[])
{
	if (total <= 0)
		return 0;
	if (n > total) // all but the last would be empty
		n = 1;
	for (int64_t i = 0; i + 1 < n; i++)
		ends[i] = (i + 1) * (total / n);
	ends[n - 1] = total;
	return (size_t) n;
}

size_t chi_packs_by_bytes(size_t n, const int64_t elements[], size_t element_bytes,
		int64_t bytes_per_pack, int64_t ends[])
{
	size_t packs = 0;
	int64_t at = 0, first = 0;
	for (size_t i = 0; i < n; i++) {
		at += elements[i];
		if (at == first || (uint64_t) (at - first) * element_bytes <= (uint64_t) bytes_per_pack)
			continue;
		ends[packs++] = first = at;
	}
	if (at > first)
		ends[packs++] = at;
	return packs;
}
