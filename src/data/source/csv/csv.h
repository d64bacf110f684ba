// The CSV source.
#pragma once

#include "base/glob.h"
#include "data/source/csv/categories.h"
#include "data/source/csv/decimal.h"
#include "data/source/reader.h"
#include "data/dataset.h"

// Without quotes, in the buffer or, if quotes were doubled, in scratch. No number continues behind
// it.
typedef struct {
	const char *text;
	size_t length;
} chi_csv_text;

typedef enum {
	CHI_CSV_NEXT,
	CHI_CSV_LAST,
	CHI_CSV_MORE, // the buffer ended: read the row again
	CHI_CSV_BAD
} chi_csv_end;

typedef struct {
	const chi_glob *paths;
	size_t file;
	chi_reader *reader;
	char separator, quote;
	unsigned char stops[256]; // end an unquoted field, or are wrong
	char *buffer;
	size_t capacity, length;
	size_t at;
	bool ended;
	bool named_separator; // by a first line "sep=;"
	uint64_t offset;
	int64_t row; // next, from 1; 0: header
	char *scratch;
	size_t scratch_capacity;
	const char *fault;
} chi_csv_rows;

choir_status chi_csv_rows_init(chi_csv_rows *r, const chi_glob *paths, char separator, char quote);
void chi_csv_rows_free(chi_csv_rows *r);
void chi_csv_set_separator(chi_csv_rows *r, char separator);
// Of the opened file, whose header is whole in the buffer, else ','.
choir_status chi_csv_find_separator(chi_csv_rows *r);
void chi_csv_rows_rewind(chi_csv_rows *r);
// At the first row or header. CHOIR_END: no more files.
choir_status chi_csv_open(chi_csv_rows *r);
// CHOIR_INVALID: no row begins at byte.
choir_status chi_csv_jump(chi_csv_rows *r, int64_t byte, int64_t row);
choir_status chi_csv_begin(chi_csv_rows *r);
// Moves *p past the separator.
chi_csv_end chi_csv_take(chi_csv_rows *r, const char **p, chi_csv_text *field);
choir_status chi_csv_refill(chi_csv_rows *r);
bool chi_csv_full(const chi_csv_rows *r);
choir_status chi_csv_pass_row(chi_csv_rows *r);
const char *chi_csv_name(const chi_csv_rows *r);
unsigned long long chi_csv_place(const chi_csv_rows *r, const char *p);

// Real numbers include whole ones, text includes all.
typedef enum {
	CHI_CSV_NOTHING,
	CHI_CSV_WHOLE,
	CHI_CSV_REAL,
	CHI_CSV_DATE,
	CHI_CSV_TEXT
} chi_csv_found;

// Values of a text column that are not of a kind, and the first one.
enum { CHI_CSV_ODD_NUMBER, CHI_CSV_ODD_DATE, CHI_CSV_ODD_COMMA, CHI_CSV_ODD_MARKED, CHI_CSV_ODDS };
enum { CHI_CSV_SHOWN = 40, CHI_CSV_SHOWN_SIZE = 4 * CHI_CSV_SHOWN };
typedef struct {
	int64_t n, row;
	int64_t same; // as the first one
	char text[CHI_CSV_SHOWN];
} chi_csv_odd;
// Whether these are the exception in so many values: few or, also, one text in at most half.
bool chi_csv_is_rare(const chi_csv_odd *odd, int64_t values, bool few);

typedef struct {
	const char *name;
	const choir_csv_column *as;
	chi_categories *categories;
	chi_categories *keys; // of classes that are numbers: their values, in the same order
	chi_csv_odd *odd; // CHI_CSV_ODDS, of a text column
	int64_t missing;
	uint32_t offset;
	uint32_t width; // without the indicator
	uint8_t target;
	uint8_t found;
	uint8_t dtype;
	bool wanted : 1, category : 1, one_hot : 1, date : 1, indicator : 1, drop : 1, optional : 1;
	bool again : 1; // texts came after numbers: incomplete
	bool other : 1; // unlisted; gathered if possible
	bool many : 1; // other: too many texts
	bool text : 1; // other: by the options
	bool classes : 1;
	bool plain : 1; // classes: numbers that are no categories
	bool words : 1; // odd is incomplete: texts are not the exception
	bool grouped : 1; // a number has thousands separators
	bool not_utf8 : 1; // left out for odd[CHI_CSV_ODD_NUMBER]
} chi_csv_field;

