// Files and directory are synced before the rename, so a checkpoint survives a power failure.
#include "train/checkpoint/checkpoint.h"

#include "base/alloc.h"
#include "base/crc32c.h"
#include "base/status.h"
#include "base/file.h"
#include "base/directory.h"
#include "base/size.h"
#include "base/sort.h"
#include "trace/health.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct {
	const chi_checkpoint_plan *plan;
	chi_directory *directory;
	chi_directory *step;
	chi_text final, temporary;
	chi_manifest manifest;
	uint64_t bytes;
} writing;

// Larger elements first, so that data is aligned.
static bool by_size_and_name(const void *a, const void *b)
{
	const chi_state_dict_entry *e = a, *f = b;
	const size_t s = chi_dtype_size(e->dtype), t = chi_dtype_size(f->dtype);
	return s != t ? s > t : strcmp(e->name, f->name) < 0;
}

typedef struct {
	size_t n;
	chi_state_dict_entry **entry;
	chi_text header;
} content;

static choir_status print_header(const writing *w, int file, content *c)
{
	chi_st_tensor *tensor = chi_alloc_array(c->n + 1, sizeof *tensor);
	size_t end = 0;
	if (tensor == NULL)
		return CHOIR_NO_MEMORY;
	choir_status status = CHOIR_OK;
	for (size_t i = 0; status == CHOIR_OK && i < c->n; i++) {
		const chi_state_dict_entry *e = c->entry[i];
		const size_t begin = end;
		if (!chi_text_is_utf8(e->name, strlen(e->name)) || strcmp(e->name, "__metadata__") == 0)
			status = choir_fail(CHOIR_INVALID,
					"save: variable \"%.100s\" has a reserved name "
					"or one that is not UTF-8; give it another",
					e->name);
		else if (!chi_size_add(end, e->bytes, &end))
			status = choir_fail(CHOIR_INVALID, "save: the tensors have too many bytes");
		tensor[i] = (chi_st_tensor){
			.name = e->name, .dtype = e->dtype, .shape = e->shape, .begin = begin, .end = end
		};
	}
	const size_t pairs = file == CHI_CHECKPOINT_WEIGHTS ? w->plan->pairs : 0;
	if (status == CHOIR_OK)
		chi_safetensors_print(&c->header, c->n, tensor, pairs, w->plan->pair);
	chi_free(tensor);
	return status == CHOIR_OK && c->header.failed ? CHOIR_NO_MEMORY : status;
}

static choir_status describe_file(writing *w, int file, const content *c)
{
	chi_manifest_file *m = &w->manifest.file[file];
	m->tensor = chi_alloc_array(c->n + 1, sizeof *m->tensor);
	CHOIR_TRY(chi_made(m->tensor));
	m->n = c->n;
	m->header = chi_crc32c(0, c->header.data, c->header.length);
	m->bytes = c->header.length;
	for (size_t i = 0; i < c->n; i++) {
		const chi_state_dict_entry *e = c->entry[i];
		m->tensor[i] = (chi_manifest_tensor){ e->name, chi_crc32c(0, e->data, e->bytes) };
		m->bytes += e->bytes;
	}
	return CHOIR_OK;
}

static choir_status prepare_file(writing *w, int file, content *c)
{
	const chi_state_dict *s = file == CHI_CHECKPOINT_WEIGHTS ? &w->plan->snapshot->weights
															 : &w->plan->snapshot->state;
	*c = (content){ .n = s->n, .entry = chi_alloc_array(s->n + 1, sizeof *c->entry) };
	if (c->entry == NULL)
		return CHOIR_NO_MEMORY;
	for (size_t i = 0; i < s->n; i++)
		c->entry[i] = &s->entry[i];
	chi_heap_sort(c->entry, c->n, by_size_and_name);
	CHOIR_TRY(print_header(w, file, c));
	CHOIR_TRY(describe_file(w, file, c));
	w->bytes += w->manifest.file[file].bytes;
	return CHOIR_OK;
}

