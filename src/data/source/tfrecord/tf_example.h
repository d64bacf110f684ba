// tf.train.Example: a map from names to lists of bytes, floats (f32) or int64. As in Protocol
// Buffers, the last entry of a name counts, lists may be packed or not, parts of a list are
// concatenated, and unknown fields are skipped.
#pragma once

#include "base/text.h"
#include "choir/source.h"
#include "data/data.h"

typedef enum {
	CHI_FEATURE_NONE,
	CHI_FEATURE_BYTES,
	CHI_FEATURE_FLOAT,
	CHI_FEATURE_INT64
} chi_feature_kind;

typedef struct {
	const char *name;
	size_t name_bytes;
	choir_dtype dtype;
	size_t elements, bytes;
	bool pad; // short values with zeros
	bool shared; // by another column
	const void *missing; // NULL: an error
} chi_feature;

// Reads into out[i], one row per feature; NULL: checks only. CHOIR_CORRUPT: no Example; a feature
// of another kind, with a wrong number of values, or with values out of range. CHOIR_NOT_FOUND: a
// feature is missing; the text lists the known ones.
choir_status chi_example_read(const unsigned char *data, size_t bytes, size_t n,
		const chi_feature features[], void *const out[]);
// The record is one bytes value.
choir_status chi_raw_read(
		const unsigned char *data, size_t bytes, const chi_feature *f, void *out);

// The name points into the Example and is not terminated.
typedef struct {
	const char *name;
	size_t name_bytes;
	chi_feature_kind kind;
	size_t values;
	size_t value_bytes;
	bool even; // BYTES: all have one length
} chi_found_feature;

// Sorted by name, at most max. *n: how many exist.
choir_status chi_tf_example_infer(
		const unsigned char *data, size_t bytes, size_t max, chi_found_feature found[], size_t *n);
const char *chi_feature_kind_name(chi_feature_kind kind);
