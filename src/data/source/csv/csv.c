// Numbers are parsed from the buffer into the reader's row, or by a slower function if more
// follows. The next row overwrites a bad or dropped one.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "base/hash.h"
#include "base/text.h"
#include "data/seek_index.h"
#include "data/source/csv/csv.h"
#include "data/source/csv/date.h"
#include "data/source/file_list.h"
#include "tensor/tensor.h"

typedef struct {
	choir_dataset base;
	chi_glob paths;
	chi_csv_rows rows;
	chi_csv_schema schema;
	bool numbered;
	int64_t before;
	chi_places places;
} csv;

typedef enum { ROW_GOOD, ROW_DROPPED, ROW_WRONG, ROW_MORE } row_end;

static bool store(choir_dtype dtype, const chi_decimal *d, void *to)
{
	int64_t whole;
	switch (dtype) {
	case CHOIR_F32:
		return chi_decimal_f32(d, to);
	case CHOIR_F64:
		return chi_decimal_f64(d, to);
	case CHOIR_I64:
		return chi_decimal_whole(d, to);
	default:
		break;
	}
	const int64_t min = dtype == CHOIR_I32 ? INT32_MIN : 0;
	const int64_t max = dtype == CHOIR_I32 ? INT32_MAX : dtype == CHOIR_U8 ? UINT8_MAX : 1;
	if (!chi_decimal_whole(d, &whole) || whole < min || whole > max)
		return false;
	if (dtype == CHOIR_I32)
		*(int32_t *) to = (int32_t) whole;
	else
		*(uint8_t *) to = (uint8_t) whole;
	return true;
}

static bool store_not_finite(choir_dtype dtype, const chi_csv_text *t, void *to)
{
	double value;
	if ((dtype != CHOIR_F32 && dtype != CHOIR_F64) || !chi_csv_not_finite(t, &value))
		return false;
	if (dtype == CHOIR_F32)
		*(float *) to = (float) value;
	else
		*(double *) to = value;
	return true;
}

static bool is_finite(const chi_csv_schema *s, choir_dtype dtype, const void *value)
{
	return !s->finite || (dtype != CHOIR_F32 && dtype != CHOIR_F64) ||
			isfinite(dtype == CHOIR_F32 ? (double) *(const float *) value
										: *(const double *) value);
}

static row_end wrong_field(
		csv *c, const chi_csv_field *f, const chi_csv_text *t, const char *at, const char *what)
{
	char shown[CHI_CSV_SHOWN_SIZE];
	if (!c->schema.skip && !f->optional)
		chi_csv_wrong(
				&c->rows, at, "column \"%s\": \"%s\" %s", f->name, chi_csv_show(t, shown), what);
	return ROW_WRONG;
}

static row_end missing(csv *c, const chi_csv_field *f, const char *at, void *to)
{
	if (c->schema.missing == CHOIR_MISSING_DROP || f->drop)
		return ROW_DROPPED;
	if (c->schema.missing == CHOIR_MISSING_NAN &&
			(f->dtype == CHOIR_F32 || f->dtype == CHOIR_F64)) {
		if (f->one_hot)
			memset(to, 0, f->width * sizeof(float));
		else if (f->dtype == CHOIR_F32)
			*(float *) to = NAN;
		else
			*(double *) to = NAN;
		return ROW_GOOD;
	}
	if (!c->schema.skip && !f->optional)
		chi_csv_wrong(&c->rows, at, "column \"%s\" has no value", f->name);
	return ROW_WRONG;
}

static row_end unknown_category(
		csv *c, const chi_csv_field *f, const chi_csv_text *t, const char *at)
{
	enum { SHOWN = 6 };
	const size_t n = chi_categories_count(f->categories);
	char what[240] = "is not one of the column's categories: ", name[24], more[32];
	size_t length = strlen(what);
	for (size_t i = 0; i < n && i < SHOWN; i++) {
		length = chi_text_append(what, sizeof what, length, i == 0 ? "" : ", ");
		length = chi_text_append(what, sizeof what, length,
				chi_text_clean(chi_categories_text(f->categories, i), name, sizeof name));
	}
	if (n > SHOWN) {
		snprintf(more, sizeof more, " and %zu more", n - SHOWN);
		chi_text_append(what, sizeof what, length, more);
	}
	return wrong_field(c, f, t, at, what);
}

