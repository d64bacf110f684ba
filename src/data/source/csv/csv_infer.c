// One read of all files. A column has whole numbers if all fields are, else numbers, dates or
// text. Its distinct texts are categories. Only rows with the header's number of fields count.
#include "data/source/csv/csv.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/text.h"
#include "data/source/csv/date.h"
#include "data/source/csv/decimal.h"

const char *chi_csv_show(const chi_csv_text *field, char out[CHI_CSV_SHOWN_SIZE])
{
	char text[CHI_CSV_SHOWN];
	snprintf(text, sizeof text, "%.*s",
			(int) (field->length < sizeof text ? field->length : sizeof text - 1), field->text);
	return chi_text_clean(text, out, CHI_CSV_SHOWN_SIZE);
}

static choir_status add_name(chi_csv_rows *r, chi_csv_schema *s, const chi_csv_text *t)
{
	char number[24];
	const char *name = s->header ? t->text : number;
	if (s->n == CHI_MAX_CATEGORIES)
		return chi_csv_wrong(r, NULL, "more than %d columns", CHI_MAX_CATEGORIES);
	if (!chi_grow(&s->field, &s->capacity, s->n + 1, sizeof *s->field))
		return CHOIR_NO_MEMORY;
	if (s->header && !chi_text_is_utf8(t->text, t->length))
		return chi_csv_wrong(r, NULL, "the name of column %zu is not UTF-8", s->n + 1);
	if (s->header && t->length == 0)
		return chi_csv_wrong(r, NULL, "column %zu has no name", s->n + 1 + (size_t) s->row_names);
	if (!s->header)
		snprintf(number, sizeof number, "%zu", s->n);
	const size_t length = s->header ? t->length : strlen(number);
	if (chi_categories_find(s->names, name, length) >= 0)
		return chi_csv_wrong(r, NULL, "two columns have the name \"%.*s\"", (int) length, name);
	CHOIR_TRY(chi_categories_add(s->names, name, length));
	s->field[s->n++] = (chi_csv_field){ .found = CHI_CSV_NOTHING };
	return CHOIR_OK;
}

size_t chi_csv_find_field(const chi_csv_schema *s, const char *name)
{
	const int32_t found = chi_categories_find(s->names, name, strlen(name));
	return found < 0 ? s->n : (size_t) found;
}

// An empty first or last field of the header.
static bool is_nameless(chi_csv_schema *s, const chi_csv_text *t, chi_csv_end how)
{
	if (!s->header || t->length > 0)
		return false;
	const bool first = s->n == 0 && !s->row_names && how == CHI_CSV_NEXT;
	const bool last = s->n > 0 && how == CHI_CSV_LAST;
	s->row_names = s->row_names || first;
	s->open_end = last;
	return first || last;
}

// *more: the row is incomplete.
static choir_status try_names(chi_csv_rows *r, chi_csv_schema *s, bool *more)
{
	const char *p = r->buffer + r->at;
	chi_csv_text field;
	chi_csv_end how;
	do {
		how = chi_csv_take(r, &p, &field);
		*more = how == CHI_CSV_MORE;
		if (*more)
			return CHOIR_OK;
		if (how == CHI_CSV_BAD)
			return r->fault ? chi_csv_wrong(r, p, "%s", r->fault) : CHOIR_NO_MEMORY;
		if (!is_nameless(s, &field, how))
			CHOIR_TRY(add_name(r, s, &field));
	} while (how == CHI_CSV_NEXT);
	if (s->header)
		r->at = (size_t) (p - r->buffer);
	return CHOIR_OK;
}

static void forget_names(chi_csv_schema *s)
{
	s->n = 0;
	chi_categories_free(s->names);
	s->names = NULL;
	s->row_names = s->open_end = false;
}

static choir_status begin_header(chi_csv_rows *r, const chi_csv_schema *s)
{
	const choir_status status = chi_csv_begin(r);
	return status != CHOIR_END
			? status
			: choir_fail(CHOIR_CORRUPT, "%s: the file is empty; %s needed", chi_csv_name(r),
					  s->header ? "a header" : "at least one row");
}

