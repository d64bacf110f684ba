// The CSV source: rows (csv_rows.c), type inference (csv_infer.c), choice of columns
// (csv_columns.c), and the source itself (csv.c).
#pragma once

#include "base/glob.h"
#include "data/source/csv/categories.h"
#include "data/source/reader.h"
#include "data/stage.h"

// A field without quotes, in the buffer; in scratch if it has doubled quotes. The byte after it
// belongs to no number.
typedef struct {
	const char *text;
	size_t length;
	bool quoted;
} chi_csv_text;

typedef enum {
	CHI_CSV_NEXT, // a separator followed
	CHI_CSV_LAST, // the row ended
	CHI_CSV_MORE, // the buffer ended: read the row again
	CHI_CSV_BAD // see rows->fault
} chi_csv_end;

typedef struct {
	const chi_glob *paths;
	size_t file;
	chi_reader *reader;
	char separator, quote;
	unsigned char stops[256]; // end an unquoted field, or are wrong
	char *buffer; // capacity + 1 bytes
	size_t capacity, length; // then a zero byte
	size_t at; // the next row
	bool ended; // no more to read
	uint64_t offset;
	int64_t row; // next row of the file, from 1; 0: header
	char *scratch;
	size_t scratch_capacity;
	const char *fault;
} chi_csv_rows;

choir_status chi_csv_rows_init(chi_csv_rows *r, const chi_glob *paths, char separator, char quote);
void chi_csv_rows_free(chi_csv_rows *r);
void chi_csv_rows_rewind(chi_csv_rows *r);
// Opens the next file at its first row or header. CHOIR_END: no more files.
choir_status chi_csv_open(chi_csv_rows *r);
// CHOIR_INVALID: no row begins at byte.
choir_status chi_csv_jump(chi_csv_rows *r, int64_t byte, int64_t row);
// Skips empty lines. CHOIR_END: no more rows.
choir_status chi_csv_begin(chi_csv_rows *r);
// Reads the field at *p, and moves *p past its separator or line end.
chi_csv_end chi_csv_take(chi_csv_rows *r, const char **p, chi_csv_text *field);
choir_status chi_csv_refill(chi_csv_rows *r);
// Whether the row exceeds the maximum length.
bool chi_csv_full(const chi_csv_rows *r);
choir_status chi_csv_pass_row(chi_csv_rows *r);
// Gives the file's name, fit for a message.
const char *chi_csv_name(const chi_csv_rows *r);
unsigned long long chi_csv_place(const chi_csv_rows *r, const char *p);

// The type of a column. Real numbers include whole ones, text includes all.
typedef enum {
	CHI_CSV_NOTHING,
	CHI_CSV_WHOLE,
	CHI_CSV_REAL,
	CHI_CSV_DATE,
	CHI_CSV_TEXT
} chi_csv_found;

// A column of the files; there may be a million.
typedef struct {
	const char *name; // in the schema's names
	const choir_csv_column *as; // options, during construction; or NULL
	chi_categories *categories;
	int64_t missing;
	uint32_t offset;
	uint32_t width; // values in the row, without the indicator
	uint8_t target;
	uint8_t found; // chi_csv_found
	uint8_t dtype;
	bool wanted : 1, category : 1, one_hot : 1, date : 1, indicator : 1, drop : 1;
	bool again : 1; // texts came after numbers: categories are incomplete
	bool other : 1; // not listed; gathered if it can be
	bool many : 1; // other: too many texts
} chi_csv_field;

// Constant once the source is made.
typedef struct {
	const char *file;
	size_t n;
	chi_csv_field *field;
	chi_categories *names; // of the fields; owned
	size_t capacity;
	bool header, skip; // skip: bad rows
	bool row_names; // rows begin with a name, not a column
	bool open_end; // rows may end with a separator
	choir_missing missing;
	size_t missing_texts;
	char **missing_text;
	bool may_be_missing[256]; // their first bytes
	bool numbers_missing; // one is a number
	int64_t infer_rows;
	int64_t rows; // that inference has read
	size_t other_categories; // as in the options
	bool other_dates;
} chi_csv_schema;

// Skips the name at the start of a row, if any.
chi_csv_end chi_csv_lead(chi_csv_rows *r, const chi_csv_schema *s, const char **p);
// Skips a separator that may end a row. how: the end of the last field. Gives the end of the row.
chi_csv_end chi_csv_close(
		chi_csv_rows *r, const chi_csv_schema *s, const char **p, chi_csv_end how);
// Give the column's kind in the options, and the number of texts listed there.
static inline choir_csv_kind chi_csv_kind(const chi_csv_field *f)
{
	return f->as ? f->as->kind : CHOIR_CSV_INFER;
}
static inline size_t chi_csv_listed(const chi_csv_field *f)
{
	return f->as ? f->as->categories : 0;
}
const char *chi_csv_holds(chi_csv_found found);
// Whether the texts of the column must be collected, if it holds found.
bool chi_csv_needs_texts(const chi_csv_field *f, chi_csv_found found);
// Makes s->field from the first row of the open file.
choir_status chi_csv_read_names(chi_csv_rows *r, chi_csv_schema *s);
// Compares a later file's header with the names.
choir_status chi_csv_check_names(chi_csv_rows *r, const chi_csv_schema *s);
// Reads rows of all files to infer what the options leave open. Rewinds r.
choir_status chi_csv_infer(chi_csv_rows *r, chi_csv_schema *s);
// Copies an inferred schema. *taken false: wanted categories are missing. CHOIR_INVALID: other
// names.
choir_status chi_csv_adopt(chi_csv_schema *s, const chi_csv_schema *from, bool *taken);
// Gives s->n if there is no such field.
size_t chi_csv_find_field(const chi_csv_schema *s, const char *name);
bool chi_csv_is_missing(const chi_csv_schema *s, const chi_csv_text *field);
// Whether the field is inf, -inf or nan, in any case.
bool chi_csv_not_finite(const chi_csv_text *field, double *value);
enum { CHI_CSV_SHOWN = 40, CHI_CSV_SHOWN_SIZE = 4 * CHI_CSV_SHOWN };
const char *chi_csv_show(const chi_csv_text *field, char out[CHI_CSV_SHOWN_SIZE]);
// Records a fault of the row at r->at. p: its place, or NULL.
choir_status chi_csv_wrong(const chi_csv_rows *r, const char *p, const char *fmt, ...)
		CHOIR_PRINTF(3, 4);

void chi_csv_schema_free(chi_csv_schema *s);
// set before the inference, choose after it.
choir_status chi_csv_schema_set(chi_csv_schema *s, const choir_csv_options *o);
choir_status chi_csv_choose(chi_csv_schema *s, const choir_csv_options *o);
// Fills columns and gives their number; 0: an error.
size_t chi_csv_place_columns(
		chi_csv_schema *s, const choir_csv_options *o, choir_column columns[CHI_MAX_COLUMNS]);
