// npy: every dtype, order of bytes and axes, version; what is written is read back; headers
// that say something else than they should; files of several kinds one after another.
#include "data/elements.h"

#include "data/source/scratch.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
	char bytes[1024];
	size_t n;
} file;

// A file of that version with this text as its header, padded so that no length is zero.
static file make(int version, const char *text, const void *data, size_t bytes)
{
	file f = { .bytes = "\x93NUMPY" };
	const size_t length = strlen(text);
	f.bytes[6] = (char) version;
	f.bytes[8] = (char) (length & 255);
	f.bytes[9] = (char) (length >> 8);
	f.n = version == 1 ? 10 : 12;
	memcpy(f.bytes + f.n, text, length);
	memcpy(f.bytes + f.n + length, data, bytes);
	f.n += length + bytes;
	return f;
}

static choir_dataset *open_file(const file *f)
{
	return choir_npy_dataset_new(scratch_write("t.npy", f->bytes, f->n), "x");
}

static choir_dataset *open_header(const char *text, const void *data, size_t bytes)
{
	const file f = make(1, text, data, bytes);
	return open_file(&f);
}

TEST(what_is_written_is_read)
{
	static const float f32[] = { 1.5f, -2, 3, 4, 5, 6 };
	static const double f64[] = { 0.1, 2 };
	static const int32_t i32[] = { -7, 8 };
	static const int64_t i64[] = { -9, 10 };
	static const uint8_t u8[] = { 0, 255 };
	static const uint16_t f16[] = { 0x3c00, 0xc000 };
	static const struct {
		choir_dtype dtype;
		choir_shape shape;
		const void *data;
		const char *words;
	} cases[] = {
		{ CHOIR_F32, { 3, { 3, 1, 2 } }, f32, "[1.5 -2]\n[3 4]\n[5 6]\n" },
		{ CHOIR_F64, { 1, { 2 } }, f64, "0.1\n2\n" },
		{ CHOIR_I32, { 2, { 1, 2 } }, i32, "[-7 8]\n" },
		{ CHOIR_I64, { 1, { 2 } }, i64, "-9\n10\n" },
		{ CHOIR_U8, { 1, { 2 } }, u8, "0\n255\n" },
		{ CHOIR_BOOL, { 1, { 1 } }, u8, "0\n" },
		{ CHOIR_F16, { 1, { 2 } }, f16, "1\n-2\n" },
		{ CHOIR_F32, { 2, { 0, 4 } }, NULL, "" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const char *path = scratch_path("w.npy");
		assert_int_equal(
				choir_npy_write(path, cases[i].dtype, cases[i].shape, cases[i].data), CHOIR_OK);
		choir_dataset *d = choir_npy_dataset_new(path, "x");
		assert_int_equal(chi_dataset_spec(d)->column[0].dtype, cases[i].dtype);
		assert_pass(d, cases[i].words);
	}
}

TEST(wrong_writes)
{
	const char *path = scratch_path("w.npy");
	const uint16_t x[2] = { 0 };
	assert_int_equal(choir_npy_write(path, CHOIR_BF16, CHOIR_SHAPE(2), x), CHOIR_UNSUPPORTED);
	assert_failure(CHOIR_UNSUPPORTED, "bf16");
	assert_int_equal(choir_npy_write(path, CHOIR_F16, CHOIR_SHAPE(2, -1), x), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "shape");
	assert_int_equal(choir_npy_write(path, CHOIR_F16, CHOIR_SHAPE(2), NULL), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "data are NULL");
	assert_int_equal(choir_npy_write(NULL, CHOIR_F16, CHOIR_SHAPE(2), x), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "NULL");
	assert_int_equal(
			choir_npy_write(scratch_path("no/w.npy"), CHOIR_F16, CHOIR_SHAPE(2), x), CHOIR_IO);
	assert_failure(CHOIR_IO, "no/w.npy");
}

TEST(every_way_to_say_it)
{
	static const unsigned char big[] = { 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0,
		5, 0, 0, 0, 6 };
	static const unsigned char one[] = { 1, 2 };
	const char *c = "{'descr': '>i4', 'fortran_order': False, 'shape': (3, 2), }   \n";
	assert_pass(open_header(c, big, sizeof big), "[1 2]\n[3 4]\n[5 6]\n");
	assert_pass(
			open_header("{'shape':(2,3),'fortran_order':True,\"descr\":\">i4\"}", big, sizeof big),
			"[1 3 5]\n[2 4 6]\n");
	assert_pass(open_header("{'descr': '>i4', 'fortran_order': True, 'shape': (6,), }", big,
						sizeof big),
			"1\n2\n3\n4\n5\n6\n");
	assert_pass(open_header("{'descr': '>i4', 'fortran_order': True, 'shape': (1, 2, 3)}", big,
						sizeof big),
			"[1 3 5 2 4 6]\n");
	assert_pass(open_header("{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}", one, 2),
			"1\n2\n");
	assert_pass(open_header("{'descr': '<u1', 'fortran_order': False, 'shape': (2,)}", one, 2),
			"1\n2\n");
	for (int version = 2; version <= 3; version++) {
		const file f = make(version, c, big, sizeof big);
		assert_pass(open_file(&f), "[1 2]\n[3 4]\n[5 6]\n");
	}
}

// Whole numbers that Choir has no dtype for become wider.
TEST(narrow_numbers)
{
	static const struct {
		const char *type;
		choir_dtype dtype;
		const char *bytes, *words;
	} cases[] = {
		{ "|i1", CHOIR_I32, "\x80\xff\x01\x7f", "[-128 -1]\n[1 127]\n" },
		{ "<i2", CHOIR_I32, "\x00\x80\xff\xff\x01\x00\xff\x7f", "[-32768 -1]\n[1 32767]\n" },
		{ ">i2", CHOIR_I32, "\x80\x00\xff\xff\x00\x01\x7f\xff", "[-32768 -1]\n[1 32767]\n" },
		{ "<u2", CHOIR_I32, "\x00\x80\xff\xff\x01\x00\xff\x7f", "[32768 65535]\n[1 32767]\n" },
		{ ">u4", CHOIR_I64, "\0\0\0\1\xff\xff\xff\xff\0\0\1\0\x0f\xff\xff\xff",
				"[1 4.2949673e+09]\n[256 268435455]\n" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char text[100];
		const size_t bytes = 4 * (size_t) (cases[i].type[2] - '0');
		snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (2, 2)}",
				cases[i].type);
		choir_dataset *d = open_header(text, cases[i].bytes, bytes);
		assert_int_equal(chi_dataset_spec(d)->column[0].dtype, cases[i].dtype);
		assert_int_equal(chi_dataset_seek(d, 0, 1), CHOIR_OK);
		assert_string_equal(pass_in_words(d), strchr(cases[i].words, '\n') + 1);
		assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
		assert_pass(d, cases[i].words);
		assert_refused(open_header(text, cases[i].bytes, bytes - 1), CHOIR_CORRUPT, "2 x");
	}
	const char *c = "{'descr': '<u2', 'fortran_order': True, 'shape': (2, 3)}";
	assert_pass(open_header(c, "\1\0\2\0\3\0\4\0\5\0\6\0", 12), "[1 3 5]\n[2 4 6]\n");
}

