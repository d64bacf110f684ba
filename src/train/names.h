// A list of names for a message: the first few, and how many more.
#pragma once

#include "base/text.h"

typedef struct {
	const char *what; // "missing"
	int n;
	chi_text text; // freed by who made the list
} chi_names;

void chi_names_add(chi_names *list, const char *name, const char *more);
// Adds "missing "a", "b" and 3 more" to text, behind what is there; nothing of an empty list.
void chi_names_print(chi_text *text, const chi_names *list);
