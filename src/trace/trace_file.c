// Names stay in the file's bytes, where the JSON reader decodes them. Spans are kept until the
// end, where tracks are named.
#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/size.h"
#include "trace/chrome.h"

#include <math.h>
#include <string.h>

enum { MAX_WORKERS = 1 << 20 };

typedef struct {
	int64_t pid, tid;
	const char *name;
} name;

typedef struct {
	const char *path;
	char *data;
	chi_json json;
	choir_trace_span *span;
	size_t n, capacity;
	name *names;
	size_t named, names_capacity;
	double started;
	uint64_t lost;
} trace_file;

typedef struct {
	const char *ph, *cat, *name, *given_name, *last;
	double pid, tid, ts, dur, own, depth, started, lost;
} fields;

static void close_file(trace_file *f)
{
	chi_free(f->data);
	chi_free(f->span);
	chi_free(f->names);
}

static choir_status damaged(const trace_file *f, const char *what)
{
	return choir_fail(CHOIR_CORRUPT, "%s: byte %zu: %s; needs a trace that Choir has written",
			f->path, f->json.at, what);
}

static choir_status wrong_token(const trace_file *f, chi_json_token token)
{
	return damaged(f, token == CHI_JSON_WRONG ? f->json.error : "another value than expected");
}

static choir_status skip(trace_file *f, chi_json_token token)
{
	int depth = 0;
	for (;; token = chi_json_next(&f->json)) {
		if (token == CHI_JSON_WRONG || token == CHI_JSON_END)
			return wrong_token(f, token);
		depth += token == CHI_JSON_OBJECT || token == CHI_JSON_ARRAY;
		depth -= token == CHI_JSON_OBJECT_END || token == CHI_JSON_ARRAY_END;
		if (depth == 0)
			return CHOIR_OK;
		if (depth < 0)
			return damaged(f, "another value than expected");
	}
}

// Both NULL: the value is skipped.
static void find_field(
		fields *e, const char *key, bool inside, const char ***text, double **number)
{
	const struct {
		const char *key;
		bool inside;
		const char **text;
		double *number;
	} known[] = { { "ph", false, &e->ph, NULL }, { "cat", false, &e->cat, NULL },
		{ "name", false, &e->name, NULL }, { "name", true, &e->given_name, NULL },
		{ "last", true, &e->last, NULL }, { "pid", false, NULL, &e->pid },
		{ "tid", false, NULL, &e->tid }, { "ts", false, NULL, &e->ts },
		{ "dur", false, NULL, &e->dur }, { "own", true, NULL, &e->own },
		{ "depth", true, NULL, &e->depth }, { "started", false, NULL, &e->started },
		{ "lost_spans", false, NULL, &e->lost } };
	*text = NULL;
	*number = NULL;
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (inside == known[i].inside && strcmp(key, known[i].key) == 0) {
			*text = known[i].text;
			*number = known[i].number;
		}
}

static choir_status read_value(trace_file *f, const char **text, double *number)
{
	const chi_json_token token = chi_json_next(&f->json);
	char digits[40];
	if (text != NULL && token == CHI_JSON_STRING) {
		*text = f->json.text;
		return CHOIR_OK;
	}
	if (number != NULL && token == CHI_JSON_NUMBER && f->json.length < sizeof digits) {
		memcpy(digits, f->json.text, f->json.length);
		digits[f->json.length] = '\0';
		return chi_parse_double(digits, number) ? CHOIR_OK : damaged(f, "a number is too large");
	}
	return text != NULL || number != NULL ? wrong_token(f, token) : skip(f, token);
}

// Its beginning has been read. inside: an event's arguments.
static choir_status read_fields(trace_file *f, fields *e, bool inside)
{
	const char **text;
	double *number;
	chi_json_token token;
	while ((token = chi_json_next(&f->json)) == CHI_JSON_KEY) {
		if (!inside && strcmp(f->json.text, "args") == 0) {
			token = chi_json_next(&f->json);
			if (token != CHI_JSON_OBJECT)
				return wrong_token(f, token);
			CHOIR_TRY(read_fields(f, e, true));
			continue;
		}
		find_field(e, f->json.text, inside, &text, &number);
		CHOIR_TRY(read_value(f, text, number));
	}
	return token == CHI_JSON_OBJECT_END ? CHOIR_OK : wrong_token(f, token);
}

