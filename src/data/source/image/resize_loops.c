// For any processor.
#include "data/source/image/resize_loops.h"

static inline chi_resize_sums widen(const uint8_t *p)
{
	return (chi_resize_sums){ p[0], p[1], p[2], 0 };
}

static inline void narrow(chi_resize_sums v, uint8_t *to)
{
	for (int c = 0; c < CHI_IMAGE_CHANNELS; c++)
		to[c] = (uint8_t) (v[c] > 255 ? 255 : v[c]);
}

#define RESIZE_LOOPS chi_resize_baseline
#include "data/source/image/resize_loops.inc"
