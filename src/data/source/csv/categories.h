// A column's distinct texts, numbered in byte order. Threads: one at a time while the set changes,
// then any.
#pragma once

#include "choir/status.h"

typedef struct chi_categories chi_categories;

enum { CHI_MAX_CATEGORIES = 1 << 20 };

chi_categories *chi_categories_new(void);
chi_categories *chi_categories_copy(const chi_categories *c);
void chi_categories_free(chi_categories *c);
// CHOIR_INVALID: there are CHI_MAX_CATEGORIES.
choir_status chi_categories_add(chi_categories *c, const char *text, size_t bytes);
void chi_categories_sort(chi_categories *c);
// -1: none.
int32_t chi_categories_find(const chi_categories *c, const char *text, size_t bytes);
size_t chi_categories_count(const chi_categories *c);
// Valid until the next add.
const char *chi_categories_text(const chi_categories *c, size_t i);
bool chi_categories_equal(const chi_categories *a, const chi_categories *b);
