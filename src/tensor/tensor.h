// A tensor is a handle in its frame's arena on a counted buffer.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "base/philox.h"
#include "choir/tensor.h"
#include "tensor/buffer.h"

// The variable that a tensor reads. After version has changed, using the tensor is CHOIR_STATE
// with the name (docs/decisions/0016).
typedef struct chi_source {
	const char *name;
	// t, a read of the whole variable, in 16 bits: memory that all reads share. NULL as the
	// function, or as the result without a failure: the caller casts t.
	choir_tensor *(*narrow)(const choir_tensor *t, choir_dtype dtype);
	chi_atomic64 version;
	void *owner; // the variable
	bool copied; // other workers write it, so reads are copies and stay valid
} chi_source;
// A read that its own reader has made stale.
#define CHI_RETIRED UINT64_MAX
static inline bool chi_source_current(const chi_source *s, uint64_t version)
{
	return s->copied ? version != CHI_RETIRED : version == chi_atomic64_load(&s->version);
}

// Indexed slices are rows of a larger tensor.
typedef struct {
	chi_buffer *buffer; // of the indices; NULL: not slices
	void *data; // packed i32 or i64
	choir_dtype dtype;
	int64_t rows; // of the larger tensor
} chi_slices;

struct choir_tensor {
	choir_frame *frame;
	chi_buffer *buffer; // NULL: dropped, or its frame rewound
	void *data; // row-major, packed
	choir_shape shape;
	choir_dtype dtype;
	bool is_number; // has the other operand's dtype
	double number;
	int64_t count; // of choir_with_count, or CHOIR_NONE
	const chi_source *source; // of a read
	uint64_t version; // when read
	bool borrowed; // the caller's, to be copied to outlive the call
	bool component; // stands for source's variable in arguments and results
	bool listed; // for op/tape/recompute.c
	chi_slices slices; // shape and data are of the values
	struct chi_node *node; // that made it, or NULL
	void *gradient; // the tape's, in the backward pass
	size_t mark; // of the frame's arena, before the handle
	// That others held and queued work used, when it was dropped.
	chi_buffer *held;
	choir_tensor *next; // older
};

// As random.place.
#define CHI_NO_DRAWS UINT32_MAX

struct choir_frame {
	chi_arena arena; // also of tape nodes and names
	choir_device *device;
	chi_stream *stream;
	bool queued; // the device is asynchronous
	uint64_t published; // event of chi_frame_publish
	chi_buffer *dropped; // for this frame alone, as queued work may use it
	choir_tensor *tensors; // newest first
	chi_error failure; // the first
	bool failed;
	unsigned emptied;
	char prefix[32]; // "replica 1: " for messages, or ""
	struct choir_tape *tape; // recording, or NULL
	// Forgets what was recorded after mark, before a rewind.
	void (*tape_rewind)(struct choir_tape *tape, size_t mark);
	void *context; // of the module that set context_kind
	int context_kind;
	chi_random_key random; // place: number of the next draw
	choir_dtype narrow; // of mixed precision (op/precision.h); CHOIR_F32: none
	choir_frame *next; // to be reused
};

// Its stream has done all that was queued, with success.
void chi_frame_empty_waited(choir_frame *f);

// In the thread, with the frame's prefix, and in the frame if it is the first there. Return
// status, or NULL for expressions.
choir_status chi_frame_fail(choir_frame *f, choir_status status, const char *fmt, ...)
		CHOIR_PRINTF(3, 4);
choir_tensor *chi_frame_fail_null(choir_frame *f, choir_status status, const char *fmt, ...)
		CHOIR_PRINTF(3, 4);
// The thread's last failure, or CHOIR_INTERNAL if there is none. Returns its status, never
// CHOIR_OK.
choir_status chi_frame_record_error(choir_frame *f);

// An action on a frame got NULL: gives the frame's failure, else the thread's, else
// CHOIR_INVALID. Recorded in both; f may be NULL.
choir_status chi_frame_status(choir_frame *f);

// It has one reference, and is given back while queued work may still use it.
chi_buffer *chi_frame_buffer(choir_frame *f, size_t bytes);
void chi_frame_give_back(choir_frame *f, chi_buffer *b);
// A call that returns a tensor got NULL: unless its frame has a failure, records the thread's or
// "subject: NULL where ...". f may be NULL. Returns NULL.
choir_tensor *chi_frame_null_argument(choir_frame *f, const char *subject);

