// Files, reading, and damage.
#include "data/source/scratch.h"

#include "base/status.h"
#include "data/data.h"
#include "data/source/gzip.h"
#include "data/dataset.h"
#include "facts.h"
#include "tensor/tensor.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { PATHS = 8, PATH_BYTES = 256, WORDS = 1 << 16 };

static char scratch_directory[64];

const char *scratch_path(const char *name)
{
	static char path[PATHS][PATH_BYTES];
	static int next;
	if (!scratch_directory[0]) {
		strcpy(scratch_directory, "/tmp/choir-sources-XXXXXX");
		assert_non_null(mkdtemp(scratch_directory));
	}
	char *p = path[next++ % PATHS];
	assert_in_range(snprintf(p, PATH_BYTES, "%s/%s", scratch_directory, name), 1, PATH_BYTES - 1);
	return p;
}

int scratch_enter(void **state)
{
	(void) state;
	scratch_path("");
	return chdir(scratch_directory);
}

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *place)
{
	(void) about;
	(void) type;
	(void) place;
	return remove(path);
}

int scratch_leave(void **state)
{
	(void) state;
	if (scratch_directory[0])
		nftw(scratch_directory, remove_one, 4, FTW_DEPTH | FTW_PHYS);
	scratch_directory[0] = '\0';
	return 0;
}

const char *scratch_write(const char *name, const void *bytes, size_t n)
{
	const char *path = scratch_path(name);
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	return path;
}

const char *scratch_text(const char *name, const char *text)
{
	return scratch_write(name, text, strlen(text));
}

const char *scratch_numbers(const char *name, int64_t n)
{
	int64_t numbers[1 << 10];
	assert_in_range(n, 1, 1 << 10);
	for (int64_t i = 0; i < n; i++)
		numbers[i] = i;
	return scratch_write(name, numbers, (size_t) n * sizeof *numbers);
}

unsigned char *scratch_read(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	*n = (size_t) ftell(f);
	unsigned char *data = malloc(*n);
	assert_non_null(data);
	rewind(f);
	assert_int_equal(fread(data, 1, *n, f), *n);
	assert_int_equal(fclose(f), 0);
	return data;
}

