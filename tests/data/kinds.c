// Sources of numbers of each kind.
#include "data/kinds.h"

#include "base/thread.h"
#include "choir/library.h"
#include "data/data.h"
#include "data/source/hdf5/hdf5_writer.h"
#include "data/source/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

enum { N = KIND_EXAMPLES, MAX_FEEDERS = 64 };

static const choir_column number_column = { .name = "number", .dtype = CHOIR_I64 };

// ---- Files, which are written once: others may be reading them.

static bool is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

static const char *file_of(const char *name, const void *bytes, size_t n)
{
	const char *path = scratch_path(name);
	return is_there(path) ? path : scratch_write(name, bytes, n);
}

static const char *text_of(const char *name, const char *text)
{
	return file_of(name, text, strlen(text));
}

// ---- Other columns as numbers.

static choir_status first_byte(const choir_component in[], choir_component out[], void *user)
{
	const size_t column = *(const size_t *) user;
	*(int64_t *) out[0].data = *(const uint8_t *) in[column].data;
	return CHOIR_OK;
}

// Each example as the number of its first byte.
static choir_dataset *from_column(choir_dataset *d, const size_t *column)
{
	return choir_dataset_map(d,
			CHOIR_OPTIONS(choir_map_options, .n = 1, .columns = &number_column), first_byte,
			(void *) (uintptr_t) column);
}

static choir_dataset *from_first(choir_dataset *d)
{
	static const size_t first = 0;
	return from_column(d, &first);
}

static choir_dataset *from_second(choir_dataset *d)
{
	static const size_t second = 1;
	return from_column(d, &second);
}

// ---- Sources.

static choir_dataset *in_memory(void)
{
	static const int64_t number[N] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
		17, 18, 19, 20, 21, 22 };
	choir_column c = number_column;
	c.data = number;
	return choir_memory_dataset_new(N, 1, &c, false);
}

static choir_status at_position(int64_t position, void *const out[], void *user)
{
	(void) user;
	if (position >= N)
		return CHOIR_END;
	*(int64_t *) out[0] = position;
	return CHOIR_OK;
}

static choir_dataset *from_function(void)
{
	return choir_generator_dataset_new(1, &number_column, at_position, NULL);
}

static choir_status go_anywhere(int64_t pass, int64_t position, void *user)
{
	(void) user;
	return pass >= 0 && position >= 0 ? CHOIR_OK : CHOIR_INTERNAL;
}

static choir_dataset *from_seekable(void)
{
	return choir_seekable_generator_dataset_new(1, &number_column, at_position, go_anywhere, NULL);
}

static choir_dataset *from_range(void)
{
	return choir_range_dataset_new("number", 0, N, 1);
}

static choir_dataset *from_constant(void)
{
	static const int64_t six = 6; // which filters let through
	choir_column c = number_column;
	c.data = &six;
	return choir_constant_dataset_new(N, 1, &c);
}

static choir_dataset *from_digits(void)
{
	return from_second(choir_synthetic_digits_dataset_new(N, 3));
}

static choir_dataset *from_csv(void)
{
	char text[16 * N] = "number\n";
	for (int i = 0; i < N; i++)
		sprintf(text + strlen(text), "%d\n", i);
	return choir_csv_dataset_new(text_of("n.csv", text), NULL);
}

static choir_dataset *from_csv_with_gaps(void)
{
	char text[32 * N] = "number,other\n";
	for (int i = 0; i < N; i++)
		sprintf(text + strlen(text), "%d,1\n%s", i, i % 3 == 0 ? "NA,1\n" : "");
	const choir_csv_column column = { .name = "number" };
	return choir_csv_dataset_new(text_of("gaps.csv", text),
			CHOIR_OPTIONS(choir_csv_options, .columns = 1, .column = &column,
					.missing = CHOIR_MISSING_DROP));
}

static const int64_t *numbers(void)
{
	static _Thread_local int64_t number[N];
	for (int i = 0; i < N; i++)
		number[i] = i;
	return number;
}

static const char *npy_file(const char *name)
{
	const char *path = scratch_path(name);
	if (!is_there(path))
		assert_int_equal(choir_npy_write(path, CHOIR_I64, CHOIR_SHAPE(N), numbers()), CHOIR_OK);
	return path;
}

static choir_dataset *from_npy(void)
{
	return choir_npy_dataset_new(npy_file("n.npy"), "number");
}

static choir_dataset *open_part(const char *path, void *user)
{
	(void) user;
	return choir_npy_dataset_new(path, "number");
}

// A file of 9 numbers, an empty one, and one with the rest.
static choir_dataset *from_files(void)
{
	static const int64_t first[] = { 0, 9, 9, N };
	char path[3][256];
	for (int i = 0; i < 3; i++) {
		char name[32];
		snprintf(name, sizeof name, "part-%d.npy", i);
		snprintf(path[i], sizeof path[i], "%s", scratch_path(name));
		const choir_shape shape = CHOIR_SHAPE(first[i + 1] - first[i]);
		if (!is_there(path[i]))
			assert_int_equal(
					choir_npy_write(path[i], CHOIR_I64, shape, numbers() + first[i]), CHOIR_OK);
	}
	const char *const names[] = { path[0], path[1], path[2] };
	return choir_files_dataset_new(choir_files_new(3, names), open_part, NULL);
}

