// Parses and prints safetensors headers.
#include "train/weights/safetensors.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/size.h"
#include "base/sort.h"

#include <inttypes.h>
#include <string.h>

enum { LENGTH_BYTES = 8, NAME_SHOWN = 120 };
static const uint64_t MAX_HEADER = 100000000; // as the reference

static const struct {
	const char *name;
	size_t bytes;
	int dtype; // CHOIR_NONE: not supported
} dtypes[] = {
	{ "F32", 4, CHOIR_F32 },
	{ "F64", 8, CHOIR_F64 },
	{ "I32", 4, CHOIR_I32 },
	{ "I64", 8, CHOIR_I64 },
	{ "U8", 1, CHOIR_U8 },
	{ "BOOL", 1, CHOIR_BOOL },
	{ "F16", 2, CHOIR_F16 },
	{ "BF16", 2, CHOIR_BF16 },
	{ "I8", 1, CHOIR_NONE },
	{ "I16", 2, CHOIR_NONE },
	{ "U16", 2, CHOIR_NONE },
	{ "U32", 4, CHOIR_NONE },
	{ "U64", 8, CHOIR_NONE },
	{ "F8_E4M3", 1, CHOIR_NONE },
	{ "F8_E5M2", 1, CHOIR_NONE },
	{ "F8_E8M0", 1, CHOIR_NONE },
	{ "C64", 8, CHOIR_NONE },
};

typedef struct {
	chi_safetensors *st;
	chi_json json;
	const char *path;
	bool placed; // later errors are about offsets
} reader;

static choir_status corrupt(const reader *r, const char *what)
{
	return choir_fail(CHOIR_CORRUPT, "%s: is not a safetensors file: byte %zu: %s", r->path,
			LENGTH_BYTES + r->json.at, r->json.error != NULL ? r->json.error : what);
}

static choir_status corrupt_tensor(
		const reader *r, const chi_st_tensor *t, choir_status status, const char *what)
{
	char name[NAME_SHOWN];
	const uint64_t at = r->placed ? r->st->data + t->begin : LENGTH_BYTES + r->json.at;
	return choir_fail(status, "%s: %s: byte %" PRIu64 ": tensor \"%s\": %s", r->path,
			status == CHOIR_CORRUPT ? "is not a safetensors file" : "cannot be read", at,
			chi_text_clean(t->name, name, sizeof name), what);
}

static choir_status expect(reader *r, chi_json_token token, const char *what)
{
	return chi_json_next(&r->json) == token ? CHOIR_OK : corrupt(r, what);
}

static choir_status read_dtype(reader *r, chi_st_tensor *t)
{
	CHOIR_TRY(expect(r, CHI_JSON_STRING, "a dtype must be text"));
	t->dtype_name = r->json.text;
	for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
		if (strcmp(dtypes[i].name, t->dtype_name) == 0) {
			t->element_bytes = dtypes[i].bytes;
			t->supported = dtypes[i].dtype != CHOIR_NONE;
			t->dtype = t->supported ? (choir_dtype) dtypes[i].dtype : CHOIR_F32;
			return CHOIR_OK;
		}
	return corrupt_tensor(r, t, CHOIR_UNSUPPORTED, "its dtype is unknown");
}

static choir_status read_shape(reader *r, chi_st_tensor *t)
{
	CHOIR_TRY(expect(r, CHI_JSON_ARRAY, "a shape must be an array"));
	for (;;) {
		uint64_t dim;
		const chi_json_token token = chi_json_next(&r->json);
		if (token == CHI_JSON_ARRAY_END)
			return CHOIR_OK;
		if (token != CHI_JSON_NUMBER || !chi_json_uint64(&r->json, &dim) || dim > INT64_MAX)
			return corrupt(r, "a dimension must be a whole number");
		if (t->shape.rank == CHOIR_MAX_RANK)
			return corrupt_tensor(r, t, CHOIR_UNSUPPORTED, "it has more than 8 dimensions");
		t->shape.dim[t->shape.rank++] = (int64_t) dim;
	}
}

