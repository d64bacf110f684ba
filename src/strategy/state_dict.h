// State that is saved or restored: named tensors in host memory. Every value of an object is one
// (a counter is an i64 scalar). Memory is kept from save to save, so a save during training
// copies but causes no page faults.
#pragma once

#include "base/alloc.h"
#include "choir/variable.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Preallocated memory for the entries of one save.
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
	bool borrowed; // data is not owned
	bool consumed; // an object has taken it
} chi_state_dict_entry;

typedef struct {
	size_t n; // current entries
	size_t kept, capacity; // entries that have memory
	chi_state_dict_entry *entry;
	bool ordered; // sorted by name, so searched by bisection
	const char *object; // whose state is being saved or restored: names are OBJECT/NAME
	chi_state_dict_memory *memory; // used while it has capacity; NULL: none
	bool unread; // this worker does not write: values that only it would copy are left out
	const char *path; // of the checkpoint, for messages
} chi_state_dict;

// Saving. Removes the entries but keeps their memory.
void chi_state_dict_clear(chi_state_dict *s);
// Adds an entry and returns its memory. NULL: a failure.
void *chi_state_dict_add(
		chi_state_dict *s, const char *name, choir_dtype dtype, const choir_shape *shape);
// Adds a variable's value, which is the same in all copies and workers. CHOIR_STATE: it is
// undefined.
choir_status chi_state_dict_add_variable(chi_state_dict *s, const char *name, choir_variable *v);
choir_status chi_state_dict_add_count(chi_state_dict *s, const char *name, uint64_t count);

// Restoring. Adds an entry with memory that is not owned. Adding in the order of names makes the
// search fast.
choir_status chi_state_dict_lend(chi_state_dict *s, const char *name, choir_dtype dtype,
		const choir_shape *shape, void *data);
// The current object's entry, or NULL (not an error).
chi_state_dict_entry *chi_state_dict_find(const chi_state_dict *s, const char *name);
// Takes the values of an entry. CHOIR_INVALID: it does not exist or has another dtype or shape.
choir_status chi_state_dict_take(chi_state_dict *s, const char *name, choir_dtype dtype,
		const choir_shape *shape, const void **data);
choir_status chi_state_dict_take_count(chi_state_dict *s, const char *name, uint64_t *count);

void chi_state_dict_free(chi_state_dict *s);
