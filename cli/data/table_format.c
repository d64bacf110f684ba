// The options --separator, --decimal and --missing-values.
#include "data/table_format.h"

#include <string.h>

static const struct {
	char mark;
	const char *name;
} marks[] = { { ',', "comma" }, { ';', "semicolon" }, { '\t', "tab" }, { '|', "bar" } };
enum { MARKS = sizeof marks / sizeof marks[0] };

const char *const decimal_names[] = { "point", "comma", NULL };
const char separator_help[] = "csv: separator of the fields: comma, semicolon, tab, bar or one\n"
							  "character (tab for .tsv, else comma; semicolon or tab if the\n"
							  "header has no comma, but only one of these)";
const char decimal_help[] = "csv: decimal mark of numbers: point or comma (point)";
const char missing_values_help[] = "csv: texts that mean a missing value, as in '?,-'; none:\n"
								   "only an empty field (NA,N/A,NaN,nan,null,NULL,n/a,None,\n"
								   "#N/A,<NA>)";

static choir_status set_separator(table_format *f, const char *text)
{
	f->separator = text[0];
	if (text[0] != '\0' && text[1] == '\0')
		return CHOIR_OK;
	for (size_t i = 0; i < MARKS; i++)
		if (strcmp(text, marks[i].name) == 0) {
			f->separator = marks[i].mark;
			return CHOIR_OK;
		}
	return choir_fail(CHOIR_INVALID,
			"--separator %.40s: unknown; needs comma, semicolon, tab, bar or one character", text);
}

choir_status table_format_set(
		table_format *f, const char *separator, const char *decimal, const char *missing)
{
	size_t texts = 1;
	for (const char *p = missing; p != NULL && *p != '\0'; p++)
		texts += *p == ',';
	f->lists_missing = missing != NULL;
	if (missing != NULL && (strlen(missing) >= sizeof f->missing || texts > MAX_MISSING))
		return choir_fail(CHOIR_INVALID,
				"--missing-values: a list of %zu bytes and %zu texts; needs at most %d and %d",
				strlen(missing), texts, MISSING_SIZE - 1, MAX_MISSING);
	if (missing != NULL)
		strcpy(f->missing, strcmp(missing, "none") == 0 ? "" : missing);
	f->decimal = decimal != NULL && strcmp(decimal, "comma") == 0 ? ',' : '\0';
	return separator == NULL ? CHOIR_OK : set_separator(f, separator);
}

static bool has_tabs(const char *path)
{
	size_t n = strlen(path);
	if (n >= 3 && strcmp(path + n - 3, ".gz") == 0)
		n -= 3;
	return n >= 4 && strncmp(path + n - 4, ".tsv", 4) == 0;
}

void table_format_apply(
		const table_format *f, const char *path, choir_csv_options *o, missing_texts *texts)
{
	o->separator = f->separator != '\0' || !has_tabs(path) ? f->separator : '\t';
	o->find_separator = true;
	o->decimal = f->decimal;
	if (!f->lists_missing)
		return;
	strcpy(texts->list, f->missing);
	o->missing_text = texts->text;
	for (char *p = texts->list; p != NULL && o->missing_texts < MAX_MISSING;) {
		p += strspn(p, " ");
		char *end = p + strcspn(p, ",");
		char *next = *end == ',' ? end + 1 : NULL;
		while (end > p && end[-1] == ' ')
			end--;
		*end = '\0';
		texts->text[o->missing_texts++] = p;
		p = next;
	}
}

choir_status table_format_check(const table_format *f, const char *data)
{
	const char *given = f->separator != '\0' ? "--separator"
			: f->decimal != '\0'			 ? "--decimal"
			: f->lists_missing				 ? "--missing-values"
											 : NULL;
	return given == NULL ? CHOIR_OK
						 : choir_fail(CHOIR_INVALID,
								   "%s: data \"%s\" are no table; needs csv:FILE", given, data);
}

const char *table_separator_name(char separator, char text[2])
{
	for (size_t i = 0; i < MARKS; i++)
		if (marks[i].mark == separator)
			return marks[i].name;
	text[0] = separator;
	text[1] = '\0';
	return text;
}