static choir_status read_offsets(reader *r, chi_st_tensor *t)
{
	uint64_t *const offset[2] = { &t->begin, &t->end };
	CHOIR_TRY(expect(r, CHI_JSON_ARRAY, "offsets must be an array"));
	for (int i = 0; i < 2; i++)
		if (chi_json_next(&r->json) != CHI_JSON_NUMBER || !chi_json_uint64(&r->json, offset[i]))
			return corrupt(r, "offsets must be two whole numbers");
	return expect(r, CHI_JSON_ARRAY_END, "offsets must be two whole numbers");
}

static choir_status check_bytes(const reader *r, const chi_st_tensor *t)
{
	size_t bytes = t->element_bytes;
	for (int i = 0; i < t->shape.rank; i++)
		if (!chi_size_multiply(bytes, (size_t) t->shape.dim[i], &bytes))
			return corrupt_tensor(r, t, CHOIR_CORRUPT, "its shape is too large");
	if (t->end < t->begin || t->end - t->begin != bytes)
		return corrupt_tensor(r, t, CHOIR_CORRUPT, "its offsets do not fit its shape");
	return CHOIR_OK;
}

static choir_status read_tensor(reader *r, chi_st_tensor *t)
{
	static const char *const keys[] = { "dtype", "shape", "data_offsets" };
	choir_status (*const read[])(
			reader *, chi_st_tensor *) = { read_dtype, read_shape, read_offsets };
	unsigned seen = 0;
	CHOIR_TRY(expect(r, CHI_JSON_OBJECT, "a tensor must be an object"));
	for (;;) {
		const chi_json_token token = chi_json_next(&r->json);
		if (token == CHI_JSON_OBJECT_END)
			break;
		size_t k = 0;
		while (token == CHI_JSON_KEY && k < 3 && strcmp(keys[k], r->json.text) != 0)
			k++;
		if (token != CHI_JSON_KEY || k == 3 || (seen & 1u << k) != 0)
			return corrupt(r, "a tensor must have dtype, shape and data_offsets, once each");
		seen |= 1u << k;
		CHOIR_TRY(read[k](r, t));
	}
	return seen == 7 ? check_bytes(r, t)
					 : corrupt(r, "a tensor must have dtype, shape and data_offsets");
}

static chi_st_pair *add_pair(chi_safetensors *st)
{
	if (!chi_grow(&st->pair, &st->pairs_capacity, st->pairs + 1, sizeof *st->pair))
		return NULL;
	chi_st_pair *p = chi_alloc(sizeof *p);
	if (p != NULL)
		st->pair[st->pairs++] = p;
	return p;
}

static chi_st_tensor *add_tensor(chi_safetensors *st)
{
	if (!chi_grow(&st->tensor, &st->capacity, st->n + 1, sizeof *st->tensor))
		return NULL;
	chi_st_tensor *t = chi_alloc(sizeof *t);
	if (t != NULL)
		st->tensor[st->n++] = t;
	return t;
}

static choir_status read_metadata(reader *r)
{
	chi_safetensors *st = r->st;
	CHOIR_TRY(expect(r, CHI_JSON_OBJECT, "metadata must be an object"));
	for (;;) {
		const chi_json_token token = chi_json_next(&r->json);
		if (token == CHI_JSON_OBJECT_END)
			return CHOIR_OK;
		if (token != CHI_JSON_KEY)
			return corrupt(r, "metadata must have keys");
		chi_st_pair *p = add_pair(st);
		if (p == NULL)
			return CHOIR_NO_MEMORY;
		p->key = r->json.text;
		p->value = "";
		CHOIR_TRY(expect(r, CHI_JSON_STRING, "a value of the metadata must be text"));
		p->value = r->json.text;
	}
}