static row_end take_category(
		csv *c, const chi_csv_field *f, const chi_csv_text *t, const char *at, void *to)
{
	const int32_t number = chi_csv_find_class(&c->schema, f, t);
	if (f->one_hot)
		memset(to, 0, f->width * sizeof(float));
	if (f->one_hot && number >= 0)
		((float *) to)[number] = 1;
	else if (!f->one_hot)
		memcpy(to, &number, sizeof number);
	if (number >= 0)
		return ROW_GOOD;
	if (!chi_text_is_utf8(t->text, t->length))
		return wrong_field(c, f, t, at, "is not UTF-8");
	return c->schema.skip || f->optional ? ROW_WRONG : unknown_category(c, f, t, at);
}

static row_end take_date(
		csv *c, const chi_csv_field *f, const chi_csv_text *t, const char *at, void *to)
{
	double days;
	if (!chi_date_read(t->text, t->length, &days))
		return wrong_field(c, f, t, at, "is not a date of the form 2026-11-24");
	if (f->dtype == CHOIR_F32)
		*(float *) to = (float) days;
	else
		*(double *) to = days;
	return ROW_GOOD;
}

static row_end take_value(
		csv *c, const chi_csv_field *f, const chi_csv_text *t, const char *at, void *to)
{
	chi_decimal d;
	const bool none = chi_csv_is_missing(&c->schema, t);
	if (f->indicator)
		((float *) to)[f->width] = none;
	if (none)
		return missing(c, f, at, to);
	if (f->category)
		return take_category(c, f, t, at, to);
	if (f->date)
		return take_date(c, f, t, at, to);
	const choir_dtype dtype = (choir_dtype) f->dtype;
	if (chi_csv_number(&c->schema, t, &d) ? store(dtype, &d, to) : store_not_finite(dtype, t, to))
		return is_finite(&c->schema, dtype, to) ? ROW_GOOD
												: wrong_field(c, f, t, at, "is not finite");
	char what[32];
	snprintf(what, sizeof what, "is not a valid %s", choir_dtype_name(dtype));
	return wrong_field(c, f, t, at, what);
}

static bool take_number(
		const csv *c, const chi_csv_field *f, const char **p, void *to, chi_csv_end *how)
{
	chi_decimal d;
	if (!f->wanted || f->category || f->date || f->indicator || c->schema.numbers_missing ||
			!chi_decimal_read_with(*p, c->schema.decimal, &d))
		return false;
	if (*d.end == c->rows.separator)
		*how = CHI_CSV_NEXT;
	else if (*d.end == '\n')
		*how = CHI_CSV_LAST;
	else
		return false;
	if (!store((choir_dtype) f->dtype, &d, to) ||
			!is_finite(&c->schema, (choir_dtype) f->dtype, to))
		return false;
	*p = d.end + 1;
	return true;
}

static row_end not_whole(csv *c, size_t fields, const char *p, chi_csv_end how)
{
	chi_csv_text field;
	for (; how == CHI_CSV_NEXT && !c->schema.skip; fields++)
		how = chi_csv_take(&c->rows, &p, &field);
	if (how == CHI_CSV_MORE)
		return ROW_MORE;
	if (c->schema.skip)
		return ROW_WRONG;
	const size_t names = c->schema.row_names;
	if (how != CHI_CSV_BAD)
		chi_csv_wrong(
				&c->rows, NULL, "%zu fields; %zu needed", fields + names, c->schema.n + names);
	else if (c->rows.fault)
		chi_csv_wrong(&c->rows, p, "%s", c->rows.fault);
	return ROW_WRONG;
}

static void store_unknown(const chi_csv_field *f, void *to)
{
	switch (f->category ? CHOIR_I32 : (choir_dtype) f->dtype) {
	case CHOIR_F32:
		*(float *) to = NAN;
		break;
	case CHOIR_F64:
		*(double *) to = NAN;
		break;
	case CHOIR_I32:
		*(int32_t *) to = -1;
		break;
	default:
		*(int64_t *) to = -1;
	}
}

