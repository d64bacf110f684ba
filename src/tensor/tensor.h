// Tensors and the frames that own them, seen from inside. A tensor is a handle in its frame's
// arena on a counted buffer; a frame knows which context it serves, by a pointer that only the
// room that set it can read.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "base/philox.h"
#include "choir/tensor.h"
#include "tensor/buffer.h"

// Where a tensor's memory can change under it: a variable's copy. A read remembers the version; a
// use after the version moved is CHOIR_STATE naming the source (docs/decisions/0016).
typedef struct chi_source {
	const char *name;
	chi_atomic64 version;
	void *owner; // the variable
	bool copied; // other workers change it: a read is a copy, which their changes leave alone
} chi_source;
// The version of a read whose reader has changed the source, or is about to.
#define CHI_RETIRED UINT64_MAX
// Whether a read of that version may be used.
static inline bool chi_source_current(const chi_source *s, uint64_t version)
{
	return s->copied ? version != CHI_RETIRED : version == chi_atomic64_load(&s->version);
}

// What makes a tensor slices, rows of a larger one: which rows its elements are.
typedef struct {
	chi_buffer *buffer; // holds the indices; one reference; NULL: the tensor is no slices
	void *data; // packed, of i32 or i64, one for each row of values
	choir_dtype dtype;
	int64_t rows; // of the larger tensor
} chi_slices;

struct choir_tensor {
	choir_frame *frame;
	chi_buffer *buffer; // NULL: the tensor is dead (dropped, or its frame was rewound)
	void *data; // in buffer's memory; row-major, packed
	choir_shape shape;
	choir_dtype dtype;
	bool is_number; // choir_number: takes the other operand's dtype; value below
	double number;
	int64_t count; // choir_with_count; CHOIR_NONE: none
	const chi_source *source; // an alias of a variable's memory; NULL
	uint64_t version; // of source when it was read
	bool borrowed; // memory of the caller: copied when it must outlive the call
	bool component; // stands for source's variable as argument or result
	bool listed; // of op/tape/recompute.c, while it lists what a segment uses
	chi_slices slices; // shape and data are those of the values
	struct chi_node *node; // what made it, on the tape; NULL
	void *gradient; // the tape's, while it goes back
	size_t mark; // of the frame's arena before this handle
	// One reference that goes with the handle, after buffer: to memory that was dropped while
	// others had it and queued work used it, or that is to go back to its pool just then; NULL.
	chi_buffer *held;
	choir_tensor *next; // older tensors of the frame
};

// As the place of a frame's random numbers: none can be drawn in it.
#define CHI_NO_DRAWS UINT32_MAX

struct choir_frame {
	chi_arena arena; // handles, tape nodes, names
	choir_device *device;
	chi_stream *stream;
	bool owns_stream;
	bool queued; // the device works behind the host's back: every kind but "cpu"
	uint64_t published; // of the stream, from chi_frame_publish
	chi_buffer *dropped; // memory that work queued here may still use: for this frame only
	choir_tensor *tensors; // newest first
	chi_error failure; // the first
	bool failed;
	unsigned emptied; // how often
	char prefix[32]; // "replica 1: " in front of messages, or ""
	struct choir_tape *tape; // recording, or NULL
	// The tape's: forgets what it recorded since mark, before a rewind.
	void (*tape_rewind)(struct choir_tape *tape, size_t mark);
	void *context; // of the room that set it, with its kind
	int context_kind;
	chi_random_key random; // place counts the draws of this frame
	choir_frame *next; // in a list of frames that wait for use
};

// stream NULL: the frame opens one of its own. The device must outlive it.
choir_frame *chi_frame_new(choir_device *d, chi_stream *stream);

// Empties f, whose stream has been waited for with success since anything was queued.
void chi_frame_empty_waited(choir_frame *f);

// Records a failure: text on the thread, with the frame's prefix, and in the frame if it is the
// first. The first returns status, the second NULL, for expressions.
choir_status chi_frame_fail(choir_frame *f, choir_status status, const char *fmt, ...)
		CHOIR_PRINTF(3, 4);
choir_tensor *chi_frame_fail_null(choir_frame *f, choir_status status, const char *fmt, ...)
		CHOIR_PRINTF(3, 4);
// After a failure: records the thread's last one in the frame, if it is the frame's first; returns
// its status. Where the thread has none, CHOIR_INTERNAL becomes one, so this is never CHOIR_OK.
choir_status chi_frame_record_error(choir_frame *f);

// A NULL has come into an action: the frame's first failure, which the thread's last becomes if
// there is none yet, and if there is no failure at all a NULL where there must be none. f may be
// NULL.
choir_status chi_frame_status(choir_frame *f);

// Memory for one tensor of f or a kernel's scratch, and its return, of the only reference, in the
// order of f's stream: work queued there may still use it.
chi_buffer *chi_frame_buffer(choir_frame *f, size_t bytes);
void chi_frame_give_back(choir_frame *f, chi_buffer *b);
// A NULL has come in: the frame keeps the thread's failure unless it has one; f may be NULL.
// Where there is no failure at all, "subject: NULL where ..." becomes one; chi_frame_status then
// gives it as a status. Returns NULL.
choir_tensor *chi_frame_null_argument(choir_frame *f, const char *subject);

