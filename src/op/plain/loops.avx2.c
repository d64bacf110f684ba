// The plain loops for AVX2.
#define VARIANT avx2
#define VECTOR_BYTES 32 // of tiles and sums
#define TILE_ROWS 6
#include "op/plain/loops.inc"
