// A trace's spans, kept by the function that gets them.
#include "trace/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

static void keep(const choir_trace_span *span, void *user)
{
	record *r = user;
	assert_true(r->n < RECORD_SPANS);
	kept_span *k = &r->span[r->n++];
	k->shown = *span;
	snprintf(k->name, sizeof k->name, "%s", span->name);
	snprintf(k->track, sizeof k->track, "%s", span->track_name);
	snprintf(k->last, sizeof k->last, "%s", span->last == NULL ? "" : span->last);
}

void record_start(record *r, int64_t spans)
{
	r->n = 0;
	if (choir_trace_start(NULL,
				CHOIR_OPTIONS(choir_trace_options, .spans = spans, .span = keep, .user = r)) !=
			CHOIR_OK)
		fail_msg("%s", choir_error());
}

void record_stop(void)
{
	if (choir_trace_stop() != CHOIR_OK)
		fail_msg("%s", choir_error());
}

const kept_span *record_find(const record *r, int track, const char *name, int ordinal)
{
	for (int i = 0; i < r->n; i++)
		if (r->span[i].shown.track == track && strcmp(r->span[i].name, name) == 0 &&
				ordinal-- == 0)
			return &r->span[i];
	return NULL;
}

int record_count(const record *r, int track, const char *name)
{
	int n = 0;
	while (record_find(r, track, name, n) != NULL)
		n++;
	return n;
}

double record_seconds(const record *r, int track, choir_trace_category category)
{
	double sum = 0;
	for (int i = 0; i < r->n; i++)
		if (r->span[i].shown.track == track && r->span[i].shown.category == category)
			sum += r->span[i].shown.own;
	return sum;
}
