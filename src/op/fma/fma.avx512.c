// For AVX-512.
#include <immintrin.h>

#define VECTOR_BYTES 64
#define TILE_ROWS 8
#define HAS_BF16
#define LOOPS chi_fma_avx512
#define SPLAT(x) ((vector) _mm512_set1_ps(x))
#define FUSED(a, b, c) ((vector) _mm512_fmadd_ps(a, b, c))
#define LARGER(a, b) ((vector) _mm512_max_ps(a, b))
#define SMALLER(a, b) ((vector) _mm512_min_ps(a, b))
#define WIDENED(x) ((bits) _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *) (x))))
#define HAS_ROUNDING

// Six instructions where compilers need sixteen: picks f32's upper halves.
static inline __attribute__((always_inline)) __m256i rounded_to_bf16(__m512 v)
{
	const __m512i b = _mm512_castps_si512(v);
	const __m512i upper = _mm512_set_epi16(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 31, 29,
			27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
	const __mmask16 odd = _mm512_test_epi32_mask(b, _mm512_set1_epi32(1 << 16));
	const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
	const __m512i down = _mm512_add_epi32(b, _mm512_set1_epi32(0x7fff));
	const __m512i even = _mm512_mask_add_epi32(down, odd, down, _mm512_set1_epi32(1));
	const __m512i all = _mm512_mask_or_epi32(even, nan, b, _mm512_set1_epi32(0x40 << 16));
	return _mm512_castsi512_si256(_mm512_permutexvar_epi16(upper, all));
}
#include "op/fma/fma_loops.inc"
