// Prints which columns of a file are input, target or ignored.
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct {
	const char *name;
	const char *left_out; // the reason; NULL: it is an input
	size_t categories; // of texts; 0: none
	bool date, indicator;
} printed_column;

// Prints lines for people, or fields of the current JSON object. target: its name, for people with
// its classes.
void print_columns(size_t n, const printed_column columns[], const char *target, bool json);
