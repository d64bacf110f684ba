// tf.train.Example: a map from names to lists of bytes, f32 or int64. As in Protocol Buffers, a
// name's last entry counts, lists may be packed or not, and parts of a list are concatenated.
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
	bool pad;
	bool shared;
	const void *missing; // NULL: an error
} chi_feature;

// Rows go to out[i]; NULL: only checks. CHOIR_CORRUPT: no Example, or another kind, number or
// range of values. CHOIR_NOT_FOUND: a feature is missing.
choir_status chi_example_read(const unsigned char *data, size_t bytes, size_t n,
		const chi_feature features[], void *const out[]);
// The record is one value.
choir_status chi_raw_read(
		const unsigned char *data, size_t bytes, const chi_feature *f, void *out);

// Points into the Example, unterminated.
typedef struct {
	const char *name;
	size_t name_bytes;
	chi_feature_kind kind;
	size_t values;
	size_t value_bytes;
	bool even; // all have one length
} chi_found_feature;

// By name, at most max. *n: how many exist.
choir_status chi_tf_example_infer(
		const unsigned char *data, size_t bytes, size_t max, chi_found_feature found[], size_t *n);
const char *chi_feature_kind_name(chi_feature_kind kind);
