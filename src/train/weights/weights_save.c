// Saves and hashes weights. The header with all offsets comes first, so values are then fetched
// and written one by one.
#include "choir/weights.h"

#include "base/alloc.h"
#include "base/status.h"
#include "base/hash.h"
#include "base/size.h"
#include "base/text.h"
#include "strategy/worker_consistency.h"
#include "strategy/context.h"
#include "trace/trace.h"
#include "base/sort.h"
#include "train/weights/safetensors.h"
#include "train/weights/weights.h"

#include <string.h>

// Larger elements first, so that data is aligned; then by name.
static bool by_size_and_name(const void *a, const void *b)
{
	const choir_variable *v = a, *w = b;
	const size_t s = chi_dtype_size(v->dtype), t = chi_dtype_size(w->dtype);
	return s != t ? s > t : strcmp(v->name, w->name) < 0;
}

static choir_status print_header(chi_text *text, const chi_weights *w, const chi_metadata *l)
{
	chi_st_tensor *tensor = chi_alloc_array(w->n + 1, sizeof *tensor);
	choir_status status = tensor == NULL ? CHOIR_NO_MEMORY : CHOIR_OK;
	size_t end = 0;
	for (size_t i = 0; status == CHOIR_OK && i < w->n; i++) {
		const choir_variable *v = w->variable[i];
		const size_t begin = end;
		if (!chi_text_is_utf8(v->name, strlen(v->name)) || strcmp(v->name, "__metadata__") == 0)
			status = choir_fail(CHOIR_INVALID,
					"save: variable \"%.100s\" has a reserved name "
					"or one that is not UTF-8; give it another",
					v->name);
		else if (!chi_size_add(end, chi_variable_bytes(v), &end))
			status = choir_fail(CHOIR_INVALID, "save: the tensors have too many bytes");
		tensor[i] = (chi_st_tensor){
			.name = v->name, .dtype = v->dtype, .shape = v->shape, .begin = begin, .end = end
		};
	}
	if (status == CHOIR_OK) {
		chi_safetensors_print(text, w->n, tensor, l->n, l->pair);
		status = text->failed ? CHOIR_NO_MEMORY : CHOIR_OK;
	}
	chi_free(tensor);
	return status;
}

// A file being written; to is NULL on the other workers. After a failure the rest is still
// fetched, since some weights need all workers.
typedef struct {
	chi_writer *to;
	choir_status status;
	chi_error failure;
} writing;

static void fail(writing *w, choir_status status)
{
	if (status == CHOIR_OK || w->status != CHOIR_OK)
		return;
	w->status = status;
	chi_error_save(&w->failure);
}

static choir_status write_weight(
		const choir_variable *v, const void *data, size_t bytes, void *user)
{
	(void) v;
	writing *w = user;
	if (w->to != NULL && w->status == CHOIR_OK)
		fail(w, chi_writer_write(w->to, data, bytes));
	return CHOIR_OK;
}

// writes: this worker writes the file.
static choir_status write_file(
		const char *path, const chi_weights *weights, const chi_text *header, bool writes)
{
	writing w = { .to = writes ? chi_writer_new(path) : NULL };
	if (w.to != NULL)
		fail(&w, chi_writer_write(w.to, header->data, header->length));
	else if (writes)
		fail(&w, choir_error_status());
	fail(&w, chi_weights_each(weights, write_weight, &w));
	if (w.status == CHOIR_OK)
		return w.to == NULL ? CHOIR_OK : chi_writer_commit(w.to);
	if (w.to != NULL)
		chi_writer_abort(w.to);
	chi_error_restore(&w.failure);
	return w.status;
}

// All checks before the first fetch.
static choir_status begin_file(choir_strategy *s, const char *path, const char *metadata,
		chi_weights *w, chi_text *header)
{
	chi_metadata l = { 0 };
	if (path == NULL)
		return choir_fail(CHOIR_INVALID, "save: the path is NULL");
	choir_status status = chi_weights_collect(s, "save", w);
	if (status == CHOIR_OK)
		status = chi_metadata_cut(metadata, &l);
	if (status == CHOIR_OK) {
		chi_heap_sort(w->variable, w->n, by_size_and_name);
		status = print_header(header, w, &l);
	}
	chi_metadata_free(&l);
	return status;
}

choir_status choir_strategy_save(choir_strategy *s, const char *path, const char *metadata)
{
	chi_weights w = { 0 };
	chi_text header = { 0 };
	CHOIR_TRY(chi_strategy_check(s));
	CHOIR_TRY(chi_context_need_cross(s, "save"));
	CHOIR_TRY(chi_compare_workers(s->owner));
	chi_trace_begin(CHOIR_TRACE_CHECKPOINT, "save");
	choir_status status = chi_strategy_agree(
			s, begin_file(s, path, metadata, &w, &header), "the weights to save");
	if (status == CHOIR_OK)
		status = chi_strategy_agree(
				s, write_file(path, &w, &header, choir_strategy_is_chief(s)), "saving weights");
	chi_text_free(&header);
	chi_weights_free(&w);
	chi_trace_end();
	return status;
}

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
	const char *from = data;
	for (uint64_t word; bytes > 0; from += sizeof word) {
		const size_t n = bytes < sizeof word ? bytes : sizeof word;
		word = 0;
		memcpy(&word, from, n);
		hash = chi_hash_mix(hash ^ word);
		bytes -= n;
	}
	return hash;
}

static choir_status hash_weight(
		const choir_variable *v, const void *data, size_t bytes, void *user)
{
	uint64_t *hash = user;
	*hash = chi_hash_mix(*hash ^ chi_hash_text(v->name));
	*hash = chi_hash_mix(*hash ^ ((uint64_t) v->dtype << 8 | (uint64_t) v->shape.rank));
	for (int i = 0; i < v->shape.rank; i++)
		*hash = chi_hash_mix(*hash ^ (uint64_t) v->shape.dim[i]);
	*hash = hash_bytes(*hash, data, bytes);
	return CHOIR_OK;
}

uint64_t choir_strategy_hash(choir_strategy *s)
{
	chi_weights w;
	uint64_t hash = 0;
	if (chi_strategy_check(s) != CHOIR_OK || chi_context_need_cross(s, "hash") != CHOIR_OK)
		return 0;
	choir_status status = chi_weights_collect(s, "hash", &w);
	if (status == CHOIR_OK)
		status = chi_weights_each(&w, hash_weight, &hash);
	chi_weights_free(&w);
	if (chi_strategy_abort(s, status) != CHOIR_OK)
		return 0;
	return hash == 0 ? 1 : hash; // 0 means failure
}
