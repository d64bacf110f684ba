// Tensors and the frames that own them. A frame is the memory of one context on one device, such
// as one call of a replica. A tensor has one dtype and rank 0 to 8, and lives until its frame is
// cleared. Its elements are packed and row-major, and never change. All operands of a call are in
// one frame; choir_copy copies a tensor to another frame.
//
// Work may still be queued on the frame's device when a call returns. A call that "waits" returns
// after the tensor is final, and reports failures of queued work.
//
// CHOIR_STATE: a tape's backward pass (tape.h) has freed the tensor; the tensor is a read of a
// variable that has changed since. NULL operands: status.h.
// Threads: only the thread that runs the context may use its frame and tensors.
#pragma once

#include "device.h"

CHOIR_C_BEGIN

// The largest number of dimensions.
enum { CHOIR_MAX_RANK = 8 };

// Arithmetic takes f32, f64, f16 and bf16; many operations also i32, i64 and u8 (op.h). f16 and
// bf16 are computed in f32, and each result is rounded to nearest, ties to even. Sums of f16 and
// bf16 are f32. A bool is one byte, 0 or 1.
typedef enum {
	CHOIR_F32 = 0,
	CHOIR_F64,
	CHOIR_I32,
	CHOIR_I64,
	CHOIR_U8,
	CHOIR_BOOL,
	CHOIR_F16, // IEEE 754 binary16
	CHOIR_BF16 // the upper half of an f32
} choir_dtype;

// "f32", "bf16", or "unknown".
const char *choir_dtype_name(choir_dtype dtype);

// A tensor with a dimension of 0 is empty.
typedef struct {
	int rank; // 0: a scalar
	int64_t dim[CHOIR_MAX_RANK];
} choir_shape;

// The number of elements. CHOIR_NONE: an invalid rank or dimension, or more elements than an
// int64_t can count.
int64_t choir_shape_elements(const choir_shape *shape);

// A set of axes: CHOIR_AXIS(1), or CHOIR_AXES(0, -1) below. An axis's number in its place does not
// compile.
typedef struct {
	uint32_t bits; // bit i: axis i; bit 32 - i: axis -i
} choir_axes;
#ifndef __cplusplus
#define CHOIR_AXES_BITS(bits) ((choir_axes){ (uint32_t) (bits) })
#else
#define CHOIR_AXES_BITS(bits) (choir_axes{ static_cast<uint32_t>(bits) })
#endif
#define CHOIR_AXIS(i) CHOIR_AXES_BITS(1u << (31u & (unsigned) (i)))
#define CHOIR_NO_AXIS CHOIR_AXES_BITS(0)
#define CHOIR_ALL_AXES CHOIR_AXES_BITS(~0u)
// The set of n axes; negative numbers count from the end.
choir_axes choir_axes_of(int n, const int axes[]);

typedef struct choir_frame choir_frame;
typedef struct choir_tensor choir_tensor;
typedef struct choir_replica choir_replica;
typedef struct choir_variable choir_variable;

// Frames

// Makes a frame for the program on device d (NULL: cpu:0). Its random numbers are those of step 0
// and replica 0. Fails as choir_device_find.
choir_frame *choir_frame_new(choir_device *d);

// Frees a frame of choir_frame_new and its tensors. Waits for its device.
void choir_frame_free(choir_frame *f);

// Waits for queued work, then frees all tensors of f and its tape, and forgets its failure. f
// keeps its memory and its count of random draws.
void choir_frame_clear(choir_frame *f);

// Marks the present point of f, for choir_frame_rewind.
size_t choir_frame_mark(choir_frame *f);

// Waits for queued work, then frees what was made after mark: tensors, their records on the tape,
// and the tape if it began after mark. The frame keeps its failure. Does nothing if mark is after
// the present point.
void choir_frame_rewind(choir_frame *f, size_t mark);

// The first failure since f was cleared, or CHOIR_OK.
CHOIR_MUST_CHECK choir_status choir_frame_status(const choir_frame *f);

// Whether f has a tape (tape.h), even after its backward pass. With a tape, dropout is on.
bool choir_frame_is_training(const choir_frame *f);

// The replica that f belongs to, or NULL.
choir_replica *choir_frame_replica(const choir_frame *f);

// Making tensors

// Copies packed data to a new tensor. data may be NULL for an empty shape.
choir_tensor *choir_constant(
		choir_frame *f, choir_dtype dtype, choir_shape shape, const void *data);

// Like choir_constant, but without the copy if the device can use host memory. The caller still
// owns data, and must not change it until f is cleared. Choir copies it for results and merge
// calls.
choir_tensor *choir_borrow(choir_frame *f, choir_dtype dtype, choir_shape shape, const void *data);

// Makes a plain number: a scalar that takes the dtype of the first other operand, or f64 if all
// are plain numbers. CHOIR_INVALID: that dtype cannot hold value, such as 0.5 or 300 in u8. For a
// source of gradients, use choir_fill. Reductions: docs/rules.md, section 8.
choir_tensor *choir_number(choir_frame *f, double value);

