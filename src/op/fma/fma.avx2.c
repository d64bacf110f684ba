// For AVX2.
#include <immintrin.h>

#define VECTOR_BYTES 32
#define TILE_ROWS 4
#define LOOPS chi_fma_avx2
#define SPLAT(x) ((vector) _mm256_set1_ps(x))
#define FUSED(a, b, c) ((vector) _mm256_fmadd_ps(a, b, c))
#define LARGER(a, b) ((vector) _mm256_max_ps(a, b))
#define SMALLER(a, b) ((vector) _mm256_min_ps(a, b))
#include "op/fma/fma_loops.inc"