static bool is_whole(double x, double max)
{
	return x >= 0 && x <= max && x == floor(x);
}

static choir_status add_span(trace_file *f, const fields *e)
{
	int track;
	const int category = e->cat == NULL ? CHOIR_NONE : chi_chrome_category(e->cat);
	if (category == CHOIR_NONE || e->name == NULL || !is_whole(e->pid, MAX_WORKERS) ||
			e->pid < 1 || !is_whole(e->tid, INT32_MAX) ||
			!chi_chrome_track_of((int64_t) e->tid, &track) || !(e->ts >= 0) || !(e->dur >= 0) ||
			!is_whole(e->depth, CHI_SPAN_DEPTH))
		return damaged(f, "a span without its fields");
	if (!chi_grow(&f->span, &f->capacity, f->n + 1, sizeof *f->span))
		return CHOIR_NO_MEMORY;
	f->span[f->n++] = (choir_trace_span){
		.name = e->name,
		.category = (choir_trace_category) category,
		.track = track,
		.begin = 1e-6 * e->ts,
		.end = 1e-6 * (e->ts + e->dur),
		.own = 1e-6 * e->own,
		.depth = (int) e->depth,
		.worker = (int) e->pid - 1,
		.last = e->last,
	};
	return CHOIR_OK;
}

static choir_status add_event(trace_file *f, const fields *e)
{
	if (e->ph == NULL)
		return damaged(f, "an event without a kind");
	if (strcmp(e->ph, "X") == 0)
		return add_span(f, e);
	if (strcmp(e->ph, "M") != 0 || e->name == NULL || strcmp(e->name, "thread_name") != 0)
		return CHOIR_OK;
	if (e->given_name == NULL || !is_whole(e->pid, MAX_WORKERS) || !is_whole(e->tid, INT32_MAX))
		return damaged(f, "a track without a name");
	if (!chi_grow(&f->names, &f->names_capacity, f->named + 1, sizeof *f->names))
		return CHOIR_NO_MEMORY;
	f->names[f->named++] =
			(name){ .pid = (int64_t) e->pid, .tid = (int64_t) e->tid, .name = e->given_name };
	return CHOIR_OK;
}

static choir_status read_list(trace_file *f)
{
	chi_json_token token = chi_json_next(&f->json);
	if (token != CHI_JSON_ARRAY)
		return wrong_token(f, token);
	while ((token = chi_json_next(&f->json)) == CHI_JSON_OBJECT) {
		fields e = { .depth = 0 };
		CHOIR_TRY(read_fields(f, &e, false));
		CHOIR_TRY(add_event(f, &e));
	}
	return token == CHI_JSON_ARRAY_END ? CHOIR_OK : wrong_token(f, token);
}

static choir_status read_top(trace_file *f)
{
	bool found = false;
	chi_json_token token = chi_json_next(&f->json);
	if (token != CHI_JSON_OBJECT)
		return wrong_token(f, token);
	while ((token = chi_json_next(&f->json)) == CHI_JSON_KEY) {
		fields e = { .started = 0 };
		if (strcmp(f->json.text, "traceEvents") == 0) {
			CHOIR_TRY(read_list(f));
			found = true;
		} else if (strcmp(f->json.text, "otherData") == 0) {
			if ((token = chi_json_next(&f->json)) != CHI_JSON_OBJECT)
				return wrong_token(f, token);
			CHOIR_TRY(read_fields(f, &e, false));
			f->started = e.started;
			f->lost = is_whole(e.lost, 1e15) ? (uint64_t) e.lost : 0;
		} else {
			CHOIR_TRY(skip(f, chi_json_next(&f->json)));
		}
	}
	if (token == CHI_JSON_OBJECT_END)
		token = chi_json_next(&f->json);
	if (token != CHI_JSON_END)
		return wrong_token(f, token);
	return found ? CHOIR_OK : damaged(f, "no events");
}