// Constant once the source is made.
typedef struct {
	const char *file;
	size_t n;
	chi_csv_field *field;
	chi_categories *names;
	size_t capacity;
	bool header, skip; // skip: bad rows
	bool row_names;
	bool open_end;
	choir_missing missing;
	size_t missing_texts;
	char **missing_text;
	bool may_be_missing[256];
	bool numbers_missing; // or fields must be bounded before their numbers are parsed
	bool finite;
	char decimal;
	int64_t infer_rows;
	bool looked; // at the files
	int64_t rows, bad;
	size_t other_categories;
	bool other_dates;
} chi_csv_schema;

chi_csv_end chi_csv_lead(chi_csv_rows *r, const chi_csv_schema *s, const char **p);
// how: the end of the last field.
chi_csv_end chi_csv_close(
		chi_csv_rows *r, const chi_csv_schema *s, const char **p, chi_csv_end how);
// In the options, and their number of texts.
static inline choir_csv_kind chi_csv_kind(const chi_csv_field *f)
{
	return f->as ? f->as->kind : CHOIR_CSV_INFER;
}
static inline size_t chi_csv_listed(const chi_csv_field *f)
{
	return f->as ? f->as->categories : 0;
}
const char *chi_csv_holds(chi_csv_found found);
bool chi_csv_needs_texts(const chi_csv_field *f, chi_csv_found found);
choir_status chi_csv_read_names(chi_csv_rows *r, chi_csv_schema *s);
choir_status chi_csv_check_names(chi_csv_rows *r, const chi_csv_schema *s);
// Infers all that the options leave open. Rewinds r.
choir_status chi_csv_infer(chi_csv_rows *r, chi_csv_schema *s);
// *taken false: categories are missing. CHOIR_INVALID: other names.
choir_status chi_csv_adopt(chi_csv_schema *s, const chi_csv_schema *from, bool *taken);
enum { CHI_MAX_REAL_CLASSES = 4096 };
// Makes keys for numbers. Inferred ones are first made distinct by value and sorted, or forgotten
// if 0 to n - 1.
choir_status chi_csv_infer_classes(chi_csv_schema *s, chi_csv_field *f);
choir_status chi_csv_key_classes(const chi_csv_schema *s, chi_csv_field *f);
int32_t chi_csv_find_class(
		const chi_csv_schema *s, const chi_csv_field *f, const chi_csv_text *field);
// s->n: none.
size_t chi_csv_find_field(const chi_csv_schema *s, const char *name);
enum { CHI_CSV_NO_POINT = 1 }; // as the decimal point of whole numbers
// The thousands separator.
char chi_csv_group_mark(const chi_csv_schema *s);
bool chi_csv_number(const chi_csv_schema *s, const chi_csv_text *field, chi_decimal *d);
bool chi_csv_is_missing(const chi_csv_schema *s, const chi_csv_text *field);
bool chi_csv_not_finite(const chi_csv_text *field, double *value);
const char *chi_csv_show(const chi_csv_text *field, char out[CHI_CSV_SHOWN_SIZE]);
// A fault of the row at r->at. p: its place, or NULL.
choir_status chi_csv_wrong(const chi_csv_rows *r, const char *p, const char *fmt, ...)
		CHOIR_PRINTF(3, 4);

// NULL: d is not a CSV dataset.
const chi_csv_schema *chi_csv_schema_of(const choir_dataset *d);
void chi_csv_schema_free(chi_csv_schema *s);
// before and after the inference
choir_status chi_csv_schema_set(chi_csv_schema *s, const choir_csv_options *o);
choir_status chi_csv_choose(chi_csv_schema *s, const choir_csv_options *o);
// 0: an error.
size_t chi_csv_place_columns(
		chi_csv_schema *s, const choir_csv_options *o, choir_column columns[CHI_MAX_COLUMNS]);
