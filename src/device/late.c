// Memory that a stream may still use after its caller has returned. A thread that gives up waiting
// for a stream takes its own memory away, but the queued work goes on for some time. Host memory
// that a queued copy reads or writes is therefore a stage, which stays with the stream. A device
// with such a stream is late: its pool does not hand out what it gets back. Each stage has the
// mark of the stream that lies after its last use. A wait that succeeds for a mark frees stages up
// to that mark only, since several threads may wait for one stream at different marks.
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
	chi_stage *stage = chi_alloc_aligned(all);
	if (stage != NULL)
		stage->late = false;
	return stage;
}

void chi_stage_free(chi_stage *stage)
{
	chi_free(stage);
}

void chi_stream_keep(chi_stream *s, chi_stage *stage, uint64_t mark)
{
	choir_device *d = s->device;
	stage->state = s->state;
	stage->mark = mark;
	chi_mutex_lock(&late_mutex);
	chi_atomic32_add(&d->staged, 1);
	stage->next = d->left;
	d->left = stage;
	chi_mutex_unlock(&late_mutex);
}

void chi_stream_leave(chi_stream *s, chi_stage *stage, uint64_t mark)
{
	chi_atomic32_add(&s->device->late, 1);
	if (stage == NULL)
		return;
	stage->late = true;
	chi_stream_keep(s, stage, mark);
}

void chi_stream_caught_up(chi_stream *s, uint64_t mark)
{
	choir_device *d = s->device;
	chi_stage *over = NULL;
	if (chi_atomic32_load(&d->staged) == 0)
		return;
	chi_mutex_lock(&late_mutex);
	for (chi_stage **at = &d->left; *at != NULL;) {
		chi_stage *stage = *at;
		if (stage->state != s->state || stage->mark > mark) {
			at = &stage->next;
			continue;
		}
		*at = stage->next;
		stage->next = over;
		over = stage;
		chi_atomic32_add(&d->staged, UINT32_MAX);
		if (stage->late)
			chi_atomic32_add(&d->late, UINT32_MAX);
	}
	chi_mutex_unlock(&late_mutex);
	for (chi_stage *next; over != NULL; over = next) {
		next = over->next;
		chi_stage_free(over);
	}
}
