// The columns, and the destination of each field.
#include "data/source/csv/csv.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "data/source/csv/decimal.h"
#include "tensor/tensor.h"

static const char *const usual_missing[] = { "NA", "N/A", "NaN", "nan", "null", "NULL", "n/a",
	"None", "#N/A", "<NA>" };
enum { USUAL_MISSING = sizeof usual_missing / sizeof usual_missing[0] };
enum { MAX_KNOWN = 2048 };

choir_status chi_csv_schema_set(chi_csv_schema *s, const choir_csv_options *o)
{
	const size_t n = o->missing_texts ? o->missing_texts : USUAL_MISSING;
	const char *const *text = o->missing_texts ? o->missing_text : usual_missing;
	if (!text || (o->columns && !o->column) || (o->other_texts && !o->other_text))
		return choir_fail(CHOIR_INVALID,
				"csv dataset: missing_text, other_text or column is NULL, but its count is not 0");
	if (o->infer_rows < 0)
		return choir_fail(CHOIR_INVALID, "csv dataset: infer_rows is %lld; 0 or more needed",
				(long long) o->infer_rows);
	s->header = o->header != CHOIR_OFF;
	s->skip = o->bad_record == CHOIR_BAD_RECORD_SKIP;
	s->missing = o->missing;
	s->infer_rows = o->infer_rows;
	s->finite = o->finite;
	s->decimal = o->decimal ? o->decimal : '.';
	s->other_categories = o->other_columns ? o->other_categories : 0;
	s->other_dates = o->other_columns && o->other_dates;
	s->missing_text = chi_alloc_array(n, sizeof *s->missing_text);
	CHOIR_TRY(chi_made(s->missing_text));
	for (size_t i = 0; i < n; i++) {
		chi_decimal d;
		s->missing_text[i] = chi_strdup(text[i] ? text[i] : "");
		CHOIR_TRY(chi_made(s->missing_text[i]));
		s->missing_texts++;
		s->may_be_missing[(unsigned char) s->missing_text[i][0]] = true;
		s->numbers_missing =
				s->numbers_missing || chi_decimal_read_with(s->missing_text[i], s->decimal, &d);
	}
	return CHOIR_OK;
}

void chi_csv_schema_free(chi_csv_schema *s)
{
	for (size_t i = 0; i < s->n; i++) {
		chi_categories_free(s->field[i].categories);
		chi_categories_free(s->field[i].keys);
		chi_free(s->field[i].odd);
	}
	chi_free(s->field);
	chi_categories_free(s->names);
	for (size_t i = 0; i < s->missing_texts; i++)
		chi_free(s->missing_text[i]);
	chi_free(s->missing_text);
}

const char *chi_csv_holds(chi_csv_found found)
{
	static const char *const words[] = { "nothing", "whole numbers", "numbers", "dates", "text" };
	return words[found];
}

static choir_status no_such_column(const chi_csv_schema *s, const char *name)
{
	char file[256];
	chi_text known = { NULL, 0, 0, false };
	for (size_t i = 0; i < s->n && known.length < MAX_KNOWN; i++)
		chi_text_add(&known, "%s\"%s\"", i ? ", " : "", s->field[i].name);
	const choir_status status = known.failed
			? choir_fail(CHOIR_NO_MEMORY, "csv dataset: out of memory")
			: choir_fail(CHOIR_NOT_FOUND, "%s: no column \"%s\"; the columns are %s",
					  chi_text_clean(s->file, file, sizeof file), name, known.data);
	chi_text_free(&known);
	return status;
}

