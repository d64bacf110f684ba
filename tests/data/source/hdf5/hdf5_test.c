// HDF5: files written by its own library, and by h5py where there is one, in every layout and
// type; what is wrong with files and names; the host's own use of the library stays as it was.
#include "data/elements.h"

#include "data/source/hdf5/hdf5_writer.h"
#include "data/source/scratch.h"
#include "facts.h"
#include "test.h"

#ifdef CHI_HAS_HDF5

#include "base/alloc.h"
#include "base/thread.h"
#include "short.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const float pairs[4][2] = { { 1, 2 }, { 3, 4.5f }, { -5, 6 }, { 7, 8 } };
static const int32_t numbers[4] = { 7, -8, 9, 10 };
static const int64_t wide[3] = { 1, 2, 3 };
static const hsize_t four_pairs[2] = { 4, 2 }, four[1] = { 4 }, three[1] = { 3 };

// All layouts, orders of bytes and widths that are made something of.
static const char *write_all(const char *name)
{
	const char *path = scratch_path(name);
	const chi_hdf5 *h = hdf5_begin_writing();
	const hid_t file = hdf5_create(path), f4 = *h->H5T_NATIVE_FLOAT_g, i4 = *h->H5T_NATIVE_INT32_g;
	hdf5_add(h, file, "pairs", f4, f4, 2, four_pairs, 0, 0, pairs);
	hdf5_add(h, file, "big", *hdf5_write.H5T_IEEE_F32BE_g, f4, 2, four_pairs, 3, 0, pairs);
	hdf5_add(h, file, "packed", *h->H5T_NATIVE_DOUBLE_g, f4, 2, four_pairs, 3, 6, pairs);
	hdf5_add(h, file, "short", *hdf5_write.H5T_STD_I16BE_g, i4, 1, four, 0, 0, numbers);
	const hid_t group =
			hdf5_write.H5Gcreate2(file, "train", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	h->H5Gclose(group);
	hdf5_add(h, file, "train/y", *h->H5T_NATIVE_INT64_g, *h->H5T_NATIVE_INT64_g, 1, three, 2, 0,
			wide);
	hdf5_add(h, file, "train/u8", *hdf5_write.H5T_STD_U64LE_g, *h->H5T_NATIVE_INT64_g, 1, three, 0,
			0, wide);
	h->H5Fclose(file);
	chi_hdf5_end();
	return path;
}

static choir_dataset *open_one(const char *path, const char *name)
{
	return choir_hdf5_dataset_new(path, 1, &name);
}

TEST(every_layout_is_read)
{
	const char *path = write_all("all.h5");
	static const char words[] = "[1 2]\n[3 4.5]\n[-5 6]\n[7 8]\n";
	assert_pass(open_one(path, "pairs"), words);
	assert_pass(open_one(path, "big"), words);
	assert_pass(open_one(path, "packed"), words);
	assert_pass(open_one(path, "short"), "7\n-8\n9\n10\n");
	assert_pass(open_one(path, "train/y"), "1\n2\n3\n");
	assert_pass(choir_hdf5_dataset_new(path, 2, (const char *const[]){ "short", "/pairs" }),
			"7 [1 2]\n-8 [3 4.5]\n9 [-5 6]\n10 [7 8]\n");
	choir_dataset *d = choir_hdf5_dataset_new(path, 0, NULL); // in the order of their names
	assert_int_equal(choir_dataset_columns(d), 4);
	assert_string_equal(choir_dataset_column(d, 0)->name, "big");
	assert_int_equal(choir_dataset_column(d, 0)->dtype, CHOIR_F32);
	assert_int_equal(choir_dataset_column(d, 1)->dtype, CHOIR_F64);
	assert_int_equal(choir_dataset_column(d, 3)->dtype, CHOIR_I32);
	assert_int_equal(choir_dataset_cardinality(d), 4);
	choir_dataset_free(d);
}

TEST(it_goes_on_where_it_stood)
{
	choir_dataset *d = open_one(write_all("places.h5"), "packed");
	double pair[2];
	chi_element e = { .column = { pair }, .capacity = 1 };
	for (int64_t at = 4; at-- > 0;) {
		assert_int_equal(chi_dataset_seek(d, 1, at), CHOIR_OK);
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
		assert_true(pair[0] == (double) pairs[at][0] && pair[1] == (double) pairs[at][1]);
	}
	choir_dataset_free(d);
}

TEST(a_file_that_is_changed_while_it_is_read_is_refused)
{
	const char *path = write_all("changed.h5");
	choir_dataset *d = open_one(path, "pairs");
	float pair[2];
	chi_element e = { .column = { pair }, .capacity = 1 };
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	FILE *f = fopen(path, "ab");
	assert_non_null(f);
	assert_int_equal(fputc(0, f), 0); // which the library would never look at
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_CORRUPT);
	assert_text_holds(choir_error(), "changed.h5:*changed");
	choir_dataset_free(d);
}

