// The CSV source: rows (csv_rows.c), type inference (csv_infer.c), choice of columns
// (csv_columns.c), and the source itself (csv.c).
#pragma once

#include "base/glob.h"
#include "data/source/csv/categories.h"
#include "data/source/reader.h"
#include "data/stage.h"

// A field without its quotes. It lies in the buffer, or in scratch if it has doubled quotes. The
// byte after it belongs to no number.
typedef struct {
	const char *text;
	size_t length;
	bool quoted;
} chi_csv_text;

typedef enum {
	CHI_CSV_NEXT, // a separator followed
	CHI_CSV_LAST, // the row ended
	CHI_CSV_MORE, // the buffer ended: read the row again
	CHI_CSV_BAD // rows->fault says why, at its place
} chi_csv_end;

typedef struct {
	const chi_glob *paths;
	size_t file;
	chi_reader *reader; // NULL: none is open
	char separator, quote;
	unsigned char stops[256]; // bytes that end an unquoted field, or are wrong
	char *buffer; // capacity + 1 bytes
	size_t capacity, length; // a zero byte follows length bytes
	size_t at; // where the next row begins
	bool ended; // the buffer has the rest of the file
	uint64_t offset; // file offset of the buffer's first byte
	int64_t row; // of the next row in its file, from 1; 0: the header
	char *scratch; // for a field with doubled quotes
	size_t scratch_capacity;
	const char *fault;
} chi_csv_rows;

choir_status chi_csv_rows_init(chi_csv_rows *r, const chi_glob *paths, char separator, char quote);
void chi_csv_rows_free(chi_csv_rows *r);
void chi_csv_rows_rewind(chi_csv_rows *r); // to before the first file
// Opens the next file, at its first row, which may be a header. CHOIR_END: there is none.
choir_status chi_csv_open(chi_csv_rows *r);
// Moves to a byte where row begins. CHOIR_INVALID: no row can begin there.
choir_status chi_csv_jump(chi_csv_rows *r, int64_t byte, int64_t row);
// Skips empty lines before the next row. CHOIR_END: there is none.
choir_status chi_csv_begin(chi_csv_rows *r);
// Reads the field at *p, and moves *p past it and its separator or line end.
chi_csv_end chi_csv_take(chi_csv_rows *r, const char **p, chi_csv_text *field);
choir_status chi_csv_refill(chi_csv_rows *r);
// Whether the row at r->at exceeds the maximum length.
bool chi_csv_full(const chi_csv_rows *r);
// Skips a row, whatever its faults.
choir_status chi_csv_pass_row(chi_csv_rows *r);
// The open file's name, fit for a message.
const char *chi_csv_name(const chi_csv_rows *r);
unsigned long long chi_csv_place(const chi_csv_rows *r, const char *p);

// The type of a column's fields; each includes those before it.
typedef enum { CHI_CSV_NOTHING, CHI_CSV_WHOLE, CHI_CSV_REAL, CHI_CSV_TEXT } chi_csv_found;

// A column of the files, of which there may be a million.
typedef struct {
	const char *name; // in the schema's names
	const choir_csv_column *as; // its options, during construction; NULL: not listed
	chi_categories *categories;
	int64_t missing; // missing fields in the inferred rows
	uint32_t offset; // within the dataset's example
	uint8_t target;
	uint8_t found; // a chi_csv_found of the inferred rows
	uint8_t dtype;
	bool wanted : 1, category : 1;
	bool again : 1; // texts came after numbers: categories are incomplete
} chi_csv_field;

// Constant once the source is made.
typedef struct {
	const char *file; // for messages during construction
	size_t n;
	chi_csv_field *field;
	chi_categories *names; // of the fields; owned
	size_t capacity;
	bool header, skip; // skip: bad rows
	bool row_names; // rows begin with a name, which is not a column
	bool open_end; // rows may end with a separator
	choir_missing missing;
	size_t missing_texts;
	char **missing_text;
	bool may_be_missing[256]; // first bytes of those texts
	bool numbers_missing; // one of them is a number
	int64_t infer_rows;
} chi_csv_schema;

// Skips the name at the start of a row, if rows have one.
chi_csv_end chi_csv_lead(chi_csv_rows *r, const chi_csv_schema *s, const char **p);
// Skips a separator that may end a row. how: how the last field ended. Gives how the row ended.
chi_csv_end chi_csv_close(
		chi_csv_rows *r, const chi_csv_schema *s, const char **p, chi_csv_end how);
// A column's kind in the options, and how many texts they list.
static inline choir_csv_kind chi_csv_kind(const chi_csv_field *f)
{
	return f->as ? f->as->kind : CHOIR_CSV_INFER;
}
static inline size_t chi_csv_listed(const chi_csv_field *f)
{
	return f->as ? f->as->categories : 0;
}
const char *chi_csv_holds(chi_csv_found found);
// Makes s->field from the first row of the open file.
choir_status chi_csv_read_names(chi_csv_rows *r, chi_csv_schema *s);
// Compares the header of a later file with the names.
choir_status chi_csv_check_names(chi_csv_rows *r, const chi_csv_schema *s);
// Infers from the rows of all files what the options leave open. Rewinds r.
choir_status chi_csv_infer(chi_csv_rows *r, chi_csv_schema *s);
// Copies an inferred schema. *taken false: it lacks categories that are wanted. CHOIR_INVALID: it
// has other names.
choir_status chi_csv_adopt(chi_csv_schema *s, const chi_csv_schema *from, bool *taken);
// Gives the field's index, or s->n.
size_t chi_csv_find_field(const chi_csv_schema *s, const char *name);
bool chi_csv_is_missing(const chi_csv_schema *s, const chi_csv_text *field);
// Whether the field is inf, -inf or nan, in any case.
bool chi_csv_not_finite(const chi_csv_text *field, double *value);
enum { CHI_CSV_SHOWN = 40, CHI_CSV_SHOWN_SIZE = 4 * CHI_CSV_SHOWN };
const char *chi_csv_show(const chi_csv_text *field, char out[CHI_CSV_SHOWN_SIZE]);
// Records a fault of the row at r->at. p: its place; NULL: the row's start.
choir_status chi_csv_wrong(const chi_csv_rows *r, const char *p, const char *fmt, ...)
		CHOIR_PRINTF(3, 4);

void chi_csv_schema_free(chi_csv_schema *s);
// set comes before the inference, choose after it.
choir_status chi_csv_schema_set(chi_csv_schema *s, const choir_csv_options *o);
choir_status chi_csv_choose(chi_csv_schema *s, const choir_csv_options *o);
// Fills columns and gives their number; 0: an error.
size_t chi_csv_place_columns(
		chi_csv_schema *s, const choir_csv_options *o, choir_column columns[CHI_MAX_COLUMNS]);