static choir_status read_header(chi_csv_rows *r, chi_csv_schema *s)
{
	bool more;
	r->row = s->header ? 0 : 1;
	CHOIR_TRY(begin_header(r, s));
	for (;;) {
		s->names = chi_categories_new();
		CHOIR_TRY(chi_made(s->names));
		CHOIR_TRY(try_names(r, s, &more));
		if (!more)
			break;
		forget_names(s);
		CHOIR_TRY(chi_csv_refill(r));
	}
	r->row = 1;
	return CHOIR_OK;
}

enum { PEEKED = 2 }; // one row might be damaged

static chi_csv_end count_fields(chi_csv_rows *r, size_t fields[PEEKED], size_t *open)
{
	const char *p = r->buffer + r->at;
	chi_csv_end how = CHI_CSV_LAST;
	for (size_t i = 0; i < PEEKED && how == CHI_CSV_LAST; i++) {
		chi_csv_text field = { .length = 0 };
		while (*p == '\n' || (*p == '\r' && p[1] == '\n'))
			p += *p == '\n' ? 1 : 2;
		if (p == r->buffer + r->length)
			return r->ended ? CHI_CSV_LAST : CHI_CSV_MORE;
		do {
			how = chi_csv_take(r, &p, &field);
			fields[i]++;
		} while (how == CHI_CSV_NEXT);
		*open += field.length == 0;
	}
	return how;
}

// Rows with one more field than the header begin with a name, as in R, or end with a separator.
static choir_status find_row_names(chi_csv_rows *r, chi_csv_schema *s)
{
	size_t fields[PEEKED], open;
	chi_csv_end how;
	do {
		choir_status status = chi_csv_begin(r);
		if (status == CHOIR_END || chi_csv_full(r))
			return CHOIR_OK;
		CHOIR_TRY(status);
		memset(fields, 0, sizeof fields);
		open = 0;
		how = count_fields(r, fields, &open);
		if (how == CHI_CSV_MORE)
			CHOIR_TRY(chi_csv_refill(r));
	} while (how == CHI_CSV_MORE);
	if (how == CHI_CSV_BAD)
		return r->fault ? CHOIR_OK : CHOIR_NO_MEMORY;
	for (size_t i = 0; i < PEEKED; i++)
		if (fields[i] != s->n + 1)
			return CHOIR_OK;
	s->open_end = open == PEEKED;
	s->row_names = !s->open_end;
	return CHOIR_OK;
}

choir_status chi_csv_read_names(chi_csv_rows *r, chi_csv_schema *s)
{
	CHOIR_TRY(read_header(r, s));
	for (size_t i = 0; i < s->n; i++)
		s->field[i].name = chi_categories_text(s->names, i);
	return !s->header || s->row_names || s->open_end ? CHOIR_OK : find_row_names(r, s);
}

static choir_status compare_names(chi_csv_rows *r, const chi_csv_schema *s, bool *more)
{
	const char *p = r->buffer + r->at;
	chi_csv_schema head = { .header = true };
	chi_csv_text t;
	chi_csv_end how = CHI_CSV_NEXT;
	while (how == CHI_CSV_NEXT) {
		how = chi_csv_take(r, &p, &t);
		*more = how == CHI_CSV_MORE;
		if (*more)
			return CHOIR_OK;
		if (how == CHI_CSV_BAD)
			return r->fault ? chi_csv_wrong(r, p, "%s", r->fault) : CHOIR_NO_MEMORY;
		if (is_nameless(&head, &t, how))
			continue;
		const size_t i = head.n++;
		if (i < s->n && chi_categories_find(s->names, t.text, t.length) != (int32_t) i)
			return choir_fail(CHOIR_CORRUPT,
					"%s: column %zu is \"%.*s\", in %s it is \"%s\"; "
					"all files need the same columns",
					chi_csv_name(r), i + 1, (int) (t.length < 200 ? t.length : 200), t.text,
					r->paths->path[0], s->field[i].name);
	}
	if (head.n != s->n)
		return choir_fail(CHOIR_CORRUPT,
				"%s: the header has %zu columns, the header of %s has %zu; "
				"all files need the same columns",
				chi_csv_name(r), head.n, r->paths->path[0], s->n);
	if (head.row_names && !s->row_names)
		return choir_fail(CHOIR_CORRUPT, "%s: the first column has no name, in %s it has one",
				chi_csv_name(r), r->paths->path[0]);
	r->at = (size_t) (p - r->buffer);
	return CHOIR_OK;
}

