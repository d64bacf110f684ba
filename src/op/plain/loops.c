// The loops for every processor of the kind that the build is for.
#define VARIANT baseline
#define VECTOR_BYTES 16 // of the matmul's tile and of sums
#define TILE_ROWS 6
#include "op/plain/loops.inc"
