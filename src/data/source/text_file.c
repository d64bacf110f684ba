// Bytes, windows for next-byte prediction, or lines. Bytes and windows have random access; a
// compressed file is unpacked at its first use. Lines are a stream with seek points.
#include "data/dataset.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "base/text.h"
#include "data/seek_index.h"
#include "data/source/gzip.h"
#include "data/source/reader.h"

// Unpacked: up to MAX_TIMES the size, within LITTLE and MAX_UNPACKED.
enum { MAX_UNPACKED = 1 << 30, MAX_TIMES = 32, LITTLE = 64 << 20, FIRST_CAPACITY = 64 << 10 };

typedef struct {
	choir_dataset base;
	chi_reader *reader;
	int64_t context; // 0: bytes
	int64_t stride;
	char *memory;
	char *scratch;
	size_t capacity;
} text;

static choir_status unpack(chi_reader *r, char **memory, size_t *bytes)
{
	const uint64_t file = chi_reader_size(r) / CHI_GZIP_RATIO;
	const uint64_t times = file > LITTLE / MAX_TIMES ? file * MAX_TIMES : LITTLE;
	const size_t max = times < MAX_UNPACKED ? (size_t) times : MAX_UNPACKED;
	size_t capacity = 0, got, want;
	void *data = NULL;
	*bytes = 0;
	CHOIR_TRY(chi_reader_rewind(r));
	do {
		choir_status status = chi_grow(&data, &capacity, *bytes + FIRST_CAPACITY, 1)
				? CHOIR_OK
				: CHOIR_NO_MEMORY;
		want = capacity - *bytes;
		if (status == CHOIR_OK)
			status = chi_reader_read(r, (char *) data + *bytes, want, &got);
		if (status == CHOIR_OK && (*bytes += got) > max)
			status = choir_fail(CHOIR_UNSUPPORTED,
					"%s: more than %zu bytes, too many to unpack in memory; unpack the file",
					chi_reader_name(r), max);
		if (status != CHOIR_OK) {
			chi_free(data);
			return status;
		}
	} while (got == want);
	*memory = data;
	return CHOIR_OK;
}

static choir_status bytes_at(text *t, int64_t first, void *to, size_t bytes)
{
	if (t->memory) {
		memcpy(to, t->memory + first, bytes);
		return CHOIR_OK;
	}
	size_t got;
	CHOIR_TRY(chi_reader_rewind(t->reader));
	CHOIR_TRY(chi_reader_read(t->reader, NULL, (size_t) first, &got));
	CHOIR_TRY(chi_reader_read(t->reader, to, bytes, &got));
	return got == bytes ? CHOIR_OK
						: choir_fail(CHOIR_CORRUPT, "%s: the file has become shorter",
								  chi_reader_name(t->reader));
}

static choir_status windows_range(
		choir_dataset *d, void *const column[], int64_t first, int64_t count)
{
	text *t = (text *) d;
	const size_t context = (size_t) t->context;
	const size_t max = t->capacity / (size_t) t->stride;
	unsigned char *input = column[0], *target = column[1];
	for (int64_t done = 0; done < count;) {
		const int64_t left = count - done;
		const int64_t n = max < 1 ? 1 : left < (int64_t) max ? left : (int64_t) max;
		const size_t bytes = (size_t) ((n - 1) * t->stride) + context + 1;
		CHOIR_TRY(bytes_at(t, (first + done) * t->stride, t->scratch, bytes));
		for (int64_t i = 0; i < n; i++) {
			const char *window = t->scratch + i * t->stride;
			if (input)
				memcpy(input + (size_t) (done + i) * context, window, context);
			if (target)
				memcpy(target + (size_t) (done + i) * context, window + 1, context);
		}
		done += n;
	}
	return CHOIR_OK;
}

static choir_status bytes_range(
		choir_dataset *d, void *const column[], int64_t first, int64_t count)
{
	return column[0] ? bytes_at((text *) d, first, column[0], (size_t) count) : CHOIR_OK;
}

static void text_free(choir_dataset *d)
{
	text *t = (text *) d;
	chi_reader_close(t->reader);
	chi_free(t->memory);
	chi_free(t->scratch);
}

static uint64_t windows_signature(const choir_dataset *d)
{
	return (uint64_t) ((const text *) d)->stride;
}

static const char *text_path(const choir_dataset *d, int64_t i)
{
	(void) i;
	return chi_reader_path(((const text *) d)->reader);
}

static const chi_stage bytes_stage = {
	.name = "text bytes dataset",
	.range = bytes_range,
	.free = text_free,
	.files = CHI_FILES_HERE,
	.path = text_path,
};

static const chi_stage windows_stage = {
	.name = "text windows dataset",
	.range = windows_range,
	.free = text_free,
	.signature = windows_signature,
	.files = CHI_FILES_HERE,
	.path = text_path,
};

