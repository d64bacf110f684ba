// For AVX2, by intrinsics: the compiler takes vectors of four bytes apart.
#include "data/source/image/resize_loops.h"

#include <immintrin.h>
#include <string.h>

static inline chi_resize_sums widen(const uint8_t *p)
{
	return (chi_resize_sums) _mm_cvtepu8_epi32(_mm_loadu_si32(p));
}

static inline void narrow(chi_resize_sums v, uint8_t *to)
{
	const __m128i shorts = _mm_packs_epi32((__m128i) v, (__m128i) v);
	const int bytes = _mm_cvtsi128_si32(_mm_packus_epi16(shorts, shorts));
	memcpy(to, &bytes, CHI_IMAGE_CHANNELS);
}

#define RESIZE_LOOPS chi_resize_avx2
#include "data/source/image/resize_loops.inc"
