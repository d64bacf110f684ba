// Named tables of functions, first the built-in ones. There is no lock: one thread at a time adds
// a table, and others may look up those added before.
#pragma once

#include "base/atomic.h"
#include "choir/status.h"

enum { CHI_REGISTRY_MAX = 16 };

typedef struct {
	size_t size;
	uint32_t version;
	const char *name;
} chi_table_head;

typedef struct {
	const char *what; // as "strategy", in messages
	size_t size; // of a table
	const void *const *builtin; // ends in NULL
	void *registered;
	chi_atomic32 count;
} chi_registry;

// NULL after the last.
const void *chi_registry_at(const chi_registry *r, int i);
// NULL: CHOIR_NOT_FOUND, with the known names.
const void *chi_registry_find(const chi_registry *r, const char *name);
// NULL: CHOIR_INVALID for a failed copy (chi_table_take), a missing or known name, or a full
// registry.
void *chi_registry_add(chi_registry *r, const void *given);