static choir_status check_column(const choir_csv_column *c)
{
	const unsigned dtypes = 1u << CHOIR_F32 | 1u << CHOIR_F64 | 1u << CHOIR_I32 | 1u << CHOIR_I64 |
			1u << CHOIR_U8 | 1u << CHOIR_BOOL;
	if (!c->name)
		return choir_fail(CHOIR_INVALID, "csv dataset: a column has no name");
	if (c->kind == CHOIR_CSV_NUMBER &&
			((unsigned) c->dtype > CHOIR_BF16 || !(dtypes & 1u << c->dtype)))
		return choir_fail(CHOIR_UNSUPPORTED,
				"csv dataset: column \"%s\": dtype %s; f32, f64, i32, i64, u8 or bool needed",
				c->name, choir_dtype_name(c->dtype));
	const bool number = c->kind == CHOIR_CSV_NUMBER || c->kind == CHOIR_CSV_DATE;
	if (c->kind == CHOIR_CSV_DATE && c->dtype != CHOIR_F32 && c->dtype != CHOIR_F64)
		return choir_fail(CHOIR_UNSUPPORTED,
				"csv dataset: column \"%s\": dtype %s for dates; f32 or f64 needed", c->name,
				choir_dtype_name(c->dtype));
	if (c->optional &&
			(c->kind == CHOIR_CSV_ONE_HOT ||
					(c->kind == CHOIR_CSV_NUMBER &&
							(c->dtype == CHOIR_U8 || c->dtype == CHOIR_BOOL))))
		return choir_fail(CHOIR_UNSUPPORTED,
				"csv dataset: column \"%s\" is optional; numbers other than u8 and bool, dates or "
				"categories needed",
				c->name);
	if (c->indicator && c->kind != CHOIR_CSV_ONE_HOT && !(number && c->dtype == CHOIR_F32))
		return choir_fail(CHOIR_UNSUPPORTED,
				"csv dataset: column \"%s\": an indicator beside values that are not f32; "
				"numbers or dates of f32, or one-hot needed",
				c->name);
	if (c->categories &&
			((c->kind != CHOIR_CSV_CATEGORY && c->kind != CHOIR_CSV_CLASS &&
					 c->kind != CHOIR_CSV_ONE_HOT) ||
					!c->category))
		return choir_fail(CHOIR_INVALID, "csv dataset: column \"%s\": %zu categories given for %s",
				c->name, c->categories, c->category ? "a column of another kind" : "a NULL list");
	return CHOIR_OK;
}

static choir_status give_categories(const chi_csv_schema *s, chi_csv_field *f)
{
	f->categories = chi_categories_new();
	CHOIR_TRY(chi_made(f->categories));
	for (size_t i = 0; i < chi_csv_listed(f); i++) {
		const char *text = f->as->category[i];
		if (!text || chi_categories_find(f->categories, text, strlen(text)) >= 0)
			return choir_fail(CHOIR_INVALID, "csv dataset: column \"%s\": category \"%s\" is %s",
					f->name, text ? text : "(NULL)", text ? "listed twice" : "not a text");
		CHOIR_TRY(chi_categories_add(f->categories, text, strlen(text)));
	}
	return f->classes ? chi_csv_key_classes(s, f) : CHOIR_OK;
}

static choir_status choose_text(chi_csv_schema *s, const char *name)
{
	const size_t at = chi_csv_find_field(s, name);
	if (at == s->n)
		return no_such_column(s, name);
	if (!s->field[at].other)
		return choir_fail(CHOIR_INVALID,
				"csv dataset: column \"%s\" is in other_text and has a kind of its own; needs one "
				"of these",
				name);
	s->field[at].text = true;
	s->field[at].many = false;
	return CHOIR_OK;
}

choir_status chi_csv_choose(chi_csv_schema *s, const choir_csv_options *o)
{
	for (size_t i = 0; i < o->columns; i++) {
		const choir_csv_column *c = &o->column[i];
		CHOIR_TRY(check_column(c));
		const size_t at = chi_csv_find_field(s, c->name);
		if (at == s->n)
			return no_such_column(s, c->name);
		chi_csv_field *f = &s->field[at];
		if (f->wanted)
			return choir_fail(
					CHOIR_INVALID, "csv dataset: column \"%s\" is listed twice", c->name);
		f->wanted = true;
		f->as = c;
		f->classes = c->kind == CHOIR_CSV_CLASS;
		if (c->categories)
			CHOIR_TRY(give_categories(s, f));
	}
	for (size_t i = 0; i < s->n && !o->columns && !o->other_columns; i++)
		s->field[i].wanted = true;
	for (size_t i = 0; i < s->n && o->other_columns; i++)
		s->field[i].other = !s->field[i].wanted;
	for (size_t i = 0; i < s->n && s->other_categories == 0; i++)
		s->field[i].many = true;
	for (size_t i = 0; i < o->other_texts; i++)
		CHOIR_TRY(choose_text(s, o->other_text[i]));
	return CHOIR_OK;
}

