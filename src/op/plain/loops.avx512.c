// For AVX-512.
#define VARIANT avx512
#define VECTOR_BYTES 64
#define TILE_ROWS 12
#include "op/plain/loops.inc"
