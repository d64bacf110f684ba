// A frame is the memory of one context and knows which. Tensors die with it; a result belongs to its
// operands' frame; two frames in one call are CHOIR_INVALID. The frame keeps the first failure.
// Threads: a frame and its tensors belong to the thread that runs the context.
#pragma once

#include "device.h"

CHOIR_C_BEGIN

enum { CHOIR_MAX_RANK = 8 };
typedef enum {
	CHOIR_F32 = 0, CHOIR_F64, CHOIR_I32, CHOIR_I64, CHOIR_U8, CHOIR_BOOL, CHOIR_F16, CHOIR_BF16
} choir_dtype; // the last two can be stored and cast only
const char *choir_dtype_name(choir_dtype dtype);
typedef struct {
	int rank; // 0: a scalar
	int64_t dim[CHOIR_MAX_RANK];
} choir_shape;
int64_t choir_shape_elements(const choir_shape *shape); // CHOIR_NONE: too many for 63 bits

// A set of axes: CHOIR_AXIS(0) | CHOIR_AXIS(-1). Negative ones count from the back.
typedef uint32_t choir_axes;
#define CHOIR_AXIS(i) ((choir_axes) 1 << ((unsigned) (i) & 31u))
#define CHOIR_NO_AXIS ((choir_axes) 0)
#define CHOIR_ALL_AXES (~(choir_axes) 0)
typedef struct choir_frame choir_frame;
typedef struct choir_tensor choir_tensor;

choir_frame *choir_frame_new(choir_device *d); // the default replica's rules; NULL: cpu:0
void choir_frame_free(choir_frame *f);
void choir_frame_empty(choir_frame *f); // tensors die, memory is kept, failure cleared
size_t choir_frame_mark(choir_frame *f); // for loops: rewind drops what came after
void choir_frame_rewind(choir_frame *f, size_t mark);
choir_status choir_frame_status(const choir_frame *f); // the first failure
bool choir_frame_training(const choir_frame *f); // a tape records: dropout is on

// constant copies data (row-major, packed); borrow uses it in place: unchanged until its last use
// (what is returned or given is copied). number is plain: rank 0, takes the other operand's dtype, and
// is "not distributed" in the rules for sums (spec 2.5, 2.8).
choir_tensor *choir_constant(choir_frame *f, choir_dtype dtype, choir_shape shape, const void *data);
choir_tensor *choir_borrow(choir_frame *f, choir_dtype dtype, choir_shape shape, const void *data);
choir_tensor *choir_fill(choir_frame *f, choir_dtype dtype, choir_shape shape, double value);
choir_tensor *choir_number(choir_frame *f, double value);
// Philox of seed, step, replica and place in the program (house 13).
choir_tensor *choir_random_normal(choir_frame *f, choir_dtype dtype, choir_shape shape, uint64_t seed);
choir_tensor *choir_move(choir_tensor *t, choir_frame *to); // the one way between frames; copies

const choir_shape *choir_tensor_shape(const choir_tensor *t);
choir_dtype choir_tensor_dtype(const choir_tensor *t);
choir_frame *choir_tensor_frame(const choir_tensor *t);
choir_device *choir_tensor_device(const choir_tensor *t);
// The rest waits for the tensor. data is NULL (CHOIR_UNSUPPORTED) where the host cannot reach it.
const void *choir_tensor_data(const choir_tensor *t); // row-major, packed
double choir_tensor_number(const choir_tensor *t); // of one element; NAN if NULL
choir_status choir_tensor_fetch(const choir_tensor *t, void *to, size_t bytes);
size_t choir_tensor_print(const choir_tensor *t, char *text, size_t size); // as snprintf

// A value with a count: MEAN divides by the counts if all replicas' values have one, by the replicas
// if none has; a mixture is an error (house 14).
choir_tensor *choir_counted(choir_tensor *t, int64_t count);
// DLPack. Importing takes managed over, also on failure (its deleter: house 21).
struct DLManagedTensorVersioned;
choir_tensor *choir_from_dlpack(choir_frame *f, struct DLManagedTensorVersioned *managed);
struct DLManagedTensorVersioned *choir_tensor_to_dlpack(choir_tensor *t);
CHOIR_C_END

// CHOIR_SHAPE(784, 10). CHOIR_SCALAR has rank 0.
#ifndef __cplusplus
#define CHOIR_SHAPE(...) \
	((choir_shape){ (int) (sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), { __VA_ARGS__ } })
#define CHOIR_SCALAR ((choir_shape){ 0, { 0 } })
#else
template <class... D> inline choir_shape choir_shape_of(D... d)
{
	return choir_shape{ static_cast<int>(sizeof...(d)), { static_cast<int64_t>(d)... } };
}
#define CHOIR_SHAPE(...) choir_shape_of(__VA_ARGS__)
#define CHOIR_SCALAR choir_shape_of()
#endif