static choir_status check_same_names(const chi_csv_schema *s, const chi_csv_schema *from)
{
	char file[256];
	chi_text_clean(s->file, file, sizeof file);
	if (s->n != from->n)
		return choir_fail(CHOIR_INVALID, "%s: %zu columns, the schema has %zu; both need the same",
				file, s->n, from->n);
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->field[i].name, from->field[i].name) != 0)
			return choir_fail(CHOIR_INVALID,
					"%s: column %zu is \"%s\", in the schema it is \"%s\"", file, i + 1,
					s->field[i].name, from->field[i].name);
	return CHOIR_OK;
}

bool chi_csv_needs_texts(const chi_csv_field *f, chi_csv_found found)
{
	const choir_csv_kind kind = chi_csv_kind(f);
	if (f->other)
		return found == CHI_CSV_TEXT && !f->many;
	if (f->classes)
		return chi_csv_listed(f) == 0 && (found >= CHI_CSV_DATE || !f->plain);
	return f->wanted && chi_csv_listed(f) == 0 &&
			(kind == CHOIR_CSV_CATEGORY || kind == CHOIR_CSV_ONE_HOT ||
					(kind == CHOIR_CSV_INFER && found >= CHI_CSV_DATE));
}

// Classes that are numbers have another order, and some are none.
static bool has_texts(const chi_csv_field *f, const chi_csv_field *from)
{
	const bool numbers = from->found < CHI_CSV_DATE;
	if (f->other)
		return from->many || from->categories;
	if (numbers && f->classes != from->classes)
		return false;
	return from->categories || (numbers && from->plain);
}

static choir_status copy_odd(chi_csv_field *f, const chi_csv_field *from)
{
	f->words = from->words;
	f->odd = from->odd ? chi_alloc_array(CHI_CSV_ODDS, sizeof *f->odd) : NULL;
	if (f->odd)
		memcpy(f->odd, from->odd, CHI_CSV_ODDS * sizeof *f->odd);
	return f->odd || !from->odd ? CHOIR_OK : CHOIR_NO_MEMORY;
}

choir_status chi_csv_adopt(chi_csv_schema *s, const chi_csv_schema *from, bool *taken)
{
	CHOIR_TRY(check_same_names(s, from));
	*taken = s->other_categories == 0 || s->other_categories == from->other_categories;
	for (size_t i = 0; i < s->n; i++)
		if (chi_csv_needs_texts(&s->field[i], (chi_csv_found) from->field[i].found) &&
				!has_texts(&s->field[i], &from->field[i]))
			*taken = false;
	s->rows = *taken ? from->rows : 0;
	s->bad = *taken ? from->bad : 0;
	for (size_t i = 0; i < s->n && *taken; i++) {
		chi_csv_field *f = &s->field[i];
		f->found = from->field[i].found;
		f->missing = from->field[i].missing;
		f->many = f->many || from->field[i].many;
		f->not_utf8 = from->field[i].not_utf8;
		f->grouped = from->field[i].grouped;
		f->plain = from->field[i].plain;
		CHOIR_TRY(copy_odd(f, &from->field[i]));
		if (!chi_csv_needs_texts(f, (chi_csv_found) f->found))
			continue;
		f->categories = chi_categories_copy(from->field[i].categories);
		CHOIR_TRY(chi_made(f->categories));
		if (f->classes && from->field[i].keys)
			CHOIR_TRY(chi_csv_key_classes(s, f));
	}
	return CHOIR_OK;
}

static size_t find(size_t n, const choir_column columns[], const char *name)
{
	size_t i = 0;
	while (i < n && strcmp(columns[i].name, name) != 0)
		i++;
	return i;
}

static bool is_shared(const choir_csv_options *o, const char *as)
{
	size_t n = 0;
	for (size_t i = 0; i < o->columns && as && n < 2; i++)
		n += o->column[i].output && strcmp(o->column[i].output, as) == 0;
	return n > 1;
}