TEST(chunks_of_some_megabytes_are_unpacked_once)
{
	enum { ROWS = 1024, WIDTH = 1024 };
	const hsize_t dim[2] = { ROWS, WIDTH };
	float *values = calloc((size_t) ROWS * WIDTH, sizeof *values);
	assert_non_null(values);
	for (size_t i = 0; i < (size_t) ROWS * WIDTH; i++)
		values[i] = (float) (i % 1009);
	const char *path = scratch_path("large.h5");
	const chi_hdf5 *h = hdf5_begin_writing();
	const hid_t file = hdf5_create(path), f4 = *h->H5T_NATIVE_FLOAT_g;
	hdf5_add(h, file, "x", f4, f4, 2, dim, ROWS, 1, values); // two chunks of 2 MiB
	h->H5Fclose(file);
	chi_hdf5_end();
	choir_dataset *d = open_one(path, "x");
	float row[WIDTH];
	chi_element e = { .column = { row }, .capacity = 1 };
	for (size_t i = 0; i < ROWS; i++) { // a second if it is once, minutes if for every row
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
		assert_memory_equal(row, values + i * WIDTH, sizeof row);
	}
	choir_dataset_free(d);
	free(values);
}

TEST(what_is_not_there_is_answered_with_what_is)
{
	const char *path = write_all("names.h5");
	assert_refused(open_one(path, "no"), CHOIR_NOT_FOUND,
			"\"no\"*\"big\"*\"packed\"*\"pairs\"*\"short\"*\"train/\"");
	assert_refused(open_one(path, "train"), CHOIR_NOT_FOUND, "\"train\"");
	assert_refused(open_one(path, "train/u8"), CHOIR_UNSUPPORTED, "train/u8:*values");
	assert_refused(choir_hdf5_dataset_new(path, 2, (const char *const[]){ "big", "train/y" }),
			CHOIR_INVALID, "4*train/y*3");
	assert_refused(choir_hdf5_dataset_new(path, 2, (const char *const[]){ "big", "big" }),
			CHOIR_INVALID, "\"big\"*two columns");
	assert_refused(open_one(path, ""), CHOIR_INVALID, "empty");
	assert_refused(open_one(NULL, "x"), CHOIR_INVALID, "NULL");
	assert_refused(choir_hdf5_dataset_new(path, 1, NULL), CHOIR_INVALID, "NULL");
	assert_refused(open_one("no-such.h5", "x"), CHOIR_NOT_FOUND, "no-such.h5");
	assert_refused(
			open_one(scratch_text("text.h5", "no HDF5 at all"), "x"), CHOIR_CORRUPT, "text.h5: ");
	const char *empty = scratch_path("empty.h5");
	const chi_hdf5 *h = hdf5_begin_writing();
	h->H5Fclose(hdf5_create(empty));
	chi_hdf5_end();
	assert_refused(choir_hdf5_dataset_new(empty, 0, NULL), CHOIR_NOT_FOUND, "datasets");
}