// An array in Fortran's order that is larger than a chunk.
TEST(large_transposed_arrays)
{
	enum { ROWS = 3001, COLUMNS = 7 };
	static const char text[] = "{'descr': '<i4', 'fortran_order': True, 'shape': (3001, 7), }";
	file f = make(1, text, "", 0);
	unsigned char *bytes = malloc(f.n + ROWS * COLUMNS * 4), *p = bytes + f.n;
	assert_non_null(bytes);
	memcpy(bytes, f.bytes, f.n);
	for (int c = 0; c < COLUMNS; c++)
		for (int r = 0; r < ROWS; r++, p += 4) {
			const int value = r * COLUMNS + c;
			p[0] = (unsigned char) value;
			p[1] = (unsigned char) (value >> 8);
			p[2] = p[3] = 0;
		}
	choir_dataset *d =
			choir_npy_dataset_new(scratch_write("f.npy", bytes, (size_t) (p - bytes)), "x");
	free(bytes);
	int32_t row[COLUMNS];
	chi_element e = { .column = { row }, .capacity = 1 };
	for (int r = 0; r < ROWS; r++) {
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
		for (int c = 0; c < COLUMNS; c++)
			assert_int_equal(row[c], r * COLUMNS + c);
	}
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_END);
	choir_dataset_free(d);
}

