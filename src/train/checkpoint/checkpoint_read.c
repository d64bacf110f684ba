// Finding, reading and verifying checkpoints.
#include "train/checkpoint/checkpoint.h"

#include "base/alloc.h"
#include "base/crc32c.h"
#include "base/status.h"
#include "base/directory.h"
#include "base/size.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool read_number(const char *text, const char **end, uint64_t *number)
{
	*number = 0;
	if (*text < '0' || *text > '9' || (*text == '0' && text[1] >= '0' && text[1] <= '9'))
		return false;
	for (; *text >= '0' && *text <= '9'; text++)
		if (__builtin_mul_overflow(*number, (uint64_t) 10, number) ||
				__builtin_add_overflow(*number, (uint64_t) (*text - '0'), number))
			return false;
	*end = text;
	return true;
}

// [.]step-N[.K][.tmp or .old]
static bool understand(const char *name, chi_checkpoint *step)
{
	static const char word[] = "step-";
	uint64_t more;
	step->half = name[0] == '.';
	name += step->half;
	if (strncmp(name, word, sizeof word - 1) != 0 ||
			!read_number(name + sizeof word - 1, &name, &step->step))
		return false;
	if (name[0] == '.' && name[1] >= '0' && name[1] <= '9' && !read_number(name + 1, &name, &more))
		return false;
	return step->half ? strcmp(name, ".tmp") == 0 || strcmp(name, ".old") == 0 : *name == '\0';
}

void chi_checkpoint_free(chi_checkpoint *s)
{
	chi_free(s->name);
	chi_free(s->path);
	chi_manifest_free(&s->manifest);
}

void chi_checkpoints_free(chi_checkpoints *steps)
{
	for (size_t i = 0; i < steps->n; i++)
		chi_checkpoint_free(&steps->step[i]);
	chi_free(steps->step);
	*steps = (chi_checkpoints){ 0 };
}

bool chi_checkpoint_is_damage(choir_status status)
{
	return status == CHOIR_CORRUPT || status == CHOIR_NOT_FOUND;
}

static choir_status read_manifest(chi_checkpoint *s)
{
	chi_directory *checkpoint_directory = chi_directory_open_in(NULL, s->path);
	const choir_status status = checkpoint_directory == NULL
			? choir_error_status()
			: chi_manifest_read(checkpoint_directory, &s->manifest);
	chi_directory_close(checkpoint_directory);
	CHOIR_TRY(status);
	if (s->manifest.step != s->step)
		return choir_fail(CHOIR_CORRUPT, "%s: its manifest belongs to step %" PRIu64, s->path,
				s->manifest.step);
	s->readable = true;
	return CHOIR_OK;
}

choir_status chi_checkpoint_open(const char *path, chi_checkpoint *step)
{
	size_t length = strlen(path);
	while (length > 1 && path[length - 1] == '/')
		length--;
	chi_text own = { 0 };
	chi_text_add(&own, "%.*s", (int) length, path);
	*step = (chi_checkpoint){ .path = own.data };
	if (own.failed)
		return CHOIR_NO_MEMORY;
	const char *slash = strrchr(step->path, '/');
	if (!understand(slash == NULL ? step->path : slash + 1, step) || step->half)
		return choir_fail(CHOIR_INVALID,
				"%s: is not the name of a step's directory; "
				"a name such as \"step-1500\" is needed",
				path);
	return read_manifest(step);
}

static choir_status add_step(chi_checkpoints *steps, const char *directory, const char *name)
{
	chi_checkpoint s = { 0 };
	if (!understand(name, &s))
		return CHOIR_OK;
	chi_text path = { 0 };
	chi_text_add(&path, "%s/%s", directory, name);
	const bool made = !path.failed && (s.name = chi_strdup(name)) != NULL &&
			chi_grow(&steps->step, &steps->capacity, steps->n + 1, sizeof s);
	if (!made) {
		chi_text_free(&path);
		chi_free(s.name);
		return CHOIR_NO_MEMORY;
	}
	s.path = path.data;
	const choir_status status = s.half ? CHOIR_OK : read_manifest(&s);
	steps->step[steps->n++] = s;
	return chi_checkpoint_is_damage(status) ? CHOIR_OK : status;
}

static int in_order(const void *a, const void *b)
{
	const chi_checkpoint *s = a, *t = b;
	const uint64_t x = s->readable ? s->manifest.save : 0, y = t->readable ? t->manifest.save : 0;
	if (x != y)
		return x < y ? -1 : 1;
	if (s->step != t->step)
		return s->step < t->step ? -1 : 1;
	return strcmp(s->name, t->name);
}

choir_status chi_checkpoints_find(const char *directory, chi_checkpoints *steps)
{
	chi_glob names = { 0 };
	*steps = (chi_checkpoints){ 0 };
	chi_directory *checkpoint_directory = chi_directory_open(directory);
	choir_status status = checkpoint_directory == NULL
			? choir_error_status()
			: chi_directory_list(checkpoint_directory, &names);
	chi_directory_close(checkpoint_directory);
	for (size_t i = 0; status == CHOIR_OK && i < names.n; i++)
		status = add_step(steps, directory, names.path[i]);
	chi_glob_free(&names);
	if (steps->n > 0)
		qsort(steps->step, steps->n, sizeof *steps->step, in_order);
	return status;
}

