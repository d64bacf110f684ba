// Memory that a stream may still use after its caller stopped waiting. The stream owns the staging
// buffer of a queued copy, and the device's pool reuses no memory. A wait frees only the buffers
// up to its event, since threads wait for different events.
#include "base/alloc.h"
#include "base/lock.h"
#include "base/size.h"
#include "device/quarantine.h"

#include <stddef.h>

static chi_mutex quarantine_mutex = CHI_MUTEX_STATIC(CHI_RANK_STREAM, "quarantine");

chi_staging_buffer *chi_staging_buffer_new(size_t bytes)
{
	size_t all;
	if (!chi_size_add(offsetof(chi_staging_buffer, memory), bytes, &all)) {
		choir_fail(CHOIR_NO_MEMORY, "out of memory: a staging buffer of %zu bytes", bytes);
		return NULL;
	}
	chi_staging_buffer *staging = chi_alloc_aligned(all);
	if (staging != NULL)
		staging->abandoned = false;
	return staging;
}

void chi_staging_buffer_free(chi_staging_buffer *staging)
{
	chi_free(staging);
}

void chi_quarantine_keep(chi_stream *s, chi_staging_buffer *staging, uint64_t event)
{
	choir_device *d = s->device;
	staging->state = s->state;
	staging->event = event;
	chi_mutex_lock(&quarantine_mutex);
	chi_atomic32_add(&d->staging_buffers, 1);
	staging->next = d->quarantine;
	d->quarantine = staging;
	chi_mutex_unlock(&quarantine_mutex);
}

void chi_quarantine_abandon(chi_stream *s, chi_staging_buffer *staging, uint64_t event)
{
	chi_atomic32_add(&s->device->abandoned_waits, 1);
	if (staging == NULL)
		return;
	staging->abandoned = true;
	chi_quarantine_keep(s, staging, event);
}

void chi_quarantine_release(chi_stream *s, uint64_t event)
{
	choir_device *d = s->device;
	chi_staging_buffer *over = NULL;
	if (chi_atomic32_load(&d->staging_buffers) == 0)
		return;
	chi_mutex_lock(&quarantine_mutex);
	for (chi_staging_buffer **at = &d->quarantine; *at != NULL;) {
		chi_staging_buffer *staging = *at;
		if (staging->state != s->state || staging->event > event) {
			at = &staging->next;
			continue;
		}
		*at = staging->next;
		staging->next = over;
		over = staging;
		chi_atomic32_add(&d->staging_buffers, UINT32_MAX);
		if (staging->abandoned)
			chi_atomic32_add(&d->abandoned_waits, UINT32_MAX);
	}
	chi_mutex_unlock(&quarantine_mutex);
	for (chi_staging_buffer *next; over != NULL; over = next) {
		next = over->next;
		chi_staging_buffer_free(over);
	}
}