choir_status chi_csv_check_names(chi_csv_rows *r, const chi_csv_schema *s)
{
	bool more;
	if (!s->header)
		return CHOIR_OK;
	r->row = 0;
	CHOIR_TRY(begin_header(r, s));
	for (;;) {
		CHOIR_TRY(compare_names(r, s, &more));
		if (!more)
			break;
		CHOIR_TRY(chi_csv_refill(r));
	}
	r->row = 1;
	return CHOIR_OK;
}

bool chi_csv_is_missing(const chi_csv_schema *s, const chi_csv_text *field)
{
	if (field->length == 0)
		return true;
	if (!s->may_be_missing[(unsigned char) field->text[0]])
		return false;
	for (size_t i = 0; i < s->missing_texts; i++)
		if (strlen(s->missing_text[i]) == field->length &&
				memcmp(s->missing_text[i], field->text, field->length) == 0)
			return true;
	return false;
}

bool chi_csv_not_finite(const chi_csv_text *field, double *value)
{
	static const struct {
		const char *text;
		double value;
	} known[] = { { "inf", HUGE_VAL }, { "-inf", -HUGE_VAL }, { "+inf", HUGE_VAL },
		{ "nan", NAN } };
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (field->length == strlen(known[i].text) &&
				strncasecmp(field->text, known[i].text, field->length) == 0) {
			*value = known[i].value;
			return true;
		}
	return false;
}

static chi_csv_found kind_of(const chi_csv_schema *s, const chi_csv_text *field)
{
	chi_decimal d;
	int64_t whole;
	double value;
	if (chi_csv_number(s, field, &d))
		return chi_decimal_i64(&d, &whole) ? CHI_CSV_WHOLE : CHI_CSV_REAL;
	if (chi_csv_not_finite(field, &value))
		return CHI_CSV_REAL;
	return chi_date_read(field->text, field->length, &value) ? CHI_CSV_DATE : CHI_CSV_TEXT;
}

static chi_csv_found combine(chi_csv_found a, chi_csv_found b)
{
	if (a == CHI_CSV_NOTHING || a == b)
		return b;
	return a == CHI_CSV_DATE || b == CHI_CSV_DATE ? CHI_CSV_TEXT : a > b ? a : b;
}

static int64_t values_of(const chi_csv_schema *s, const chi_csv_field *f)
{
	return s->rows - s->bad - f->missing;
}

bool chi_csv_is_rare(const chi_csv_odd *odd, int64_t values, bool few)
{
	return odd->n * 10 <= values || (!few && odd->same == odd->n && odd->n * 2 <= values);
}

// Texts may be exceptions among numbers or dates.
static bool is_watched(const chi_csv_schema *s, const chi_csv_field *f)
{
	enum { FEW = 64 };
	bool few = false;
	for (size_t k = 0; k < CHI_CSV_ODDS && f->odd && !f->words; k++)
		few = few || f->odd[k].n < FEW || chi_csv_is_rare(&f->odd[k], values_of(s, f), false);
	return f->found == CHI_CSV_TEXT && few;
}

// The first text of a column of numbers or dates.
static choir_status begin_watch(const chi_csv_schema *s, chi_csv_field *f, chi_csv_found before)
{
	const int64_t earlier = values_of(s, f) - 1;
	f->odd = chi_alloc_array(CHI_CSV_ODDS, sizeof *f->odd);
	CHOIR_TRY(chi_made(f->odd));
	f->odd[CHI_CSV_ODD_NUMBER].n = before == CHI_CSV_DATE ? earlier : 0;
	f->odd[CHI_CSV_ODD_DATE].n = before == CHI_CSV_DATE ? 0 : earlier;
	f->odd[CHI_CSV_ODD_COMMA].n = before == CHI_CSV_WHOLE ? 0 : earlier;
	return CHOIR_OK;
}