TEST(wrong_headers)
{
	static const struct {
		const char *text;
		choir_status status;
		const char *error;
	} cases[] = {
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", CHOIR_CORRUPT,
				"t.npy:*67 bytes*2 x 3 x 4 = 24 bytes*8" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': ()}", CHOIR_CORRUPT, "rank 0" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0)}", CHOIR_CORRUPT,
				"dimension 1*0" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (2, -1)}", CHOIR_CORRUPT,
				"byte 64:*\"-1)}\"*a dimension" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}",
				CHOIR_CORRUPT, "63 bits" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,)}",
				CHOIR_CORRUPT, "more than any file has" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,2)}",
				CHOIR_UNSUPPORTED, "byte 77: rank 9 or more" },
		{ "{'descr': '<u8', 'fortran_order': False, 'shape': (4,)}", CHOIR_UNSUPPORTED,
				"byte 21: the values are \"<u8\"" },
		{ "{'descr': '|f4', 'fortran_order': False, 'shape': (2,)}", CHOIR_UNSUPPORTED,
				"\"|f4\"" },
		{ "{'descr': '', 'fortran_order': False, 'shape': (2,)}", CHOIR_UNSUPPORTED, "\"\"" },
		{ "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", CHOIR_UNSUPPORTED,
				"byte 21:*record" },
		{ "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", CHOIR_CORRUPT, "True or False" },
		{ "{'descr': '<f4', 'shape': (2,)}", CHOIR_CORRUPT,
				"byte 41: the header ends without 'fortran_order'" },
		{ "{'descr': '<f4', 'descr': '<f4'}", CHOIR_CORRUPT, "each once" },
		{ "{'order': 1}", CHOIR_CORRUPT, "byte 11:*\"'order': 1}\"*'descr'" },
		{ "{'descr' '<f4'}", CHOIR_CORRUPT, "a colon" },
		{ "{'descr': '<f4' 'shape'}", CHOIR_CORRUPT, "a comma or }" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}", CHOIR_CORRUPT,
				"a comma or )" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': 2}", CHOIR_CORRUPT, "the shape" },
		{ "{'descr': '<f4", CHOIR_CORRUPT, "the type of the values" },
		{ "{", CHOIR_CORRUPT, "byte 11: found \"\"" },
		{ "[]", CHOIR_CORRUPT, "byte 10:*\"[]\"*{" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", CHOIR_CORRUPT,
				"nothing more" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_refused(open_header(cases[i].text, "12345678", 8), cases[i].status, cases[i].error);
	choir_dataset *d =
			open_header("{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", "\1\2", 2);
	assert_non_null(strstr(pass_in_words(d), "1\n! CHOIR_CORRUPT "));
	assert_non_null(strstr(pass_in_words(d), "byte 66 is 2"));
	choir_dataset_free(d);
}

TEST(wrong_beginnings)
{
	const char *good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}";
	file f = make(4, good, "12345678", 8);
	assert_refused(open_file(&f), CHOIR_UNSUPPORTED, "byte 6:*4.0*1.0*2.0*3.0");
	f = make(2, good, "12345678", 8);
	f.bytes[10] = 1;
	assert_refused(open_file(&f), CHOIR_CORRUPT, "byte 8:*65591*65536");
	f.bytes[0] = 'x';
	assert_refused(open_file(&f), CHOIR_CORRUPT, "t.npy: byte 0:*found 78*4e");
	f.n = 3;
	assert_refused(open_file(&f), CHOIR_CORRUPT, "3 bytes");
	assert_refused(choir_npy_dataset_new(NULL, "x"), CHOIR_INVALID, "NULL");
	assert_refused(
			choir_npy_dataset_new(scratch_path("none.npy"), "x"), CHOIR_NOT_FOUND, "none.npy");
	assert_refused(choir_npy_dataset_new(scratch_path(""), "x"), CHOIR_IO, "directory");
}

static void use_damaged(const char *path, const char *how)
{
	choir_dataset *d = choir_npy_dataset_new(path, "x");
	const char *found = pass_in_words(d), *error = strchr(found, '!');
	if (error && !strstr(error, "t.npy: "))
		fail_msg("%s: no file in \"%s\"", how, error);
	if (strncmp(how, "cut", 3) == 0 && !error)
		fail_msg("%s: read all the same", how);
	choir_dataset_free(d);
}

TEST(damaged_files)
{
	const file f = make(1, "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 2), }",
			"0123456789abcdef", 16);
	damage("t.npy", f.bytes, f.n, use_damaged);
}