// Field i goes to to[target] + offset.
static row_end take_row(csv *c, char *const to[])
{
	chi_csv_rows *r = &c->rows;
	const char *p = r->buffer + r->at;
	row_end row = ROW_GOOD;
	size_t i = 0;
	chi_csv_end how = chi_csv_lead(r, &c->schema, &p);
	for (; i < c->schema.n && how == CHI_CSV_NEXT; i++) {
		const chi_csv_field *f = &c->schema.field[i];
		const char *start = p;
		chi_csv_text t;
		char *at = f->wanted ? to[f->target] + f->offset : NULL;
		if (take_number(c, f, &p, at, &how))
			continue;
		how = chi_csv_take(r, &p, &t);
		if (how != CHI_CSV_NEXT && how != CHI_CSV_LAST)
			break;
		const row_end one = f->wanted ? take_value(c, f, &t, start, at) : ROW_GOOD;
		if (one != ROW_GOOD && f->optional)
			store_unknown(f, at);
		else if (one == ROW_WRONG)
			return ROW_WRONG;
		else if (one == ROW_DROPPED)
			row = ROW_DROPPED;
	}
	how = chi_csv_close(r, &c->schema, &p, how);
	if (how != CHI_CSV_LAST || i < c->schema.n)
		return not_whole(c, i, p, how);
	r->at = (size_t) (p - r->buffer);
	r->row++;
	return row;
}

static choir_status find_row(csv *c)
{
	chi_csv_rows *r = &c->rows;
	for (;;) {
		choir_status status = r->reader ? chi_csv_begin(r) : CHOIR_END;
		if (status != CHOIR_END)
			return status;
		c->before += r->reader ? r->row - 1 : 0;
		CHOIR_TRY(chi_csv_open(r));
		CHOIR_TRY(chi_csv_check_names(r, &c->schema));
	}
}

static choir_status next_row(csv *c, char *const to[])
{
	for (;;) {
		CHOIR_TRY(find_row(c));
		row_end row = take_row(c, to);
		if (row == ROW_MORE && c->schema.skip && chi_csv_full(&c->rows))
			row = ROW_WRONG;
		switch (row) {
		case ROW_GOOD:
			return CHOIR_OK;
		case ROW_DROPPED:
			chi_atomic64_add(&c->base.dropped, 1);
			break;
		case ROW_MORE:
			CHOIR_TRY(chi_csv_refill(&c->rows));
			break;
		case ROW_WRONG:
			if (!c->schema.skip)
				return choir_error_status();
			CHOIR_TRY(chi_csv_pass_row(&c->rows));
			chi_atomic64_add(&c->base.skipped, 1);
		}
	}
}

static choir_status add_place(csv *c)
{
	const chi_csv_rows *r = &c->rows;
	const chi_seek_point place = { .file = (int64_t) r->file - 1,
		.byte = (int64_t) chi_csv_place(r, r->buffer + r->at),
		.record = r->row };
	return chi_places_add(&c->base, &place);
}

static choir_status csv_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	csv *c = (csv *) d;
	char *to[CHI_MAX_COLUMNS];
	choir_status status = CHOIR_OK;
	for (size_t i = 0; i < d->spec.n; i++)
		to[i] = column[i] ? column[i] : c->base.rows.column[i];
	while (*got < want && (status = next_row(c, to)) == CHOIR_OK) {
		++*got;
		if (c->numbered)
			*(int64_t *) to[d->spec.n - 1] = c->before + c->rows.row - 2;
		for (size_t i = 0; i < d->spec.n; i++)
			to[i] += column[i] ? d->bytes[i] : 0;
		if (chi_places_due(&c->places) && (status = add_place(c)) != CHOIR_OK)
			break;
	}
	return chi_dataset_got(d, status, *got);
}

static choir_status csv_rewind(choir_dataset *d)
{
	csv *c = (csv *) d;
	chi_csv_rows_rewind(&c->rows);
	c->before = 0;
	chi_places_begin(&c->places);
	return CHOIR_OK;
}

static choir_status go_to(csv *c, const chi_seek_point *mark)
{
	c->rows.file = (size_t) mark->file;
	CHOIR_TRY(chi_csv_open(&c->rows));
	CHOIR_TRY(chi_csv_check_names(&c->rows, &c->schema));
	c->before = mark->elements + mark->dropped + mark->skipped - (mark->record - 1);
	return chi_csv_jump(&c->rows, mark->byte, mark->record);
}

