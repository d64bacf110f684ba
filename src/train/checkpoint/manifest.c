// The checksum at the end is verified before anything is parsed.
#include "train/checkpoint/manifest.h"

#include "base/alloc.h"
#include "base/crc32c.h"
#include "base/json.h"
#include "base/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char tail_format[] = ",\"crc32c\":\"%08" PRIx32 "\"}\n";
enum { TAIL = 22 }; // bytes
static const uint64_t MAX_BYTES = 256 << 20;

const char *const chi_checkpoint_file_name[CHI_CHECKPOINT_FILES] = { "weights.safetensors",
	"state.safetensors" };
static const char *const section[CHI_CHECKPOINT_FILES] = { "weights", "state" };

static void print_file(chi_text *text, const char *name, const chi_manifest_file *f)
{
	chi_text_add(text, ",\"%s\":{\"bytes\":%" PRIu64 ",\"header\":%" PRIu32 ",\"tensors\":{", name,
			f->bytes, f->header);
	for (size_t i = 0; i < f->n; i++) {
		chi_text_add(text, i == 0 ? "" : ",");
		chi_text_add_json(text, f->tensor[i].name);
		chi_text_add(text, ":%" PRIu32, f->tensor[i].crc32c);
	}
	chi_text_add(text, "}}");
}

void chi_manifest_print(chi_text *text, const chi_manifest *m)
{
	chi_text_add(text,
			"{\"choir_checkpoint\":%d,\"save\":%" PRIu64 ",\"step\":%" PRIu64
			",\"replicas\":%" PRIu64 ",\"metadata\":{",
			CHI_MANIFEST_FORMAT, m->save, m->step, m->replicas);
	for (size_t i = 0; i < m->pairs; i++) {
		chi_text_add(text, i == 0 ? "" : ",");
		chi_text_add_json(text, m->pair[i].key);
		chi_text_add(text, ":");
		chi_text_add_json(text, m->pair[i].value);
	}
	chi_text_add(text, "}");
	for (int i = 0; i < CHI_CHECKPOINT_FILES; i++)
		print_file(text, section[i], &m->file[i]);
	if (!text->failed)
		chi_text_add(text, tail_format, chi_crc32c(0, text->data, text->length));
}

typedef struct {
	chi_json json;
	const char *path;
	uint64_t format;
} reader;

static choir_status corrupt(const reader *r)
{
	return choir_fail(CHOIR_CORRUPT, "%s: byte %zu: %s", r->path, r->json.at,
			r->json.error != NULL ? r->json.error : "a manifest has something else here");
}

static choir_status read_count(reader *r, uint64_t max, uint64_t *to)
{
	if (chi_json_next(&r->json) != CHI_JSON_NUMBER || !chi_json_uint64(&r->json, to) || *to > max)
		return corrupt(r);
	return CHOIR_OK;
}

static choir_status read_checksum(reader *r, uint32_t *to)
{
	uint64_t value;
	CHOIR_TRY(read_count(r, UINT32_MAX, &value));
	*to = (uint32_t) value;
	return CHOIR_OK;
}

typedef choir_status member_fn(reader *r, void *of);

static choir_status read_object(reader *r, member_fn *member, void *of)
{
	if (chi_json_next(&r->json) != CHI_JSON_OBJECT)
		return corrupt(r);
	for (;;) {
		const chi_json_token token = chi_json_next(&r->json);
		if (token == CHI_JSON_OBJECT_END)
			return CHOIR_OK;
		if (token != CHI_JSON_KEY)
			return corrupt(r);
		CHOIR_TRY(member(r, of));
	}
}

static choir_status read_tensor(reader *r, void *of)
{
	chi_manifest_file *f = of;
	if (!chi_grow(&f->tensor, &f->capacity, f->n + 1, sizeof *f->tensor))
		return CHOIR_NO_MEMORY;
	chi_manifest_tensor *t = &f->tensor[f->n++];
	*t = (chi_manifest_tensor){ .name = r->json.text };
	return read_checksum(r, &t->crc32c);
}

static choir_status read_of_file(reader *r, void *of)
{
	chi_manifest_file *f = of;
	if (strcmp(r->json.text, "bytes") == 0)
		return read_count(r, UINT64_MAX, &f->bytes);
	if (strcmp(r->json.text, "header") == 0)
		return read_checksum(r, &f->header);
	if (strcmp(r->json.text, "tensors") == 0)
		return read_object(r, read_tensor, f);
	return corrupt(r);
}

