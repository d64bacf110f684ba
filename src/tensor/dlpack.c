// An imported tensor's buffer keeps the managed object; an exported object keeps the buffer.
// Deleters may take foreign locks, so replica threads leave them to run's caller
// (docs/decisions/0021).
#include "tensor/dlpack.h"

#include "base/alloc.h"
#include "base/lock.h"
#include "tensor/tensor.h"

#include <string.h>

typedef struct imported {
	struct DLManagedTensorVersioned *managed;
	const bool *thread; // the importing thread, by the address of its hold
	struct imported *next;
} imported;

static struct {
	chi_mutex lock;
	imported *first;
} waiting = { .lock = CHI_MUTEX_STATIC(CHI_RANK_POOL, "dlpack") };
static _Thread_local bool hold;

void chi_dlpack_hold(bool on)
{
	hold = on;
}

static void delete_managed(struct DLManagedTensorVersioned *managed)
{
	chi_mutex_check_none_held();
	if (managed && managed->deleter)
		managed->deleter(managed);
}

void chi_dlpack_run_deleters(void)
{
	chi_mutex_lock(&waiting.lock);
	imported *list = waiting.first;
	waiting.first = NULL;
	chi_mutex_unlock(&waiting.lock);
	while (list) {
		imported *next = list->next;
		delete_managed(list->managed);
		chi_free(list);
		list = next;
	}
}

static void release(void *user)
{
	imported *i = (imported *) user;

	if (!hold && i->thread == &hold) {
		delete_managed(i->managed);
		chi_free(i);
		return;
	}
	chi_mutex_lock(&waiting.lock);
	i->next = waiting.first;
	waiting.first = i;
	chi_mutex_unlock(&waiting.lock);
}

static const struct {
	choir_dtype dtype;
	uint8_t code, bits;
} types[] = {
	{ CHOIR_F32, DL_FLOAT, 32 },
	{ CHOIR_F64, DL_FLOAT, 64 },
	{ CHOIR_I32, DL_INT, 32 },
	{ CHOIR_I64, DL_INT, 64 },
	{ CHOIR_U8, DL_UINT, 8 },
	{ CHOIR_BOOL, DL_BOOL, 8 },
	{ CHOIR_F16, DL_FLOAT, 16 },
	{ CHOIR_BF16, DL_BFLOAT, 16 },
};
enum { TYPES = sizeof(types) / sizeof(types[0]) };

static choir_status read_header(choir_frame *f, const struct DLManagedTensorVersioned *managed,
		choir_dtype *dtype, choir_shape *shape)
{
	const struct dl_tensor *in = &managed->tensor;
	size_t bytes, i = 0;
	char text[CHI_SHAPE_TEXT];

	if (managed->version.major != DL_MAJOR)
		return chi_frame_fail(f, CHOIR_UNSUPPORTED, "dlpack: the version is %u.%u; 1.x is needed",
				managed->version.major, managed->version.minor);
	if (in->device.type != DL_CPU && in->device.type != DL_CUDA_HOST)
		return chi_frame_fail(f, CHOIR_UNSUPPORTED,
				"dlpack: the device type is %d; the CPU (1) is needed", (int) in->device.type);
	while (i < TYPES && (types[i].code != in->type.code || types[i].bits != in->type.bits))
		i++;
	if (i == TYPES || in->type.lanes != 1)
		return chi_frame_fail(f, CHOIR_UNSUPPORTED,
				"dlpack: Choir has no dtype for type code %d with %d bits and %d lanes",
				in->type.code, in->type.bits, in->type.lanes);
	*dtype = types[i].dtype;
	if (in->rank < 0 || in->rank > CHOIR_MAX_RANK || (in->rank > 0 && !in->shape))
		return chi_frame_fail(f, CHOIR_INVALID,
				"dlpack: the rank is %d, or the shape is "
				"NULL; a shape of 0 to %d dimensions is needed",
				(int) in->rank, CHOIR_MAX_RANK);
	*shape = (choir_shape){ .rank = in->rank };
	if (in->rank > 0)
		memcpy(shape->dim, in->shape, (size_t) in->rank * sizeof(int64_t));
	if (!chi_shape_bytes(shape, *dtype, &bytes))
		return chi_frame_fail(f, CHOIR_INVALID,
				"dlpack: shape %s has a negative dimension or too many elements",
				chi_shape_print(shape, text));
	if (bytes > 0 && !in->data)
		return chi_frame_fail(f, CHOIR_INVALID, "dlpack: data is NULL");
	return CHOIR_OK;
}

// Axes of one element may have any stride.
static bool is_packed(const struct dl_tensor *in)
{
	int64_t step = 1;

	if (!in->strides)
		return true;
	for (int i = in->rank; i-- > 0;) {
		if (in->shape[i] != 1 && in->strides[i] != step)
			return false;
		step *= in->shape[i];
	}
	return true;
}

static void gather(const struct dl_tensor *in, int axis, const char *from, size_t size, char **to)
{
	if (axis == in->rank) {
		memcpy(*to, from, size);
		*to += size;
		return;
	}
	for (int64_t i = 0; i < in->shape[axis]; i++)
		gather(in, axis + 1, from + i * in->strides[axis] * (int64_t) size, size, to);
}

