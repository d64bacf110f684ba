// The loops for processors with AVX-512.
#define VARIANT avx512
#define VECTOR_BYTES 64 // of the matmul's tile and of sums
#define TILE_ROWS 12
#include "op/plain/loops.inc"
