// For AVX-512.
#include <immintrin.h>

#define LOOPS chi_winograd_avx512
#define VECTOR_BYTES 64
#define ROWS 8
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define MAXIMUM(a, b) _mm512_max_ps(a, b)
#include "op/winograd/winograd_loops.inc"
