// A tensor is a handle in its frame's arena on a counted buffer.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "base/philox.h"
#include "choir/tensor.h"
#include "tensor/buffer_pool.h"

// The variable that a tensor reads. After version has changed, its use is CHOIR_STATE
// (docs/decisions/0016).
typedef struct chi_source {
	const char *name;
	// In 16 bits, shared by all reads of the whole variable. NULL, also as the result without a
	// failure: the caller casts t.
	choir_tensor *(*narrow)(const choir_tensor *t, choir_dtype dtype);
	chi_atomic64 version;
	void *owner;
	bool copied; // other workers write it, so reads are copies
} chi_source;
// A read that its own reader has made stale.
#define CHI_RETIRED UINT64_MAX
static inline bool chi_source_current(const chi_source *s, uint64_t version)
{
	return s->copied ? version != CHI_RETIRED : version == chi_atomic64_load(&s->version);
}

typedef struct {
	chi_buffer *buffer; // NULL: not slices
	void *data; // i32 or i64
	choir_dtype dtype;
	int64_t rows;
} chi_slices;

struct choir_tensor {
	choir_frame *frame;
	chi_buffer *buffer; // NULL: dropped, or its frame rewound
	void *data;
	choir_shape shape;
	choir_dtype dtype;
	bool is_number; // has the other operand's dtype
	double number;
	int64_t count;
	const chi_source *source;
	uint64_t version;
	bool borrowed; // the caller's, copied to outlive the call
	bool component;
	bool listed;
	chi_slices slices; // shape and data are of the values
	struct chi_node *node;
	void *gradient; // in the backward pass
	size_t mark; // in the frame's arena, before the handle
	// That queued work used when it was dropped.
	chi_buffer *held;
	choir_tensor *next;
};

typedef enum { CHI_IN_REPLICA = 1, CHI_IN_CROSS, CHI_IN_UPDATE } chi_context_kind;

#define CHI_NO_DRAWS UINT32_MAX

struct choir_frame {
	chi_arena arena;
	choir_device *device;
	chi_stream *stream;
	bool queued; // the device is asynchronous
	uint64_t published;
	chi_buffer *dropped; // queued work may use it
	choir_tensor *tensors;
	chi_error failure;
	bool failed;
	unsigned emptied;
	char prefix[32]; // "replica 1: ", or ""
	struct choir_tape *tape;
	// Forgets what was recorded after mark, before a rewind.
	void (*tape_rewind)(struct choir_tape *tape, size_t mark);
	// 0: the program or a set of values.
	void *context;
	chi_context_kind context_kind;
	chi_random_key random; // place: number of the next draw
	choir_dtype narrow; // op/precision.h
	choir_tensor *lengths; // of the sequences to which layers are being applied
	bool tf32;
	choir_frame *next;
};

// Its stream has done all that was queued, with success.
void chi_frame_empty_waited(choir_frame *f);

// Recorded in the thread, with the frame's prefix, and in the frame if it is the first.
choir_status chi_frame_fail(choir_frame *f, choir_status status, const char *fmt, ...)
		CHOIR_PRINTF(3, 4);
choir_tensor *chi_frame_fail_null(choir_frame *f, choir_status status, const char *fmt, ...)
		CHOIR_PRINTF(3, 4);
// The thread's last failure, or CHOIR_INTERNAL. Returns its status, never CHOIR_OK.
choir_status chi_frame_record_error(choir_frame *f);
void *chi_frame_record_null(choir_frame *f); // the same; returns NULL

// An action got NULL: the frame's failure, else the thread's, else CHOIR_INVALID. Recorded in
// both; f may be NULL.
choir_status chi_frame_status(choir_frame *f);
// NULL: chi_frame_status(f).
static inline choir_status chi_frame_made(choir_frame *f, const void *object)
{
	return object != NULL ? CHOIR_OK : chi_frame_status(f);
}

// Given back while queued work may still use it.
chi_buffer *chi_frame_buffer(choir_frame *f, size_t bytes);
void chi_frame_give_back(choir_frame *f, chi_buffer *b);
// Unless the frame has failed, records the thread's failure or "subject: NULL where ...". f may be
// NULL.
choir_tensor *chi_frame_null_argument(choir_frame *f, const char *subject);

