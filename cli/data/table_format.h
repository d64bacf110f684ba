// How the fields of a table are read. A model keeps it, so a prediction reads as the training.
#pragma once

#include <choir/choir.h>

enum { MISSING_SIZE = 256, MAX_MISSING = 32 };

typedef struct {
	char separator; // 0: found in the header
	char decimal; // 0: a point
	bool lists_missing;
	char missing[MISSING_SIZE]; // texts that mean "no value", with commas between them
} table_format;

// The texts for choir_csv_options.
typedef struct {
	const char *text[MAX_MISSING];
	char list[MISSING_SIZE];
} missing_texts;

extern const char *const decimal_names[]; // ending in NULL
extern const char separator_help[], decimal_help[], missing_values_help[];

// Takes the values of options; NULL: not given.
choir_status table_format_set(
		table_format *f, const char *separator, const char *decimal, const char *missing);
// CHOIR_INVALID: an option is given for data that are no table.
choir_status table_format_check(const table_format *f, const char *data);
// Sets the options for files; texts must live as long.
void table_format_apply(
		const table_format *f, const char *path, choir_csv_options *o, missing_texts *texts);
// "comma", "semicolon", "tab", or the character.
const char *table_separator_name(char separator, char text[2]);