// The library finds a file that is shorter than it says; no matter where it was cut.
TEST(a_file_that_is_cut_short_is_refused)
{
	struct stat about;
	const char *path = write_all("cut.h5");
	assert_int_equal(stat(path, &about), 0);
	for (off_t length = about.st_size - 1; length >= 0; length -= 7 * SERIAL_STRIDE) {
		assert_int_equal(truncate(path, length), 0);
		assert_null(choir_hdf5_dataset_new(path, 0, NULL));
		assert_failure(CHOIR_CORRUPT, "cut.h5: ");
	}
}

// A chunk that deflate cannot have written.
TEST(a_damaged_chunk_is_named)
{
	static char bytes[1 << 16];
	FILE *f = fopen(write_all("chunk.h5"), "rb");
	const size_t n = fread(bytes, 1, sizeof bytes, f);
	fclose(f);
	size_t found = 0;
	for (size_t i = 0; i + 2 < n; i++) // the head of a zlib stream of level 6
		if (bytes[i] == 0x78 && (unsigned char) bytes[i + 1] == 0x9c) {
			memset(bytes + i, 0xff, 8);
			found++;
		}
	assert_true(found > 0);
	choir_dataset *d = open_one(scratch_write("damaged.h5", bytes, n), "packed");
	assert_non_null(strstr(pass_in_words(d), "! CHOIR_CORRUPT examples 0 to 0: "));
	assert_non_null(strstr(pass_in_words(d), "damaged.h5: packed: "));
	choir_dataset_free(d);
}

// ---- Damage.

#ifdef __SANITIZE_ADDRESS__
// What the library itself forgets to free where it refuses a file is not ours.
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libhdf5";
}
#endif

enum { MAX_BYTES = 1 << 14, NUMBERS_OF_FIVE = 5, MAX_ROWS = 8, MAX_TAKEN = 1 << 18 };

typedef struct {
	const char *name;
	H5D_layout_t layout;
	hsize_t chunk[2];
	bool filters; // deflate and a checksum
	bool grows; // along axis 0
	bool latest; // format, whose headers have checksums
	bool sparse; // only two rows are written, the others read as 7
} small;

static const small smalls[] = {
	{ .name = "piece", .layout = H5D_CONTIGUOUS },
	{ .name = "compact", .layout = H5D_COMPACT },
	{ .name = "chunks", .layout = H5D_CHUNKED, .chunk = { 2, 1 } },
	{ .name = "packed", .layout = H5D_CHUNKED, .chunk = { 2, 2 }, .filters = true },
	{ .name = "grows", .layout = H5D_CHUNKED, .chunk = { 3, 2 }, .filters = true, .grows = true },
	{ .name = "latest", .layout = H5D_CHUNKED, .chunk = { 2, 1 }, .latest = true },
	{ .name = "latest packed",
			.layout = H5D_CHUNKED,
			.chunk = { 2, 2 },
			.filters = true,
			.latest = true },
	{ .name = "sparse", .layout = H5D_CHUNKED, .chunk = { 2, 1 }, .sparse = true },
	{ .name = "latest sparse",
			.layout = H5D_CHUNKED,
			.chunk = { 2, 1 },
			.latest = true,
			.sparse = true },
};
enum { SMALLS = sizeof smalls / sizeof smalls[0] };
static const small *tried;

// Five pairs of i4 called "x".
static hid_t create_small(const chi_hdf5 *h, const char *path)
{
	enum { TRUNCATE = 2 };
	const hid_t access = h->H5Pcreate(*hdf5_write.H5P_CLS_FILE_ACCESS_ID_g);
	if (tried->latest)
		hdf5_write.H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
	const hid_t file = hdf5_write.H5Fcreate(path, TRUNCATE, H5P_DEFAULT, access);
	h->H5Pclose(access);
	return file;
}