static void decide(chi_csv_field *f, bool gathered)
{
	const choir_csv_kind kind = chi_csv_kind(f);
	f->one_hot = kind == CHOIR_CSV_ONE_HOT || (f->other && f->found == CHI_CSV_TEXT);
	f->date = kind == CHOIR_CSV_DATE || (f->other && f->found == CHI_CSV_DATE);
	f->category = f->one_hot || kind == CHOIR_CSV_CATEGORY || (f->classes && f->categories) ||
			(kind == CHOIR_CSV_INFER && !f->other && f->found >= CHI_CSV_DATE);
	f->width = f->one_hot ? (uint32_t) chi_categories_count(f->categories) : 1;
	const choir_dtype dtype = f->one_hot || (gathered && !f->category && !f->as) ? CHOIR_F32
			: f->category														 ? CHOIR_I32
			: kind == CHOIR_CSV_NUMBER || kind == CHOIR_CSV_DATE				 ? f->as->dtype
			: gathered															 ? CHOIR_F32
			: f->found == CHI_CSV_WHOLE											 ? CHOIR_I64
																				 : CHOIR_F64;
	f->dtype = (uint8_t) dtype;
}

static choir_status place(
		chi_csv_field *f, const char *as, bool gathered, size_t *n, choir_column columns[])
{
	decide(f, gathered);
	const bool several = gathered || f->one_hot || f->indicator;
	const size_t at = find(*n, columns, as);
	if (at == CHI_MAX_COLUMNS)
		return choir_fail(CHOIR_INVALID,
				"csv dataset: more than %d columns; gather several in one by "
				"other_columns or by the same output",
				CHI_MAX_COLUMNS);
	choir_column *c = &columns[at];
	if (at == *n) {
		*c = (choir_column){
			.name = as, .dtype = (choir_dtype) f->dtype, .shape = { .rank = several }
		};
		++*n;
	} else if (!several || !c->shape.rank || c->dtype != f->dtype) {
		return choir_fail(CHOIR_INVALID,
				"csv dataset: column \"%s\" is %s, but \"%s\", which gathers "
				"it, is %s; both need the same dtype",
				f->name, choir_dtype_name((choir_dtype) f->dtype), as, choir_dtype_name(c->dtype));
	}
	f->target = (uint8_t) at;
	f->offset = several
			? (uint32_t) c->shape.dim[0] * (uint32_t) chi_dtype_size((choir_dtype) f->dtype)
			: 0;
	c->shape.dim[0] += several ? f->width + f->indicator : 0;
	return f->width > 0
			? CHOIR_OK
			: choir_fail(CHOIR_INVALID,
					  "csv dataset: column \"%s\" has no value; one-hot needs one", f->name);
}

static choir_status nothing_left(const chi_csv_schema *s)
{
	char file[256];
	if (s->rows == 0)
		return choir_fail(CHOIR_INVALID, "%s: there are no rows behind the header; one needed",
				chi_text_clean(s->file, file, sizeof file));
	chi_text others = { NULL, 0, 0, false };
	if (s->n == 1)
		chi_text_add(&others, ": \"%s\" is the only column; is the separator another one?",
				s->field[0].name);
	for (size_t i = 0; i < s->n && s->n > 1 && others.length < MAX_KNOWN; i++) {
		const chi_csv_field *f = &s->field[i];
		const bool comma = f->odd && !f->words && f->odd[CHI_CSV_ODD_COMMA].n == 0;
		if (!f->wanted)
			chi_text_add(&others, "%s\"%s\" holds %s%s", others.length ? ", " : ": ", f->name,
					chi_csv_holds((chi_csv_found) f->found),
					comma ? " (numbers with a decimal comma)" : "");
	}
	const choir_status status = others.failed
			? choir_fail(CHOIR_NO_MEMORY, "csv dataset: out of memory")
			: choir_fail(CHOIR_INVALID, "%s: no column of numbers is left as input%s",
					  chi_text_clean(s->file, file, sizeof file), others.data ? others.data : "");
	chi_text_free(&others);
	return status;
}

static bool can_be_gathered(const chi_csv_schema *s, const chi_csv_field *f)
{
	return f->found == CHI_CSV_WHOLE || f->found == CHI_CSV_REAL ||
			(f->found == CHI_CSV_DATE && s->other_dates) || (f->found == CHI_CSV_TEXT && !f->many);
}

