// Reads a JSON object on one line, as run_directory.c writes it. The line is untrusted.
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { JSON_FIELDS = 128 };

typedef struct {
	const char *key;
	const char *text; // of a string; else NULL
	double number; // NAN: null, or not a number
	size_t first, n; // of a list of numbers: its part of the line's numbers
} json_field;

typedef struct {
	json_field field[JSON_FIELDS];
	size_t n;
	double *number;
	size_t numbers, capacity;
	bool no_memory;
} json_line;

// Reads an object and decodes its strings in place. Nested objects, and lists of other things than
// numbers, are skipped. False: the line is no such object, or there is no memory.
bool json_line_read(json_line *o, char *line);
void json_line_free(json_line *o);
// NULL: there is none.
const json_field *json_line_find(const json_line *o, const char *key);
const char *json_line_text(const json_line *o, const char *key); // "": none
double json_line_number(const json_line *o, const char *key); // NAN: none