static void write_pairs(const chi_hdf5 *h, hid_t set, hid_t space)
{
	static const int32_t pairs_of_i4[5][2] = { { 3, 1 }, { 4, 1 }, { 5, 9 }, { 2, 6 }, { 5, 3 } };
	static const hsize_t all[2] = { NUMBERS_OF_FIVE, 2 }, two[2] = { 2, 2 }, start[2] = { 2, 0 };
	const hid_t memory = h->H5Screate_simple(2, tried->sparse ? two : all, NULL);
	if (tried->sparse)
		h->H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, two, NULL);
	assert_true(hdf5_write.H5Dwrite(set, *h->H5T_NATIVE_INT32_g, memory, space, H5P_DEFAULT,
						pairs_of_i4) >= 0);
	h->H5Sclose(memory);
}

static size_t write_small(unsigned char bytes[MAX_BYTES])
{
	const char *path = scratch_path("small.h5");
	const hsize_t dim[2] = { NUMBERS_OF_FIVE, 2 }, max[2] = { H5S_UNLIMITED, 2 };
	const chi_hdf5 *h = hdf5_begin_writing();
	const hid_t file = create_small(h, path), i4 = *h->H5T_NATIVE_INT32_g;
	const hid_t space = h->H5Screate_simple(2, dim, tried->grows ? max : NULL);
	const hid_t list = h->H5Pcreate(*hdf5_write.H5P_CLS_DATASET_CREATE_ID_g);
	hdf5_write.H5Pset_layout(list, tried->layout);
	if (tried->layout == H5D_CHUNKED)
		hdf5_write.H5Pset_chunk(list, 2, tried->chunk);
	if (tried->sparse)
		hdf5_write.H5Pset_fill_value(list, i4, &(const int32_t){ 7 });
	if (tried->filters) {
		hdf5_write.H5Pset_deflate(list, 6);
		hdf5_write.H5Pset_fletcher32(list);
	}
	const hid_t set = hdf5_write.H5Dcreate2(file, "x", i4, space, H5P_DEFAULT, list, H5P_DEFAULT);
	write_pairs(h, set, space);
	h->H5Dclose(set);
	h->H5Pclose(list);
	h->H5Sclose(space);
	h->H5Fclose(file);
	chi_hdf5_end();
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	const size_t n = fread(bytes, 1, MAX_BYTES, f);
	assert_int_equal(fclose(f), 0);
	assert_in_range(n, 500, MAX_BYTES - 1);
	return n;
}

// In place: to write files anew takes many times as long.
static void put_byte(const char *path, size_t at, unsigned char byte)
{
	FILE *f = fopen(path, "r+b");
	assert_non_null(f);
	assert_int_equal(fseek(f, (long) at, SEEK_SET), 0);
	assert_int_equal(fputc(byte, f), byte);
	assert_int_equal(fclose(f), 0);
}

// Rows that there may be, or the failure names the file; and no more memory than a small file is
// worth. What comes cannot be compared: values have no checksum.
static void try_damaged(const char *path, const char *how)
{
	const uint64_t before = chi_alloc_bytes();
	choir_dataset *d = choir_hdf5_dataset_new(path, 0, NULL);
	const char *found = pass_in_words(d), *line = found;
	int rows = 0;
	for (; *line != '\0' && *line != '!'; line = strchr(line, '\n') + 1)
		rows++;
	if (rows > MAX_ROWS || (*line == '!' && !strstr(line, "damaged.h5: ")))
		fail_msg("%s, %s: \"%s\"", tried->name, how, found);
	choir_dataset_free(d);
	if (chi_alloc_bytes() - before > MAX_TAKEN)
		fail_msg("%s, %s: %llu bytes of memory", tried->name, how,
				(unsigned long long) (chi_alloc_bytes() - before));
}

// Whether anything is stored near: most of a small file is room for more.
static bool is_used(const unsigned char *bytes, size_t n, size_t at)
{
	for (size_t i = at < 8 ? 0 : at - 8; i < at + 8 && i < n; i++)
		if (bytes[i] != 0 && bytes[i] != 0xff)
			return true;
	return false;
}

static void change_byte(const char *path, size_t at, unsigned char was, int change)
{
	char how[64];
	const int to = change < 8 ? was ^ 1 << change : change == 8 ? 255 - was : 0;
	snprintf(how, sizeof how, "byte %zu from %02x to %02x", at, was, to);
	put_byte(path, at, (unsigned char) to);
	try_damaged(path, how);
	put_byte(path, at, was);
}