static choir_dataset *open_one(const char *path, void *user)
{
	++*(int *) user;
	return choir_npy_dataset_new(path, "x");
}

static choir_dataset *open_none(const char *path, void *user)
{
	(void) path;
	(void) user;
	return NULL;
}

// Nor is one that has nothing to do with it lost.
TEST(an_older_failure_is_not_that_of_a_file)
{
	const int32_t value = 1;
	const char *path = scratch_path("older.npy");
	assert_int_equal(choir_npy_write(path, CHOIR_I32, CHOIR_SHAPE(1), &value), CHOIR_OK);
	int opened = 0;
	choir_fail(CHOIR_IO, "an older failure");
	choir_dataset *d = choir_files_dataset_new(choir_files_new(1, &path), open_one, &opened);
	assert_failure(CHOIR_IO, "failure");
	choir_dataset_free(d);
	choir_fail(CHOIR_IO, "an older failure");
	assert_refused(choir_files_dataset_new(choir_files_new(1, &path), open_none, NULL),
			CHOIR_INVALID, "older.npy:*NULL");
}

TEST(files_one_after_another)
{
	int32_t values[] = { 1, 2, 3, 4, 5 };
	const char *names[] = { "s-1.npy", "s-2.npy", "s-3.npy", "s-4.npy" };
	const int64_t counts[] = { 2, 0, 2, 1 };
	for (int i = 0, at = 0; i < 4; at += (int) counts[i++])
		assert_int_equal(choir_npy_write(scratch_path(names[i]), CHOIR_I32, CHOIR_SHAPE(counts[i]),
								 values + at),
				CHOIR_OK);
	const char *pattern = scratch_path("s-?.npy");
	int opened = 0;
	choir_dataset *d = choir_files_dataset_new(choir_files_new(1, &pattern), open_one, &opened);
	assert_int_equal(opened, 1);
	assert_int_equal(chi_dataset_spec(d)->examples, CHOIR_NONE);
	assert_pass(d, "1\n2\n3\n4\n5\n");
	d = choir_files_dataset_new(choir_files_new(1, &pattern), open_one, &opened);
	assert_int_equal(chi_dataset_seek(d, 3, 3), CHOIR_OK);
	assert_string_equal(pass_in_words(d), "4\n5\n");
	choir_dataset_free(d);
	for (int i = 0; i < 2; i++) {
		d = choir_files_dataset_new(choir_files_new(1, &pattern), open_one, &opened);
		assert_int_equal(chi_dataset_shard_files(d, 2, i), CHOIR_OK);
		assert_pass(d, i ? "5\n" : "1\n2\n3\n4\n");
	}
	d = choir_files_dataset_new(choir_files_new(1, &pattern), open_one, &opened);
	assert_int_equal(chi_dataset_shard_files(d, 5, 0), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "4*5 workers");
	choir_dataset_free(d);
	const float other = 1;
	assert_int_equal(
			choir_npy_write(scratch_path("s-2.npy"), CHOIR_F32, CHOIR_SHAPE(1), &other), CHOIR_OK);
	d = choir_files_dataset_new(choir_files_new(1, &pattern), open_one, &opened);
	const char *found = pass_in_words(d);
	assert_non_null(strstr(found, "1\n2\n! CHOIR_INVALID files dataset: "));
	assert_non_null(strstr(found, "s-2.npy: the dtype of a column differs"));
	choir_dataset_free(d);
	assert_refused(choir_files_dataset_new(choir_files_new(1, &pattern), NULL, NULL),
			CHOIR_INVALID, "NULL");
	assert_null(choir_files_new(0, NULL));
	assert_failure(CHOIR_INVALID, "given");
}

static choir_status read_two_files(void *pattern)
{
	int opened = 0;
	int32_t x[2];
	const char *const patterns[] = { pattern };
	return read_to_end(choir_files_dataset_new(choir_files_new(1, patterns), open_one, &opened),
			(chi_element){ .column = { x }, .capacity = 1 });
}

TEST(every_allocation_may_fail)
{
	const file f = make(1, "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 2), }",
			"0123456789abcdef", 16);
	char pattern[256];
	scratch_write("a-1.npy", f.bytes, f.n);
	scratch_write("a-2.npy", f.bytes, f.n);
	snprintf(pattern, sizeof pattern, "%s", scratch_path("a-*.npy"));
	assert_every_allocation(read_two_files, pattern);
}

TEST_GROUP(NULL, scratch_leave)