static const char *track_name(const trace_file *f, const choir_trace_span *s)
{
	int track;
	for (size_t i = 0; i < f->named; i++)
		if (f->names[i].pid == s->worker + 1 && chi_chrome_track_of(f->names[i].tid, &track) &&
				track == s->track)
			return f->names[i].name;
	return "";
}

// Consecutive spans are mostly of one track.
static void name_tracks(trace_file *f)
{
	for (size_t i = 0; i < f->n; i++) {
		const choir_trace_span *before = i > 0 ? &f->span[i - 1] : NULL;
		const bool same = before != NULL && before->track == f->span[i].track &&
				before->worker == f->span[i].worker;
		f->span[i].track_name = same ? before->track_name : track_name(f, &f->span[i]);
	}
}

static choir_status read_file(trace_file *f, const char *path)
{
	*f = (trace_file){ .path = path };
	chi_file *file = path == NULL ? NULL : chi_file_open(path);
	if (file == NULL)
		return path == NULL ? choir_fail(CHOIR_INVALID, "trace: the path is NULL")
							: choir_error_status();
	size_t bytes;
	choir_status status = CHOIR_OK;
	if (!chi_size_add((size_t) chi_file_size(file), 1, &bytes) ||
			(f->data = chi_alloc(bytes)) == NULL)
		status = CHOIR_NO_MEMORY;
	else
		status = chi_file_read(file, 0, f->data, bytes - 1);
	chi_file_close(file);
	if (status == CHOIR_OK) {
		chi_json_open(&f->json, f->data, bytes - 1);
		status = read_top(f);
	}
	if (status == CHOIR_OK)
		name_tracks(f);
	else
		close_file(f);
	return status;
}

choir_status choir_trace_read(const char *path, choir_trace_span_fn *fn, void *user)
{
	trace_file f;
	if (fn == NULL)
		return choir_fail(CHOIR_INVALID, "trace: the function is NULL");
	CHOIR_TRY(read_file(&f, path));
	for (size_t i = 0; i < f.n; i++)
		fn(&f.span[i], user);
	close_file(&f);
	return CHOIR_OK;
}

typedef struct {
	chi_chrome chrome;
	const char **of;
	int workers;
} merge;

// No two files may have spans of the same worker.
static choir_status claim(merge *m, const trace_file *f)
{
	size_t capacity = (size_t) m->workers;
	for (size_t i = 0; i < f->n; i++) {
		const int worker = f->span[i].worker;
		if (worker >= m->workers) {
			if (!chi_grow(&m->of, &capacity, (size_t) worker + 1, sizeof *m->of))
				return CHOIR_NO_MEMORY;
			memset(m->of + m->workers, 0, (capacity - (size_t) m->workers) * sizeof *m->of);
			m->workers = (int) capacity;
		}
		if (m->of[worker] != NULL && m->of[worker] != f->path)
			return choir_fail(CHOIR_INVALID,
					"%s: has spans of worker %d, as %s; needs one file for each worker", f->path,
					worker, m->of[worker]);
		m->of[worker] = f->path;
	}
	return CHOIR_OK;
}

static choir_status add_file(merge *m, const char *path, bool first)
{
	trace_file f;
	CHOIR_TRY(read_file(&f, path));
	if (first)
		chi_chrome_begin(&m->chrome, f.started, f.lost);
	const choir_status status = claim(m, &f);
	for (size_t i = 0; status == CHOIR_OK && i < f.n; i++)
		chi_chrome_span(&f.span[i], &m->chrome);
	close_file(&f);
	return status;
}

choir_status choir_trace_merge(const char *path, size_t n, const char *const paths[])
{
	merge m = { .workers = 0 };
	if (path == NULL || n == 0 || paths == NULL)
		return choir_fail(CHOIR_INVALID, "trace: merge: no %s given; needs some",
				path == NULL ? "path" : "files");
	CHOIR_TRY(chi_chrome_open(&m.chrome, path));
	choir_status status = CHOIR_OK;
	for (size_t i = 0; status == CHOIR_OK && i < n; i++)
		status = add_file(&m, paths[i], i == 0);
	if (status == CHOIR_OK)
		status = chi_chrome_end(&m.chrome, (int) n);
	else
		chi_chrome_abort(&m.chrome);
	chi_free(m.of);
	return status;
}