// CHOIR_FLIPS: every bit of every byte, and each to 0 and to its opposite; else one of three
// changes of some of those near others.
TEST(changed_bytes_end_no_program)
{
	static unsigned char bytes[MAX_BYTES];
	const bool all = getenv("CHOIR_FLIPS") != NULL;
	for (size_t k = 0; k < SMALLS; k++) {
		tried = &smalls[k];
		const size_t n = write_small(bytes);
		const char *path = scratch_write("damaged.h5", bytes, n);
		for (size_t at = all ? 0 : k % 3; at < n; at += all ? 1 : SHORT ? 17 : 3)
			for (int change = 0; change < 10; change++)
				if (all || (is_used(bytes, n, at) && (size_t) change == 4 * (at / 3 % 3)))
					change_byte(path, at, bytes[at], change);
	}
}

TEST(a_small_file_cut_at_any_byte_is_refused)
{
	static unsigned char bytes[MAX_BYTES];
	const size_t step = getenv("CHOIR_FLIPS") != NULL ? 1 : SHORT ? 91 : 17;
	for (size_t k = 0; k < SMALLS; k++) {
		tried = &smalls[k];
		const size_t n = write_small(bytes);
		const char *path = scratch_write("cut.h5", bytes, n);
		for (size_t length = n - 1 - k; length < n; length -= step) {
			assert_int_equal(truncate(path, (off_t) length), 0);
			assert_null(choir_hdf5_dataset_new(path, 0, NULL));
			assert_failure(CHOIR_CORRUPT, "cut.h5: ");
		}
	}
}

// Changes the byte that is at after the only place with these n bytes.
static void refuse_change(
		const unsigned char *mark, size_t n, size_t at, unsigned char to, const char *text)
{
	static unsigned char bytes[MAX_BYTES];
	const size_t size = write_small(bytes);
	unsigned char *place = memmem(bytes, size, mark, n);
	assert_non_null(place);
	assert_ptr_not_equal(place[at], to);
	place[at] = to;
	choir_dataset *d = choir_hdf5_dataset_new(scratch_write("changed.h5", bytes, size), 0, NULL);
	const char *found = pass_in_words(d);
	// Newer releases of the library refuse some by themselves.
	const bool cannot_open = strstr(found, "\"x\" (which the HDF5 library cannot open)") != NULL;
	if (cannot_open && strncmp(found, "! CHOIR_NOT_FOUND ", 18) == 0)
		return;
	if (strncmp(found, "! CHOIR_CORRUPT ", 16) != 0 ||
			(!text_holds(found, text) && !strstr(found, "changed.h5: x: bad coordinate offset")) ||
			!strstr(found, "changed.h5: x: "))
		fail_msg("%s: \"%s\", wanted \"%s\"", tried->name, found, text);
	choir_dataset_free(d);
}

// 1.10.8 ends the program at these, or never comes to an end.
TEST(what_the_library_dies_of_is_refused_before)
{
	static const unsigned char dims[] = { 5, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0 };
	static const unsigned char chunks[] = { 2, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0 };
	static const unsigned char fill[] = { 5, 0, 8, 0, 1, 0, 0, 0 };
	static const unsigned char seven[] = { 4, 0, 0, 0, 7, 0, 0, 0 };
	static const unsigned char packed[] = { 3, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0 };
	tried = &smalls[0];
	refuse_change(dims, sizeof dims, 0, 7, "dimension 0 is 7*5");
	refuse_change(fill, sizeof fill, 4, 3, "shared message");
	tried = &smalls[1];
	refuse_change(dims, sizeof dims, 4, 1, "dimension 0 is 4294967301*5");
	tried = &smalls[2];
	refuse_change(chunks, sizeof chunks, 0, 0, "chunks*0");
	refuse_change(chunks, sizeof chunks, 6, 4, "chunks of 262145*axis 1*2");
	refuse_change(chunks, sizeof chunks, 0, 3, "4 chunks*6");
	refuse_change(chunks, sizeof chunks, 8, 5, "chunks*5 bytes*4");
	tried = &smalls[4];
	refuse_change(dims, sizeof dims, 4, 1, "chunks*2*damaged, or never written");
	refuse_change(packed, sizeof packed, 0, 1, "5 chunks*2");
	tried = &smalls[7];
	refuse_change(seven, sizeof seven, 0, 8, "fill value*size");
	refuse_change(chunks, sizeof chunks, 0, 1, "chunks*16 bytes*8");
}

