// Tensors and the frames that own them. A frame is the memory of one context on one device, for
// example of one call of a replica. All tensors of a frame live until it is cleared. A tensor is
// a value: packed, row-major elements of one dtype, with rank 0 to 8. Its elements never change.
// Operands of two frames are CHOIR_INVALID, so a program cannot mix tensors of two replicas by
// mistake. choir_copy copies a tensor to another frame. A frame also keeps its first failure.
//
// Work may still be queued on the frame's device when a call returns. A call that "waits"
// returns when the tensor is final, and reports the failure of queued work.
//
// Using a tensor fails with CHOIR_STATE after the backward pass of a tape (tape.h) has freed it.
// Using a read of a variable does so after the variable has changed. A call with a NULL tensor
// returns NULL. If nothing has failed before, it fails with CHOIR_INVALID.
// Threads: only the thread that runs the context may use its frame and tensors.
#pragma once

#include "device.h"

CHOIR_C_BEGIN

// The largest number of dimensions.
enum { CHOIR_MAX_RANK = 8 };

// Arithmetic takes f32, f64, f16 and bf16. Most operations also take i32, i64 and u8 (op.h says
// which). f16 and bf16 are computed in f32, and each result is rounded to nearest, ties to even,
// as by a cast; sums of them are f32. A bool can be made, filled, copied, viewed and cast. It is
// one byte, 0 or 1.
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

// Dimensions beyond rank are ignored. A dimension of 0 is legal: the tensor is empty.
typedef struct {
	int rank; // 0: a scalar
	int64_t dim[CHOIR_MAX_RANK];
} choir_shape;

// The number of elements, 1 for a scalar. CHOIR_NONE for an invalid shape: a rank outside 0 to
// CHOIR_MAX_RANK, a negative dimension, or a number of elements beyond 63 bits.
int64_t choir_shape_elements(const choir_shape *shape);

// A set of axes: CHOIR_AXIS(0) | CHOIR_AXIS(-1). A negative axis is counted from the last.
typedef uint32_t choir_axes;
#define CHOIR_AXIS(i) ((choir_axes) 1 << (31u & (unsigned) (i)))
#define CHOIR_NO_AXIS ((choir_axes) 0)
#define CHOIR_ALL_AXES (~(choir_axes) 0)

typedef struct choir_frame choir_frame;
typedef struct choir_tensor choir_tensor;

// Frames

// Makes a frame for the program on device d (NULL: cpu:0). Random numbers in it are those of
// step 0, replica 0 and the operation's seed. Choir makes, clears and frees the frames of
// replicas, merge calls and sets of values. Failures are those of choir_device_find.
choir_frame *choir_frame_new(choir_device *d);

// Frees a frame that choir_frame_new made, and all its tensors. Waits for its device.
void choir_frame_free(choir_frame *f);

// Waits for queued work, then frees all tensors of f and its tape. The frame keeps its memory,
// so a repeated step allocates nothing. It forgets its failure, and a new tape may begin. The
// count of random draws continues.
void choir_frame_clear(choir_frame *f);

// The present point of f, for choir_frame_rewind.
size_t choir_frame_mark(choir_frame *f);

// Waits for queued work, then frees all that was made since mark: tensors, their records on the
// tape, and a tape that began after mark. The frame keeps its failure. If mark is not before the
// present point, nothing happens.
void choir_frame_rewind(choir_frame *f, size_t mark);

// The status of the first failure since f was cleared, or CHOIR_OK.
CHOIR_MUST_CHECK choir_status choir_frame_status(const choir_frame *f);

// Whether f has a tape (tape.h), even after the tape's backward pass. If so, dropout is on.
bool choir_frame_is_training(const choir_frame *f);

// Making tensors

// Makes a tensor from a copy of data: packed, row-major elements. data may be NULL for an empty
// shape. CHOIR_INVALID: an unknown dtype, an invalid shape.
choir_tensor *choir_constant(
		choir_frame *f, choir_dtype dtype, choir_shape shape, const void *data);

// Like choir_constant, but without the copy if the device can use the host's memory. The caller
// still owns data, which must not change until f is cleared. Choir copies borrowed data that
// must live longer: returned results, and arguments of merge calls.
choir_tensor *choir_borrow(choir_frame *f, choir_dtype dtype, choir_shape shape, const void *data);

// Makes a plain number: a scalar without a dtype of its own. In an operation it takes the dtype
// of the first operand that is not a plain number. CHOIR_INVALID: the value does not fit this
// dtype, as 0.5 or 300 in u8. If all operands are plain numbers, they are f64. A source of
// gradients (tape.h) cannot be a plain number: use choir_fill. If all replicas reduce the same
// plain number, its MEAN is the number, and its SUM is CHOIR_INVALID (exceptions: docs/rules.md,
// section 8).
choir_tensor *choir_number(choir_frame *f, double value);

// Copies t, with its count (choir_with_count), into the frame to, on the device of to. Waits for
// t. No gradient flows.
choir_tensor *choir_copy(choir_tensor *t, choir_frame *to);

// Looking at tensors. Getters do not wait.

// The shape of t. For NULL: the shape of a scalar.
const choir_shape *choir_tensor_shape(const choir_tensor *t);