static bool given(const char *path, const char *what)
{
	if (!path)
		choir_fail(CHOIR_INVALID, "%s: the path is NULL", what);
	return path != NULL;
}

static choir_status open_text(const char *path, text *t, int64_t *size)
{
	t->reader = chi_reader_open(path);
	CHOIR_TRY(chi_made(t->reader));
	size_t bytes = 0;
	if (chi_reader_compressed(t->reader))
		CHOIR_TRY(unpack(t->reader, &t->memory, &bytes));
	*size = t->memory ? (int64_t) bytes : (int64_t) chi_reader_size(t->reader);
	return CHOIR_OK;
}

// A failure closes t.
static text *take_over(
		text *t, const chi_stage *stage, size_t n, const choir_column columns[], int64_t examples)
{
	text *made = chi_source_new(stage, sizeof *made, n, columns, examples);
	t->base.stage = stage;
	if (!made) {
		text_free(&t->base);
		return NULL;
	}
	t->base = made->base;
	*made = *t;
	made->base.random = true;
	made->base.files = 1;
	return made;
}

choir_dataset *choir_text_bytes_dataset_new(const char *path, const char *column)
{
	text t = { .context = 0 };
	int64_t size;
	if (!given(path, "text bytes dataset"))
		return NULL;
	if (open_text(path, &t, &size) != CHOIR_OK)
		return (text_free(&t.base), NULL);
	const choir_column c = { .name = column, .dtype = CHOIR_U8 };
	text *made = take_over(&t, &bytes_stage, 1, &c, size);
	return made ? &made->base : NULL;
}

static choir_status check_windows(const char *path, int64_t context, int64_t stride)
{
	size_t sum;
	if (!given(path, "text windows dataset"))
		return CHOIR_INVALID;
	if (context < 1 || stride < 0 || !chi_size_add((size_t) context, (size_t) stride, &sum) ||
			!chi_size_add(sum, FIRST_CAPACITY + 1, &sum) || sum > MAX_UNPACKED)
		return choir_fail(CHOIR_INVALID,
				"text windows dataset: context %lld and stride %lld given; context at least 1, "
				"stride at least 0 and both together less than %d needed",
				(long long) context, (long long) stride, MAX_UNPACKED);
	return CHOIR_OK;
}

choir_dataset *choir_text_windows_dataset_new(const char *path, int64_t context, int64_t stride)
{
	text t = { .context = context, .stride = stride ? stride : context };
	int64_t size;
	if (check_windows(path, context, stride) != CHOIR_OK)
		return NULL;
	if (open_text(path, &t, &size) != CHOIR_OK)
		return (text_free(&t.base), NULL);
	t.capacity = FIRST_CAPACITY;
	t.scratch = chi_alloc_aligned((size_t) (context + t.stride) + FIRST_CAPACITY + 1);
	if (!t.scratch)
		return (text_free(&t.base), NULL);
	const choir_column c[] = { { .name = "input", .dtype = CHOIR_U8, .shape = { 1, { context } } },
		{ .name = "target", .dtype = CHOIR_U8, .shape = { 1, { context } } } };
	const int64_t windows = size > context ? (size - context - 1) / t.stride + 1 : 0;
	text *made = take_over(&t, &windows_stage, 2, c, windows);
	return made ? &made->base : NULL;
}

typedef struct {
	choir_dataset base;
	chi_glob paths;
	chi_places places;
	chi_reader *reader;
	char *buffer;
	size_t capacity, length, at;
	uint64_t offset;
	int64_t row; // next, from 1
	bool ended, skip;
} lines;

static choir_status refill(lines *l)
{
	memmove(l->buffer, l->buffer + l->at, l->length - l->at);
	l->length -= l->at;
	l->offset += l->at;
	l->at = 0;
	size_t need, got;
	CHOIR_TRY(chi_reader_hold(l->reader, l->length, "a line"));
	if (!chi_size_add(l->length, FIRST_CAPACITY, &need) ||
			!chi_grow(&l->buffer, &l->capacity, need, 1))
		return CHOIR_NO_MEMORY;
	const size_t want = l->capacity - l->length;
	CHOIR_TRY(chi_reader_read(l->reader, l->buffer + l->length, want, &got));
	l->length += got;
	l->ended = got < want;
	return CHOIR_OK;
}

static choir_status next_line(lines *l, const char **line, size_t *bytes)
{
	size_t seen = 0;
	const char *end;
	while (!(end = l->length > l->at + seen
					? memchr(l->buffer + l->at + seen, '\n', l->length - l->at - seen)
					: NULL)) {
		seen = l->length - l->at;
		if (l->ended) {
			if (seen == 0)
				return CHOIR_END;
			end = l->buffer + l->length;
			break;
		}
		CHOIR_TRY(refill(l));
	}
	*line = l->buffer + l->at;
	*bytes = (size_t) (end - *line);
	l->at += *bytes + (end < l->buffer + l->length);
	*bytes -= *bytes > 0 && end < l->buffer + l->length && end[-1] == '\r';
	return CHOIR_OK;
}

