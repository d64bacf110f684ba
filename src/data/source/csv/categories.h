// The different texts of a column, each with a number: in the order of their bytes, so that the
// numbers depend neither on the order of rows nor on how they are spread over files. Threads:
// one at a time while it changes, any number afterwards.
#pragma once

#include "choir/status.h"

typedef struct chi_categories chi_categories;

enum { CHI_MAX_CATEGORIES = 1 << 20 };

chi_categories *chi_categories_new(void);
chi_categories *chi_categories_copy(const chi_categories *c); // NULL: no memory
void chi_categories_free(chi_categories *c); // NULL is fine
// Adds a text that is not there yet; its number is how many there were. Does nothing if it is
// there. CHOIR_INVALID: there are CHI_MAX_CATEGORIES.
choir_status chi_categories_add(chi_categories *c, const char *text, size_t bytes);
// Gives numbers in the order of bytes.
void chi_categories_sort(chi_categories *c);
int32_t chi_categories_find(const chi_categories *c, const char *text, size_t bytes); // -1: none
size_t chi_categories_count(const chi_categories *c);
// NULL: there is no such number. Valid until another is added.
const char *chi_categories_text(const chi_categories *c, size_t i);
// Whether both are NULL, or have the same texts with the same numbers.
bool chi_categories_equal(const chi_categories *a, const chi_categories *b);