// Ends before a whole character.
static size_t shown_length(const chi_csv_text *t)
{
	size_t n = t->length < CHI_CSV_SHOWN ? t->length : CHI_CSV_SHOWN - 1;
	while (n > 0 && n < t->length && ((unsigned char) t->text[n] & 0xc0) == 0x80)
		n--;
	return n;
}

// As "$5", "1,234.5 kg", "80%" and "24.11.2026": a digit behind signs, and few letters.
static bool is_marked(const chi_csv_text *t)
{
	enum { SIGNS = 6, LETTERS = 4 };
	size_t begin = 0, letters = 0;
	while (begin < t->length && !isalnum((unsigned char) t->text[begin]))
		begin++;
	for (size_t i = begin; i < t->length; i++)
		letters += isalpha((unsigned char) t->text[i]) != 0;
	return begin <= SIGNS && begin < t->length && isdigit((unsigned char) t->text[begin]) &&
			letters <= LETTERS;
}

static void remember(const chi_csv_rows *r, chi_csv_odd *odd, const chi_csv_text *t)
{
	odd->row = r->row;
	snprintf(odd->text, sizeof odd->text, "%.*s", (int) shown_length(t), t->text);
}

static void watch(const chi_csv_rows *r, const chi_csv_schema *s, chi_csv_field *f,
		const chi_csv_text *t, chi_csv_found kind)
{
	chi_decimal d;
	const bool comma = s->decimal == '.' && memchr(t->text, ',', t->length);
	const bool fits[CHI_CSV_ODDS] = {
		[CHI_CSV_ODD_NUMBER] = kind == CHI_CSV_WHOLE || kind == CHI_CSV_REAL,
		[CHI_CSV_ODD_DATE] = kind == CHI_CSV_DATE,
		[CHI_CSV_ODD_COMMA] = s->decimal == '.' &&
				chi_decimal_read_with(t->text, comma ? ',' : CHI_CSV_NO_POINT, &d) &&
				d.end == t->text + t->length,
		[CHI_CSV_ODD_MARKED] = is_marked(t),
	};
	for (size_t k = 0; k < CHI_CSV_ODDS; k++) {
		chi_csv_odd *odd = &f->odd[k];
		if (fits[k])
			continue;
		odd->n++;
		if (odd->row == 0)
			remember(r, odd, t);
		odd->same += strlen(odd->text) == t->length && memcmp(odd->text, t->text, t->length) == 0;
	}
	f->words = !is_watched(s, f);
}

static bool collects(const chi_csv_field *f)
{
	return chi_csv_needs_texts(f, (chi_csv_found) f->found);
}

static void leave_out(chi_csv_field *f)
{
	chi_categories_free(f->categories);
	f->categories = NULL;
	f->many = f->other;
	f->plain = f->classes;
	f->again = false;
}

static bool has_repeated_texts(const chi_csv_schema *s, const chi_csv_field *f)
{
	const size_t texts = f->categories ? chi_categories_count(f->categories) : 0;
	return f->text || s->other_categories == SIZE_MAX ||
			2 * (int64_t) texts <= s->rows - f->missing;
}

