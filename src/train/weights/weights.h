// All variables except slots, by name, on the host.
#pragma once

#include "base/text.h"
#include "strategy/worker_sync.h"
#include "train/weights/safetensors.h"

typedef struct {
	size_t n, capacity;
	choir_variable **variable;
} chi_weights;

// In cross-replica context; what names the caller. Always free *w.
choir_status chi_weights_collect(choir_strategy *s, const char *what, chi_weights *w);
choir_status chi_weights_collect_to_write(choir_strategy *s, const char *what, chi_weights *w);
void chi_weights_free(chi_weights *w);
// As saved (docs/rules.md, section 7), packed, in the order of w, until one fails. An ON_READ
// variable's value is its aggregate.
typedef choir_status chi_weight_fn(
		const choir_variable *v, const void *data, size_t bytes, void *user);
choir_status chi_weights_each(const chi_weights *w, chi_weight_fn *fn, void *user);
choir_status chi_weights_fetch(choir_variable *v, choir_frame *f, void *to);

typedef struct {
	chi_safetensors header;
	unsigned char *data;
	size_t bytes;
} chi_weights_file;

// The chief's file for all workers, unless status is a failure on one: the same outcome. Always
// free *w.
choir_status chi_weights_read(
		choir_strategy *s, choir_status status, const char *path, chi_weights_file *w);
void chi_weights_file_free(chi_weights_file *w);

// By name. CHOIR_INVALID names those that are missing, too many or different.
choir_status chi_weights_compare(
		const char *path, const chi_weights *w, const chi_safetensors *st);
// CHOIR_CORRUPT: a BOOL is neither 0 nor 1.
choir_status chi_weights_check_bools(
		const char *path, const chi_st_tensor *t, const unsigned char *data);
// x is packed host memory. An ON_READ variable with SUM is divided among its components.
choir_status chi_weight_set(choir_variable *v, choir_frame *f, const void *x);
// After a failure, those set so far are undefined.
choir_status chi_weights_set(const chi_weights *w, const chi_safetensors *st, const char *data);

// "key=value" lines.
typedef struct {
	char *text;
	size_t n, capacity;
	chi_st_pair *pair;
} chi_metadata;

// text NULL: no lines. CHOIR_INVALID: as choir_strategy_save. Always free *l.
choir_status chi_metadata_cut(const char *text, chi_metadata *l);
void chi_metadata_free(chi_metadata *l);
const char *chi_metadata_find(const chi_metadata *l, const char *key);

typedef struct {
	const char *what;
	int n;
	chi_text text;
} chi_name_list;

void chi_name_list_add(chi_name_list *list, const char *name, const char *more);
// "missing "a", "b" and 3 more".
void chi_name_list_print(chi_text *text, const chi_name_list *list);