static void free_content(content *c)
{
	chi_free(c->entry);
	chi_text_free(&c->header);
}

static choir_status end_file(chi_writer *to, choir_status status)
{
	if (status == CHOIR_OK)
		return chi_writer_commit(to);
	chi_writer_abort(to);
	return status;
}

static choir_status write_content(const writing *w, int file, const content *c)
{
	chi_writer *to = chi_writer_new_growing_in(w->step, chi_checkpoint_file_name[file]);
	CHOIR_TRY(chi_made(to));
	choir_status status = chi_writer_write(to, c->header.data, c->header.length);
	for (size_t i = 0; status == CHOIR_OK && i < c->n; i++)
		status = chi_writer_write(to, c->entry[i]->data, c->entry[i]->bytes);
	return end_file(to, status);
}

static choir_status write_manifest(const writing *w)
{
	chi_text text = { 0 };
	chi_manifest_print(&text, &w->manifest);
	chi_writer *to = text.failed ? NULL : chi_writer_new_growing_in(w->step, "manifest.json");
	choir_status status = to == NULL ? choir_error_status()
									 : end_file(to, chi_writer_write(to, text.data, text.length));
	chi_text_free(&text);
	return status;
}

static choir_status find_names(writing *w)
{
	bool taken = true;
	for (int k = 1; taken; k++) {
		chi_text_free(&w->final);
		chi_text_add(&w->final, "step-%" PRIu64, w->plan->snapshot->step);
		if (k > 1)
			chi_text_add(&w->final, ".%d", k);
		if (w->final.failed)
			return CHOIR_NO_MEMORY;
		CHOIR_TRY(chi_directory_has(w->directory, w->final.data, &taken));
	}
	chi_text_add(&w->temporary, ".%s.tmp", w->final.data);
	return w->temporary.failed ? CHOIR_NO_MEMORY : CHOIR_OK;
}

static choir_status write_directory(writing *w, const content c[])
{
	// A failed save may have left this directory.
	CHOIR_TRY(chi_directory_remove(w->directory, w->temporary.data));
	CHOIR_TRY(chi_directory_make_in(w->directory, w->temporary.data));
	w->step = chi_directory_open_in(w->directory, w->temporary.data);
	CHOIR_TRY(chi_made(w->step));
	for (int i = 0; i < CHI_CHECKPOINT_FILES; i++)
		CHOIR_TRY(write_content(w, i, &c[i]));
	CHOIR_TRY(write_manifest(w));
	return chi_directory_sync(w->step);
}

static choir_status give_up(const writing *w)
{
	chi_error first;
	char more[80] = "";
	chi_error_save(&first);
	const uint64_t capacity =
			w->directory == NULL ? UINT64_MAX : chi_directory_free_bytes(w->directory);
	if (w->temporary.data != NULL)
		(void) chi_directory_remove(w->directory, w->temporary.data);
	chi_error_restore(&first);
	if (first.status != CHOIR_IO)
		return first.status;
	if (capacity != UINT64_MAX)
		snprintf(more, sizeof more, ", %" PRIu64 " are free", capacity);
	return choir_fail(CHOIR_IO,
			"step %" PRIu64 " was not saved: %.300s (it needs %" PRIu64 " bytes%s)",
			w->plan->snapshot->step, first.text, w->bytes, more);
}

static choir_status check_space(const writing *w)
{
	const uint64_t capacity = chi_directory_free_bytes(w->directory);
	if (capacity >= w->bytes)
		return CHOIR_OK;
	return choir_fail(CHOIR_IO, "%s: has too little free space", w->plan->directory);
}

static choir_status write_temporary(writing *w, const content c[])
{
	w->directory = chi_directory_open(w->plan->directory);
	CHOIR_TRY(chi_made(w->directory));
	CHOIR_TRY(chi_directory_lock_check(w->plan->lock, w->directory));
	CHOIR_TRY(find_names(w));
	CHOIR_TRY(check_space(w));
	CHOIR_TRY(write_directory(w, c));
	return chi_directory_rename(w->directory, w->temporary.data, w->final.data);
}

