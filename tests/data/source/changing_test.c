// Files that are cut, added to, written anew or replaced when a quarter of them has been read.
// Whatever was done: batches are whole; their examples are those of the file as it was, in order,
// or, where somebody wrote into it, then those of the new one; and a pass that was not one of the
// old file to its end ends with one failure, which names the file.
#include "data/elements.h"

#include "choir/library.h"
#include "data/source/tfrecord/protos.h"
#include "data/source/scratch.h"
#include "short.h"
#include "test.h"

#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BATCH = 100, MAX_ROWS = 200000, TEXT_ROWS = 30000, DIGITS = 8 };

// Example i of the old content and of the new one, which are equally wide as text.
static int64_t number_of(int64_t i, int content)
{
	return 1000000 * (content + 1) + i * 7919 % 1000000;
}

static int64_t *numbers_of(int64_t n, int content)
{
	static int64_t numbers[MAX_ROWS];
	for (int64_t i = 0; i < n; i++)
		numbers[i] = number_of(i, content);
	return numbers;
}

// ---- Kinds of files.

static void write_fixed(const char *path, int64_t n, int content)
{
	save_bytes(path,
			&(bytes){ .data = (unsigned char *) numbers_of(n, content), .n = (size_t) n * 8 });
}

static choir_dataset *read_fixed(const char *path)
{
	const choir_field field = { .name = "number", .dtype = CHOIR_I64 };
	return choir_fixed_length_record_dataset_new(path, 1, &field, NULL);
}

static void write_npy(const char *path, int64_t n, int content)
{
	assert_int_equal(
			choir_npy_write(path, CHOIR_I64, CHOIR_SHAPE(n), numbers_of(n, content)), CHOIR_OK);
}

static choir_dataset *read_npy(const char *path)
{
	return choir_npy_dataset_new(path, "number");
}

static void write_npz(const char *path, int64_t n, int content)
{
	write_npy(scratch_path("in.npy"), n, content);
	scratch_npz(strrchr(path, '/') + 1, scratch_path("in.npy"));
}

static choir_dataset *read_npz(const char *path)
{
	return choir_npz_dataset_new(path, 0, NULL);
}

static void write_rows(const char *path, const char *first, int64_t n, int content)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(first, f);
	for (int64_t i = 0; i < n; i++)
		fprintf(f, "%lld\n", (long long) number_of(i, content));
	assert_int_equal(fclose(f), 0);
}

static void write_lines(const char *path, int64_t n, int content)
{
	write_rows(path, "", n, content);
}

static void write_csv(const char *path, int64_t n, int content)
{
	write_rows(path, "number\n", n, content);
}

static choir_dataset *read_csv(const char *path)
{
	const choir_csv_column c = { .name = "number", .kind = CHOIR_CSV_NUMBER, .dtype = CHOIR_I64 };
	return choir_csv_dataset_new(
			path, CHOIR_OPTIONS(choir_csv_options, .columns = 1, .column = &c));
}

static void pack(const char *path)
{
	bytes plain = { NULL, 0, 0 };
	plain.data = scratch_read(path, &plain.n);
	bytes packed = deflated(&plain, 31);
	save_bytes(path, &packed);
	free(plain.data);
	free(packed.data);
}

static void write_packed_npy(const char *path, int64_t n, int content)
{
	write_npy(path, n, content);
	pack(path);
}

static void write_packed_csv(const char *path, int64_t n, int content)
{
	write_csv(path, n, content);
	pack(path);
}

static void write_records(const char *path, int64_t n, int content, choir_compression compression)
{
	choir_tfrecord_writer *w = choir_tfrecord_writer_new(path, compression);
	assert_non_null(w);
	for (int64_t i = 0; i < n; i++) {
		const int64_t number = number_of(i, content);
		const choir_column c = { .name = "number", .dtype = CHOIR_I64, .data = &number };
		assert_int_equal(choir_tfrecord_writer_write_example(w, 1, &c), CHOIR_OK);
	}
	assert_int_equal(choir_tfrecord_writer_finish(w), CHOIR_OK);
	choir_tfrecord_writer_free(w);
}

static void write_plain_records(const char *path, int64_t n, int content)
{
	write_records(path, n, content, CHOIR_COMPRESSION_NONE);
}

static void write_packed_records(const char *path, int64_t n, int content)
{
	write_records(path, n, content, CHOIR_COMPRESSION_GZIP);
}

