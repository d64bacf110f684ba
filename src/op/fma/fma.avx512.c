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
#include "op/fma/fma_loops.inc"
