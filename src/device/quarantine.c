// The stream owns a queued copy's staging buffer. A wait frees only buffers up to its event, since
// threads wait for different events.
#include "base/alloc.h"
#include "base/lock.h"
#include "base/size.h"
#include "base/status.h"
#include "device/quarantine.h"

enum { MAX_PINNED = 16 };

static chi_mutex quarantine_mutex = CHI_MUTEX_STATIC(CHI_RANK_STREAM, "quarantine");

static chi_staging_buffer *take_pinned(choir_device *d, size_t bytes)
{
	chi_mutex_lock(&quarantine_mutex);
	chi_staging_buffer **at = &d->pinned, *found;
	while (*at != NULL && (*at)->bytes != bytes)
		at = &(*at)->next;
	found = *at;
	if (found != NULL) {
		*at = found->next;
		d->pinned_buffers--;
	}
	chi_mutex_unlock(&quarantine_mutex);
	return found;
}

// Powers of two, so that copies of similar sizes share buffers.
static chi_staging_buffer *new_pinned(choir_device *d, size_t bytes)
{
	size_t all = 4096;
	while (all < bytes)
		all *= 2;
	all += offsetof(chi_staging_buffer, memory);
	chi_staging_buffer *staging = take_pinned(d, all);
	if (staging == NULL)
		staging = chi_device_host_allocate(d, all);
	if (staging != NULL)
		*staging = (chi_staging_buffer){ .pinned = d, .bytes = all };
	return staging;
}

chi_staging_buffer *chi_staging_buffer_new(choir_device *d, size_t bytes)
{
	size_t all;
	if (!chi_size_add(offsetof(chi_staging_buffer, memory), bytes, &all))
		return chi_fail_null(
				CHOIR_NO_MEMORY, "out of memory: a staging buffer of %zu bytes", bytes);
	chi_staging_buffer *staging =
			bytes > 0 && bytes <= CHI_STAGING_BYTES ? new_pinned(d, bytes) : NULL;
	if (staging == NULL && (staging = chi_alloc_aligned(all)) != NULL)
		*staging = (chi_staging_buffer){ .pinned = NULL };
	return staging;
}

void chi_staging_buffer_free(chi_staging_buffer *staging)
{
	if (staging == NULL || staging->pinned == NULL) {
		chi_free(staging);
		return;
	}
	choir_device *d = staging->pinned;
	chi_mutex_lock(&quarantine_mutex);
	const bool keeps = d->pinned_buffers < MAX_PINNED;
	if (keeps) {
		staging->next = d->pinned;
		d->pinned = staging;
		d->pinned_buffers++;
	}
	chi_mutex_unlock(&quarantine_mutex);
	if (!keeps)
		chi_device_host_release(d, staging, staging->bytes);
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