static choir_status collect(
		chi_csv_rows *r, const chi_csv_schema *s, chi_csv_field *f, const chi_csv_text *t)
{
	char shown[CHI_CSV_SHOWN_SIZE];
	if (!f->categories)
		f->categories = chi_categories_new();
	CHOIR_TRY(chi_made(f->categories));
	if (chi_categories_find(f->categories, t->text, t->length) >= 0)
		return CHOIR_OK;
	const bool is_utf8 = chi_text_is_utf8(t->text, t->length);
	const size_t max = f->text ? SIZE_MAX
			: f->other		   ? s->other_categories
			: f->classes && f->found < CHI_CSV_DATE
			? (f->found == CHI_CSV_REAL ? CHI_MAX_REAL_CLASSES : CHI_MAX_CATEGORIES)
			: SIZE_MAX;
	if (f->other && !is_utf8) {
		f->not_utf8 = true;
		remember(r, &f->odd[CHI_CSV_ODD_NUMBER], t);
	}
	if (f->not_utf8 || chi_categories_count(f->categories) >= max) {
		leave_out(f);
		return CHOIR_OK;
	}
	if (!is_utf8) {
		if (s->skip || (f->as && f->as->optional))
			return CHOIR_OK;
		return chi_csv_wrong(
				r, NULL, "column \"%s\": \"%s\" is not UTF-8", f->name, chi_csv_show(t, shown));
	}
	if (chi_categories_add(f->categories, t->text, t->length) == CHOIR_OK)
		return CHOIR_OK;
	return chi_error_prefix("%s: column \"%s\"", chi_csv_name(r), f->name);
}

static choir_status infer_field(chi_csv_rows *r, const chi_csv_schema *s, chi_csv_field *f,
		const chi_csv_text *t, bool again)
{
	if (again)
		return f->again && !chi_csv_is_missing(s, t) ? collect(r, s, f, t) : CHOIR_OK;
	if (chi_csv_is_missing(s, t)) {
		f->missing++;
		return CHOIR_OK;
	}
	const chi_csv_found before = (chi_csv_found) f->found;
	const bool begins = before != CHI_CSV_TEXT;
	const bool looks = !f->text && (begins || is_watched(s, f));
	const chi_csv_found kind = looks ? kind_of(s, t) : CHI_CSV_TEXT;
	const chi_csv_found now = combine(before, kind);
	if (before != CHI_CSV_NOTHING && !chi_csv_needs_texts(f, before))
		f->again = chi_csv_needs_texts(f, now);
	f->found = (uint8_t) now;
	f->grouped = f->grouped ||
			(kind <= CHI_CSV_REAL && memchr(t->text, chi_csv_group_mark(s), t->length));
	if (begins && now == CHI_CSV_TEXT && !f->text)
		CHOIR_TRY(begin_watch(s, f, before));
	if (is_watched(s, f))
		watch(r, s, f, t, kind);
	return collects(f) && !f->again ? collect(r, s, f, t) : CHOIR_OK;
}

// *good: the header's number of fields.
static choir_status measure(chi_csv_rows *r, const chi_csv_schema *s, const char **end, bool *good)
{
	for (;;) {
		const char *p = r->buffer + r->at;
		chi_csv_text field;
		size_t n = 0;
		chi_csv_end how = chi_csv_lead(r, s, &p);
		for (; how == CHI_CSV_NEXT && n < s->n; n++)
			how = chi_csv_take(r, &p, &field);
		how = chi_csv_close(r, s, &p, how);
		for (; how == CHI_CSV_NEXT; n++)
			how = chi_csv_take(r, &p, &field);
		*good = how == CHI_CSV_LAST && n == s->n;
		*end = p;
		if (how != CHI_CSV_MORE || (s->skip && chi_csv_full(r))) {
			if (how == CHI_CSV_BAD && !r->fault)
				return CHOIR_NO_MEMORY;
			if (*good || s->skip)
				return CHOIR_OK;
			if (how == CHI_CSV_BAD)
				return chi_csv_wrong(r, p, "%s", r->fault);
			return chi_csv_wrong(r, NULL, "%zu fields, %s has %zu", n + s->row_names,
					s->row_names ? "a row" : "the header", s->n + s->row_names);
		}
		CHOIR_TRY(chi_csv_refill(r));
	}
}