const char *scratch_npz(const char *name, const char *npy)
{
	static const char head[] = "PK\3\4\24\0\0\0\0\0\0\0\0\0";
	size_t n, at = 0;
	unsigned char *content = scratch_read(npy, &n), *zip = malloc(n + 256);
	assert_non_null(zip);
	const uint32_t sizes[] = { chi_gzip_checksum(0, content, n), (uint32_t) n, (uint32_t) n };
	const uint16_t bytes_of_name[] = { 10, 0 }, count[] = { 0, 0, 1, 1 };
#define PUT(data, bytes) (memcpy(zip + at, data, bytes), at += (bytes))
	PUT(head, 14);
	PUT(sizes, 12);
	PUT(bytes_of_name, 4);
	PUT("number.npy", 10);
	PUT(content, n);
	const uint32_t directory = (uint32_t) at;
	PUT("PK\1\2\24\0", 6);
	PUT(head + 4, 10);
	PUT(sizes, 12);
	PUT(bytes_of_name, 4);
	PUT("\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 14);
	PUT("number.npy", 10);
	const uint32_t end[] = { (uint32_t) at - directory, directory };
	PUT("PK\5\6", 4);
	PUT(count, 8);
	PUT(end, 8);
	PUT("\0", 2);
#undef PUT
	const char *path = scratch_write(name, zip, at);
	free(zip);
	free(content);
	return path;
}

// ---- Sources.

choir_dataset *scratch_idx(const char *path)
{
	return choir_idx_dataset_new(path, "x");
}

choir_dataset *scratch_npy(const char *path)
{
	return choir_npy_dataset_new(path, "x");
}

choir_dataset *scratch_csv(const char *path)
{
	return choir_csv_dataset_new(path, NULL);
}

choir_dataset *scratch_lines(const char *path)
{
	return choir_text_lines_dataset_new(path, "x", CHOIR_BAD_RECORD_ERROR);
}

choir_dataset *scratch_bytes(const char *path)
{
	return choir_text_bytes_dataset_new(path, "x");
}

choir_dataset *scratch_records(const char *path)
{
	return choir_tfrecord_dataset_new(path, NULL);
}

// ---- In words.

static char words[WORDS];
static size_t length;

__attribute__((format(printf, 1, 2))) static void say(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	length += (size_t) vsnprintf(words + length, sizeof words - length, fmt, args);
	va_end(args);
	assert_true(length < sizeof words);
}

static void say_values(const choir_column *c, const choir_shape *shape, const void *data)
{
	const int64_t n = choir_shape_elements(shape);
	say(shape->rank ? "[" : "");
	for (int64_t i = 0; i < n; i++)
		say("%s%.9g", i ? " " : "", chi_dtype_load(c->dtype, data, i));
	say(shape->rank ? "]" : "");
}

static void say_example(const chi_spec *spec, const chi_row_buffer *rows, int64_t row)
{
	for (size_t i = 0; i < spec->n; i++) {
		const choir_column *c = &spec->column[i];
		say(i ? " " : "");
		if (chi_shape_varies(&c->shape)) {
			const chi_ragged_value *cell = (const chi_ragged_value *) rows->column[i] + row;
			say_values(c, &cell->shape, cell->data);
			continue;
		}
		size_t bytes;
		assert_true(chi_shape_bytes(&c->shape, c->dtype, &bytes));
		say_values(c, &c->shape, (const char *) rows->column[i] + (size_t) row * bytes);
	}
	say("\n");
}

const char *pass_in_words(choir_dataset *d)
{
	words[length = 0] = '\0';
	const chi_spec *spec = d ? chi_dataset_spec(d) : NULL;
	choir_status status = d ? CHOIR_OK : choir_error_status();
	const int64_t unit = spec && spec->batch ? spec->batch : 1;
	chi_row_buffer rows;
	assert_true(!d || chi_row_buffer_new(d, unit, &rows));
	chi_element e = { .capacity = unit };
	if (d)
		memcpy(e.column, rows.column, sizeof e.column);
	while (status == CHOIR_OK && (status = chi_dataset_next(d, &e)) == CHOIR_OK)
		for (int64_t i = 0; i < e.examples; i++)
			say_example(spec, &rows, i);
	if (status != CHOIR_END) {
		assert_string_not_equal(choir_error(), "");
		assert_int_equal(choir_error_status(), status);
		say("! %s %s", choir_status_name(status), choir_error());
		chi_error_clear();
	}
	if (d)
		chi_row_buffer_free(&rows);
	return words;
}

void assert_pass_fails(choir_dataset *d, const char *text)
{
	const char *found = pass_in_words(d);
	if (!text_holds(found, text) || !strchr(found, '!'))
		fail_msg("\"%s\" does not hold \"%s\"", found, text);
	choir_dataset_free(d);
}

choir_dataset *csv_of_text(const char *text, const choir_csv_options *o)
{
	return choir_csv_dataset_new(scratch_text("t.csv", text), o);
}

const char *batches_in_words(choir_dataset *d, int64_t count)
{
	d = choir_dataset_batch(d, count);
	pass_in_words(d);
	choir_dataset_free(d);
	return words;
}

void assert_pass(choir_dataset *d, const char *expected)
{
	assert_string_equal(pass_in_words(d), expected);
	for (int pass = 0; pass < 2 && d; pass++) {
		assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
		assert_string_equal(pass_in_words(d), expected);
	}
	const chi_spec *spec = d ? chi_dataset_spec(d) : NULL;
	bool varies = false;
	for (size_t i = 0; spec && i < spec->n; i++)
		varies = varies || chi_shape_varies(&spec->column[i].shape);
	if (spec && !spec->batch && !varies) {
		assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
		assert_string_equal(batches_in_words(d, 3), expected);
	} else {
		choir_dataset_free(d);
	}
}

void damage(const char *name, const void *bytes, size_t n, damage_fn *use)
{
	char how[64];
	unsigned char *copy = malloc(n + 1);
	assert_non_null(copy);
	for (size_t cut = 0; cut < n; cut++) {
		snprintf(how, sizeof how, "cut to %zu bytes", cut);
		use(scratch_write(name, bytes, cut), how);
	}
	static const unsigned char flips[] = { 0x01, 0x80, 0xff };
	for (size_t at = 0; at < n; at++)
		for (size_t k = 0; k < sizeof flips; k++) {
			memcpy(copy, bytes, n);
			copy[at] ^= flips[k];
			snprintf(how, sizeof how, "byte %zu changed by %02x", at, flips[k]);
			use(scratch_write(name, copy, n), how);
		}
	free(copy);
}
