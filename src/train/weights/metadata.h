// Metadata as programs give it: "key=value" lines.
#pragma once

#include "train/weights/safetensors.h"

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