static choir_status read_header(reader *r)
{
	static const char metadata[] = "__metadata__";
	chi_safetensors *st = r->st;
	bool had_metadata = false;
	CHOIR_TRY(expect(r, CHI_JSON_OBJECT, "the header must be an object"));
	for (;;) {
		const chi_json_token token = chi_json_next(&r->json);
		if (token == CHI_JSON_OBJECT_END)
			return expect(r, CHI_JSON_END, "there is text after the end");
		if (token != CHI_JSON_KEY)
			return corrupt(r, "the header must have keys");
		if (strcmp(r->json.text, metadata) == 0) {
			if (had_metadata)
				return corrupt(r, "metadata occurs twice");
			had_metadata = true;
			CHOIR_TRY(read_metadata(r));
			continue;
		}
		chi_st_tensor *t = add_tensor(st);
		if (t == NULL)
			return CHOIR_NO_MEMORY;
		t->name = r->json.text;
		CHOIR_TRY(read_tensor(r, t));
	}
}

static bool by_name(const void *a, const void *b)
{
	return strcmp(((const chi_st_tensor *) a)->name, ((const chi_st_tensor *) b)->name) < 0;
}

static bool by_key(const void *a, const void *b)
{
	return strcmp(((const chi_st_pair *) a)->key, ((const chi_st_pair *) b)->key) < 0;
}

static bool by_place(const void *a, const void *b)
{
	const chi_st_tensor *s = a, *t = b;
	return s->begin != t->begin ? s->begin < t->begin : s->end < t->end;
}

static choir_status check_tiling(reader *r, uint64_t data_bytes)
{
	const chi_safetensors *st = r->st;
	uint64_t end = 0;
	r->placed = true;
	chi_heap_sort(st->tensor, st->n, by_place);
	for (size_t i = 0; i < st->n; i++) {
		if (st->tensor[i]->begin != end)
			return corrupt_tensor(r, st->tensor[i], CHOIR_CORRUPT,
					st->tensor[i]->begin > end ? "there is a gap before it"
											   : "it overlaps another");
		end = st->tensor[i]->end;
	}
	if (end != data_bytes)
		return choir_fail(CHOIR_CORRUPT,
				"%s: is not a safetensors file: its header "
				"declares %" PRIu64 " bytes of data, it has %" PRIu64,
				r->path, end, data_bytes);
	return CHOIR_OK;
}

static choir_status check_names(const reader *r)
{
	const chi_safetensors *st = r->st;
	chi_heap_sort(st->tensor, st->n, by_name);
	chi_heap_sort(st->pair, st->pairs, by_key);
	for (size_t i = 1; i < st->n; i++)
		if (strcmp(st->tensor[i - 1]->name, st->tensor[i]->name) == 0)
			return corrupt_tensor(r, st->tensor[i], CHOIR_CORRUPT, "it occurs twice");
	for (size_t i = 1; i < st->pairs; i++)
		if (strcmp(st->pair[i - 1]->key, st->pair[i]->key) == 0)
			return corrupt(r, "a key of the metadata occurs twice");
	return CHOIR_OK;
}

static choir_status read_length(const char *path, const unsigned char raw[LENGTH_BYTES],
		uint64_t bytes, chi_safetensors *st, uint64_t *length)
{
	*length = 0;
	for (int i = LENGTH_BYTES; i-- > 0;)
		*length = *length << 8 | raw[i];
	if (*length > MAX_HEADER || *length > bytes - LENGTH_BYTES)
		return choir_fail(CHOIR_CORRUPT,
				"%s: is not a safetensors file: it declares a "
				"header of %" PRIu64 " bytes and has %" PRIu64 " bytes",
				path, *length, bytes);
	st->data = LENGTH_BYTES + *length;
	st->text = chi_alloc((size_t) *length + 1);
	return st->text == NULL ? CHOIR_NO_MEMORY : CHOIR_OK;
}

static choir_status read_text(chi_safetensors *st, const char *path, uint64_t bytes)
{
	const size_t length = (size_t) (st->data - LENGTH_BYTES);
	reader r = { .st = st, .path = path };
	chi_json_open(&r.json, st->text, length);
	if (length == 0 || st->text[0] != '{')
		return corrupt(&r, "the header must begin with {");
	CHOIR_TRY(read_header(&r));
	CHOIR_TRY(check_tiling(&r, bytes - st->data));
	return check_names(&r);
}

