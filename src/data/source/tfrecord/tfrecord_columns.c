// The first record completes the options' columns.
#include "data/source/tfrecord/tfrecord.h"

#include <string.h>

#include "data/data.h"

enum { NAME_BYTES = 128, MAX_FEATURES = 256 };

static choir_status first_record(chi_record_files *f, const unsigned char **data, size_t *bytes)
{
	const choir_status status = chi_record_files_next(f, data, bytes);
	if (status != CHOIR_END)
		return status;
	return choir_fail(CHOIR_INVALID, "%s%s: no record to infer the columns from; name them",
			f->paths.path[0], f->paths.n > 1 ? " and others" : "");
}

static const char *clean_name(const chi_found_feature *found, char out[NAME_BYTES])
{
	char name[NAME_BYTES];
	const size_t max = sizeof name - 1, n = found->name_bytes < max ? found->name_bytes : max;
	memcpy(name, found->name, n);
	name[n] = '\0';
	return chi_text_clean(name, out, NAME_BYTES);
}

// CHOIR_CORRUPT: the feature fits no column.
static choir_status to_column(const chi_found_feature *found, choir_column *c)
{
	char name[NAME_BYTES];
	if (found->values > 0 && found->kind != CHI_FEATURE_BYTES) {
		c->dtype = found->kind == CHI_FEATURE_FLOAT ? CHOIR_F32 : CHOIR_I64;
		c->shape = found->values > 1 ? CHOIR_SHAPE((int64_t) found->values) : CHOIR_SCALAR;
		return CHOIR_OK;
	}
	c->dtype = CHOIR_U8;
	if (found->values == 1 && found->value_bytes > 0) {
		c->shape = CHOIR_SHAPE((int64_t) found->value_bytes);
		return CHOIR_OK;
	}
	if (found->values > 1 && found->value_bytes > 0 && found->even) {
		c->shape = CHOIR_SHAPE((int64_t) found->values, (int64_t) found->value_bytes);
		return CHOIR_OK;
	}
	return choir_fail(CHOIR_CORRUPT,
			"feature \"%s\" has %zu values of %s%s, which give no shape; name the wanted "
			"features, with shapes",
			clean_name(found, name), found->values, chi_feature_kind_name(found->kind),
			found->values > 1 && found->kind == CHI_FEATURE_BYTES && !found->even
					? " of different lengths"
					: "");
}

static choir_status all_columns(
		size_t n, const chi_found_feature found[], choir_column columns[], chi_text *names)
{
	char name[NAME_BYTES];
	if (n == 0)
		return choir_fail(CHOIR_CORRUPT, "the Example has no features");
	if (n > CHI_MAX_COLUMNS)
		return choir_fail(CHOIR_UNSUPPORTED,
				"%zu features, at most %d columns possible; name the wanted ones", n,
				(int) CHI_MAX_COLUMNS);
	for (size_t i = 0; i < n; i++) {
		if (found[i].name_bytes == 0 || memchr(found[i].name, 0, found[i].name_bytes))
			return choir_fail(CHOIR_CORRUPT, "feature \"%s\": its name cannot name a column",
					clean_name(&found[i], name));
		CHOIR_TRY(to_column(&found[i], &columns[i]));
		chi_text_add_bytes(names, found[i].name, found[i].name_bytes);
		chi_text_add_bytes(names, "", 1);
	}
	if (names->failed)
		return CHOIR_NO_MEMORY;
	const char *at = names->data;
	for (size_t i = 0; i < n; i++, at += strlen(at) + 1)
		columns[i].name = at;
	return CHOIR_OK;
}

static bool open_shape(const choir_feature *f)
{
	return f->shape.rank == CHOIR_NONE;
}

static choir_status asked_columns(size_t n, const chi_found_feature found[],
		const choir_tfrecord_options *o, choir_column columns[])
{
	for (size_t i = 0; i < o->n; i++) {
		const char *name = o->features[i].name;
		size_t j = 0;
		if (!open_shape(&o->features[i]))
			continue;
		while (j < n &&
				(found[j].name_bytes != strlen(name) ||
						memcmp(found[j].name, name, found[j].name_bytes) != 0))
			j++;
		if (j == n)
			return choir_fail(
					CHOIR_NOT_FOUND, "no feature \"%s\" to infer dtype and shape from", name);
		CHOIR_TRY(to_column(&found[j], &columns[i]));
	}
	return CHOIR_OK;
}

static choir_status infer(const unsigned char *data, size_t bytes, const choir_tfrecord_options *o,
		size_t *n, choir_column columns[], chi_text *names)
{
	chi_found_feature found[MAX_FEATURES];
	size_t there;
	if (o->raw) {
		columns[0].dtype = CHOIR_U8;
		columns[0].shape = CHOIR_SHAPE((int64_t) bytes);
		*n = 1;
		return bytes > 0 ? CHOIR_OK : choir_fail(CHOIR_CORRUPT, "an empty record has no shape");
	}
	CHOIR_TRY(chi_tf_example_infer(data, bytes, MAX_FEATURES, found, &there));
	if (o->n == 0) {
		CHOIR_TRY(all_columns(there, found, columns, names));
		*n = there;
		return CHOIR_OK;
	}
	return asked_columns(there < MAX_FEATURES ? there : MAX_FEATURES, found, o, columns);
}

choir_status chi_record_columns(chi_record_files *f, const choir_tfrecord_options *o, size_t *n,
		choir_column columns[CHI_MAX_COLUMNS], chi_text *names)
{
	bool open = o->n == 0;
	*n = o->n;
	columns[0] = (choir_column){ .name = "record" };
	for (size_t i = 0; i < o->n; i++) {
		const choir_feature *a = &o->features[i];
		columns[i] = (choir_column){
			.name = a->as ? a->as : a->name, .dtype = a->dtype, .shape = a->shape
		};
		open = open || open_shape(a);
	}
	while (open) {
		const unsigned char *data;
		size_t bytes;
		CHOIR_TRY(first_record(f, &data, &bytes));
		chi_text_free(names);
		if (infer(data, bytes, o, n, columns, names) == CHOIR_OK)
			return CHOIR_OK;
		CHOIR_TRY(chi_record_files_bad(f));
	}
	return CHOIR_OK;
}
