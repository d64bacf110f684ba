// Tensors and the frames that own them. A frame is the memory of one context on one device, for
// example of a replica's call. A tensor lives until its frame is emptied; no tensor is freed by
// itself. A tensor is a value: packed, row-major elements of one dtype and of rank 0 to 8, which
// never change. Operands of two frames are CHOIR_INVALID, so tensors of two replicas cannot be
// mixed by mistake; choir_copy copies from one frame to another. A frame also keeps its first
// failure.
//
// Work may still be queued on the frame's device when a call returns. A call that "waits"
// returns when the tensor is final, and reports the failure of queued work.
//
// Every call below that takes a tensor fails with CHOIR_STATE if the backward pass of a tape
// (tape.h) freed the tensor, or if it is a read of a variable that has changed since. A call
// with a NULL tensor returns NULL; it fails with CHOIR_INVALID if nothing has failed before.
// Threads: a frame and its tensors belong to one thread at a time: the thread that runs the
// context.
#pragma once

#include "device.h"

CHOIR_C_BEGIN

enum { CHOIR_MAX_RANK = 8 };

// Arithmetic takes f32 and f64. Most operations also take i32, i64 and u8 (op.h says which).
// bool, f16 and bf16 can be made, filled, copied, viewed and cast. Casts to f16 and bf16 round
// to nearest, ties to even. A bool is one byte, 0 or 1.
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

// A set of axes: CHOIR_AXIS(0) | CHOIR_AXIS(-1). Negative axes count from the back.
typedef uint32_t choir_axes;
#define CHOIR_AXIS(i) ((choir_axes) 1 << (31u & (unsigned) (i)))
#define CHOIR_NO_AXIS ((choir_axes) 0)
#define CHOIR_ALL_AXES (~(choir_axes) 0)

typedef struct choir_frame choir_frame;
typedef struct choir_tensor choir_tensor;

// Frames

// Makes a frame for the program on device d (NULL: cpu:0). Its random numbers are those of step
// 0, replica 0 and the seed of the call. Choir makes, empties and frees the frames of replicas,
// merge calls and sets of values. Fails as choir_device_find.
choir_frame *choir_frame_new(choir_device *d);

void choir_frame_free(choir_frame *f);

// Waits for queued work, then frees all tensors of f and its tape. The memory is kept, so a
// repeated step allocates nothing. The frame forgets its failure, and a tape may begin again.
// The count of random draws goes on.
void choir_frame_clear(choir_frame *f);

// The present point of f, for choir_frame_rewind.
size_t choir_frame_mark(choir_frame *f);

// Waits for queued work, then frees all that was made since mark: tensors, their records on the
// tape, and a tape that began after mark. A failure stays. Does nothing if mark is not before
// the present point.
void choir_frame_rewind(choir_frame *f, size_t mark);

// The status of the first failure since f was emptied, or CHOIR_OK.
CHOIR_MUST_CHECK choir_status choir_frame_status(const choir_frame *f);

// Whether f has a tape (tape.h), also after its backward pass: then dropout is on.
bool choir_frame_is_training(const choir_frame *f);

// Making tensors

// Makes a tensor from a copy of data: packed, row-major elements. data may be NULL for an empty
// shape. CHOIR_INVALID: an unknown dtype, an invalid shape.
choir_tensor *choir_constant(
		choir_frame *f, choir_dtype dtype, choir_shape shape, const void *data);

// As choir_constant, but without the copy if the device can use the host's memory: data stays
// the caller's and must not change until f is emptied. Borrowed data is copied where it must
// live longer: results that are returned, and arguments of merge calls.
choir_tensor *choir_borrow(choir_frame *f, choir_dtype dtype, choir_shape shape, const void *data);

// Makes a plain number: a scalar without a dtype of its own. In an operation it takes the dtype
// of the first operand that is no plain number (CHOIR_INVALID if it does not fit, as 0.5 or 300
// in u8). If all operands are plain numbers, it is f64. It cannot be a source of gradients
// (tape.h): use choir_fill for that. If all replicas reduce the same number, it is one common
// value, which has a MEAN but no SUM, unless it is 0 (docs/rules.md, section 8).
choir_tensor *choir_number(choir_frame *f, double value);

// Copies t, with its count, into the frame to, on that frame's device. Waits for t. No gradient
// flows.
choir_tensor *choir_copy(choir_tensor *t, choir_frame *to);

// Looking at tensors. Getters do not wait.

// The shape of t; for NULL that of a scalar.
const choir_shape *choir_tensor_shape(const choir_tensor *t);

