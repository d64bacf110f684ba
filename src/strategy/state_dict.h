// State that is saved or restored: named tensors in host memory. A counter is an i64 scalar.
// Memory is kept between saves, which avoids page faults.
#pragma once

#include "base/alloc.h"
#include "choir/variable.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
	chi_scratch scratch;
	size_t used;
} chi_state_dict_memory;

typedef struct {
	char *name;
	choir_dtype dtype;
	choir_shape shape;
	size_t bytes;
	void *data; // packed, row-major
	bool borrowed;
	bool consumed; // an object has taken it
} chi_state_dict_entry;

typedef struct {
	size_t n;
	size_t kept, capacity; // entries with memory
	chi_state_dict_entry *entry;
	bool ordered; // by name, for bisection
	const char *object; // names are OBJECT/NAME
	chi_state_dict_memory *memory;
	bool unread; // this worker writes nothing; values that only it would copy are left out
	const char *path;
} chi_state_dict;

// Clears the state before a save; keeps the entries' memory.
void chi_state_dict_clear(chi_state_dict *s);
// Adds an entry to the state; the caller fills its memory.
void *chi_state_dict_add(
		chi_state_dict *s, const char *name, choir_dtype dtype, const choir_shape *shape);
// Adds a variable that is the same in all copies and workers. CHOIR_STATE: it is undefined.
choir_status chi_state_dict_add_variable(chi_state_dict *s, const char *name, choir_variable *v);
choir_status chi_state_dict_add_count(chi_state_dict *s, const char *name, uint64_t count);

// Lends an entry to a state that is restored; data is not owned. Entries in the order of names are
// found faster.
choir_status chi_state_dict_lend(chi_state_dict *s, const char *name, choir_dtype dtype,
		const choir_shape *shape, void *data);
chi_state_dict_entry *chi_state_dict_find(const chi_state_dict *s, const char *name);
// Takes an entry of the state. CHOIR_INVALID: it does not exist or has another dtype or shape.
choir_status chi_state_dict_take(chi_state_dict *s, const char *name, choir_dtype dtype,
		const choir_shape *shape, const void **data);
choir_status chi_state_dict_take_count(chi_state_dict *s, const char *name, uint64_t *count);

void chi_state_dict_free(chi_state_dict *s);