// Waits, then copies t and its count (choir_with_count) into another frame. No gradient flows.
choir_tensor *choir_copy(choir_tensor *t, choir_frame *to);

// Getters, which do not wait

// NULL: the shape of a scalar.
const choir_shape *choir_tensor_shape(const choir_tensor *t);
// CHOIR_F64 for a plain number, CHOIR_F32 for NULL.
choir_dtype choir_tensor_dtype(const choir_tensor *t);
choir_frame *choir_tensor_frame(const choir_tensor *t);
// The device of t's memory. A merge call's argument is on its replica's device.
choir_device *choir_tensor_device(const choir_tensor *t);
// The variable of which t is a component, a read or a view, or NULL.
choir_variable *choir_tensor_variable(const choir_tensor *t);

// Waits, then returns the elements, which are read-only and valid until t is freed.
// CHOIR_UNSUPPORTED: the host cannot reach the memory (use choir_tensor_to_host).
const void *choir_tensor_data(const choir_tensor *t);

// Waits, then returns the element of a tensor with one element, of any rank. An i64 beyond 2^53 is
// rounded. NAN: t is NULL, or the call failed.
double choir_tensor_number(const choir_tensor *t);

// Waits, then copies all elements to host memory. bytes is their size.
CHOIR_MUST_CHECK choir_status choir_tensor_to_host(const choir_tensor *t, void *to, size_t bytes);

// Waits, then writes t as one line, "f32 [2, 3] [[1, 2, 3], [4, 5, 6]]", in any locale. size and
// the result are snprintf's. Of more than 64 elements, only the ends of long axes are written.
// After a failure the text is empty and the result 0. NULL gives "(null)".
size_t choir_tensor_print(const choir_tensor *t, char *text, size_t size);

// Indexed slices: some rows of a larger dense tensor (TensorFlow's IndexedSlices), for example an
// embedding's gradient. Reductions (cross.h), merge calls, optimizers and results accept them.
// Other calls fail with CHOIR_UNSUPPORTED; choir_to_dense (op.h) makes the dense tensor.

// Makes indexed slices of a dense tensor with this number of rows. Row i of values is added to row
// indices[i] of zeros. indices is a vector of i32 or i64 with one index for each row of values.
// The result is a view of values and indices. Borrowed indices are copied.
choir_tensor *choir_indexed_slices(choir_tensor *values, choir_tensor *indices, int64_t rows);
bool choir_tensor_is_slices(const choir_tensor *t);
// The number of rows of the dense tensor; 0: t is not indexed slices.
int64_t choir_slices_rows(const choir_tensor *t);

// Views of indexed slices.
choir_tensor *choir_slices_values(choir_tensor *t);
choir_tensor *choir_slices_indices(choir_tensor *t);

// Exchange with other libraries

// DLPack's managed tensor of version 1.x (https://dmlc.github.io/dlpack/latest/c_api.html).
struct DLManagedTensorVersioned;

// Makes a tensor in f that shares the memory of managed. Takes ownership of managed, even if the
// call fails. The elements are copied if the device has its own memory, the strides are not
// packed, or the alignment is not the dtype's. Choir calls the deleter once: after the copy, or
// after it frees the last tensor on the memory, perhaps late, at the end of a choir_strategy_run
// or in any thread's next choir_from_dlpack. Until then, do not write the elements.
//
// CHOIR_UNSUPPORTED: another major version of DLPack; memory outside of the host; a type without a
// choir_dtype.
choir_tensor *choir_from_dlpack(choir_frame *f, struct DLManagedTensorVersioned *managed);

// Waits, then exports t's memory, read-only and valid until the consumer calls the deleter (any
// thread), even after the frame is freed. Memory that may change (borrowed, or a variable's) is
// copied, and the export marked as a copy. CHOIR_UNSUPPORTED: the host cannot reach the memory.
struct DLManagedTensorVersioned *choir_tensor_to_dlpack(choir_tensor *t);

CHOIR_C_END

// CHOIR_SHAPE(784, 10) is the shape [784, 10]. It takes at least one dimension, and evaluates each
// once.
#ifndef __cplusplus
#define CHOIR_SHAPE(...) \
	((choir_shape){ \
			(int) (sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), { __VA_ARGS__ } })
#define CHOIR_SCALAR ((choir_shape){ 0, { 0 } })
#define CHOIR_AXES(...) \
	choir_axes_of((int) (sizeof((int[]){ __VA_ARGS__ }) / sizeof(int)), (int[]){ __VA_ARGS__ })
#else
template <class... D> inline choir_shape choir_shape_of(D... d)
{
	return choir_shape{ static_cast<int>(sizeof...(d)), { static_cast<int64_t>(d)... } };
}
#define CHOIR_SHAPE(...) choir_shape_of(__VA_ARGS__)
#define CHOIR_SCALAR choir_shape_of()
template <class... D> inline choir_axes choir_axes_set(D... i)
{
	const int axes[] = { static_cast<int>(i)... };
	return choir_axes_of(static_cast<int>(sizeof...(i)), axes);
}
#define CHOIR_AXES(...) choir_axes_set(__VA_ARGS__)
#endif
