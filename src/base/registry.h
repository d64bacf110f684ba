// Named tables of functions, the built-in ones first. Without a lock: one thread at a time adds;
// others may find earlier ones.
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
	const char *what; // such as "strategy"
	size_t size;
	const void *const *builtin;
	void *registered;
	chi_atomic32 count;
} chi_registry;

const void *chi_registry_at(const chi_registry *r, int i);
// NULL: CHOIR_NOT_FOUND, with the known names.
const void *chi_registry_find(const chi_registry *r, const char *name);
// NULL: CHOIR_INVALID for a failed copy (chi_table_take), a missing or known name, or too many.
void *chi_registry_add(chi_registry *r, const void *given);