// CHOIR_F64 for a plain number, CHOIR_F32 for NULL.
choir_dtype choir_tensor_dtype(const choir_tensor *t);

choir_frame *choir_tensor_frame(const choir_tensor *t);

// The device whose memory t is in. It may differ from the frame's: an argument of a merge call
// stays in the memory of the replica's device.
choir_device *choir_tensor_device(const choir_tensor *t);

// Waits, then gives the elements in place: row-major, packed, read-only. They are valid until
// t's frame is emptied, or rewound to before t, or the backward pass of a tape frees t.
// CHOIR_UNSUPPORTED: the host cannot reach the memory of t's device (use choir_tensor_to_host).
const void *choir_tensor_data(const choir_tensor *t);

// Waits, then gives the one element of t, of any rank, as a double (i64 beyond 2^53 is rounded).
// NAN for NULL and after a failure. CHOIR_INVALID: t does not have one element.
double choir_tensor_number(const choir_tensor *t);

// Waits, then copies all elements, row-major and packed, to host memory, from any device.
// CHOIR_INVALID: bytes is not the tensor's size. If t is NULL: the thread's last failure, or
// CHOIR_INVALID if there was none.
CHOIR_MUST_CHECK choir_status choir_tensor_to_host(const choir_tensor *t, void *to, size_t bytes);

// Waits, then writes t as one line, "f32 [2, 3] [[1, 2, 3], [4, 5, 6]]". Works as snprintf, but
// the same in every locale. If t has more than 64 elements, only both ends of long axes are
// shown. After a failure the text is empty and the result 0. NULL gives "(null)".
size_t choir_tensor_print(const choir_tensor *t, char *text, size_t size);

// Indexed slices: some rows of a larger dense tensor (TensorFlow's IndexedSlices), for example
// the gradient of a table of which few rows were read. They can be reduced over replicas
// (cross.h), passed to merge calls and optimizers, and returned. All other calls refuse them
// with CHOIR_UNSUPPORTED; choir_to_dense (op.h) makes the dense tensor.

// Makes indexed slices of a dense tensor with this number of rows. Row i of values belongs to
// its row indices[i]. Values for the same row are added; a row that does not occur is 0. The
// result is a view of values. indices is a vector of i32 or i64, copied if it is borrowed.
// CHOIR_INVALID: values is a scalar, values and indices have different numbers of rows, an index
// is out of range, the tensors are of two frames.
choir_tensor *choir_indexed_slices(choir_tensor *values, choir_tensor *indices, int64_t rows);

bool choir_tensor_is_slices(const choir_tensor *t);

// The number of rows of the dense tensor. 0 if t is not indexed slices.
int64_t choir_slices_rows(const choir_tensor *t);

// A view of the values, and of the indices. CHOIR_INVALID: t is not indexed slices.
choir_tensor *choir_slices_values(choir_tensor *t);
choir_tensor *choir_slices_indices(choir_tensor *t);

// Exchange with other libraries

// DLPack's managed tensor of version 1.x (https://dmlc.github.io/dlpack/latest/c_api.html).
struct DLManagedTensorVersioned;

// Makes a tensor in f on the memory of managed, and takes managed over, also after a failure.
// Its deleter is called once, after the last tensor on the memory is freed, or at once if the
// elements were copied. They are copied if the device has its own memory, strides are not
// packed, or the memory is not aligned for the dtype. If the last tensor is freed on another
// thread or in a replica function, the deleter is called later: when a choir_strategy_run ends
// or a thread imports again. Shared elements must not be written before the deleter is called.
//
// CHOIR_UNSUPPORTED: another major version, memory that is not the host's, a type without a
// choir_dtype. CHOIR_INVALID: an invalid shape, data is NULL.
choir_tensor *choir_from_dlpack(choir_frame *f, struct DLManagedTensorVersioned *managed);

// Exports t to another library. Waits, then shares t's memory, which stays until the consumer
// calls the deleter. This may happen on any thread, long after the frame is freed. The export is
// marked read-only, since other tensors may use the memory. Memory that may change (borrowed, or
// a variable's) is copied instead, and the export is marked as a copy. CHOIR_UNSUPPORTED: the
// host cannot reach the memory.
struct DLManagedTensorVersioned *choir_tensor_to_dlpack(choir_tensor *t);

CHOIR_C_END

// CHOIR_SHAPE(784, 10) is a shape with these dimensions, at least one; CHOIR_SCALAR has none.
// Dimensions are expressions, evaluated once.
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
