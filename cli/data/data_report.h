// What is said of the columns of a file: which were taken for the input and for the target, and
// which were left out.
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct {
	const char *name;
	const char *left_out; // why; NULL: it is an input
} printed_column;

// Lines for people; or fields of the JSON object that is open. target: with what more is known of
// it, for people.
void print_columns(size_t n, const printed_column columns[], const char *target, bool json);