size_t chi_dtype_size(choir_dtype dtype); // 0: unknown
bool chi_dtype_is_float(choir_dtype dtype);
static inline bool chi_dtype_is_half(choir_dtype dtype)
{
	return dtype == CHOIR_F16 || dtype == CHOIR_BF16;
}
// f32 for 16 bits: the dtype of their sums, statistics and parameters.
static inline choir_dtype chi_dtype_wide(choir_dtype dtype)
{
	return chi_dtype_is_half(dtype) ? CHOIR_F32 : dtype;
}
// Integers need a whole number in range.
bool chi_dtype_holds(choir_dtype dtype, double value);
// In packed host memory, as doubles; i64 beyond 2^53 is rounded.
double chi_dtype_load(choir_dtype dtype, const void *data, int64_t index);
void chi_dtype_store(choir_dtype dtype, void *data, int64_t index, double value);
// False: a negative dimension, a rank beyond CHOIR_MAX_RANK, or too many bytes.
bool chi_shape_bytes(const choir_shape *shape, choir_dtype dtype, size_t *bytes);
bool chi_shape_equal(const choir_shape *a, const choir_shape *b);
// "[16, 784]".
enum { CHI_SHAPE_TEXT = 160 };
const char *chi_shape_print(const choir_shape *shape, char text[CHI_SHAPE_TEXT]);

// Not initialised, in the pool of the frame's device.
choir_tensor *chi_tensor_new(choir_frame *f, choir_dtype dtype, const choir_shape *shape);
// On t's memory, or on rows of it. f's device must share the memory. Only the whole keeps t's
// count.
choir_tensor *chi_tensor_alias(choir_frame *f, const choir_tensor *t);
choir_tensor *chi_tensor_rows(choir_frame *f, const choir_tensor *t, int64_t first, int64_t rows);
// Other threads may then read the frame's tensors: t itself, an alias, or a copy in their own
// frame.
choir_status chi_frame_publish(choir_frame *f);
choir_tensor *chi_tensor_published(choir_frame *f, choir_tensor *t);
// Has as many elements, on the same memory.
choir_tensor *chi_tensor_reshape(const choir_tensor *t, const choir_shape *shape);
// Takes its own reference; data lies in buffer. Work queued elsewhere on it must be done.
choir_tensor *chi_tensor_on(choir_frame *f, chi_buffer *buffer, void *data, choir_dtype dtype,
		const choir_shape *shape);
// Keeps t's value in f: an alias of memory that is shared and cannot change, else a copy (of
// borrowed memory, a variable, or another device's memory).
choir_tensor *chi_tensor_retain(choir_frame *f, const choir_tensor *t);
// Before the frame is emptied; the handle becomes unusable.
void chi_tensor_drop(choir_tensor *t);
// Records in the frame that t is dropped, stale, or slices; the second function allows slices.
choir_status chi_tensor_check(const choir_tensor *t);
choir_status chi_tensor_check_any(const choir_tensor *t);

static inline bool chi_is_slices(const choir_tensor *t)
{
	return t->slices.buffer != NULL;
}
// Gives that of the larger tensor of slices, or else t's.
choir_shape chi_dense_shape(const choir_tensor *t);
// For gradients, whose indices were checked before.
choir_tensor *chi_slices_new(choir_tensor *values, choir_tensor *indices, int64_t rows);
// If t is indexed slices, out (with t's values) becomes slices with the same indices, shared or
// copied. NULL: recorded, and out is dropped.
choir_tensor *chi_slices_follow(choir_tensor *out, const choir_tensor *t, bool copy);
// Waits. CHOIR_INVALID, with what in front: an index is no row of the larger tensor.
choir_status chi_slices_check_indices(const choir_tensor *t, const char *what);
// Copies them as i64.
choir_status chi_slices_indices_to_host(const choir_tensor *t, int64_t *to);
// It may differ from the frame's in a merge call.
static inline choir_device *chi_tensor_memory_device(const choir_tensor *t)
{
	return t->buffer ? t->buffer->device : t->frame->device;
}
size_t chi_tensor_bytes(const choir_tensor *t);
// Waits.
choir_status chi_tensor_to_host(const choir_tensor *t, void *to);
choir_status chi_tensor_from_host(choir_tensor *t, const void *from);
// Deleters are deferred while hold is on for the thread, and on threads other than the importing
// one. The caller of run then calls them (docs/decisions/0021).
void chi_dlpack_hold(bool on);
void chi_dlpack_run_deleters(void);