static void write_idx(const char *path, int64_t n, int content)
{
	static int32_t swapped[MAX_ROWS];
	unsigned char header[8] = { 0, 0, 0x0c, 1 };
	bytes b = { NULL, 0, 0 };
	for (int i = 0; i < 4; i++)
		header[4 + i] = (unsigned char) (n >> (24 - 8 * i));
	for (int64_t i = 0; i < n; i++)
		swapped[i] = (int32_t) htobe32((uint32_t) number_of(i, content));
	put(&b, header, sizeof header);
	put(&b, swapped, (size_t) n * sizeof swapped[0]);
	save_bytes(path, &b);
	free(b.data);
}

// Of one example: an i32, or digits.
static choir_status to_number(const choir_component in[], choir_component out[], void *user)
{
	int64_t *number = out[0].data;
	(void) user;
	*number = 0;
	if (in[0].dtype == CHOIR_I32) {
		*number = *(const int32_t *) in[0].data;
		return CHOIR_OK;
	}
	const uint8_t *digit = in[0].data;
	for (int64_t i = 0; i < choir_shape_elements(&in[0].shape) && digit[i] != '\n'; i++)
		*number = 10 * *number + digit[i] - '0';
	return CHOIR_OK;
}

static choir_dataset *numbers_in(choir_dataset *d)
{
	const choir_column number = { .name = "number", .dtype = CHOIR_I64 };
	return choir_dataset_map(
			d, CHOIR_OPTIONS(choir_map_options, .n = 1, .columns = &number), to_number, NULL);
}

static choir_dataset *read_idx(const char *path)
{
	return numbers_in(choir_idx_dataset_new(path, "number"));
}

static choir_dataset *read_lines(const char *path)
{
	return numbers_in(choir_text_lines_dataset_new(path, "x", CHOIR_BAD_RECORD_ERROR));
}

// Of these two, nobody reads the end of the file.
static void write_longer(const char *path, int64_t n, int content)
{
	write_rows(path, "", n + n / 10, content);
}

static choir_dataset *read_windows(const char *path)
{
	choir_dataset *d = choir_text_windows_dataset_new(path, DIGITS, DIGITS);
	return choir_dataset_take(numbers_in(d), TEXT_ROWS);
}

static choir_dataset *read_bytes(const char *path)
{
	choir_dataset *d = choir_dataset_window(choir_text_bytes_dataset_new(path, "x"),
			CHOIR_OPTIONS(choir_window_options, .length = DIGITS, .shift = DIGITS,
					.drop_remainder = true));
	return choir_dataset_take(numbers_in(d), TEXT_ROWS);
}

