// RFC 4180. An incomplete row moves to the buffer's start, and is parsed again after a read: there
// is no parser state, and the buffer holds the longest row.
#include "data/source/csv/csv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum { FIRST_CAPACITY = 256 << 10, MAX_CAPACITY = 64 << 20 };

void chi_csv_set_separator(chi_csv_rows *r, char separator)
{
	r->stops[(unsigned char) r->separator] = r->separator == '\0';
	r->separator = separator;
	r->stops[(unsigned char) separator] = 1;
}

choir_status chi_csv_rows_init(chi_csv_rows *r, const chi_glob *paths, char separator, char quote)
{
	r->paths = paths;
	r->quote = quote;
	r->stops[0] = r->stops['\n'] = r->stops['\r'] = 1;
	r->stops[(unsigned char) quote] = 1;
	chi_csv_set_separator(r, separator);
	r->capacity = FIRST_CAPACITY;
	r->buffer = chi_alloc(r->capacity + 1);
	return r->buffer ? CHOIR_OK : CHOIR_NO_MEMORY;
}

void chi_csv_rows_rewind(chi_csv_rows *r)
{
	chi_reader_close(r->reader);
	r->reader = NULL;
	r->file = 0;
}

void chi_csv_rows_free(chi_csv_rows *r)
{
	chi_csv_rows_rewind(r);
	chi_free(r->buffer);
	chi_free(r->scratch);
}

const char *chi_csv_name(const chi_csv_rows *r)
{
	return chi_reader_name(r->reader);
}

unsigned long long chi_csv_place(const chi_csv_rows *r, const char *p)
{
	return r->offset + (uint64_t) (p - r->buffer);
}

choir_status chi_csv_wrong(const chi_csv_rows *r, const char *p, const char *fmt, ...)
{
	char what[384];
	va_list args;
	va_start(args, fmt);
	vsnprintf(what, sizeof what, fmt, args);
	va_end(args);
	const unsigned long long place = chi_csv_place(r, p ? p : r->buffer + r->at);
	if (r->row == 0)
		return choir_fail(
				CHOIR_CORRUPT, "%s: header, byte %llu: %s", chi_csv_name(r), place, what);
	return choir_fail(CHOIR_CORRUPT, "%s: row %lld, byte %llu: %s", chi_csv_name(r),
			(long long) r->row, place, what);
}

bool chi_csv_full(const chi_csv_rows *r)
{
	return r->at == 0 && r->length == r->capacity && r->capacity >= MAX_CAPACITY;
}

static choir_status grow(chi_csv_rows *r)
{
	if (r->capacity >= MAX_CAPACITY)
		return chi_csv_wrong(
				r, NULL, "a row of more than %d bytes; is a quote not closed?", MAX_CAPACITY);
	CHOIR_TRY(chi_reader_hold(r->reader, 2 * r->capacity, "a row"));
	char *buffer = chi_realloc(r->buffer, 2 * r->capacity + 1);
	CHOIR_TRY(chi_made(buffer));
	r->buffer = buffer;
	r->capacity *= 2;
	return CHOIR_OK;
}

choir_status chi_csv_refill(chi_csv_rows *r)
{
	if (r->at > 0) {
		r->length -= r->at;
		memmove(r->buffer, r->buffer + r->at, r->length);
		r->offset += r->at;
		r->at = 0;
	} else if (r->length == r->capacity) {
		CHOIR_TRY(grow(r));
	}
	size_t got, want = r->capacity - r->length;
	CHOIR_TRY(chi_reader_read(r->reader, r->buffer + r->length, want, &got));
	r->length += got;
	r->ended = got < want;
	r->buffer[r->length] = '\0';
	return CHOIR_OK;
}

static bool names_separator(const char *p)
{
	return strncmp(p, "sep=", 4) == 0 && p[4] != '\0' && (p[5] == '\n' || p[5] == '\r');
}

// Excel's first line, or the header's only separator.
choir_status chi_csv_find_separator(chi_csv_rows *r)
{
	const char *p = r->buffer + r->at;
	bool quoted = false, comma = false, semicolon = false, tab = false;
	r->named_separator = names_separator(p);
	if (r->named_separator) {
		chi_csv_set_separator(r, p[4]);
		chi_csv_rows_rewind(r);
		return chi_csv_open(r);
	}
	for (; *p != '\0' && (quoted || *p != '\n'); p++) {
		quoted = quoted != (*p == r->quote);
		comma = comma || (!quoted && *p == ',');
		semicolon = semicolon || (!quoted && *p == ';');
		tab = tab || (!quoted && *p == '\t');
	}
	if (!comma && semicolon != tab)
		chi_csv_set_separator(r, tab ? '\t' : ';');
	return CHOIR_OK;
}

