// What the files of the CSV source share: the rows of its files one after another (csv_rows.c),
// what its columns hold (csv_infer.c), which of them go where (csv_columns.c), and the source
// itself (csv.c).
#pragma once

#include "base/glob.h"
#include "data/source/csv/categories.h"
#include "data/source/reader.h"
#include "data/stage.h"

// A field: text of the buffer, without its quotes, or of the scratch where quotes were doubled
// within. Behind it is a byte that belongs to no number.
typedef struct {
	const char *text;
	size_t length;
	bool quoted;
} chi_csv_text;

typedef enum {
	CHI_CSV_NEXT, // a separator came behind the field
	CHI_CSV_LAST, // the row ended
	CHI_CSV_MORE, // the buffer ended: the row is to be read again when there is more of it
	CHI_CSV_BAD // rows->fault says why, at the place where it was found
} chi_csv_end;

// The rows of several files.
typedef struct {
	const chi_glob *paths;
	size_t file; // the next to be opened
	chi_reader *reader; // NULL: none is open
	char separator, quote;
	unsigned char stops[256]; // bytes at which a field without quotes ends, or is wrong
	char *buffer; // room + 1 bytes
	size_t capacity, length; // a zero byte stands behind length bytes
	size_t at; // where the next row begins
	bool ended; // the file has nothing more than the buffer
	uint64_t offset; // of the file: of the buffer's first byte
	int64_t row; // of the file: number of the next, from 1; 0: the header
	char *scratch; // for a field with doubled quotes
	size_t scratch_capacity;
	const char *fault;
} chi_csv_rows;

choir_status chi_csv_rows_init(chi_csv_rows *r, const chi_glob *paths, char separator, char quote);
void chi_csv_rows_free(chi_csv_rows *r);
void chi_csv_rows_rewind(chi_csv_rows *r); // to before the first file
// Opens the next file, at its first row, which may be a header. CHOIR_END: there is none.
choir_status chi_csv_open(chi_csv_rows *r);
// Goes to a byte of the open file at which row begins. CHOIR_INVALID: none can begin there.
choir_status chi_csv_jump(chi_csv_rows *r, int64_t byte, int64_t row);
// Sees to it that a row begins at r->at, empty lines passed over. CHOIR_END: the file has none.
choir_status chi_csv_begin(chi_csv_rows *r);
// Takes the field at *p, which moves behind it and its separator or line end.
chi_csv_end chi_csv_take(chi_csv_rows *r, const char **p, chi_csv_text *field);
// Reads on behind what is in the buffer.
choir_status chi_csv_refill(chi_csv_rows *r);
// Whether the row at r->at is longer than any can be.
bool chi_csv_full(const chi_csv_rows *r);
// Passes over the row at r->at, whatever is wrong with it.
choir_status chi_csv_pass_row(chi_csv_rows *r);
// The name of the open file, fit for a message.
const char *chi_csv_name(const chi_csv_rows *r);
// The place of a byte of the buffer in its file.
unsigned long long chi_csv_place(const chi_csv_rows *r, const char *p);

// What the fields of a column are, each kind including those before it.
typedef enum { CHI_CSV_NOTHING, CHI_CSV_WHOLE, CHI_CSV_REAL, CHI_CSV_TEXT } chi_csv_found;

// A column of the files, of which there may be a million.
typedef struct {
	const char *name; // of the schema's names
	const choir_csv_column *as; // what the options say, while the source is made; NULL: not listed
	chi_categories *categories; // owned
	int64_t missing; // fields of those rows
	uint32_t offset; // bytes within the dataset's example
	uint8_t target; // the dataset's column
	uint8_t found; // a chi_csv_found, of the rows that were looked at
	uint8_t dtype; // a choir_dtype
	bool wanted : 1, category : 1;
	bool again : 1; // texts came behind numbers: the categories are not complete
} chi_csv_field;

// What does not change once the source is made.
typedef struct {
	const char *file; // the first one, for messages while the source is made
	size_t n;
	chi_csv_field *field;
	chi_categories *names; // of the fields, whose numbers they have; owned
	size_t capacity; // of field
	bool header, skip; // skip: rows that are wrong
	bool row_names; // rows begin with a name, which is in no column
	bool open_end; // rows may end with a separator
	choir_missing missing;
	size_t missing_texts;
	char **missing_text;
	bool may_be_missing[256]; // the first bytes of those texts
	bool numbers_missing; // one of those texts is a number
	int64_t infer_rows;
} chi_csv_schema;

// Passes over the name that the row at *p begins with, if rows have any. CHI_CSV_NEXT: the first
// field is next.
chi_csv_end chi_csv_lead(chi_csv_rows *r, const chi_csv_schema *s, const char **p);
// Passes over the separator that a row may end with; how the last field ended, how the row did.
chi_csv_end chi_csv_close(
		chi_csv_rows *r, const chi_csv_schema *s, const char **p, chi_csv_end how);
// How the options say that a column is to be taken, and how many texts they list for it.
static inline choir_csv_kind chi_csv_kind(const chi_csv_field *f)
{
	return f->as ? f->as->kind : CHOIR_CSV_INFER;
}
static inline size_t chi_csv_listed(const chi_csv_field *f)
{
	return f->as ? f->as->categories : 0;
}
// What was found in a column, in words.
const char *chi_csv_holds(chi_csv_found found);
// Makes s->field from the first row of the first file, which is open.
choir_status chi_csv_read_names(chi_csv_rows *r, chi_csv_schema *s);
// Holds the header of a later file against the names.
choir_status chi_csv_check_names(chi_csv_rows *r, const chi_csv_schema *s);
// Looks at the rows of all files, for what is not given. The rows end where they began.
choir_status chi_csv_infer(chi_csv_rows *r, chi_csv_schema *s);
// Takes instead what another dataset inferred. *taken: false: it lacks categories that are wanted.
// CHOIR_INVALID: the names are not the same.
choir_status chi_csv_adopt(chi_csv_schema *s, const chi_csv_schema *from, bool *taken);
// The number of the field so named, or s->n.
size_t chi_csv_find_field(const chi_csv_schema *s, const char *name);
bool chi_csv_is_missing(const chi_csv_schema *s, const chi_csv_text *field);
// inf, -inf and nan, in any case.
bool chi_csv_not_finite(const chi_csv_text *field, double *value);
// A field in words, fit for a message, cut where it is long.
enum { CHI_CSV_SHOWN = 40, CHI_CSV_SHOWN_SIZE = 4 * CHI_CSV_SHOWN };
const char *chi_csv_show(const chi_csv_text *field, char out[CHI_CSV_SHOWN_SIZE]);
// Records what is wrong with the row at r->at, found at p. NULL p: at the row's beginning.
choir_status chi_csv_wrong(const chi_csv_rows *r, const char *p, const char *fmt, ...)
		CHOIR_PRINTF(3, 4);

void chi_csv_schema_free(chi_csv_schema *s);
// What the options say of missing values and of the columns that are wanted, before and after
// the look.
choir_status chi_csv_schema_set(chi_csv_schema *s, const choir_csv_options *o);
choir_status chi_csv_choose(chi_csv_schema *s, const choir_csv_options *o);
// Where the fields go: fills columns and gives how many there are; 0: an error.
size_t chi_csv_place_columns(
		chi_csv_schema *s, const choir_csv_options *o, choir_column columns[CHI_MAX_COLUMNS]);