static choir_status damaged(const char *path, const char *tensor, uint32_t is, uint32_t needed)
{
	char clean[120];
	if (tensor == NULL)
		return choir_fail(CHOIR_CORRUPT,
				"%s: its header is damaged; its checksum is "
				"%08" PRIx32 ", the manifest has %08" PRIx32,
				path, is, needed);
	return choir_fail(CHOIR_CORRUPT,
			"%s: tensor \"%s\" is damaged; its checksum is "
			"%08" PRIx32 ", the manifest has %08" PRIx32,
			path, chi_text_clean(tensor, clean, sizeof clean), is, needed);
}

static choir_status check_tensors(const char *path, const chi_manifest_file *m,
		const chi_safetensors *st, const unsigned char *data)
{
	if (m->n != st->n)
		return choir_fail(
				CHOIR_CORRUPT, "%s: has %zu tensors, but the manifest %zu", path, st->n, m->n);
	for (size_t i = 0; i < st->n; i++) {
		const chi_st_tensor *t = st->tensor[i];
		const chi_manifest_tensor *known = &m->tensor[i];
		const int order = strcmp(t->name, known->name);
		if (order != 0)
			return choir_fail(CHOIR_CORRUPT, "%s: tensor \"%.100s\" is not in the %s", path,
					order < 0 ? t->name : known->name, order < 0 ? "manifest" : "file");
		const uint32_t is = chi_crc32c(0, data + t->begin, (size_t) (t->end - t->begin));
		if (is != known->crc32c)
			return damaged(path, t->name, is, known->crc32c);
		CHOIR_TRY(chi_weights_check_bools(path, t, data));
	}
	return CHOIR_OK;
}

static size_t header_bytes(const unsigned char *all, size_t bytes)
{
	uint64_t length = 0;
	if (bytes < sizeof length)
		return bytes;
	for (int i = (int) sizeof length; i-- > 0;)
		length = length << 8 | all[i];
	return length > bytes - sizeof length ? bytes : (size_t) length + sizeof length;
}

static choir_status read_file(
		chi_file *f, const chi_manifest_file *m, int file, chi_checkpoint_content *c)
{
	const char *path = chi_file_path(f);
	const uint64_t bytes = chi_file_size(f);
	if (bytes != m->bytes)
		return choir_fail(CHOIR_CORRUPT,
				"%s: is damaged; it has %" PRIu64 " bytes, but the manifest %" PRIu64, path, bytes,
				m->bytes);
	unsigned char *all = bytes > SIZE_MAX ? NULL : chi_alloc_aligned((size_t) bytes);
	if (all == NULL)
		return chi_error_prefix("%s", path);
	c->data[file] = all;
	c->bytes[file] = (size_t) bytes;
	CHOIR_TRY(chi_file_read(f, 0, all, (size_t) bytes));
	// before the header is parsed
	const uint32_t header = chi_crc32c(0, all, header_bytes(all, (size_t) bytes));
	if (header != m->header)
		return damaged(path, NULL, header, m->header);
	CHOIR_TRY(chi_safetensors_view(&c->header[file], path, all, (size_t) bytes));
	return check_tensors(path, m, &c->header[file], all + c->header[file].data);
}

choir_status chi_checkpoint_content_read(const chi_checkpoint *step, chi_checkpoint_content *c)
{
	*c = (chi_checkpoint_content){ .path = chi_strdup(step->path) };
	if (c->path == NULL)
		return CHOIR_NO_MEMORY;
	if (step->half)
		return choir_fail(
				CHOIR_CORRUPT, "%s: was left half-written by a job that died", step->path);
	if (!step->readable) {
		chi_checkpoint again = *step;
		again.manifest = (chi_manifest){ 0 };
		const choir_status status = read_manifest(&again);
		chi_manifest_free(&again.manifest);
		return status != CHOIR_OK
				? status
				: choir_fail(CHOIR_STATE, "%s: is being changed by another job", step->path);
	}
	chi_directory *checkpoint_directory = chi_directory_open_in(NULL, step->path);
	choir_status status = chi_made(checkpoint_directory);
	for (int i = 0; status == CHOIR_OK && i < CHI_CHECKPOINT_FILES; i++) {
		chi_file *f = chi_file_open_in(checkpoint_directory, chi_checkpoint_file_name[i]);
		status = f == NULL ? choir_error_status() : read_file(f, &step->manifest.file[i], i, c);
		chi_file_close(f);
	}
	chi_directory_close(checkpoint_directory);
	return status;
}

void chi_checkpoint_content_free(chi_checkpoint_content *c)
{
	for (int i = 0; i < CHI_CHECKPOINT_FILES; i++) {
		chi_free(c->data[i]);
		chi_safetensors_close(&c->header[i]);
	}
	chi_free(c->path);
	*c = (chi_checkpoint_content){ 0 };
}