static choir_tensor *import_copy(
		choir_frame *f, const struct dl_tensor *in, choir_dtype dtype, const choir_shape *shape)
{
	const int64_t elements = choir_shape_elements(shape);
	if (elements == 0)
		return chi_tensor_new(f, dtype, shape);
	const char *data = (const char *) in->data + in->byte_offset;
	if (is_packed(in) &&
			((uintptr_t) data % chi_dtype_size(dtype) == 0 || !f->device->host_memory))
		return choir_constant(f, dtype, *shape, data);
	char *packed = chi_alloc((size_t) elements * chi_dtype_size(dtype));
	if (!packed)
		return chi_frame_record_null(f);
	if (is_packed(in)) {
		memcpy(packed, data, (size_t) elements * chi_dtype_size(dtype));
	} else {
		char *to = packed;
		gather(in, 0, data, chi_dtype_size(dtype), &to);
	}
	choir_tensor *t = choir_constant(f, dtype, *shape, packed);
	chi_free(packed);
	return t;
}

// Passes owner to the tensor's buffer, unless it fails.
static choir_tensor *import_shared(
		choir_frame *f, imported *owner, choir_dtype dtype, const choir_shape *shape)
{
	const struct dl_tensor *in = &owner->managed->tensor;
	void *data = (char *) in->data + in->byte_offset;
	size_t bytes = 0;

	chi_shape_bytes(shape, dtype, &bytes);
	chi_buffer *b = chi_buffer_wrap(f->device, data, bytes, release, owner);
	if (!b) {
		delete_managed(owner->managed);
		chi_free(owner);
		chi_frame_record_error(f);
		return NULL;
	}
	choir_tensor *t = chi_tensor_on(f, b, data, dtype, shape);
	chi_buffer_release(b);
	return t;
}

choir_tensor *choir_from_dlpack(choir_frame *f, struct DLManagedTensorVersioned *managed)
{
	choir_dtype dtype = CHOIR_F32;
	choir_shape shape = CHOIR_SCALAR;
	choir_tensor *t = NULL;

	if (!f || !managed) {
		delete_managed(managed);
		return chi_frame_null_argument(f, f ? "dlpack: managed tensor" : "dlpack: frame");
	}
	if (!hold)
		chi_dlpack_run_deleters();
	if (read_header(f, managed, &dtype, &shape) != CHOIR_OK) {
		delete_managed(managed);
		return NULL;
	}
	const struct dl_tensor *in = &managed->tensor;
	const uintptr_t address = (uintptr_t) in->data + (uintptr_t) in->byte_offset;
	const bool shared = f->device->host_memory && choir_shape_elements(&shape) > 0 &&
			is_packed(in) && address % chi_dtype_size(dtype) == 0;
	imported *owner = shared ? chi_alloc(sizeof(*owner)) : NULL;
	if (owner) {
		*owner = (imported){ .managed = managed, .thread = &hold };
		return import_shared(f, owner, dtype, &shape);
	}
	if (shared)
		chi_frame_record_error(f);
	else
		t = import_copy(f, in, dtype, &shape);
	delete_managed(managed);
	return t;
}

typedef struct {
	struct DLManagedTensorVersioned managed;
	int64_t shape[CHOIR_MAX_RANK], strides[CHOIR_MAX_RANK];
	chi_buffer *buffer;
} exported;

static void delete_exported(struct DLManagedTensorVersioned *managed)
{
	exported *e = (exported *) managed->context;
	chi_buffer_release(e->buffer);
	chi_free(e);
}

// Memory that outlives the frame and does not change: the tensor's, or a copy if borrowed or a
// variable's.
static chi_buffer *lasting(choir_tensor *t, void **data)
{
	*data = t->data;
	if (!t->borrowed && !t->source) {
		chi_buffer_retain(t->buffer);
		return t->buffer;
	}
	chi_buffer *b = chi_buffer_new(chi_tensor_memory_device(t), chi_tensor_bytes(t));
	if (!b)
		return chi_frame_record_null(t->frame);
	*data = b->memory;
	if (chi_tensor_bytes(t) > 0)
		memcpy(b->memory, t->data, chi_tensor_bytes(t));
	return b;
}

static void describe(exported *e, const choir_tensor *t, void *data)
{
	struct dl_tensor *out = &e->managed.tensor;
	uint64_t step = 1; // unsigned: the dimensions of an empty tensor may overflow
	size_t type = 0;

	for (int i = t->shape.rank; i-- > 0;) {
		e->shape[i] = t->shape.dim[i];
		e->strides[i] = (int64_t) step;
		step *= t->shape.dim[i] > 0 ? (uint64_t) t->shape.dim[i] : 1;
	}
	while (types[type].dtype != t->dtype)
		type++;
	*out = (struct dl_tensor){ .data = data,
		.device = { DL_CPU, 0 },
		.rank = t->shape.rank,
		.type = { types[type].code, types[type].bits, 1 },
		.shape = e->shape,
		.strides = e->strides };
	e->managed.version = (struct dl_version){ DL_MAJOR, DL_MINOR };
	e->managed.context = e;
	e->managed.deleter = delete_exported;
	// Other handles and the tape may read this memory.
	e->managed.flags = e->buffer == t->buffer ? DL_READ_ONLY : DL_IS_COPIED;
}

struct DLManagedTensorVersioned *choir_tensor_to_dlpack(choir_tensor *t)
{
	void *data;

	if (!t || !choir_tensor_data(t))
		return NULL;
	exported *e = chi_alloc(sizeof(*e));
	if (!e)
		return chi_frame_record_null(t->frame);
	e->buffer = lasting(t, &data);
	if (!e->buffer) {
		chi_free(e);
		return NULL;
	}
	describe(e, t, data);
	return &e->managed;
}
