// Tensors and the frames that own them. A frame is the memory of one context, a replica's call for
// example, on one device: what is made in it lives until the frame is emptied, and nobody frees a
// single tensor. A tensor is a value: packed, row-major elements of one dtype, of rank 0 to 8,
// that never change once they are made. An operation's result belongs to its operands' frame, and
// operands of two frames are CHOIR_INVALID, so that tensors of two replicas cannot be mixed by
// mistake; choir_move and what contexts offer lead from one frame to another. The frame also keeps
// the first failure of what was done in it, so a formula is checked once, at its end.
//
// Work may be queued on the frame's device when a call returns. What says "waits" returns when the
// tensor is final; the failure of queued work comes out there.
//
// Errors of everything below that takes a tensor, beside its own: CHOIR_STATE for a tensor that
// died on a tape's way back (tape.h), or that was read from a variable which has changed since,
// with the variable's name; CHOIR_NO_MEMORY. A NULL that comes in gives NULL (getters: see there),
// and if nothing has failed before, that is CHOIR_INVALID.
// Threads: a frame and its tensors belong to one thread at a time, the one that runs the context.
#pragma once

#include "device.h"

CHOIR_C_BEGIN

enum { CHOIR_MAX_RANK = 8 };

// The types of elements. Arithmetic is on f32, f64 and most of it on i32, i64 and u8 (op.h says
// which). bool, f16 and bf16 can be made, filled, moved, viewed and cast; f16 and bf16 are made
// from others by rounding to nearest, ties to even. A bool is one byte, 0 or 1.
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

// "f32", "f64", "i32", "i64", "u8", "bool", "f16", "bf16", or "unknown". Constant text.
const char *choir_dtype_name(choir_dtype dtype);

// Dimensions beyond rank are not looked at. A dimension of 0 is legal: the tensor is empty.
typedef struct {
	int rank; // 0: a scalar
	int64_t dim[CHOIR_MAX_RANK];
} choir_shape;

// How many elements a shape has: 1 for a scalar, 0 if a dimension is 0. CHOIR_NONE for what is no
// shape: a rank below 0 or beyond CHOIR_MAX_RANK, a negative dimension, or too many for 63 bits.
int64_t choir_shape_elements(const choir_shape *shape);

// A set of axes: CHOIR_AXIS(0) | CHOIR_AXIS(-1). Negative ones count from the back.
typedef uint32_t choir_axes;
#define CHOIR_AXIS(i) ((choir_axes) 1 << (31u & (unsigned) (i)))
#define CHOIR_NO_AXIS ((choir_axes) 0)
#define CHOIR_ALL_AXES (~(choir_axes) 0)

typedef struct choir_frame choir_frame;
typedef struct choir_tensor choir_tensor;

// Frames

// A frame of the program's own on device d; NULL: on cpu:0. It stands for no replica: random
// numbers in it are drawn as for step 0, replica 0 and the seed that the call gives. NULL after a
// failure (CHOIR_NO_MEMORY, or why there is no such device). To be freed by choir_frame_free. The
// frames of replicas, merges and sets of values are made, emptied and freed by those.
choir_frame *choir_frame_new(choir_device *d);

// Empties f and frees it. NULL is fine.
void choir_frame_free(choir_frame *f);

// Waits for what is queued, then all tensors of f and its tape die; the memory is kept for the
// next ones, so a step that is repeated allocates nothing. The frame's failure is forgotten (the
// thread's choir_error is not), and a tape may begin again. The count of random draws goes on.
// NULL is fine.
void choir_frame_empty(choir_frame *f);

// A point in the life of f to rewind to, for loops inside a frame; 0 for NULL.
size_t choir_frame_mark(choir_frame *f);

// Waits for what is queued, then drops what was made since mark: tensors, what the tape recorded
// of them and, if it began after mark, the tape. Tensors made before stay as they are. A failure
// stays, too: only choir_frame_empty forgets it. A mark that is not behind f's present one, or a
// NULL frame: nothing happens.
void choir_frame_rewind(choir_frame *f, size_t mark);