// False: it may change its column.
static bool take_known(chi_csv_rows *r, const chi_csv_schema *s, const chi_csv_field *f,
		const char **p, chi_csv_end *how)
{
	chi_decimal d;
	chi_csv_text t;
	int64_t whole;
	const bool number = f->found == CHI_CSV_WHOLE || f->found == CHI_CSV_REAL;
	if (number && !collects(f) && !s->numbers_missing) {
		if (!chi_decimal_read_with(*p, s->decimal, &d))
			return false;
		const char *end = d.end + (*d.end == '\r' && d.end[1] == '\n');
		*how = *end == '\n' ? CHI_CSV_LAST : CHI_CSV_NEXT;
		*p = end + 1;
		return (*end == r->separator || *end == '\n') &&
				(f->found == CHI_CSV_REAL || chi_decimal_i64(&d, &whole));
	}
	*how = chi_csv_take(r, p, &t);
	if (*how > CHI_CSV_LAST || is_watched(s, f) || chi_csv_is_missing(s, &t))
		return false;
	double days;
	if (collects(f))
		return f->categories && chi_categories_find(f->categories, t.text, t.length) >= 0;
	return f->found == CHI_CSV_TEXT ||
			(f->found == CHI_CSV_DATE && chi_date_read(t.text, t.length, &days));
}

// False: the row may change something, or is incomplete.
static bool pass_known(chi_csv_rows *r, const chi_csv_schema *s)
{
	const char *p = r->buffer + r->at;
	chi_csv_end how = chi_csv_lead(r, s, &p);
	for (size_t i = 0; i < s->n; i++)
		if (how != CHI_CSV_NEXT || !take_known(r, s, &s->field[i], &p, &how))
			return false;
	if (chi_csv_close(r, s, &p, how) != CHI_CSV_LAST)
		return false;
	r->at = (size_t) (p - r->buffer);
	r->row++;
	return true;
}

static choir_status infer_row(chi_csv_rows *r, chi_csv_schema *s, bool again)
{
	const char *end, *p;
	bool good;
	s->rows += !again;
	if (!again && pass_known(r, s))
		return CHOIR_OK;
	CHOIR_TRY(measure(r, s, &end, &good));
	s->bad += !again && !good;
	if (!good)
		return chi_csv_pass_row(r);
	p = r->buffer + r->at;
	(void) chi_csv_lead(r, s, &p);
	for (size_t i = 0; i < s->n; i++) {
		chi_csv_text field;
		if (chi_csv_take(r, &p, &field) == CHI_CSV_BAD)
			return CHOIR_NO_MEMORY;
		CHOIR_TRY(infer_field(r, s, &s->field[i], &field, again));
	}
	r->at = (size_t) (end - r->buffer);
	r->row++;
	return CHOIR_OK;
}

static choir_status infer_files(chi_csv_rows *r, chi_csv_schema *s, bool again)
{
	int64_t left = s->infer_rows ? s->infer_rows : INT64_MAX;
	choir_status status = CHOIR_OK;
	chi_csv_rows_rewind(r);
	while (left > 0 && (status = chi_csv_open(r)) == CHOIR_OK) {
		CHOIR_TRY(chi_csv_check_names(r, s));
		while (left > 0 && (status = chi_csv_begin(r)) == CHOIR_OK) {
			CHOIR_TRY(infer_row(r, s, again));
			left--;
		}
		if (left > 0 && status != CHOIR_END)
			return status;
	}
	return left == 0 || status == CHOIR_END ? CHOIR_OK : status;
}

choir_status chi_csv_infer(chi_csv_rows *r, chi_csv_schema *s)
{
	bool again = false;
	CHOIR_TRY(infer_files(r, s, false));
	for (size_t i = 0; i < s->n; i++) {
		chi_csv_field *f = &s->field[i];
		again = again || f->again;
		if (collects(f) && !f->categories)
			f->categories = chi_categories_new();
		if (collects(f) && !f->categories)
			return CHOIR_NO_MEMORY;
	}
	if (again)
		CHOIR_TRY(infer_files(r, s, true));
	for (size_t i = 0; i < s->n; i++) {
		chi_csv_field *f = &s->field[i];
		if (f->other && !has_repeated_texts(s, f))
			leave_out(f);
		else if (f->classes && f->categories && f->found < CHI_CSV_DATE)
			CHOIR_TRY(chi_csv_infer_classes(s, f));
		else if (f->categories)
			chi_categories_sort(f->categories);
	}
	return CHOIR_OK;
}
