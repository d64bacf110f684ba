// One thread makes a copy while others wait. It overwrites the old copy, whose readers are stale.
// An update rounds each chunk that it has written, in the cache. So only a training's first step
// makes copies here.
#include "value/narrow_copy.h"

#include "op/op.h"

static chi_copy *copy_of(const chi_source *source)
{
	return (chi_copy *) (uintptr_t) source;
}

// Not for parts, unshared memory, and variables of other workers.
static bool is_all(const choir_tensor *t, const chi_copy *c)
{
	const choir_variable *v = c->source.owner;
	return t->dtype == CHOIR_F32 && v->dtype == CHOIR_F32 && !c->source.copied &&
			t->data == c->buffer->memory && choir_shape_elements(&t->shape) == v->elements &&
			v->elements > 0 && !t->frame->queued && chi_device_shares(c->device, t->frame->device);
}

// Needs the lock.
static choir_status make(chi_copy *c, const choir_tensor *t, choir_dtype dtype, int which)
{
	const choir_variable *v = c->source.owner;
	const uint64_t made = t->version + 1;
	c->narrow[which].asked = true;
	if (c->narrow[which].version == made)
		return CHOIR_OK;
	if (c->narrow[which].buffer == NULL)
		c->narrow[which].buffer =
				chi_buffer_new(c->device, (size_t) v->elements * chi_dtype_size(dtype));
	CHOIR_TRY(chi_made(c->narrow[which].buffer));
	const choir_buffer in = { t->data, CHOIR_F32, t->shape };
	choir_buffer out = { c->narrow[which].buffer->memory, dtype, t->shape };
	CHOIR_TRY(chi_kernel_run(t->frame->stream, "cast", 1, &in, &out, NULL));
	c->narrow[which].version = made;
	return CHOIR_OK;
}

static choir_tensor *narrow(const choir_tensor *t, choir_dtype dtype)
{
	chi_copy *c = copy_of(t->source);
	const int which = dtype == CHOIR_BF16;
	if (!is_all(t, c))
		return NULL;
	chi_mutex_lock(&c->narrow_lock);
	const choir_status status = make(c, t, dtype, which);
	chi_mutex_unlock(&c->narrow_lock);
	if (status != CHOIR_OK) {
		chi_error_prefix("variable \"%s\"", c->source.name);
		return chi_frame_record_null(t->frame);
	}
	chi_buffer *buffer = c->narrow[which].buffer;
	choir_tensor *out = chi_tensor_on(t->frame, buffer, buffer->memory, dtype, &t->shape);
	if (out != NULL) {
		out->source = t->source;
		out->version = t->version;
	}
	return out;
}

void chi_narrow_copy_begin(chi_copy *c)
{
	const uint64_t made = chi_atomic64_load(&c->source.version) + 1;
	for (int i = 0; i < 2; i++)
		c->narrow[i].followed = c->narrow[i].asked && c->narrow[i].version == made;
	chi_atomic64_store(&c->followed, 0);
}

choir_status chi_narrow_copy_follow(chi_copy *c, chi_stream *stream, int64_t first, int64_t count)
{
	const choir_shape shape = { 1, { count } };
	if (!c->narrow[0].followed && !c->narrow[1].followed)
		return CHOIR_OK;
	for (int i = 0; i < 2; i++) {
		if (!c->narrow[i].followed)
			continue;
		const choir_buffer in = { (float *) c->buffer->memory + first, CHOIR_F32, shape };
		choir_buffer out = { (uint16_t *) c->narrow[i].buffer->memory + first,
			i == 0 ? CHOIR_F16 : CHOIR_BF16, shape };
		CHOIR_TRY(chi_kernel_run(stream, "cast", 1, &in, &out, NULL));
	}
	chi_atomic64_add(&c->followed, (uint64_t) count);
	return CHOIR_OK;
}

void chi_narrow_copy_end(chi_copy *c)
{
	const choir_variable *v = c->source.owner;
	const uint64_t next = chi_atomic64_load(&c->source.version) + 1;
	const bool all = chi_atomic64_load(&c->followed) == (uint64_t) v->elements;
	for (int i = 0; i < 2; i++) {
		if (c->narrow[i].followed && all)
			c->narrow[i].version = next + 1;
		c->narrow[i].followed = c->narrow[i].asked = false;
	}
}

void chi_narrow_copy_open(chi_copy *c)
{
	chi_mutex_init(&c->narrow_lock, CHI_RANK_VALUE, "narrow copy");
	c->source.narrow = narrow;
}

void chi_narrow_copy_close(chi_copy *c)
{
	if (c->source.narrow == NULL)
		return;
	for (int i = 0; i < 2; i++)
		chi_buffer_release(c->narrow[i].buffer);
	chi_mutex_destroy(&c->narrow_lock);
}