size_t chi_dtype_size(choir_dtype dtype); // 0: no such dtype
bool chi_dtype_is_float(choir_dtype dtype); // f32, f64, f16, bf16
bool chi_dtype_holds(choir_dtype dtype, double value); // integers: whole and in range
// One element of packed host memory, as a double (i64 beyond 2^53 is rounded).
double chi_dtype_load(choir_dtype dtype, const void *data, int64_t index);
void chi_dtype_store(choir_dtype dtype, void *data, int64_t index, double value);
// False: a negative dimension, a rank beyond CHOIR_MAX_RANK, or too many bytes.
bool chi_shape_bytes(const choir_shape *shape, choir_dtype dtype, size_t *bytes);
bool chi_shape_equal(const choir_shape *a, const choir_shape *b);
// "[16, 784]" into text; returns text. 160 bytes are always enough.
enum { CHI_SHAPE_TEXT = 160 };
const char *chi_shape_print(const choir_shape *shape, char text[CHI_SHAPE_TEXT]);

// A new tensor with memory from the pool of the frame's device, not initialised.
choir_tensor *chi_tensor_new(choir_frame *f, choir_dtype dtype, const choir_shape *shape);
// A new handle in frame f on t's memory (or on part of it: rows of axis 0 from first), no copy.
// f's device must share memory with t's. Keeps count only if the whole is taken.
choir_tensor *chi_tensor_alias(choir_frame *f, const choir_tensor *t);
choir_tensor *chi_tensor_rows(choir_frame *f, const choir_tensor *t, int64_t first, int64_t rows);
// Other threads are about to look at tensors of f: notes how far its stream is, which only the
// thread of f may do. They get the tensors from the second function: t itself, an alias, or a copy
// on f's device. What the frame's thread makes later must be published again.
choir_status chi_frame_publish(choir_frame *f);
choir_tensor *chi_tensor_published(choir_frame *f, choir_tensor *t);
// A new handle with another shape of as many elements.
choir_tensor *chi_tensor_reshape(const choir_tensor *t, const choir_shape *shape);
// A handle on a buffer: retains it. data lies in it. Work queued elsewhere on it must be done.
choir_tensor *chi_tensor_on(choir_frame *f, chi_buffer *buffer, void *data, choir_dtype dtype,
		const choir_shape *shape);
// t in frame f on f's device, for keeping: an alias where memory is shared and t's memory is
// counted and cannot change; else a copy (borrowed memory, reads of variables, other devices).
choir_tensor *chi_tensor_retain(choir_frame *f, const choir_tensor *t);
// Gives t's memory back now; the handle stays until the frame is emptied and is dead.
void chi_tensor_drop(choir_tensor *t);
// CHOIR_OK: usable as what its shape says. Else why not: "dead", or the source changed, or it is
// slices, which only few calls know; recorded in the frame. The second lets slices pass.
choir_status chi_tensor_check(const choir_tensor *t);
choir_status chi_tensor_check_any(const choir_tensor *t);

// Slices (indexed_slices.c)
static inline bool chi_is_slices(const choir_tensor *t)
{
	return t->slices.buffer != NULL;
}
// The shape of the larger tensor; that of t if it is no slices.
choir_shape chi_dense_shape(const choir_tensor *t);
// The same without looking at the indices: for gradients, whose indices were looked at.
choir_tensor *chi_slices_new(choir_tensor *values, choir_tensor *indices, int64_t rows);
// Makes out, which holds t's values, slices as t is: in the same memory, or by a copy on out's
// device. NULL (out is dropped) after a failure; t that is no slices changes nothing.
choir_tensor *chi_slices_follow(choir_tensor *out, const choir_tensor *t, bool copy);
// CHOIR_INVALID, with what in front, if an index of t is no row of the larger tensor. Waits.
choir_status chi_slices_check_indices(const choir_tensor *t, const char *what);
// All indices as i64 on the host, one behind another in to.
choir_status chi_slices_indices_to_host(const choir_tensor *t, int64_t *to);
// The device whose memory t's is. A tensor that is only looked at, as a merge call looks at those
// of replicas, may lie elsewhere than its frame.
static inline choir_device *chi_tensor_memory_device(const choir_tensor *t)
{
	return t->buffer ? t->buffer->device : t->frame->device;
}
size_t chi_tensor_bytes(const choir_tensor *t);
// Waits for the tensor, then copies all of it to host memory.
choir_status chi_tensor_to_host(const choir_tensor *t, void *to);
choir_status chi_tensor_from_host(choir_tensor *t, const void *from);
// DLPack deleters asked for in replica threads are kept and run by the caller of run
// (docs/decisions/0021): kept while hold is on for the thread, and on any thread but the importing
// one.
void chi_dlpack_hold(bool on);
void chi_dlpack_run_deleters(void);