static choir_status publish(writing *w, const content c[])
{
	return write_temporary(w, c) == CHOIR_OK ? chi_directory_sync(w->directory) : give_up(w);
}

static choir_status give_path(const writing *w, char **path)
{
	chi_text text = { 0 };
	chi_text_add(&text, "%s/%s", w->plan->directory, w->final.data);
	if (text.failed)
		chi_text_free(&text);
	*path = text.data;
	return *path == NULL ? CHOIR_NO_MEMORY : CHOIR_OK;
}

choir_status chi_checkpoint_write(const chi_checkpoint_plan *plan, char **path)
{
	writing w = { .plan = plan,
		.manifest = { .save = plan->save,
				.step = plan->snapshot->step,
				.replicas = plan->snapshot->replicas,
				.pairs = plan->pairs } };
	content c[CHI_CHECKPOINT_FILES] = { { 0 } };
	choir_status status = CHOIR_OK;
	w.manifest.pair = chi_alloc_array(plan->pairs + 1, sizeof *w.manifest.pair);
	if (w.manifest.pair == NULL)
		status = CHOIR_NO_MEMORY;
	else if (plan->pairs > 0)
		memcpy(w.manifest.pair, plan->pair, plan->pairs * sizeof *plan->pair);
	for (int i = 0; status == CHOIR_OK && i < CHI_CHECKPOINT_FILES; i++)
		status = prepare_file(&w, i, &c[i]);
	if (status == CHOIR_OK)
		status = publish(&w, c);
	if (status == CHOIR_OK)
		chi_health_saved(plan->snapshot->step);
	*path = NULL;
	if (status == CHOIR_OK)
		status = give_path(&w, path);
	for (int i = 0; i < CHI_CHECKPOINT_FILES; i++)
		free_content(&c[i]);
	chi_manifest_free(&w.manifest);
	chi_directory_close(w.step);
	chi_directory_close(w.directory);
	chi_text_free(&w.final);
	chi_text_free(&w.temporary);
	return status;
}

static chi_text hidden_name(const chi_checkpoint *step)
{
	chi_text name = { 0 };
	chi_text_add(&name, step->half ? "%s" : ".%s.old", step->name);
	if (name.failed)
		chi_text_free(&name);
	return name;
}

static choir_status hide(const chi_directory *directory, const chi_checkpoint *step)
{
	chi_text to = hidden_name(step);
	choir_status status = CHOIR_OK;
	if (to.data == NULL)
		return CHOIR_NO_MEMORY;
	if (!step->half)
		status = chi_directory_remove(directory, to.data);
	if (!step->half && status == CHOIR_OK)
		status = chi_directory_rename(directory, step->name, to.data);
	chi_text_free(&to);
	return status;
}

static choir_status remove_steps(
		const chi_directory *directory, size_t n, chi_checkpoint *const steps[])
{
	for (size_t i = 0; i < n; i++)
		CHOIR_TRY(hide(directory, steps[i]));
	CHOIR_TRY(chi_directory_sync(directory));
	for (size_t i = 0; i < n; i++) {
		chi_text name = hidden_name(steps[i]);
		const choir_status status =
				name.data == NULL ? CHOIR_NO_MEMORY : chi_directory_remove(directory, name.data);
		chi_text_free(&name);
		CHOIR_TRY(status);
	}
	return CHOIR_OK;
}

choir_status chi_checkpoints_remove(const char *directory, size_t n, chi_checkpoint *const steps[])
{
	if (n == 0)
		return CHOIR_OK;
	chi_directory *checkpoint_directory = chi_directory_open(directory);
	const choir_status status = checkpoint_directory == NULL
			? choir_error_status()
			: remove_steps(checkpoint_directory, n, steps);
	chi_directory_close(checkpoint_directory);
	return status;
}