// "?" stands for any byte.
static bool begins_with(const chi_csv_rows *r, const char *first, size_t n)
{
	bool same = r->length >= n;
	for (size_t i = 0; same && i < n; i++)
		same = first[i] == '?' || r->buffer[i] == first[i];
	return same;
}

static choir_status check_format(const chi_csv_rows *r)
{
	static const struct {
		const char *name, *first;
		size_t n;
	} others[] = {
		{ "a text in UTF-16", "\xff\xfe", 2 },
		{ "a text in UTF-16", "\xfe\xff", 2 },
		{ "a ZIP file, such as a workbook (.xlsx)", "PK\3\4", 4 },
		{ "a workbook (.xls)", "\xd0\xcf\x11\xe0", 4 },
		{ "a Parquet file", "PAR1\x15", 5 }, // a column may be named PAR1
		{ "a Feather file", "ARROW1\0\0", 8 },
		{ "a bzip2 file", "BZh?1AY&SY", 10 }, // a column may be named BZh
		{ "a bzip2 file", "BZh?\x17rE8P\x90", 10 }, // of no bytes
		{ "an xz file",
				"\xfd"
				"7zXZ",
				5 },
		{ "a Zstandard file", "\x28\xb5\x2f\xfd", 4 },
		{ "JSON", "{\"", 2 },
		{ "JSON", "[{", 2 },
	};
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		if (begins_with(r, others[i].first, others[i].n))
			return choir_fail(CHOIR_CORRUPT, "%s: is %s; needs a CSV file in UTF-8, plain or gzip",
					chi_csv_name(r), others[i].name);
	return CHOIR_OK;
}

choir_status chi_csv_open(chi_csv_rows *r)
{
	static const char mark[] = "\xef\xbb\xbf";
	chi_reader_close(r->reader);
	r->reader = NULL;
	if (r->file == r->paths->n)
		return CHOIR_END;
	r->reader = chi_reader_open(r->paths->path[r->file]);
	CHOIR_TRY(chi_made(r->reader));
	r->file++;
	r->at = r->length = 0;
	r->offset = 0;
	r->row = 1;
	CHOIR_TRY(chi_csv_refill(r));
	if (strncmp(r->buffer, mark, sizeof mark - 1) == 0)
		r->at = sizeof mark - 1;
	CHOIR_TRY(check_format(r));
	const char *first = r->buffer + r->at;
	if (!r->named_separator || !names_separator(first))
		return CHOIR_OK;
	if (first[4] != r->separator)
		return choir_fail(CHOIR_CORRUPT,
				"%s: its first line names another separator than that of %s; all files need the "
				"same one",
				chi_csv_name(r), r->paths->path[0]);
	r->at += strcspn(first, "\n");
	return CHOIR_OK;
}

// byte follows a line end, or ends the file.
choir_status chi_csv_jump(chi_csv_rows *r, int64_t byte, int64_t row)
{
	char before = '\0';
	size_t got = 0;
	CHOIR_TRY(chi_reader_rewind(r->reader));
	if (byte > 1)
		CHOIR_TRY(chi_reader_read(r->reader, NULL, (size_t) byte - 1, &got));
	if (byte > 0 && got == (size_t) byte - 1)
		CHOIR_TRY(chi_reader_read(r->reader, &before, 1, &got));
	r->at = r->length = 0;
	r->offset = (uint64_t) byte;
	r->row = row;
	if (got == 1)
		CHOIR_TRY(chi_csv_refill(r));
	if (got == 1 && (before == '\n' || r->length == 0))
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID,
			"%s: no row begins at byte %lld; the position needs the file that it was saved with",
			chi_csv_name(r), (long long) byte);
}

choir_status chi_csv_begin(chi_csv_rows *r)
{
	for (;;) {
		const char *p = r->buffer + r->at;
		if (r->length - r->at < 2 && !r->ended)
			CHOIR_TRY(chi_csv_refill(r));
		else if (r->at == r->length)
			return CHOIR_END;
		else if (*p == '\n')
			r->at++;
		else if (p[0] == '\r' && p[1] == '\n')
			r->at += 2;
		else
			return CHOIR_OK;
	}
}

static chi_csv_end bad(chi_csv_rows *r, const char **p, const char *at, const char *fault)
{
	*p = at;
	r->fault = fault;
	return CHI_CSV_BAD;
}

static chi_csv_end finish(chi_csv_rows *r, const char **p, const char *end)
{
	const char *last = r->buffer + r->length;
	if (*end == r->separator) {
		*p = end + 1;
		return CHI_CSV_NEXT;
	}
	if (*end == '\n' || (*end == '\r' && end[1] == '\n')) {
		*p = end + (*end == '\n' ? 1 : 2);
		return CHI_CSV_LAST;
	}
	if (end == last || (*end == '\r' && end + 1 == last)) {
		if (!r->ended)
			return CHI_CSV_MORE;
		*p = last;
		return CHI_CSV_LAST;
	}
	if (*end == '\0')
		return bad(r, p, end, "a zero byte; text needed");
	if (*end == '\r')
		return bad(r, p, end, "a carriage return without a line feed");
	return bad(r, p, end, "a quote within an unquoted field");
}

