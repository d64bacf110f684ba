// Kinds of files, by name.
#include "open.h"

#include <string.h>

const char named_file_help[] = "csv:, npy:, npz:, idx:, tfrecord: or text: and a file";

static choir_dataset *open_idx(const char *path)
{
	return choir_idx_dataset_new(path, "x");
}

static choir_dataset *open_npy(const char *path)
{
	return choir_npy_dataset_new(path, "x");
}

static choir_dataset *open_npz(const char *path)
{
	return choir_npz_dataset_new(path, 0, NULL);
}

static choir_dataset *open_csv(const char *path)
{
	choir_dataset *d = choir_csv_dataset_new(
			path, CHOIR_OPTIONS(choir_csv_options, .missing = CHOIR_MISSING_DROP));
	if (d != NULL || choir_error_status() != CHOIR_INVALID)
		return d;
	return choir_csv_dataset_new(path,
			CHOIR_OPTIONS(choir_csv_options, .missing = CHOIR_MISSING_DROP, .rest = "numbers"));
}

static choir_dataset *open_tfrecord(const char *path)
{
	return choir_tfrecord_dataset_new(path, NULL);
}

static choir_dataset *open_bytes(const char *path)
{
	return choir_text_bytes_dataset_new(path, "byte");
}

static const struct {
	const char *kind, *ends; // ends: how names end
	choir_dataset *(*open)(const char *path);
} kinds[] = {
	{ "csv", ".csv", open_csv },
	{ "npy", ".npy", open_npy },
	{ "npz", ".npz", open_npz },
	{ "idx", "ubyte", open_idx },
	{ "idx", ".idx", open_idx },
	{ "tfrecord", ".tfrecord", open_tfrecord },
	{ "tfrecord", ".tfrecords", open_tfrecord },
	{ "text", ".txt", open_bytes },
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static bool ends_with(const char *name, size_t n, const char *end)
{
	const size_t k = strlen(end);
	return n >= k && memcmp(name + n - k, end, k) == 0;
}

choir_status named_file_set(named_file *f, const char *name)
{
	size_t n = strlen(name);
	for (size_t i = 0; i < KINDS; i++) {
		const size_t k = strlen(kinds[i].kind);
		if (strncmp(name, kinds[i].kind, k) == 0 && name[k] == ':' && name[k + 1] != '\0') {
			*f = (named_file){ kinds[i].kind, name + k + 1 };
			return CHOIR_OK;
		}
	}
	if (ends_with(name, n, ".gz"))
		n -= 3;
	for (size_t i = 0; i < KINDS; i++)
		if (ends_with(name, n, kinds[i].ends)) {
			*f = (named_file){ kinds[i].kind, name };
			return CHOIR_OK;
		}
	return choir_fail(CHOIR_INVALID,
			"\"%s\": its name does not say what it is; csv:, npy:, npz:, idx:, tfrecord: or text: "
			"before it "
			"does",
			name);
}

choir_dataset *named_file_open(const named_file *f)
{
	size_t i = 0;
	while (strcmp(kinds[i].kind, f->kind) != 0)
		i++;
	return kinds[i].open(f->path);
}