choir_status chi_safetensors_open(chi_safetensors *st, chi_file *f)
{
	const uint64_t bytes = chi_file_size(f);
	unsigned char raw[LENGTH_BYTES];
	uint64_t length;
	CHOIR_TRY(chi_file_read(f, 0, raw, sizeof raw));
	CHOIR_TRY(read_length(chi_file_path(f), raw, bytes, st, &length));
	CHOIR_TRY(chi_file_read(f, LENGTH_BYTES, st->text, (size_t) length));
	return read_text(st, chi_file_path(f), bytes);
}

choir_status chi_safetensors_view(
		chi_safetensors *st, const char *path, const void *file, size_t bytes)
{
	uint64_t length;
	if (bytes < LENGTH_BYTES)
		return choir_fail(CHOIR_CORRUPT, "%s: is not a safetensors file: it has only %zu bytes",
				path, bytes);
	CHOIR_TRY(read_length(path, file, bytes, st, &length));
	memcpy(st->text, (const char *) file + LENGTH_BYTES, (size_t) length);
	return read_text(st, path, bytes);
}

void chi_safetensors_close(chi_safetensors *st)
{
	for (size_t i = 0; i < st->n; i++)
		chi_free(st->tensor[i]);
	for (size_t i = 0; i < st->pairs; i++)
		chi_free(st->pair[i]);
	chi_free(st->tensor);
	chi_free(st->pair);
	chi_free(st->text);
	*st = (chi_safetensors){ 0 };
}

const chi_st_pair *chi_safetensors_pair(const chi_safetensors *st, const char *key)
{
	for (size_t i = 0; i < st->pairs; i++)
		if (strcmp(st->pair[i]->key, key) == 0)
			return st->pair[i];
	return NULL;
}

const char *chi_safetensors_dtype(choir_dtype dtype)
{
	for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
		if (dtypes[i].dtype == (int) dtype)
			return dtypes[i].name;
	return "";
}

static void print_tensor(chi_text *text, const chi_st_tensor *t)
{
	chi_text_add_json(text, t->name);
	chi_text_add(text, ":{\"dtype\":\"%s\",\"shape\":[", chi_safetensors_dtype(t->dtype));
	for (int i = 0; i < t->shape.rank; i++)
		chi_text_add(text, "%s%" PRId64, i == 0 ? "" : ",", t->shape.dim[i]);
	chi_text_add(text, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", t->begin, t->end);
}

void chi_safetensors_print(chi_text *text, size_t n, const chi_st_tensor tensors[], size_t pairs,
		const chi_st_pair metadata[])
{
	chi_text header = { 0 };
	chi_text_add(&header, "{");
	for (size_t i = 0; i < pairs; i++) {
		chi_text_add(&header, i == 0 ? "\"__metadata__\":{" : ",");
		chi_text_add_json(&header, metadata[i].key);
		chi_text_add(&header, ":");
		chi_text_add_json(&header, metadata[i].value);
	}
	if (pairs > 0)
		chi_text_add(&header, n > 0 ? "}," : "}");
	for (size_t i = 0; i < n; i++) {
		chi_text_add(&header, i == 0 ? "" : ",");
		print_tensor(&header, &tensors[i]);
	}
	chi_text_add(&header, "}");
	while (!header.failed && header.length % LENGTH_BYTES != 0)
		chi_text_add(&header, " "); // to align the data
	char raw[LENGTH_BYTES];
	for (int i = 0; i < LENGTH_BYTES; i++)
		raw[i] = (char) ((uint64_t) header.length >> (8 * i) & 0xff);
	chi_text_add_bytes(text, raw, sizeof raw);
	if (header.failed)
		text->failed = true;
	else
		chi_text_add_bytes(text, header.data, header.length);
	chi_text_free(&header);
}