static const struct {
	const char *name;
	void (*write)(const char *path, int64_t n, int content);
	choir_dataset *(*read)(const char *path);
	int64_t n;
	bool packed, loaded; // loaded: all of it comes to memory at first
} kinds[] = {
	{ "fixed", write_fixed, read_fixed, MAX_ROWS, false, false },
	{ "npy", write_npy, read_npy, MAX_ROWS, false, false },
	{ "npy.gz", write_packed_npy, read_npy, 30000, true, true },
	{ "npz", write_npz, read_npz, MAX_ROWS, true, false },
	{ "csv", write_csv, read_csv, MAX_ROWS, false, false },
	{ "csv.gz", write_packed_csv, read_csv, 60000, true, false },
	{ "tfrecord", write_plain_records, scratch_records, 50000, false, false },
	{ "tfrecord.gz", write_packed_records, scratch_records, 30000, true, false },
	{ "idx", write_idx, read_idx, MAX_ROWS, false, false },
	{ "lines", write_lines, read_lines, TEXT_ROWS, false, false },
	{ "windows", write_longer, read_windows, TEXT_ROWS, false, false },
	{ "bytes", write_longer, read_bytes, TEXT_ROWS, false, false },
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

// ---- Changes.

// Of the new content, or of bytes that nobody reads, into the file that is there.
static void write_into(const char *path, const unsigned char *data, size_t n, size_t at)
{
	const int file = open(path, O_WRONLY);
	assert_true(file >= 0);
	assert_int_equal(ftruncate(file, (off_t) at), 0);
	assert_int_equal(pwrite(file, data, n, (off_t) at), n);
	// The system's clock for files may not have moved since it was written first.
	const struct timespec times[2] = { { .tv_sec = 1 }, { .tv_sec = 2000000000 } };
	assert_int_equal(futimens(file, times), 0);
	assert_int_equal(close(file), 0);
}

static void cut(const char *path, const unsigned char *old, size_t n, const char *other)
{
	(void) old;
	(void) other;
	assert_int_equal(truncate(path, (off_t) (n / 2)), 0);
}

static void add_to(const char *path, const unsigned char *old, size_t n, const char *other)
{
	(void) other;
	write_into(path, old, n / 8, n);
}

static void write_anew(const char *path, const unsigned char *old, size_t n, const char *other)
{
	(void) old;
	unsigned char *data = scratch_read(other, &n);
	write_into(path, data, n, 0);
	free(data);
}

static void replace(const char *path, const unsigned char *old, size_t n, const char *other)
{
	unsigned char *data = scratch_read(other, &n);
	(void) old;
	const char *copy = scratch_write("copy", data, n);
	assert_int_equal(rename(copy, path), 0);
	free(data);
}

static void remove_it(const char *path, const unsigned char *old, size_t n, const char *other)
{
	(void) old;
	(void) n;
	(void) other;
	assert_int_equal(unlink(path), 0);
}

static const struct {
	const char *name;
	void (*change)(const char *path, const unsigned char *old, size_t n, const char *other);
	bool harmless; // what is open is what it was
} changes[] = {
	{ "cut", cut, false },
	{ "added to", add_to, false },
	{ "written anew", write_anew, false },
	{ "replaced", replace, true },
	{ "removed", remove_it, true },
};

// Reads batches up to an example; how many have come, and whether any of them was a new one.
static choir_status read_on(choir_dataset *d, int64_t max, int64_t *n, bool *any_new)
{
	int64_t number[BATCH];
	choir_status status = CHOIR_OK;
	while (*n < max && status == CHOIR_OK) {
		chi_element e = { .column = { number }, .capacity = BATCH };
		status = chi_dataset_next(d, &e);
		if (status != CHOIR_OK)
			break;
		assert_int_equal(e.examples, BATCH);
		for (int64_t i = 0; i < BATCH; i++, ++*n) {
			*any_new = *any_new || number[i] == number_of(*n, 1);
			if (number[i] != number_of(*n, *any_new))
				fail_msg("example %lld is %lld", (long long) *n, (long long) number[i]);
		}
	}
	return status;
}

static void check(size_t kind, size_t change, const unsigned char *old, size_t bytes_of_old,
		const char *other)
{
	char path[256];
	snprintf(path, sizeof path, "%s", scratch_write(kinds[kind].name, old, bytes_of_old));
	int64_t n = 0;
	bool any_new = false;
	choir_dataset *d = choir_dataset_batch(kinds[kind].read(path), BATCH);
	if (read_on(d, kinds[kind].n / 4, &n, &any_new) != CHOIR_OK)
		fail_msg("%s: %s", kinds[kind].name, choir_error());
	changes[change].change(path, old, bytes_of_old, other);
	const choir_status status = read_on(d, INT64_MAX, &n, &any_new);
	if (changes[change].harmless || kinds[kind].loaded) {
		assert_int_equal(status, CHOIR_END);
		assert_int_equal(n, kinds[kind].n);
		assert_false(any_new);
	} else if (status != CHOIR_CORRUPT || strchr(choir_error(), '\n') ||
			!strstr(choir_error(), kinds[kind].name)) {
		fail_msg("%s, %s: %s after %lld: %s", kinds[kind].name, changes[change].name,
				choir_status_name(status), (long long) n, choir_error());
	}
	choir_dataset_free(d);
	unlink(path);
}

TEST(a_changed_file_is_as_it_was_or_a_failure)
{
	for (size_t k = 0; k < KINDS; k += STRIDE) {
		char other[256], whole[256];
		size_t n;
		if (kinds[k].packed && !choir_has_feature("zlib"))
			continue;
		snprintf(whole, sizeof whole, "%s", scratch_path("whole"));
		snprintf(other, sizeof other, "%s", scratch_path("other"));
		kinds[k].write(whole, kinds[k].n, 0);
		kinds[k].write(other, kinds[k].n, 1);
		unsigned char *old = scratch_read(whole, &n);
		for (size_t c = 0; c < sizeof changes / sizeof changes[0]; c++)
			check(k, c, old, n, other);
		free(old);
	}
}

TEST_GROUP(NULL, scratch_leave)
