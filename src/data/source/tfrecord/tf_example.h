// tf.train.Example: a map from names to features, each a list of bytes, floats (f32) or int64.
// Read from the wire straight into columns. As protocol buffers have it: of two
// entries of one name the last counts, lists may be packed or not, parts of a list are joined,
// and what is unknown is passed over.
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

// What a column takes from an Example.
typedef struct {
	const char *name;
	size_t name_bytes;
	choir_dtype dtype;
	size_t elements, bytes; // of one example
	bool pad; // what is too short is filled with zeros
	bool shared; // others of the list have the same name
	const void *missing; // what stands for a feature that is not there; NULL: that is an error
} chi_feature;

// Reads an Example into out[i], one row for each of the n features; NULL: only checked.
// CHOIR_CORRUPT: no Example; a feature of another kind, or with too few or too many values, or
// values out of range. CHOIR_NOT_FOUND: a feature is not there; the text lists those that are.
choir_status chi_example_read(const unsigned char *data, size_t bytes, size_t n,
		const chi_feature features[], void *const out[]);
// The same for a record that is all one value of bytes.
choir_status chi_raw_read(
		const unsigned char *data, size_t bytes, const chi_feature *f, void *out);

// What a feature of an Example is; the name lies in the Example and has no zero behind it.
typedef struct {
	const char *name;
	size_t name_bytes;
	chi_feature_kind kind;
	size_t values; // how many there are
	size_t value_bytes; // BYTES: of each
	bool even; // BYTES: all have as many
} chi_found_feature;

// The features of an Example, the first most of them in found, by name. *n: how many there are.
choir_status chi_tf_example_infer(
		const unsigned char *data, size_t bytes, size_t max, chi_found_feature found[], size_t *n);
const char *chi_feature_kind_name(chi_feature_kind kind); // "bytes", "float", "int64", "nothing"