static choir_status csv_seek(choir_dataset *d, int64_t elements)
{
	csv *c = (csv *) d;
	chi_seek_point mark = { 0 };
	if (chi_places_find(d, elements, &mark))
		CHOIR_TRY(go_to(c, &mark));
	return chi_dataset_read_over(d, mark.elements, elements);
}

// The options that decide which rows are dropped.
static uint64_t csv_signature(const choir_dataset *d)
{
	const chi_csv_schema *s = &((const csv *) d)->schema;
	uint64_t sum = (uint64_t) s->missing * 2 + s->skip;
	if (s->decimal != '.')
		sum = chi_hash_mix(sum + (uint64_t) s->decimal);
	for (size_t i = 0; i < s->missing_texts; i++)
		sum = chi_hash_mix(sum + chi_hash_text(s->missing_text[i]));
	if (s->finite)
		sum = chi_hash_mix(sum + s->finite);
	for (size_t i = 0; i < s->n; i++)
		if (s->field[i].optional)
			sum = chi_hash_mix(sum + i + 2);
	return sum;
}

static void release(csv *c)
{
	chi_csv_rows_free(&c->rows);
	chi_csv_schema_free(&c->schema);
	chi_glob_free(&c->paths);
}

static void csv_free(choir_dataset *d)
{
	csv *c = (csv *) d;
	release(c);
	chi_places_free(&c->places);
}

static const chi_stage csv_stage = {
	.name = "csv dataset",
	.read = csv_read,
	.rewind = csv_rewind,
	.free = csv_free,
	.seek = csv_seek,
	.seek_index = chi_places_index,
	.fits = chi_places_fit,
	.signature = csv_signature,
	.files = CHI_FILES_HERE,
	.shard_files = chi_paths_shard,
	.path = chi_paths_at,
};

static bool needs_infer(const chi_csv_schema *s, const choir_csv_options *o)
{
	bool needs = !o->columns || o->other_columns;
	for (size_t i = 0; i < s->n; i++) {
		const chi_csv_field *f = &s->field[i];
		const choir_csv_kind kind = chi_csv_kind(f);
		needs = needs ||
				(f->wanted && kind != CHOIR_CSV_NUMBER && kind != CHOIR_CSV_DATE &&
						!chi_csv_listed(f));
	}
	return needs;
}

static choir_status check_seek_index(char separator, char quote, char decimal)
{
	static const char taken[] = "0123456789+-.eE\r\n";
	char shown[2][8];
	if (decimal != '\0' && decimal != '.' && decimal != ',')
		return choir_fail(CHOIR_INVALID,
				"csv dataset: decimal '%c' given; a point or a comma needed", decimal);
	if (separator == quote || strchr(taken, separator) || strchr(taken, quote))
		return choir_fail(CHOIR_INVALID,
				"csv dataset: separator '%s' and quote '%s' given; two different characters that "
				"no number contains needed",
				chi_text_clean((const char[]){ separator, '\0' }, shown[0], sizeof shown[0]),
				chi_text_clean((const char[]){ quote, '\0' }, shown[1], sizeof shown[1]));
	return CHOIR_OK;
}

static choir_status find_schema(csv *c, const choir_csv_options *o)
{
	const csv *other = (const csv *) o->schema;
	if (other && (other->base.stage != &csv_stage || !other->schema.looked))
		return choir_fail(CHOIR_INVALID,
				"csv dataset: the schema comes from \"%s\"; a CSV dataset "
				"with an inferred schema needed",
				other->base.stage->name);
	bool taken = false;
	if (other)
		CHOIR_TRY(chi_csv_adopt(&c->schema, &other->schema, &taken));
	return taken ? CHOIR_OK : chi_csv_infer(&c->rows, &c->schema);
}