// The status of the first failure since f was emptied; CHOIR_OK if there was none, or for NULL.
CHOIR_MUST_CHECK choir_status choir_frame_status(const choir_frame *f);

// Whether f has a tape (choir_tape_begin), and so whether this is training: where it is, dropout
// is on. True until the frame is emptied (or rewound to before the tape), also after the tape has
// gone back, when nothing more is recorded. False for NULL.
bool choir_frame_training(const choir_frame *f);

// Making tensors

// A copy of data: packed, row-major elements of dtype. data may be changed or freed when this
// returns; NULL only for an empty shape. CHOIR_INVALID: an unknown dtype, a shape that cannot be,
// data is NULL.
choir_tensor *choir_constant(
		choir_frame *f, choir_dtype dtype, choir_shape shape, const void *data);

// The same without the copy, where the device can use the host's memory: data stays the caller's,
// and as it is until f is emptied. What is to live longer is copied: results that are returned,
// values given to a merge, exports to DLPack. On a device with memory of its own this is
// choir_constant.
choir_tensor *choir_borrow(choir_frame *f, choir_dtype dtype, choir_shape shape, const void *data);

// A tensor in which every element is value. CHOIR_INVALID also if an integer dtype or bool cannot
// hold value: it must be whole and in range (bool: 0 or 1). f32, f16 and bf16 round it.
choir_tensor *choir_fill(choir_frame *f, choir_dtype dtype, choir_shape shape, double value);

// A plain number, a scalar without a dtype of its own: in an operation it takes that of the first
// operand that is no number (CHOIR_INVALID if it does not fit there, as 0.5 or 300 in u8), and it
// is f64 where there is none. It is no source of gradients: choir_fill makes one. Where replicas
// meet, the same number from all counts as one value for all of them, which has a mean but no sum:
// its SUM over two or more replicas is CHOIR_INVALID, unless it is 0. Different numbers are summed
// (docs/rules.md).
choir_tensor *choir_number(choir_frame *f, double value);

// Independent normal numbers of mean 0 and deviation 1 in f32 or f64 (others: CHOIR_UNSUPPORTED):
// Box and Muller 1958, from Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as
// easy as 1, 2, 3, SC 2011). They depend on seed, the strategy's seed, the step (the number of
// runs so far in which gradients were applied), the replica and the place in the program, which is
// the number of draws (dropout draws, too) in this call of the replica so far, or in a frame of
// choir_frame_new since it was made; not on devices or threads (docs/decisions/0013).
choir_tensor *choir_random_normal(
		choir_frame *f, choir_dtype dtype, choir_shape shape, uint64_t seed);

// A copy of t in the frame to, on that frame's device, with its count. Waits for t. No gradient
// flows through. The calling thread must be the one of both frames.
choir_tensor *choir_move(choir_tensor *t, choir_frame *to);

// A view of t, without a copy, that carries a count: of how many examples it is the sum, say. MEAN
// over replicas divides the sum by the sum of the counts if all replicas' values carry one, by the
// number of replicas if none does; a mixture is CHOIR_INVALID (docs/decisions/0014). Results of
// operations carry none. Gradients flow through. CHOIR_INVALID: count is negative.
choir_tensor *choir_counted(choir_tensor *t, int64_t count);

// Looking at tensors. Getters do not wait.

// Belongs to t. For NULL: a scalar's.
const choir_shape *choir_tensor_shape(const choir_tensor *t);

// For NULL: CHOIR_F32. A plain number: CHOIR_F64.
choir_dtype choir_tensor_dtype(const choir_tensor *t);

// The frame that t belongs to; NULL for NULL.
choir_frame *choir_tensor_frame(const choir_tensor *t);

// The device whose memory t's is; NULL for NULL. That is not always the frame's: what a merge call
// is given lies where the replica made it.
choir_device *choir_tensor_device(const choir_tensor *t);

// Waits, then gives the elements in place: row-major, packed, for reading only, until t's frame is
// emptied, or rewound to before t, or t dies on a tape's way back. NULL after a failure:
// CHOIR_UNSUPPORTED where the host cannot reach the memory of t's device (fetch it), or the first
// failure of queued work. NULL for NULL.
const void *choir_tensor_data(const choir_tensor *t);

