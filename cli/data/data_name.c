// One table has all kinds of data, and a kind means the same in each command that reads it.
#include "data/data_name.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SYNTHETIC = 12000, FILES = DATA_INSPECT | DATA_MEASURE, ALL = DATA_LEARN | FILES };

static const struct {
	const char *word, *form;
	int uses;
	const char *suffix[2];
} kinds[] = {
	[DATA_MNIST] = { "mnist", "mnist", DATA_LEARN, { NULL } },
	[DATA_DIGITS] = { "digits", "digits[:N]", DATA_LEARN, { NULL } },
	[DATA_IDX] = { "idx", "idx:IMAGES[,LABELS]", ALL, { ".idx", "ubyte" } },
	[DATA_NPY] = { "npy", "npy:INPUTS[,LABELS]", ALL, { ".npy" } },
	[DATA_NPZ] = { "npz", "npz:FILE[#ARRAY,...]", ALL, { ".npz" } },
	[DATA_HDF5] = { "hdf5", "hdf5:FILE[#ARRAY,...]", ALL, { ".h5", ".hdf5" } },
	[DATA_CSV] = { "csv", "csv:FILE", ALL, { ".csv", ".tsv" } },
	[DATA_TFRECORD] = { "tfrecord", "tfrecord:FILE", ALL, { ".tfrecord", ".tfrecords" } },
	[DATA_CIFAR10] = { "cifar10", "cifar10:DIR", ALL, { NULL } },
	[DATA_IMAGES] = { "images", "images:DIR", DATA_LEARN | DATA_MEASURE, { NULL } },
	[DATA_TEXT] = { "text", "text:FILE", DATA_LEARN, { ".txt" } },
	[DATA_LINES] = { "lines", "lines:FILE", FILES, { ".txt" } },
	[DATA_FIXED] = { "fixed", "fixed:BYTES:FILE", FILES, { NULL } },
	[DATA_SAFETENSORS] = { "safetensors", "safetensors:FILE", DATA_INSPECT, { ".safetensors" } },
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

const char data_learn_help[] = "mnist (10,000 real digits), digits[:N] (synthetic),\n" DATA_FILES
							   ",\nimages:DIR (a directory of PNG and JPEG files per class),"
							   "\ntext:FILE (any bytes, for gpt and lstm); FILE may be a list\n"
							   "with commas or a pattern. A kind such as \"csv:\" may be\n"
							   "left out if the suffix of FILE shows it (train: mnist;\n"
							   "predict: required)";
const char data_measure_help[] =
		DATA_FILES ",\nimages:DIR (scaled to 224 x 224), lines:FILE or\nfixed:BYTES:FILE; "
				   "the kind may be left out if the suffix of\nFILE shows it (required)";

static bool ends_with(const char *name, size_t n, const char *end)
{
	const size_t k = end == NULL ? 0 : strlen(end);
	return k != 0 && n >= k && memcmp(name + n - k, end, k) == 0;
}

static bool is_other_table(const char *name)
{
	static const char *const ends[] = { ".xlsx", ".xls", ".ods", ".parquet", ".feather", ".json",
		".jsonl", ".ndjson", ".pkl", ".zip", ".bz2", ".xz", ".zst" };
	size_t i = 0;
	while (i < sizeof ends / sizeof ends[0] && !ends_with(name, strlen(name), ends[i]))
		i++;
	return i < sizeof ends / sizeof ends[0];
}

// kind: KINDS if it is unknown.
static choir_status unfit(const char *name, size_t kind, data_use use)
{
	char known[512] = "";
	size_t at = 0;
	for (size_t i = 0; i < KINDS && at < sizeof known; i++)
		if (kinds[i].uses & (int) use)
			at += (size_t) snprintf(
					known + at, sizeof known - at, "%s%s", at == 0 ? "" : ", ", kinds[i].form);
	if (kind < KINDS)
		return choir_fail(CHOIR_NOT_FOUND,
				"data \"%.100s\": this command does not read %s; known: %s", name,
				kinds[kind].form, known);
	if (is_other_table(name) && access(name, F_OK) == 0)
		return choir_fail(CHOIR_NOT_FOUND,
				"data \"%.100s\": this format is not read; save a table as CSV, plain or gzip",
				name);
	return choir_fail(CHOIR_NOT_FOUND, "data \"%.100s\": %s; known: %s", name,
			access(name, F_OK) == 0 ? "the name does not show the kind"
									: "no such file or kind of data",
			known);
}

// KINDS: none.
static size_t kind_by_prefix(const char *name)
{
	size_t i = 0;
	for (; i < KINDS; i++) {
		const size_t n = strlen(kinds[i].word);
		if (strncmp(name, kinds[i].word, n) == 0 &&
				(name[n] == ':' || (name[n] == '\0' && i <= DATA_DIGITS)))
			break;
	}
	return i;
}

static size_t kind_by_suffix(const char *path, data_use use)
{
	size_t i = 0, n = strlen(path);
	if (ends_with(path, n, ".gz"))
		n -= 3;
	while (i < KINDS &&
			(!(kinds[i].uses & (int) use) ||
					(!ends_with(path, n, kinds[i].suffix[0]) &&
							!ends_with(path, n, kinds[i].suffix[1]))))
		i++;
	return i;
}

// Moves "NAME,NAME" after the last '#' into d->text, unless a file has the whole name.
static choir_status split_arrays(data_name *d, const char *name)
{
	char *hash = strrchr(d->path, '#');
	if (hash == NULL || access(d->path, F_OK) == 0)
		return CHOIR_OK;
	*hash = '\0';
	strcpy(d->text, hash + 1);
	for (char *p = d->text; p != NULL;) {
		char *end = strchr(p, ',');
		if (end != NULL)
			*end++ = '\0';
		if (*p == '\0' || d->arrays == MAX_ARRAYS)
			return choir_fail(CHOIR_INVALID,
					"data \"%s\": wrong list of arrays; needs FILE#NAME,NAME with 1 to %d names",
					name, MAX_ARRAYS);
		d->array[d->arrays++] = p;
		p = end;
	}
	return CHOIR_OK;
}

// 0: text does not begin with a number from 1 to max.
static int64_t read_number(const char *text, int64_t max, char **end)
{
	const long long n = strtoll(text, end, 10);
	return isdigit((unsigned char) text[0]) && n <= max ? n : 0;
}

static choir_status incomplete(const data_name *d, const char *name)
{
	return choir_fail(CHOIR_INVALID, "data \"%s\": wrong or incomplete name; needs %s", name,
			kinds[d->kind].form);
}

static choir_status read_digits(data_name *d, const char *name)
{
	char *end = d->path;
	const bool given = strchr(name, ':') != NULL;
	d->number = given ? read_number(d->path, INT32_MAX, &end) : SYNTHETIC;
	if (d->number > 0 && *end == '\0')
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID,
			"data \"%s\": wrong number; needs digits:N with N from 1 to %d", name, INT32_MAX);
}