// Skips or refuses invalid UTF-8.
static choir_status next_text(lines *l, const char **line, size_t *bytes)
{
	for (;;) {
		const choir_status status = next_line(l, line, bytes);
		if (status != CHOIR_OK)
			return status;
		l->row++;
		if (chi_text_is_utf8(*line, *bytes))
			return CHOIR_OK;
		if (!l->skip)
			return choir_fail(CHOIR_CORRUPT, "%s: line %lld, byte %llu: not UTF-8",
					chi_reader_name(l->reader), (long long) l->row - 1,
					(unsigned long long) (l->offset + (uint64_t) (*line - l->buffer)));
		chi_atomic64_add(&l->base.skipped, 1);
	}
}

static choir_status add_place(lines *l)
{
	const chi_seek_point place = { .byte = (int64_t) (l->offset + l->at), .record = l->row };
	return chi_places_add(&l->base, &place);
}

static choir_status lines_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	lines *l = (lines *) d;
	choir_status status = CHOIR_OK;
	const char *line;
	size_t bytes;
	while (status == CHOIR_OK && *got < want &&
			(status = next_text(l, &line, &bytes)) == CHOIR_OK) {
		chi_ragged_value *value = column[0] ? (chi_ragged_value *) column[0] + *got : NULL;
		if (value)
			status = chi_ragged_value_shape(value, CHOIR_U8, &CHOIR_SHAPE((int64_t) bytes));
		if (status != CHOIR_OK)
			break;
		if (value && bytes > 0)
			memcpy(value->data, line, bytes);
		++*got;
		if (chi_places_due(&l->places))
			status = add_place(l);
	}
	return chi_dataset_got(d, status, *got);
}

static choir_status lines_rewind(choir_dataset *d)
{
	lines *l = (lines *) d;
	l->length = l->at = 0;
	l->offset = 0;
	l->row = 1;
	l->ended = false;
	chi_places_begin(&l->places);
	return chi_reader_rewind(l->reader);
}

// Behind a line end, or at the file's end.
static choir_status go_to(lines *l, const chi_seek_point *place)
{
	size_t got;
	l->offset = (uint64_t) place->byte - 1;
	l->row = place->record;
	CHOIR_TRY(chi_reader_read(l->reader, NULL, (size_t) l->offset, &got));
	if (got == l->offset)
		CHOIR_TRY(refill(l));
	l->at = 1;
	if (l->length == 1 || (l->length > 1 && l->buffer[0] == '\n'))
		return CHOIR_OK;
	l->length = l->at = 0;
	return choir_fail(CHOIR_INVALID,
			"%s: no line begins at byte %lld; the position needs the file that it was saved with",
			chi_reader_name(l->reader), (long long) place->byte);
}

static choir_status lines_seek(choir_dataset *d, int64_t elements)
{
	lines *l = (lines *) d;
	chi_seek_point place = { 0 };
	if (chi_places_find(d, elements, &place))
		CHOIR_TRY(go_to(l, &place));
	return chi_dataset_read_over(d, place.elements, elements);
}

static uint64_t lines_signature(const choir_dataset *d)
{
	return ((const lines *) d)->skip;
}

static void lines_free(choir_dataset *d)
{
	lines *l = (lines *) d;
	chi_places_free(&l->places);
	chi_glob_free(&l->paths);
	chi_reader_close(l->reader);
	chi_free(l->buffer);
}

static const chi_stage lines_stage = {
	.name = "text lines dataset",
	.read = lines_read,
	.rewind = lines_rewind,
	.free = lines_free,
	.varies = true,
	.seek = lines_seek,
	.seek_index = chi_places_index,
	.fits = chi_places_fit,
	.signature = lines_signature,
	.files = CHI_FILES_HERE,
	.path = chi_paths_at,
};

choir_dataset *choir_text_lines_dataset_new(
		const char *path, const char *column, choir_bad_record wrong)
{
	const choir_column c = {
		.name = column, .dtype = CHOIR_U8, .shape = { 1, { CHOIR_UNKNOWN } }
	};
	if (!given(path, "text lines dataset"))
		return NULL;
	lines *l = chi_source_new(&lines_stage, sizeof *l, 1, &c, CHOIR_UNKNOWN_CARDINALITY);
	if (!l)
		return NULL;
	chi_places_init(&l->places, &l->base);
	l->base.paths = &l->paths;
	l->row = 1;
	l->skip = wrong == CHOIR_BAD_RECORD_SKIP;
	l->base.files = 1;
	l->reader = chi_glob_add_path(&l->paths, path) == CHOIR_OK ? chi_reader_open(path) : NULL;
	if (l->reader && chi_grow(&l->buffer, &l->capacity, FIRST_CAPACITY, 1))
		return &l->base;
	return chi_dataset_discard(&l->base);
}