// Waits, then gives the one element of t as a double (an i64 beyond 2^53 is rounded), t's rank
// being what it may. NAN after a failure, CHOIR_INVALID if t has not exactly one element, and for
// NULL.
double choir_tensor_number(const choir_tensor *t);

// Waits, then copies all elements, row-major and packed, to host memory from any device. bytes
// must be the tensor's size, else CHOIR_INVALID. For NULL it returns the thread's last failure, or
// CHOIR_INVALID if there is none.
CHOIR_MUST_CHECK choir_status choir_tensor_fetch(const choir_tensor *t, void *to, size_t bytes);

// Waits, then writes t as one line, "f32 [2, 3] [[1, 2, 3], [4, 5, 6]]", as snprintf does: at most
// size bytes with the zero at the end, and the result is the length of the whole text. Of tensors
// of more than 64 elements long axes are shown by both ends. The decimal point is a point whatever
// the locale says. After a failure the text is empty and the result 0. NULL is "(null)".
size_t choir_tensor_print(const choir_tensor *t, char *text, size_t size);

// Slices: some rows of a larger tensor (TensorFlow's IndexedSlices), as the gradient of a table of
// which only few rows were read. They are reduced over replicas (cross.h), given to merge calls
// and to optimizers, and returned, as other tensors are; all other calls refuse them,
// CHOIR_UNSUPPORTED: choir_to_dense (op.h) makes them the larger tensor.

// Row indices[i] of a tensor of so many rows is values' row i; a row that stands twice counts
// twice, and one that does not stand there is 0. A view of values; indices is a vector of i32 or
// i64, which borrowed memory is copied from. CHOIR_INVALID: a scalar, as many rows of values as
// there are indices are not there, an index that is no row, tensors of two frames.
choir_tensor *choir_indexed_slices(choir_tensor *values, choir_tensor *indices, int64_t rows);

// Whether t is slices. False for NULL.
bool choir_tensor_is_slices(const choir_tensor *t);

// Rows of the larger tensor. 0 for NULL and for what is no slices.
int64_t choir_slices_rows(const choir_tensor *t);

// Views of the values, and of the indices. CHOIR_INVALID: t is no slices; NULL for NULL.
choir_tensor *choir_slices_values(choir_tensor *t);
choir_tensor *choir_slices_indices(choir_tensor *t);

// Exchange with other libraries

// DLPack's versioned managed tensor of version 1.x, as dlpack.h declares it (the binary interface:
// https://dmlc.github.io/dlpack/latest/c_api.html).
struct DLManagedTensorVersioned;

// A tensor in f on the memory of managed, which is taken over, also on failure: its deleter is
// called once, when nothing needs the memory any more. That is when the last tensor on it dies, or
// at once where the elements were copied: they are if the device has memory of its own, the
// strides are not packed or the alignment is not the dtype's. The deleter runs on the thread that
// imported, outside of replica functions; what dies elsewhere waits until a choir_strategy_run
// ends or a thread imports again (docs/decisions/0021). The elements are shared: they must not be
// written from outside before the deleter is called. CHOIR_UNSUPPORTED: another major version,
// memory that is not the host's, a type that Choir has not; CHOIR_INVALID: a shape that cannot be,
// data is NULL.
choir_tensor *choir_from_dlpack(choir_frame *f, struct DLManagedTensorVersioned *managed);

// t for another library: waits, then shares t's memory, which lives on until the consumer calls
// the deleter, on any thread, if need be long after the frame. It is marked read-only, since other
// tensors may be on the same memory; memory that may change (borrowed, or a variable's) is copied,
// and marked so. NULL after a failure: CHOIR_UNSUPPORTED where the host cannot reach the memory.
// For NULL: NULL.
struct DLManagedTensorVersioned *choir_tensor_to_dlpack(choir_tensor *t);

CHOIR_C_END

// A shape from its dimensions, CHOIR_SHAPE(784, 10), of which there are at least one; CHOIR_SCALAR
// has none. Dimensions are expressions, which are evaluated once.
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