static choir_status prepare(csv *c, const char *path, const choir_csv_options *o)
{
	const char separator = o->separator ? o->separator : ',', quote = o->quote ? o->quote : '"';
	CHOIR_TRY(check_seek_index(separator, quote, o->decimal));
	CHOIR_TRY(chi_files_paths(&c->paths, csv_stage.name, path, o->files));
	CHOIR_TRY(chi_csv_schema_set(&c->schema, o));
	CHOIR_TRY(chi_csv_rows_init(&c->rows, &c->paths, separator, quote));
	CHOIR_TRY(chi_csv_open(&c->rows));
	if (o->find_separator && !o->separator && c->schema.header)
		CHOIR_TRY(chi_csv_find_separator(&c->rows));
	if (check_seek_index(c->rows.separator, quote, o->decimal) != CHOIR_OK)
		return chi_error_prefix("%s", c->paths.path[0]);
	c->schema.numbers_missing =
			c->schema.numbers_missing || c->rows.separator == c->schema.decimal;
	c->schema.file = c->paths.path[0];
	CHOIR_TRY(chi_csv_read_names(&c->rows, &c->schema));
	CHOIR_TRY(chi_csv_choose(&c->schema, o));
	c->schema.looked = needs_infer(&c->schema, o);
	if (c->schema.looked)
		CHOIR_TRY(find_schema(c, o));
	chi_csv_rows_rewind(&c->rows);
	return CHOIR_OK;
}

static size_t add_number(size_t n, choir_column columns[CHI_MAX_COLUMNS], const char *name)
{
	bool taken = n == CHI_MAX_COLUMNS;
	for (size_t i = 0; i < n && !taken; i++)
		taken = strcmp(columns[i].name, name) == 0;
	if (taken) {
		choir_fail(CHOIR_INVALID,
				"csv dataset: row_number \"%s\": a column has this name, "
				"or there are already %d columns",
				name, CHI_MAX_COLUMNS);
		return 0;
	}
	columns[n] = (choir_column){ .name = name, .dtype = CHOIR_I64, .shape = CHOIR_SCALAR };
	return n + 1;
}

// Empties c.
static csv *make(csv *c, const choir_csv_options *o)
{
	choir_column columns[CHI_MAX_COLUMNS];
	size_t n = chi_csv_place_columns(&c->schema, o, columns);
	if (n > 0 && o->row_number && !(n = add_number(n, columns, o->row_number)))
		return NULL;
	csv *made = n ? chi_source_new(&csv_stage, sizeof *made, n, columns, CHOIR_UNKNOWN_CARDINALITY)
				  : NULL;
	if (!made)
		return NULL;
	c->base = made->base;
	*made = *c;
	*c = (csv){ .base.stage = &csv_stage };
	chi_places_init(&made->places, &made->base);
	made->base.paths = &made->paths;
	made->rows.paths = &made->paths;
	made->numbered = o->row_number != NULL;
	made->base.files = (int64_t) made->paths.n;
	for (size_t i = 0; i < made->schema.n; i++) {
		chi_csv_field *f = &made->schema.field[i];
		f->as = NULL;
		// gathered columns have categories per field
		if (f->category && columns[f->target].shape.rank == 0)
			made->base.spec.categories[f->target] = f->categories;
	}
	if (chi_row_buffer_new(&made->base, 1, &made->base.rows))
		return made;
	return chi_dataset_discard(&made->base);
}

choir_dataset *choir_csv_dataset_new(const char *path, const choir_csv_options *o)
{
	choir_csv_options options;
	if (chi_options_take("csv dataset: the options'", &options, sizeof options, o) != CHOIR_OK)
		return NULL;
	csv c = { .base.stage = &csv_stage };
	csv *made = prepare(&c, path, &options) == CHOIR_OK ? make(&c, &options) : NULL;
	release(&c);
	return made ? &made->base : NULL;
}

const chi_csv_schema *chi_csv_schema_of(const choir_dataset *d)
{
	return d && d->stage == &csv_stage ? &((const csv *) d)->schema : NULL;
}

const char *choir_csv_dataset_category(const choir_dataset *d, size_t i, size_t k)
{
	const chi_csv_schema *s = chi_csv_schema_of(d);
	if (!s || i >= s->n)
		return NULL;
	const chi_csv_field *f = &s->field[i];
	return f->wanted && f->categories ? chi_categories_text(f->categories, k) : NULL;
}

char choir_csv_dataset_separator(const choir_dataset *d)
{
	return d && d->stage == &csv_stage ? ((const csv *) d)->rows.separator : '\0';
}
