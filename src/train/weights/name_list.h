// A list of names for a message: the first few, and how many more.
#pragma once

#include "base/text.h"

typedef struct {
	const char *what; // "missing"
	int n;
	chi_text text; // freed by who made the list
} chi_name_list;

void chi_name_list_add(chi_name_list *list, const char *name, const char *more);
// Adds "missing "a", "b" and 3 more" to text, behind what is there; nothing of an empty list.
void chi_name_list_print(chi_text *text, const chi_name_list *list);
