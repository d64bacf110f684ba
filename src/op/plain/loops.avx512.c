// The plain loops for AVX-512.
#define VARIANT avx512
#define VECTOR_BYTES 64 // of tiles and sums
#define TILE_ROWS 12
#include "op/plain/loops.inc"