size_t chi_dtype_size(choir_dtype dtype); // 0: unknown
bool chi_dtype_is_float(choir_dtype dtype);
static inline bool chi_dtype_is_half(choir_dtype dtype)
{
	return dtype == CHOIR_F16 || dtype == CHOIR_BF16;
}
// The dtype of sums, statistics and parameters.
static inline choir_dtype chi_dtype_wide(choir_dtype dtype)
{
	return chi_dtype_is_half(dtype) ? CHOIR_F32 : dtype;
}
// Integers need a whole number in range.
bool chi_dtype_holds(choir_dtype dtype, double value);
// i64 beyond 2^53 is rounded.
double chi_dtype_load(choir_dtype dtype, const void *data, int64_t index);
void chi_dtype_store(choir_dtype dtype, void *data, int64_t index, double value);
// False: a negative dimension, a rank beyond CHOIR_MAX_RANK, or too many bytes.
bool chi_shape_bytes(const choir_shape *shape, choir_dtype dtype, size_t *bytes);
bool chi_shape_equal(const choir_shape *a, const choir_shape *b);
// "[16, 784]".
enum { CHI_SHAPE_TEXT = 160 };
const char *chi_shape_print(const choir_shape *shape, char text[CHI_SHAPE_TEXT]);

// Not initialised.
choir_tensor *chi_tensor_new(choir_frame *f, choir_dtype dtype, const choir_shape *shape);
// On t's memory, or rows of it, which f's device must share. Only the whole keeps t's count.
choir_tensor *chi_tensor_alias(choir_frame *f, const choir_tensor *t);
choir_tensor *chi_tensor_rows(choir_frame *f, const choir_tensor *t, int64_t first, int64_t rows);
// Afterwards others may read the frame's tensors: t, an alias, or a copy in their frame.
choir_status chi_frame_publish(choir_frame *f);
choir_tensor *chi_tensor_published(choir_frame *f, choir_tensor *t);
// On the same memory.
choir_tensor *chi_tensor_reshape(const choir_tensor *t, const choir_shape *shape);
// Takes its own reference. Work queued elsewhere on it must be done.
choir_tensor *chi_tensor_on(choir_frame *f, chi_buffer *buffer, void *data, choir_dtype dtype,
		const choir_shape *shape);
// An alias, or a copy of memory that is borrowed, a variable's or another device's.
choir_tensor *chi_tensor_retain(choir_frame *f, const choir_tensor *t);
void chi_tensor_drop(choir_tensor *t);
// Fails if t is dropped, stale, or slices; the second function allows slices.
choir_status chi_tensor_check(const choir_tensor *t);
choir_status chi_tensor_check_any(const choir_tensor *t);

static inline bool chi_is_slices(const choir_tensor *t)
{
	return t->slices.buffer != NULL;
}
// Of the larger tensor of slices, or else t's.
choir_shape chi_dense_shape(const choir_tensor *t);
// Indices were checked before.
choir_tensor *chi_slices_new(choir_tensor *values, choir_tensor *indices, int64_t rows);
// If t is slices, out (with t's values) gets its indices, shared or copied. NULL: recorded, and
// out is dropped.
choir_tensor *chi_slices_follow(choir_tensor *out, const choir_tensor *t, bool copy);
// Waits. CHOIR_INVALID, with what in front: an index is no row of the larger tensor.
choir_status chi_slices_check_indices(const choir_tensor *t, const char *what);
// As i64.
choir_status chi_slices_indices_to_host(const choir_tensor *t, int64_t *to);
// It may differ from the frame's in a merge call.
static inline choir_device *chi_tensor_memory_device(const choir_tensor *t)
{
	return t->buffer ? t->buffer->device : t->frame->device;
}
size_t chi_tensor_bytes(const choir_tensor *t);
// Waits for queued work.
choir_status chi_tensor_to_host(const choir_tensor *t, void *to);
choir_status chi_tensor_from_host(choir_tensor *t, const void *from);
// While hold is on, and on other threads, deleters are left to run's caller (docs/decisions/0021).
void chi_dlpack_hold(bool on);
void chi_dlpack_run_deleters(void);
