// Named tensors in host memory, saved or restored. Saves reuse memory, which avoids page faults.
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
	void *data;
	bool borrowed;
	bool consumed;
} chi_state_dict_entry;

typedef struct {
	size_t n;
	size_t kept, capacity; // entries with memory
	chi_state_dict_entry *entry;
	bool ordered; // by name, for bisection
	const char *object; // names are OBJECT/NAME
	chi_state_dict_memory *memory;
	bool unread; // this worker writes nothing, and copies only for others
	const char *path;
} chi_state_dict;

void chi_state_dict_clear(chi_state_dict *s);
void *chi_state_dict_add(
		chi_state_dict *s, const char *name, choir_dtype dtype, const choir_shape *shape);
// The same in all copies and workers. CHOIR_STATE: it is undefined.
choir_status chi_state_dict_add_variable(chi_state_dict *s, const char *name, choir_variable *v);
choir_status chi_state_dict_add_count(chi_state_dict *s, const char *name, uint64_t count);

// data is borrowed. Entries in the order of names are found faster.
choir_status chi_state_dict_lend(chi_state_dict *s, const char *name, choir_dtype dtype,
		const choir_shape *shape, void *data);
chi_state_dict_entry *chi_state_dict_find(const chi_state_dict *s, const char *name);
// CHOIR_INVALID: it does not exist or has another dtype or shape.
choir_status chi_state_dict_take(chi_state_dict *s, const char *name, choir_dtype dtype,
		const choir_shape *shape, const void **data);
choir_status chi_state_dict_take_count(chi_state_dict *s, const char *name, uint64_t *count);

void chi_state_dict_free(chi_state_dict *s);
