// The weights of a strategy: all its variables but slots, in the order of their names, and their
// values on the host.
#pragma once

#include "base/text.h"
#include "strategy/worker_sync.h"
#include "train/weights/safetensors.h"

typedef struct {
	size_t n, capacity;
	choir_variable **variable;
} chi_weights;

// All there are, in cross-replica context; what names the caller in messages. *w is to be freed
// (chi_weights_free) whatever happens.
choir_status chi_weights_collect(choir_strategy *s, const char *what, chi_weights *w);
void chi_weights_free(chi_weights *w);
// Calls fn with the value of each as it is saved (docs/rules.md, section 7: of ON_READ
// variables what they aggregate to), packed, in w's order; until one fails.
typedef choir_status chi_weight_fn(
		const choir_variable *v, const void *data, size_t bytes, void *user);
choir_status chi_weights_each(const chi_weights *w, chi_weight_fn *fn, void *user);
// The value of one as it is saved.
choir_status chi_weights_fetch(choir_variable *v, choir_frame *f, void *to);

// A file of weights in memory (weights_file.c), zeroed before; data is what is behind its header.
typedef struct {
	chi_safetensors header;
	unsigned char *data;
	size_t bytes; // of the file
} chi_weights_file;

// Unless status, of what was done before, is a failure on any worker: reads the chief's file for
// all of them. What came of it is the same for all. *w is to be freed whatever happens.
choir_status chi_weights_read(
		choir_strategy *s, choir_status status, const char *path, chi_weights_file *w);
void chi_weights_file_free(chi_weights_file *w);

// Restoring (weights_restore.c). CHOIR_INVALID with the names of tensors that are missing, too
// many or different; both are in the order of names.
choir_status chi_weights_compare(
		const char *path, const chi_weights *w, const chi_safetensors *st);
// CHOIR_CORRUPT if a BOOL is neither 0 nor 1.
choir_status chi_weights_check_bools(
		const char *path, const chi_st_tensor *t, const unsigned char *data);
// Gives v the value x, packed on the host: of an ON_READ variable with SUM shares of it. f is a
// frame of the host.
choir_status chi_weight_set(choir_variable *v, choir_frame *f, const void *x);
// Gives every weight its value; after a failure those that were reached are undefined.
choir_status chi_weights_set(const chi_weights *w, const chi_safetensors *st, const char *data);

// Metadata as programs give it: "key=value" lines.
typedef struct {
	char *text; // a copy, cut up
	size_t n, capacity;
	chi_st_pair *pair;
} chi_metadata;

// text may be NULL: no lines. CHOIR_INVALID: see choir_strategy_save. *l is to be freed whatever
// happens.
choir_status chi_metadata_cut(const char *text, chi_metadata *l);
void chi_metadata_free(chi_metadata *l);
const char *chi_metadata_find(const chi_metadata *l, const char *key); // NULL: none

// A list of names for a message: the first few, and how many more.
typedef struct {
	const char *what; // "missing"
	int n;
	chi_text text; // freed by who made the list
} chi_name_list;

void chi_name_list_add(chi_name_list *list, const char *name, const char *more);
// Adds "missing "a", "b" and 3 more" to text, behind what is there; nothing of an empty list.
void chi_name_list_print(chi_text *text, const chi_name_list *list);