// CHOIR_F64 for a plain number, CHOIR_F32 for NULL.
choir_dtype choir_tensor_dtype(const choir_tensor *t);

// The frame of t.
choir_frame *choir_tensor_frame(const choir_tensor *t);

// The device whose memory t is in. It may differ from the frame's device: an argument of a merge
// call stays in the memory of the replica's device.
choir_device *choir_tensor_device(const choir_tensor *t);

// Waits, then returns a pointer to the elements: row-major, packed, read-only. It is valid until
// t is freed, by choir_frame_clear, choir_frame_rewind or the backward pass of a tape.
// CHOIR_UNSUPPORTED: the host cannot reach the memory of t's device (use choir_tensor_to_host).
const void *choir_tensor_data(const choir_tensor *t);

// Waits, then returns the only element of t as a double. t may have any rank; an i64 beyond 2^53
// is rounded. NAN: t is NULL, or a failure. CHOIR_INVALID: t does not have one element.
double choir_tensor_number(const choir_tensor *t);

// Waits, then copies all elements, row-major and packed, to host memory, from any device.
// CHOIR_INVALID: bytes is not the tensor's size. For a NULL t, returns the thread's last
// failure, or CHOIR_INVALID if nothing has failed.
CHOIR_MUST_CHECK choir_status choir_tensor_to_host(const choir_tensor *t, void *to, size_t bytes);

// Waits, then writes t as one line, "f32 [2, 3] [[1, 2, 3], [4, 5, 6]]". Works as snprintf, but
// ignores the locale. If t has more than 64 elements, only both ends of long axes are shown.
// After a failure the text is empty and the result is 0. NULL gives "(null)".
size_t choir_tensor_print(const choir_tensor *t, char *text, size_t size);

// Indexed slices: some rows of a larger dense tensor (TensorFlow's IndexedSlices), for example
// the gradient of an embedding table. They can be reduced over replicas (cross.h), passed to
// merge calls and optimizers, and returned. All other calls refuse them with CHOIR_UNSUPPORTED;
// choir_to_dense (op.h) makes the dense tensor.

// Makes indexed slices of a dense tensor with this number of rows. Row i of values is added to
// row indices[i] of the dense tensor, which is 0 elsewhere. The result is a view of values.
// indices is a vector of i32 or i64. Borrowed indices are copied. CHOIR_INVALID: values is a
// scalar, values and indices have different numbers of rows, an index is out of range, the
// tensors are of two frames.
choir_tensor *choir_indexed_slices(choir_tensor *values, choir_tensor *indices, int64_t rows);

// Whether t has been made by choir_indexed_slices.
bool choir_tensor_is_slices(const choir_tensor *t);

// The number of rows of the dense tensor. 0 if t is not indexed slices.
int64_t choir_slices_rows(const choir_tensor *t);

// Views of the values and of the indices. CHOIR_INVALID: t is not indexed slices.
choir_tensor *choir_slices_values(choir_tensor *t);
choir_tensor *choir_slices_indices(choir_tensor *t);

// Exchange with other libraries

// DLPack's managed tensor of version 1.x (https://dmlc.github.io/dlpack/latest/c_api.html).
struct DLManagedTensorVersioned;

// Makes a tensor in f that shares the memory of managed. Takes ownership of managed, also after
// a failure. The elements are copied if the device has its own memory, strides are not packed,
// or the memory is not aligned for the dtype. Choir calls the deleter of managed once: after the
// copy, or after the last tensor on the memory is freed. If another thread or a replica function
// frees this tensor, the call comes later: when a choir_strategy_run ends or a thread imports
// again. Do not write shared elements before the deleter is called.
//
// CHOIR_UNSUPPORTED: another major version, memory that is not the host's, a type without a
// choir_dtype. CHOIR_INVALID: an invalid shape, data is NULL.
choir_tensor *choir_from_dlpack(choir_frame *f, struct DLManagedTensorVersioned *managed);

// Exports t to another library. Waits, then shares t's memory until the consumer calls the
// deleter. The consumer may do so on any thread, even after the frame is freed. The export is
// marked read-only, since other tensors may use the memory. Memory that may change (borrowed, or
// a variable's) is copied instead, and the export is marked as a copy. CHOIR_UNSUPPORTED: the
// host cannot reach the memory.
struct DLManagedTensorVersioned *choir_tensor_to_dlpack(choir_tensor *t);

CHOIR_C_END

// CHOIR_SHAPE(784, 10) is a shape with these dimensions, at least one. Each is an expression,
// evaluated once. CHOIR_SCALAR has no dimensions.
#ifndef __cplusplus
#define CHOIR_SHAPE(...) \
	((choir_shape){ \
			(int) (sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), { __VA_ARGS__ } })
#define CHOIR_SCALAR ((choir_shape){ 0, { 0 } })
#else
template <class... D> inline choir_shape choir_shape_of(D... d)
{
	return choir_shape{ static_cast<int>(sizeof...(d)), { static_cast<int64_t>(d)... } };
}
#define CHOIR_SHAPE(...) choir_shape_of(__VA_ARGS__)
#define CHOIR_SCALAR choir_shape_of()
#endif
