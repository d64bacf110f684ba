// For 64-bit Arm.
#include <arm_neon.h>

#define VECTOR_BYTES 16
#define TILE_ROWS 4
#define LOOPS chi_fma_neon
#define SPLAT(x) ((vector) vdupq_n_f32(x))
#define FUSED(a, b, c) ((vector) vfmaq_f32(c, a, b))
#define LARGER(a, b) ((vector) vbslq_f32(vcgtq_f32(a, b), a, b))
#define SMALLER(a, b) ((vector) vbslq_f32(vcltq_f32(a, b), a, b))
#include "op/fma/fma_loops.inc"
