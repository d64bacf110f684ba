// For AVX2, with 16 vector registers.
#include <immintrin.h>

#define LOOPS chi_winograd_avx2
#define VECTOR_BYTES 32
#define ROWS 4
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define MAXIMUM(a, b) _mm256_max_ps(a, b)
#include "op/winograd/winograd_loops.inc"