static choir_dataset *from_npz(void)
{
	if (!choir_has_feature("zlib")) // which makes the checksums
		return from_range();
	const char *path = scratch_path("n.npz");
	return choir_npz_dataset_new(
			is_there(path) ? path : scratch_npz("n.npz", npy_file("in.npy")), 0, NULL);
}

static choir_dataset *from_hdf5(void)
{
	if (!choir_has_feature("hdf5"))
		return from_range();
	const char *path = scratch_path("n.h5");
	if (!is_there(path))
		hdf5_write_numbers(path, "number", N, numbers());
	return choir_hdf5_dataset_new(path, 0, NULL);
}

static choir_dataset *from_records(const char *name, choir_compression compression)
{
	const char *path = scratch_path(name);
	if (is_there(path))
		return choir_tfrecord_dataset_new(path, NULL);
	choir_tfrecord_writer *w = choir_tfrecord_writer_new(path, compression);
	assert_non_null(w);
	for (int64_t i = 0; i < N; i++) {
		const choir_column c = { .name = "number", .dtype = CHOIR_I64, .data = &i };
		assert_int_equal(choir_tfrecord_writer_write_example(w, 1, &c), CHOIR_OK);
	}
	assert_int_equal(choir_tfrecord_writer_finish(w), CHOIR_OK);
	choir_tfrecord_writer_free(w);
	return choir_tfrecord_dataset_new(path, NULL);
}

static choir_dataset *from_tfrecord(void)
{
	return from_records("n.tfrecord", CHOIR_COMPRESSION_NONE);
}

static choir_dataset *from_packed_tfrecord(void)
{
	return from_records("packed.tfrecord",
			choir_has_feature("zlib") ? CHOIR_COMPRESSION_GZIP : CHOIR_COMPRESSION_NONE);
}

// Two files, of 10 records and of the rest.
static choir_dataset *from_fixed(void)
{
	const char *const paths[] = { file_of("n-0", numbers(), 80),
		file_of("n-1", numbers() + 10, (N - 10) * sizeof(int64_t)) };
	choir_files *files = choir_files_new(2, paths);
	const choir_field field = { .name = "number", .dtype = CHOIR_I64 };
	choir_dataset *d = choir_fixed_length_record_dataset_new(
			NULL, 1, &field, CHOIR_OPTIONS(choir_fixed_options, .files = files));
	choir_files_free(files);
	return d;
}

// Five files of records, the last one with 3 instead of 5, whose images are of one color.
static choir_dataset *from_cifar10(void)
{
	enum { RECORD = 3073, EACH = 5 };
	static unsigned char records[EACH * RECORD];
	char name[48];
	mkdir(scratch_path("cifar"), 0777);
	for (int f = 0; f < 5; f++) {
		const int first = f * EACH, end = first + EACH < N ? first + EACH : N;
		for (int i = first; i < end; i++) {
			memset(records + (i - first) * RECORD, i, RECORD);
			records[(i - first) * RECORD] = (unsigned char) (i % 10);
		}
		snprintf(name, sizeof name, "cifar/data_batch_%d.bin", f + 1);
		file_of(name, records, (size_t) (end - first) * RECORD);
	}
	return from_second(choir_cifar10_dataset_new(scratch_path("cifar"), false));
}

