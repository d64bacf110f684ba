// One stream for each device that a suite has used, and plain memory of devices.
#include "collective/suite_memory.h"

#include "test.h"

#include <string.h>

static chi_stream *streams[8];

chi_stream *suite_stream_of(choir_device *d)
{
	for (int i = 0;; i++) {
		if (streams[i] == NULL)
			streams[i] = chi_stream_new(d);
		if (streams[i] == NULL || streams[i]->device == d)
			return streams[i];
	}
}

void suite_forget_streams(void)
{
	for (int i = 0; streams[i] != NULL; i++)
		chi_stream_free(streams[i]);
	memset(streams, 0, sizeof streams);
}

static void *state_of(choir_device *d)
{
	const chi_stream *s = suite_stream_of(d);
	return s == NULL ? NULL : s->state;
}

static void *allocate(choir_device *d, size_t bytes)
{
	void *memory;
	return chi_device_allocate(d, bytes, &memory) == CHOIR_OK ? memory : NULL;
}

static choir_status copy(choir_device *d, void *to, const void *from, size_t bytes)
{
	CHOIR_TRY(chi_stream_copy(suite_stream_of(d), to, from, bytes));
	return chi_stream_wait(suite_stream_of(d));
}

const choir_suite_memory suite_memory = { sizeof suite_memory, state_of, allocate,
	chi_device_release, copy };

void suite_note(const char *check, choir_status result, const char *text, void *user)
{
	if (result != CHOIR_OK)
		print_error("%s: %s\n", check, text);
	++*(int *) user;
}
