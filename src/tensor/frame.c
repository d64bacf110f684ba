// A frame is emptied after its stream's work is done: its memory returns to a pool.
#include "base/alloc.h"
#include "tensor/tensor.h"

#include <string.h>

choir_frame *choir_frame_new(choir_device *d)
{
	if (!d)
		d = choir_device_find("cpu:0");
	choir_frame *f = d ? chi_alloc(sizeof(*f)) : NULL;
	if (!f)
		return NULL;
	chi_arena_init(&f->arena);
	f->device = d;
	f->queued = !d->table->immediate;
	f->stream = chi_stream_new(d);
	if (!f->stream) {
		chi_free(f);
		return NULL;
	}
	return f;
}

// Failures are ignored, and the thread's last failure stays.
static void settle(choir_frame *f)
{
	if (!f->queued)
		return;
	chi_error before;
	chi_error_save(&before);
	if (chi_stream_wait(f->stream) == CHOIR_TIMEOUT)
		chi_stream_wait(f->stream);
	chi_error_restore(&before);
}

static void drop_since(choir_frame *f, size_t mark)
{
	while (f->tensors && f->tensors->mark >= mark) {
		chi_buffer_release(f->tensors->buffer);
		chi_buffer_release(f->tensors->held);
		chi_buffer_release(f->tensors->slices.buffer);
		f->tensors = f->tensors->next;
	}
	if (f->dropped)
		chi_buffer_release_all(&f->dropped);
}

void chi_frame_empty_waited(choir_frame *f)
{
	f->tape = NULL;
	f->tape_rewind = NULL;
	drop_since(f, 0);
	chi_arena_empty(&f->arena);
	f->emptied++;
	f->failed = false;
	f->failure.status = CHOIR_OK;
}

void choir_frame_clear(choir_frame *f)
{
	if (!f)
		return;
	settle(f);
	chi_frame_empty_waited(f);
}

void choir_frame_free(choir_frame *f)
{
	if (!f)
		return;
	choir_frame_clear(f);
	chi_stream_free(f->stream);
	chi_arena_free(&f->arena);
	chi_free(f);
}

size_t choir_frame_mark(choir_frame *f)
{
	return f ? chi_arena_mark(&f->arena) : 0;
}

void choir_frame_rewind(choir_frame *f, size_t mark)
{
	if (!f || mark >= chi_arena_mark(&f->arena))
		return;
	settle(f);
	if (f->tape)
		f->tape_rewind(f->tape, mark);
	drop_since(f, mark);
	chi_arena_rewind(&f->arena, mark);
}

choir_status choir_frame_status(const choir_frame *f)
{
	return f && f->failed ? f->failure.status : CHOIR_OK;
}

bool choir_frame_is_training(const choir_frame *f)
{
	return f && f->tape;
}

static void add_prefix(const choir_frame *f, chi_error *e)
{
	const size_t length = strlen(f->prefix);
	if (length == 0 || strncmp(e->text, f->prefix, length) == 0)
		return;
	const size_t capacity = sizeof(e->text) - length - 1;
	size_t kept = strlen(e->text);
	kept = kept < capacity ? kept : capacity;
	memmove(e->text + length, e->text, kept);
	memcpy(e->text, f->prefix, length);
	e->text[length + kept] = '\0';
	chi_error_restore(e);
}

choir_status chi_frame_record_error(choir_frame *f)
{
	if (choir_error_status() == CHOIR_OK)
		choir_fail(CHOIR_INTERNAL, "a function failed without a reason");
	if (!f)
		return choir_error_status();
	chi_error e;
	chi_error_save(&e);
	add_prefix(f, &e);
	if (!f->failed) {
		f->failure = e;
		f->failed = true;
	}
	return e.status;
}

void *chi_frame_record_null(choir_frame *f)
{
	chi_frame_record_error(f);
	return NULL;
}

choir_status chi_frame_fail(choir_frame *f, choir_status status, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	chi_fail_v(status, fmt, args);
	va_end(args);
	return chi_frame_record_error(f);
}

choir_tensor *chi_frame_fail_null(choir_frame *f, choir_status status, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	chi_fail_v(status, fmt, args);
	va_end(args);
	return chi_frame_record_null(f);
}

choir_status chi_frame_status(choir_frame *f)
{
	if (f && f->failed)
		return chi_error_restore(&f->failure);
	if (choir_error_status() == CHOIR_OK)
		choir_fail(CHOIR_INVALID, "NULL where a tensor or a frame is needed");
	return chi_frame_record_error(f);
}

choir_tensor *chi_frame_null_argument(choir_frame *f, const char *subject)
{
	if (f && f->failed)
		return NULL;
	if (choir_error_status() == CHOIR_OK)
		choir_fail(CHOIR_INVALID, "%s: NULL where something is needed", subject);
	return chi_frame_record_null(f);
}

chi_buffer *chi_frame_buffer(choir_frame *f, size_t bytes)
{
	for (chi_buffer **link = &f->dropped; *link; link = &(*link)->next) {
		chi_buffer *b = *link;
		if (chi_buffer_fits(b, bytes)) {
			*link = b->next;
			b->next = NULL;
			return b;
		}
	}
	chi_buffer *b = chi_buffer_new(f->device, bytes);
	if (b || !f->dropped || choir_error_status() != CHOIR_NO_MEMORY)
		return b;
	// A full device: after a wait the pool may join what was dropped.
	if (chi_stream_wait(f->stream) != CHOIR_OK)
		return NULL;
	chi_buffer_release_all(&f->dropped);
	b = chi_buffer_new(f->device, bytes);
	if (b)
		chi_error_clear();
	return b;
}

void chi_frame_give_back(choir_frame *f, chi_buffer *b)
{
	if (!f->queued) {
		chi_buffer_release(b);
		return;
	}
	chi_buffer_list_add(&f->dropped, b);
}

choir_replica *choir_frame_replica(const choir_frame *f)
{
	return f == NULL || f->context_kind != CHI_IN_REPLICA ? NULL : f->context;
}