static choir_status read_pair(reader *r, void *of)
{
	chi_manifest *m = of;
	if (!chi_grow(&m->pair, &m->pairs_capacity, m->pairs + 1, sizeof *m->pair))
		return CHOIR_NO_MEMORY;
	chi_st_pair *p = &m->pair[m->pairs++];
	*p = (chi_st_pair){ r->json.text, "" };
	if (chi_json_next(&r->json) != CHI_JSON_STRING)
		return corrupt(r);
	p->value = r->json.text;
	return CHOIR_OK;
}

static choir_status read_known(reader *r, chi_manifest *m)
{
	const struct {
		const char *key;
		uint64_t *to;
	} counts[] = { { "choir_checkpoint", &r->format }, { "save", &m->save }, { "step", &m->step },
		{ "replicas", &m->replicas } };
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
		if (strcmp(r->json.text, counts[i].key) == 0)
			return read_count(r, i == 0 ? UINT64_MAX : INT64_MAX, counts[i].to);
	for (int i = 0; i < CHI_CHECKPOINT_FILES; i++)
		if (strcmp(r->json.text, section[i]) == 0)
			return read_object(r, read_of_file, &m->file[i]);
	if (strcmp(r->json.text, "metadata") == 0)
		return read_object(r, read_pair, m);
	if (strcmp(r->json.text, "crc32c") == 0 && chi_json_next(&r->json) == CHI_JSON_STRING)
		return CHOIR_OK;
	return corrupt(r);
}

// First, so that nothing else of a newer format is parsed.
static choir_status read_member(reader *r, void *of)
{
	CHOIR_TRY(read_known(r, of));
	if (r->format > CHI_MANIFEST_FORMAT)
		return choir_fail(CHOIR_UNSUPPORTED,
				"%s: has format %" PRIu64 ", of a newer Choir; this one reads formats up to %d",
				r->path, r->format, CHI_MANIFEST_FORMAT);
	return CHOIR_OK;
}

static choir_status read_all(reader *r, chi_manifest *m)
{
	CHOIR_TRY(read_object(r, read_member, m));
	return chi_json_next(&r->json) == CHI_JSON_END && r->format != 0 ? CHOIR_OK : corrupt(r);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(
			((const chi_manifest_tensor *) a)->name, ((const chi_manifest_tensor *) b)->name);
}

static void sort_tensors(chi_manifest *m)
{
	for (int i = 0; i < CHI_CHECKPOINT_FILES; i++)
		if (m->file[i].n > 0)
			qsort(m->file[i].tensor, m->file[i].n, sizeof m->file[i].tensor[0], by_name);
}

static choir_status check_tail(const char *path, const char *text, size_t bytes)
{
	char tail[TAIL + 1];
	if (bytes >= TAIL) {
		const size_t before = bytes - TAIL;
		snprintf(tail, sizeof tail, tail_format, chi_crc32c(0, text, before));
		if (memcmp(tail, text + before, TAIL) == 0)
			return CHOIR_OK;
	}
	return choir_fail(CHOIR_CORRUPT, "%s: is damaged; its checksum does not match", path);
}

static choir_status load(chi_file *f, chi_manifest *m, size_t *bytes)
{
	const uint64_t size = chi_file_size(f);
	if (size > MAX_BYTES)
		return choir_fail(CHOIR_CORRUPT, "%s: has %" PRIu64 " bytes, too many for a manifest",
				chi_file_path(f), size);
	*bytes = (size_t) size;
	m->text = chi_alloc(*bytes + 1);
	CHOIR_TRY(chi_made(m->text));
	return chi_file_read(f, 0, m->text, *bytes);
}

static choir_status read_file(chi_file *f, chi_manifest *m)
{
	size_t bytes = 0;
	CHOIR_TRY(load(f, m, &bytes));
	CHOIR_TRY(check_tail(chi_file_path(f), m->text, bytes));
	reader r = { .path = chi_file_path(f) };
	chi_json_open(&r.json, m->text, bytes);
	CHOIR_TRY(read_all(&r, m));
	sort_tensors(m);
	return CHOIR_OK;
}

choir_status chi_manifest_read(const chi_directory *step, chi_manifest *m)
{
	*m = (chi_manifest){ 0 };
	chi_file *f = chi_file_open_in(step, "manifest.json");
	const choir_status status = f == NULL ? choir_error_status() : read_file(f, m);
	chi_file_close(f);
	return status;
}

void chi_manifest_free(chi_manifest *m)
{
	for (int i = 0; i < CHI_CHECKPOINT_FILES; i++)
		chi_free(m->file[i].tensor);
	chi_free(m->pair);
	chi_free(m->text);
	*m = (chi_manifest){ 0 };
}

const char *chi_manifest_find(const chi_manifest *m, const char *key)
{
	for (size_t i = 0; i < m->pairs; i++)
		if (strcmp(m->pair[i].key, key) == 0)
			return m->pair[i].value;
	return NULL;
}
