// State on its way to or from a checkpoint: named tensors on the host. Whatever an object must
// remember is one (a counter is an i64 scalar), so there is one thing to write, to checksum and to
// compare. The memory stays from one save to the next, so that a save of a running training costs
// its copies and no page faults.
#pragma once

#include "base/alloc.h"
#include "choir/variable.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Memory that was made before it is needed, for the entries of one save.
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
	bool borrowed; // data is somebody else's
	bool consumed; // an object needs it
} chi_state_dict_entry;

typedef struct {
	size_t n; // that are there now
	size_t kept, capacity; // that have memory
	chi_state_dict_entry *entry;
	bool ordered; // the entries are in the order of their names, and are looked up by that
	const char *object; // whose state it is now: names are OBJECT/NAME
	chi_state_dict_memory *memory; // where entries go as far as there is room; NULL: nowhere
	bool unread; // of a worker that writes nothing: what it alone would copy is left out
	const char *path; // of what is being restored, for messages
} chi_state_dict;

// Saving. Forgets the entries but keeps their memory.
void chi_state_dict_clear(chi_state_dict *s);
// Memory for a new entry's values; NULL: a failure.
void *chi_state_dict_add(
		chi_state_dict *s, const char *name, choir_dtype dtype, const choir_shape *shape);
// The value of a variable that is the same in all copies, on all workers. CHOIR_STATE: it is
// undefined.
choir_status chi_state_dict_add_variable(chi_state_dict *s, const char *name, choir_variable *v);
choir_status chi_state_dict_add_count(chi_state_dict *s, const char *name, uint64_t count);

// Restoring. An entry over somebody else's memory; lent in the order of their names they are found
// faster.
choir_status chi_state_dict_lend(chi_state_dict *s, const char *name, choir_dtype dtype,
		const choir_shape *shape, void *data);
// The current object's entry, or NULL without a failure.
chi_state_dict_entry *chi_state_dict_find(const chi_state_dict *s, const char *name);
// Its values, now taken. CHOIR_INVALID: there is no such entry, or one of another dtype or shape.
choir_status chi_state_dict_take(chi_state_dict *s, const char *name, choir_dtype dtype,
		const choir_shape *shape, const void **data);
choir_status chi_state_dict_take_count(chi_state_dict *s, const char *name, uint64_t *count);

void chi_state_dict_free(chi_state_dict *s);