// Appends a chunk of PNG, and returns the size of the file.
static size_t add_chunk(
		unsigned char *file, size_t at, const char *type, const unsigned char *data, size_t n)
{
	uint32_t crc = 0xffffffff;
	const unsigned char size[4] = { 0, 0, 0, (unsigned char) n };
	memcpy(file + at, size, 4);
	memcpy(file + at + 4, type, 4);
	memcpy(file + at + 8, data, n);
	for (size_t i = at + 4; i < at + 8 + n; i++) {
		crc ^= file[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	for (int i = 0; i < 4; i++)
		file[at + 8 + n + (size_t) i] = (unsigned char) (~crc >> (24 - 8 * i));
	return at + 12 + n;
}

// Images of one grey pixel, by deflate without compression.
static choir_dataset *from_images(void)
{
	static const unsigned char head[] = { 0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0 };
	if (!choir_has_feature("png"))
		return from_range();
	mkdir(scratch_path("images"), 0777);
	for (int i = 0; i < N; i++) {
		const unsigned char v = (unsigned char) i;
		// A block of 2 bytes, of which the first is the row's filter, and its Adler-32.
		const unsigned char pixel[] = { 0x78, 1, 1, 2, 0, 0xfd, 0xff, 0, v, 0,
			(unsigned char) (v + 2), 0, (unsigned char) (v + 1) };
		unsigned char file[100] = "\x89PNG\r\n\x1a\n";
		char name[24];
		size_t n = add_chunk(file, 8, "IHDR", head, sizeof head);
		n = add_chunk(file, n, "IDAT", pixel, sizeof pixel);
		n = add_chunk(file, n, "IEND", pixel, 0);
		snprintf(name, sizeof name, "images/%02d.png", i);
		file_of(name, file, n);
	}
	return from_first(choir_image_directory_dataset_new(scratch_path("images"),
			CHOIR_OPTIONS(choir_image_directory_options, .height = 1, .width = 1, .channels = 1)));
}

static choir_dataset *from_bytes(void)
{
	return from_first(
			choir_text_bytes_dataset_new(text_of("bytes", "abcdefghijklmnopqrstuvw"), "x"));
}

static choir_dataset *from_lines(void)
{
	char text[8 * N] = "";
	for (int i = 0; i < N; i++)
		sprintf(text + strlen(text), "%c%.*s\n", 'a' + i, i % 4, "xyz");
	return from_first(
			choir_text_lines_dataset_new(text_of("lines", text), "x", CHOIR_BAD_RECORD_ERROR));
}

static choir_dataset *from_windows(void)
{
	return from_first(choir_text_windows_dataset_new(
			text_of("windows", "abcdefghijklmnopqrstuvwxyz"), 3, 1));
}

static choir_dataset *from_idx(void)
{
	unsigned char file[8 + N] = { 0, 0, 8, 1, 0, 0, 0, N };
	for (int i = 0; i < N; i++)
		file[8 + i] = (unsigned char) i;
	return from_first(choir_idx_dataset_new(file_of("n.idx", file, sizeof file), "x"));
}

// ---- A queue, which a thread fills pass by pass until nobody reads it.

static chi_thread feeders[MAX_FEEDERS];
static int feeder_count;

static void feed(void *queue)
{
	choir_status status = CHOIR_OK;
	for (int pass = 0; pass < 2 && status == CHOIR_OK; pass++) {
		for (int64_t i = 0; i < N && status == CHOIR_OK; i++)
			status = choir_queue_put(queue, 1, (const void *const[]){ &i }, -1);
		if (status == CHOIR_OK)
			status = choir_queue_close(queue);
	}
	choir_queue_free(queue);
}

static void join_feeders(void)
{
	while (feeder_count > 0)
		chi_thread_join(&feeders[--feeder_count]);
}

static choir_dataset *from_queue(void)
{
	choir_queue *q;
	if (feeder_count == MAX_FEEDERS)
		fail_msg("more than %d queues at a time", MAX_FEEDERS);
	choir_dataset *d = choir_queue_dataset_new(
			1, &number_column, CHOIR_OPTIONS(choir_queue_options, .capacity = 4), &q);
	assert_non_null(d);
	feeders[feeder_count] = (chi_thread){ .started = false };
	assert_int_equal(chi_thread_start(&feeders[feeder_count], "feeder", feed, q), CHOIR_OK);
	feeder_count++;
	return d;
}

const source_kind source_kinds[] = {
	{ .constructor = "choir_memory_dataset_new", .make = in_memory, .random = true },
	{ .constructor = "choir_generator_dataset_new", .make = from_function },
	{ .constructor = "choir_seekable_generator_dataset_new",
			.make = from_seekable,
			.anywhere = true },
	{ .constructor = "choir_queue_dataset_new", .make = from_queue, .once = true },
	{ .constructor = "choir_range_dataset_new", .make = from_range, .random = true },
	{ .constructor = "choir_constant_dataset_new", .make = from_constant },
	{ .constructor = "choir_synthetic_digits_dataset_new", .make = from_digits },
	{ .constructor = "choir_csv_dataset_new", .make = from_csv },
	{ .constructor = "choir_csv_dataset_new", .make = from_csv_with_gaps },
	{ .constructor = "choir_npy_dataset_new", .make = from_npy },
	{ .constructor = "choir_npz_dataset_new", .make = from_npz },
	{ .constructor = "choir_hdf5_dataset_new", .make = from_hdf5 },
	{ .constructor = "choir_files_dataset_new", .make = from_files },
	{ .constructor = "choir_tfrecord_dataset_new", .make = from_tfrecord },
	{ .constructor = "choir_tfrecord_dataset_new", .make = from_packed_tfrecord },
	{ .constructor = "choir_fixed_length_record_dataset_new", .make = from_fixed },
	{ .constructor = "choir_cifar10_dataset_new", .make = from_cifar10 },
	{ .constructor = "choir_image_directory_dataset_new", .make = from_images },
	{ .constructor = "choir_text_bytes_dataset_new", .make = from_bytes },
	{ .constructor = "choir_text_lines_dataset_new", .make = from_lines },
	{ .constructor = "choir_text_windows_dataset_new", .make = from_windows },
	{ .constructor = "choir_idx_dataset_new", .make = from_idx },
};
const size_t source_kind_count = sizeof source_kinds / sizeof source_kinds[0];

// ---- The beginning and the end.

int kinds_begin(void **state)
{
	return scratch_enter(state);
}

void kinds_wait(void)
{
	join_feeders();
}

int kinds_end(void **state)
{
	join_feeders();
	return scratch_leave(state);
}
