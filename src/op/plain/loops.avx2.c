// For AVX2.
#define VARIANT avx2
#define VECTOR_BYTES 32
#define TILE_ROWS 6
#include "op/plain/loops.inc"
