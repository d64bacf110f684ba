// What streams may still use though nobody waits for them any more. Who waits for a stream and
// gives up takes its memory away, but what is queued there goes on some time. So host memory that
// a queued copy reads or writes is a stage, which stays with the stream then; and while a device
// has such a stream it is late, and pools keep what they get back of its memory to themselves.
// Both end when somebody waits for the stream with success, or when it is closed.
#include "base/alloc.h"
#include "base/lock.h"
#include "base/size.h"
#include "device/internal.h"

#include <stddef.h>

static chi_mutex late_mutex = CHI_MUTEX_STATIC(CHI_RANK_STREAM, "late streams");

chi_stage *chi_stage_new(size_t bytes)
{
	size_t all;
	if (!chi_size_add(offsetof(chi_stage, memory), bytes, &all)) {
		choir_fail(CHOIR_NO_MEMORY, "a stage of %zu bytes", bytes);
		return NULL;
	}
	return chi_alloc_aligned(all);
}

void chi_stage_free(chi_stage *stage)
{
	chi_free(stage);
}

void chi_stream_leave(chi_stream *s, chi_stage *stage)
{
	choir_device *d = s->device;
	chi_mutex_lock(&late_mutex);
	chi_atomic32_add(&d->late, 1);
	if (stage != NULL) {
		stage->state = s->state;
		stage->next = d->left;
		d->left = stage;
	}
	chi_mutex_unlock(&late_mutex);
}

void chi_stream_caught_up(chi_stream *s)
{
	choir_device *d = s->device;
	chi_stage *over = NULL;
	if (!chi_device_is_late(d))
		return;
	chi_mutex_lock(&late_mutex);
	for (chi_stage **at = &d->left; *at != NULL;) {
		chi_stage *stage = *at;
		if (stage->state != s->state) {
			at = &stage->next;
			continue;
		}
		*at = stage->next;
		stage->next = over;
		over = stage;
		chi_atomic32_add(&d->late, UINT32_MAX);
	}
	chi_mutex_unlock(&late_mutex);
	for (chi_stage *next; over != NULL; over = next) {
		next = over->next;
		chi_stage_free(over);
	}
}
