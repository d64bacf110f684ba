// Tables of functions of one kind, found by name: the library's own, then those that the program
// registers. There is no lock: the program registers from one thread before it uses any.
#pragma once

#include "choir/status.h"

enum { CHI_REGISTRY_MAX = 16 }; // tables that a program may register

// The fields that every table begins with.
typedef struct {
	size_t size;
	uint32_t version;
	const char *name;
} chi_table_head;

typedef struct {
	const char *what; // "strategy", in messages
	size_t size; // of a table
	const void *const *builtin; // up to NULL
	void *registered; // CHI_REGISTRY_MAX tables
	int count; // of registered ones
} chi_registry;

// The i-th table; NULL after the last.
const void *chi_registry_at(const chi_registry *r, int i);
// NULL with CHOIR_NOT_FOUND and the known names.
const void *chi_registry_find(const chi_registry *r, const char *name);
// Copies a table of a program (chi_table_take). NULL with CHOIR_INVALID: that fails, the table has
// no name or a known one, or it is one too many.
void *chi_registry_add(chi_registry *r, const void *given);
