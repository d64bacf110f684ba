// A weights file's header as public structs.
#include "base/alloc.h"
#include "base/status.h"
#include "choir/weights.h"
#include "train/weights/safetensors.h"

struct choir_weights_list {
	chi_safetensors file;
	choir_weights_entry *entry;
};

static choir_status fill(choir_weights_list *l, chi_file *f)
{
	CHOIR_TRY(chi_safetensors_open(&l->file, f));
	l->entry = chi_alloc_array(l->file.n + 1, sizeof *l->entry);
	CHOIR_TRY(chi_made(l->entry));
	for (size_t i = 0; i < l->file.n; i++) {
		const chi_st_tensor *t = l->file.tensor[i];
		l->entry[i] = (choir_weights_entry){
			.name = t->name,
			.dtype = t->dtype_name,
			.known = t->supported ? (int) t->dtype : CHOIR_NONE,
			.shape = t->shape,
			.first = l->file.data + t->begin,
			.bytes = t->end - t->begin,
		};
	}
	return CHOIR_OK;
}

choir_weights_list *choir_weights_list_new(const char *path)
{
	if (path == NULL)
		return chi_fail_null(CHOIR_INVALID, "weights_list: the path is NULL");
	choir_weights_list *l = chi_alloc(sizeof *l);
	chi_file *f = l == NULL ? NULL : chi_file_open(path);
	const choir_status status = f == NULL ? choir_error_status() : fill(l, f);
	chi_file_close(f);
	if (status == CHOIR_OK)
		return l;
	choir_weights_list_free(l);
	return NULL;
}

void choir_weights_list_free(choir_weights_list *l)
{
	if (l == NULL)
		return;
	chi_safetensors_close(&l->file);
	chi_free(l->entry);
	chi_free(l);
}

size_t choir_weights_list_entries(const choir_weights_list *l)
{
	return l == NULL ? 0 : l->file.n;
}

const choir_weights_entry *choir_weights_list_entry(const choir_weights_list *l, size_t i)
{
	return i < choir_weights_list_entries(l) ? &l->entry[i] : NULL;
}

const char *choir_weights_list_key(const choir_weights_list *l, size_t i)
{
	return l != NULL && i < l->file.pairs ? l->file.pair[i]->key : NULL;
}

const char *choir_weights_list_value(const choir_weights_list *l, size_t i)
{
	return l != NULL && i < l->file.pairs ? l->file.pair[i]->value : NULL;
}