static bool undouble(chi_csv_rows *r, chi_csv_text *field)
{
	if (!chi_grow(&r->scratch, &r->scratch_capacity, field->length + 1, 1))
		return false;
	size_t n = 0;
	for (size_t i = 0; i < field->length; i++) {
		r->scratch[n++] = field->text[i];
		i += field->text[i] == r->quote;
	}
	r->scratch[n] = '\0';
	field->text = r->scratch;
	field->length = n;
	return true;
}

static bool is_blank(const chi_csv_rows *r, char c)
{
	return (c == ' ' || c == '\t') && c != r->separator;
}

static chi_csv_end take_quoted(
		chi_csv_rows *r, const char *open, const char **p, chi_csv_text *field)
{
	const char *start = open + 1, *end = start, *last = r->buffer + r->length;
	bool doubled = false;
	for (;; end += 2, doubled = true) {
		end = memchr(end, r->quote, (size_t) (last - end));
		if (!end || end + 1 == last) {
			if (!r->ended)
				return CHI_CSV_MORE;
			if (end)
				break;
			return bad(r, p, open, "a quote that is not closed");
		}
		if (end[1] != r->quote)
			break;
	}
	*field = (chi_csv_text){ start, (size_t) (end - start) };
	if (memchr(start, '\0', field->length))
		return bad(r, p, start, "a zero byte; text needed");
	const char *behind = end + 1;
	while (is_blank(r, *behind))
		behind++;
	if (*behind != r->separator && *behind != '\n' && *behind != '\r' && behind != last)
		return bad(r, p, behind, "text after the closing quote of a field");
	const chi_csv_end how = finish(r, p, behind);
	if (doubled && (how == CHI_CSV_NEXT || how == CHI_CSV_LAST) && !undouble(r, field))
		return bad(r, p, start, NULL);
	return how;
}

static bool only_blanks(const chi_csv_rows *r, const char *p, const char *end)
{
	while (p < end && is_blank(r, *p))
		p++;
	return p == end;
}

chi_csv_end chi_csv_take(chi_csv_rows *r, const char **p, chi_csv_text *field)
{
	const char *start = *p;
	if (*start == r->quote)
		return take_quoted(r, start, p, field);
	const char *end = start;
	while (!r->stops[(unsigned char) *end])
		end++;
	if (*end == r->quote && only_blanks(r, start, end))
		return take_quoted(r, end, p, field);
	const chi_csv_end how = finish(r, p, end);
	while (end > start && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	while (start < end && (*start == ' ' || *start == '\t'))
		start++;
	*field = (chi_csv_text){ start, (size_t) (end - start) };
	return how;
}

chi_csv_end chi_csv_lead(chi_csv_rows *r, const chi_csv_schema *s, const char **p)
{
	chi_csv_text name;
	return s->row_names ? chi_csv_take(r, p, &name) : CHI_CSV_NEXT;
}

chi_csv_end chi_csv_close(
		chi_csv_rows *r, const chi_csv_schema *s, const char **p, chi_csv_end how)
{
	chi_csv_text nothing;
	if (how != CHI_CSV_NEXT || !s->open_end)
		return how;
	const char *start = *p;
	how = chi_csv_take(r, p, &nothing);
	return how == CHI_CSV_LAST && nothing.length > 0
			? bad(r, p, start, "a value in a column without a name")
			: how;
}

// Ignores quotes. False: no line end.
static bool pass_line(chi_csv_rows *r, const char *p)
{
	const char *last = r->buffer + r->length, *end = memchr(p, '\n', (size_t) (last - p));
	if (!end && !r->ended)
		return false;
	r->at = end ? (size_t) (end + 1 - r->buffer) : r->length;
	return true;
}

choir_status chi_csv_pass_row(chi_csv_rows *r)
{
	for (;;) {
		chi_csv_text field;
		const char *p = r->buffer + r->at;
		chi_csv_end how;
		do
			how = chi_csv_take(r, &p, &field);
		while (how == CHI_CSV_NEXT);
		if (how == CHI_CSV_BAD && !r->fault)
			return CHOIR_NO_MEMORY;
		if (how == CHI_CSV_LAST)
			r->at = (size_t) (p - r->buffer);
		if (how == CHI_CSV_LAST || (how == CHI_CSV_BAD && pass_line(r, p)))
			break;
		if (how == CHI_CSV_MORE && chi_csv_full(r) && pass_line(r, r->buffer))
			break;
		CHOIR_TRY(chi_csv_refill(r));
	}
	r->row++;
	return CHOIR_OK;
}