static herr_t print_nothing(hid_t stack, void *data)
{
	(void) stack;
	++*(int *) data;
	return 0;
}

TEST(the_hosts_own_use_stays_as_it_was)
{
	const char *path = write_all("host.h5");
	int printed = 0;
	const chi_hdf5 *h = hdf5_begin_writing();
	chi_hdf5_end();
	h->H5Eset_auto2(H5E_DEFAULT, print_nothing, &printed);
	assert_refused(open_one(path, "no"), CHOIR_NOT_FOUND, "host.h5:*\"no\"*\"big\"*\"train/\"");
	assert_int_equal(printed, 0);
	assert_true(h->H5Fopen("no-such.h5", 0, H5P_DEFAULT) < 0);
	assert_int_equal(printed, 1);
	h->H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

static void read_many(void *arg)
{
	choir_dataset *d = open_one(arg, "packed");
	double pair[2];
	chi_element e = { .column = { pair }, .capacity = 1 };
	for (int i = 0; i < 200 && d; i++) {
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
		if (i % 4 == 3)
			assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	}
	choir_dataset_free(d);
}

TEST(several_threads_read)
{
	static char path[256];
	snprintf(path, sizeof path, "%s", write_all("threads.h5"));
	chi_thread thread[3] = { { .started = false } };
	for (int i = 0; i < 3; i++)
		assert_int_equal(chi_thread_start(&thread[i], "reader", read_many, path), CHOIR_OK);
	for (int i = 0; i < 3; i++)
		chi_thread_join(&thread[i]);
}

TEST(without_memory_nothing_stays_open)
{
	const char *path = write_all("memory.h5");
	for (uint64_t n = 1;; n++) {
		chi_alloc_fail(n, false);
		choir_dataset *d = choir_hdf5_dataset_new(path, 0, NULL);
		const bool failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		choir_dataset_free(d);
		if (!failed)
			break;
		if (d)
			continue; // what failed was only for a message
		assert_failure(CHOIR_NO_MEMORY, "bytes");
	}
}

TEST(what_h5py_writes_is_read)
{
	char command[1024];
	const char *path = scratch_path("py.h5");
	snprintf(command, sizeof command,
			"/usr/bin/python3 -c \"import h5py, numpy as n\n"
			"f = h5py.File('%s', 'w')\n"
			"f['half'] = n.array([0.5, -2, 65504], 'f2')\n"
			"f['is'] = n.array([True, False, True])\n"
			"f.create_dataset('u4', data=n.array([[1, 4294967295]] * 3, '>u4'), "
			"compression='gzip', "
			"shuffle=True, fletcher32=True, chunks=(2, 1))\n"
			"f['words'] = n.array([b'a', b'b', b'c'])\n"
			"f.close()\" 2>/dev/null",
			path);
	if (system(command) != 0) {
		print_message("there is no python3 with h5py\n");
		skip();
	}
	assert_pass(choir_hdf5_dataset_new(path, 3, (const char *const[]){ "half", "is", "u4" }),
			"0.5 1 [1 4.2949673e+09]\n-2 0 [1 4.2949673e+09]\n65504 1 [1 4.2949673e+09]\n");
	assert_refused(open_one(path, "words"), CHOIR_UNSUPPORTED, "words:*values");
}

TEST_GROUP(NULL, scratch_leave)

#else

TEST(without_the_library_it_is_said)
{
	assert_refused(choir_hdf5_dataset_new("x.h5", 0, NULL), CHOIR_UNSUPPORTED, "HDF5*x.h5");
}

#endif