static choir_status split_labels(data_name *d, const char *name)
{
	char *comma = strchr(d->path, ',');
	if (comma == NULL || access(d->path, F_OK) == 0)
		return CHOIR_OK;
	*comma = '\0';
	strcpy(d->labels, comma + 1);
	const bool two = d->path[0] != '\0' && d->labels[0] != '\0' && !strchr(d->labels, ',');
	return two ? CHOIR_OK : incomplete(d, name);
}

static choir_status read_record(data_name *d, const char *name)
{
	char *end;
	d->number = read_number(d->path, INT64_MAX, &end);
	if (d->number == 0 || end[0] != ':' || end[1] == '\0')
		return incomplete(d, name);
	memmove(d->path, end + 1, strlen(end));
	return CHOIR_OK;
}

static choir_status read_rest(data_name *d, const char *name)
{
	if (d->kind == DATA_DIGITS)
		return read_digits(d, name);
	if ((d->path[0] == '\0') != (d->kind == DATA_MNIST))
		return incomplete(d, name);
	if (d->arrays > 0 && d->kind != DATA_NPZ && d->kind != DATA_HDF5)
		return choir_fail(CHOIR_INVALID,
				"data \"%s\": %s has no arrays to select with #; needs npz or hdf5", name,
				d->word);
	if (d->kind == DATA_IDX || d->kind == DATA_NPY)
		return split_labels(d, name);
	return d->kind == DATA_FIXED ? read_record(d, name) : CHOIR_OK;
}

choir_status data_name_read(data_name *d, const char *name, data_use use)
{
	size_t kind = kind_by_prefix(name);
	const char *rest = kind == KINDS ? name : name + strlen(kinds[kind].word);
	*d = (data_name){ .number = 0 };
	rest += kind != KINDS && *rest == ':';
	if (strlen(rest) >= PATH_SIZE)
		return choir_fail(CHOIR_INVALID,
				"data \"%.40s...\": a name of %zu bytes; needs at most %d", name, strlen(rest),
				PATH_SIZE - 1);
	strcpy(d->path, rest);
	CHOIR_TRY(split_arrays(d, name));
	if (kind == KINDS && (strchr(name, ':') == NULL || access(name, F_OK) == 0))
		kind = kind_by_suffix(d->path, use);
	if (kind == KINDS || !(kinds[kind].uses & (int) use))
		return unfit(name, kind, use);
	d->kind = (data_kind) kind;
	d->word = kinds[kind].word;
	return read_rest(d, name);
}

// The files of a list, or one file whose name has commas.
static choir_files *list_files(const char *list)
{
	const char *name[PATH_SIZE] = { list }; // more than the commas that fit into text
	char text[PATH_SIZE];
	size_t n = 1;
	snprintf(text, sizeof text, "%s", list);
	if (access(list, F_OK) != 0) {
		name[0] = text;
		for (char *p = text; (p = strchr(p, ',')) != NULL;) {
			*p++ = '\0';
			name[n++] = p;
		}
	}
	return choir_files_new(n, name);
}

choir_files *data_name_files(const data_name *d)
{
	char pattern[PATH_SIZE + 16];
	const char *path[] = { d->path, d->labels };
	if (d->labels[0] != '\0')
		return choir_files_new(2, path);
	if (d->kind != DATA_CIFAR10 && d->kind != DATA_IMAGES)
		return list_files(d->path);
	snprintf(pattern, sizeof pattern, d->kind == DATA_IMAGES ? "%s/*/*" : "%s/*_batch*.bin",
			d->path);
	path[0] = pattern;
	return choir_files_new(1, path);
}