static choir_status place_rest(
		chi_csv_schema *s, const choir_csv_options *o, size_t *n, choir_column columns[])
{
	bool any = false;
	for (size_t i = 0; i < s->n; i++) {
		chi_csv_field *f = &s->field[i];
		if (!f->other || !can_be_gathered(s, f))
			continue;
		f->wanted = any = true;
		f->indicator = o->indicators && f->missing > 0;
		CHOIR_TRY(place(f, o->other_columns, true, n, columns));
	}
	return any ? CHOIR_OK : nothing_left(s);
}

size_t chi_csv_place_columns(
		chi_csv_schema *s, const choir_csv_options *o, choir_column columns[CHI_MAX_COLUMNS])
{
	size_t n = 0;
	for (size_t i = 0; i < o->columns; i++) {
		const choir_csv_column *c = &o->column[i];
		chi_csv_field *f = &s->field[chi_csv_find_field(s, c->name)];
		f->indicator = c->indicator;
		f->drop = c->drop_missing;
		f->optional = c->optional;
		if (place(f, c->output ? c->output : c->name, is_shared(o, c->output), &n, columns) !=
				CHOIR_OK)
			return 0;
	}
	for (size_t i = 0; i < s->n && !o->columns && !o->other_columns; i++)
		if (place(&s->field[i], s->field[i].name, false, &n, columns) != CHOIR_OK)
			return 0;
	if (o->other_columns && place_rest(s, o, &n, columns) != CHOIR_OK)
		return 0;
	return n;
}

// Of the k-th kind, with few exceptions.
static bool is_mostly(const chi_csv_field *f, size_t k, bool few, choir_csv_inferred *found)
{
	static const char *const kinds[] = { [CHI_CSV_ODD_NUMBER] = "numbers",
		[CHI_CSV_ODD_DATE] = "dates",
		[CHI_CSV_ODD_COMMA] = "numbers with a decimal comma",
		[CHI_CSV_ODD_MARKED] = "numbers with other characters" };
	const chi_csv_odd *odd = &f->odd[k];
	if (f->words || !chi_csv_is_rare(odd, found->values, few))
		return false;
	found->mostly = kinds[k];
	found->others = odd->n;
	if (k == CHI_CSV_ODD_MARKED) // the example is a value that is no number
		return true;
	found->other_row = odd->row;
	found->other = odd->row > 0 ? odd->text : NULL;
	return true;
}

bool choir_csv_dataset_column(const choir_dataset *d, size_t i, choir_csv_inferred *found)
{
	const chi_csv_schema *s = chi_csv_schema_of(d);
	if (!s || i >= s->n)
		return false;
	const chi_csv_field *f = &s->field[i];
	*found = (choir_csv_inferred){
		.name = f->name,
		.output = f->wanted ? d->spec.column[f->target].name : NULL,
		.holds = s->looked ? chi_csv_holds((chi_csv_found) f->found) : "",
		.missing = f->missing,
		.kind = f->one_hot	  ? CHOIR_CSV_ONE_HOT
				: f->category ? CHOIR_CSV_CATEGORY
				: f->date	  ? CHOIR_CSV_DATE
							  : CHOIR_CSV_NUMBER,
		.categories = f->wanted && f->categories ? chi_categories_count(f->categories) : 0,
		.indicator = f->indicator,
		.values = s->rows - s->bad - f->missing,
		.not_utf8 = f->not_utf8,
		.grouped = f->grouped,
	};
	if (!f->odd)
		return true;
	const chi_csv_odd *number = &f->odd[CHI_CSV_ODD_NUMBER];
	found->other_row = number->row;
	found->other = number->row > 0 ? number->text : NULL;
	const bool commas = f->grouped && f->odd[CHI_CSV_ODD_COMMA].n == 0;
	size_t k = f->not_utf8 ? 2 * CHI_CSV_ODDS : commas ? CHI_CSV_ODD_COMMA : 0;
	while (k < 2 * CHI_CSV_ODDS && !is_mostly(f, k % CHI_CSV_ODDS, k < CHI_CSV_ODDS, found))
		k++;
	return true;
}
