// Fuzzes the reader of trace files: a damaged file gives no spans, and spans have valid fields.
#include "fuzz.h"

#include "choir/trace.h"

#include <math.h>

typedef struct {
	size_t n;
	double sum;
	size_t length;
} spans;

static void add(const choir_trace_span *span, void *user)
{
	spans *s = user;
	demand(span->begin >= 0 && span->end >= span->begin && isfinite(span->end), "a wrong time");
	demand((unsigned) span->category < CHOIR_TRACE_CATEGORIES, "a wrong category");
	demand(span->worker >= 0 && span->depth >= 0, "a wrong place");
	s->n++;
	s->sum += span->end - span->begin;
	s->length += strlen(span->name) + strlen(span->track_name) +
			(span->last == NULL ? 0 : strlen(span->last));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	spans first = { .n = 0 };
	fuzz_largest = (64 << 10) + 100 * size;
	const choir_status status = choir_trace_read(fuzz_file(data, size), add, &first);
	fuzz_largest = 0;
	demand(status == CHOIR_OK || (status == CHOIR_CORRUPT && first.n == 0),
			"spans of a damaged file");
	return 0;
}
