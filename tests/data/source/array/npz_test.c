// npz: archives made here byte by byte, stored and deflated, narrow and wide, and damaged in
// every byte.
#include "data/elements.h"

#include "data/source/scratch.h"
#include "short.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef CHI_HAS_ZLIB
#include <zlib.h>

typedef struct {
	unsigned char bytes[4096];
	size_t n;
	unsigned char directory[1024];
	size_t directory_bytes, entries;
	bool wide; // sizes are in the extra fields, and the end is a wide one
} archive;

static void put(unsigned char *to, size_t *at, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		to[(*at)++] = (unsigned char) (i < 8 ? value >> (8 * i) : 0);
}

static void put_bytes(unsigned char *to, size_t *at, const void *data, size_t bytes)
{
	memcpy(to + *at, data, bytes);
	*at += bytes;
}

static size_t deflated(const void *data, size_t bytes, unsigned char *to, size_t capacity)
{
	z_stream z = { .next_in = (unsigned char *) (uintptr_t) data,
		.avail_in = (unsigned) bytes,
		.next_out = to,
		.avail_out = (unsigned) capacity };
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(deflateEnd(&z), Z_OK);
	return capacity - z.avail_out;
}

static void add(archive *a, const char *name, const void *data, size_t bytes, int method)
{
	unsigned char packed[2048];
	const uint64_t local = a->n;
	const size_t k = strlen(name);
	const uint32_t crc = (uint32_t) crc32(0, data, (unsigned) bytes);
	size_t n = bytes;
	if (method == 8)
		n = deflated(data, bytes, packed, sizeof packed);
	else
		memcpy(packed, data, bytes);
	put_bytes(a->bytes, &a->n, "PK\3\4", 4);
	put(a->bytes, &a->n, 20, 2);
	put(a->bytes, &a->n, 0, 2);
	put(a->bytes, &a->n, (uint64_t) method, 2);
	put(a->bytes, &a->n, 0, 4);
	put(a->bytes, &a->n, crc, 4);
	put(a->bytes, &a->n, n, 4);
	put(a->bytes, &a->n, bytes, 4);
	put(a->bytes, &a->n, k, 2);
	put(a->bytes, &a->n, 3, 2); // an extra field that only this header has
	put_bytes(a->bytes, &a->n, name, k);
	put_bytes(a->bytes, &a->n, "xyz", 3);
	put_bytes(a->bytes, &a->n, packed, n);
	unsigned char *d = a->directory;
	size_t *at = &a->directory_bytes;
	put_bytes(d, at, "PK\1\2", 4);
	put(d, at, 20, 2);
	put(d, at, 20, 2);
	put(d, at, 0, 2);
	put(d, at, (uint64_t) method, 2);
	put(d, at, 0, 4);
	put(d, at, crc, 4);
	put(d, at, a->wide ? 0xffffffff : n, 4);
	put(d, at, a->wide ? 0xffffffff : bytes, 4);
	put(d, at, k, 2);
	put(d, at, a->wide ? 28 : 0, 2);
	put(d, at, 0, 2 + 2 + 2 + 4);
	put(d, at, a->wide ? 0xffffffff : local, 4);
	put_bytes(d, at, name, k);
	if (a->wide) {
		put(d, at, 1, 2);
		put(d, at, 24, 2);
		put(d, at, bytes, 8);
		put(d, at, n, 8);
		put(d, at, local, 8);
	}
	a->entries++;
}

static void finish(archive *a)
{
	const uint64_t at = a->n;
	put_bytes(a->bytes, &a->n, a->directory, a->directory_bytes);
	const uint64_t end = a->n;
	if (a->wide) {
		put_bytes(a->bytes, &a->n, "PK\6\6", 4);
		put(a->bytes, &a->n, 44, 8);
		put(a->bytes, &a->n, 0, 2 + 2 + 4 + 4);
		put(a->bytes, &a->n, a->entries, 8);
		put(a->bytes, &a->n, a->entries, 8);
		put(a->bytes, &a->n, a->directory_bytes, 8);
		put(a->bytes, &a->n, at, 8);
		put_bytes(a->bytes, &a->n, "PK\6\7", 4);
		put(a->bytes, &a->n, 0, 4);
		put(a->bytes, &a->n, end, 8);
		put(a->bytes, &a->n, 1, 4);
	}
	put_bytes(a->bytes, &a->n, "PK\5\6", 4);
	put(a->bytes, &a->n, 0, 4);
	put(a->bytes, &a->n, a->wide ? 0xffff : a->entries, 2);
	put(a->bytes, &a->n, a->wide ? 0xffff : a->entries, 2);
	put(a->bytes, &a->n, a->wide ? 0xffffffff : a->directory_bytes, 4);
	put(a->bytes, &a->n, a->wide ? 0xffffffff : at, 4);
	put(a->bytes, &a->n, 0, 2);
}

// An npy file of u8 [rows] or [rows, columns].
static size_t npy(char *to, int rows, int columns, int first)
{
	const int n = sprintf(to + 10, "{'descr': '|u1', 'fortran_order': False, 'shape': (%d, %d), }",
			rows, columns);
	memcpy(to, "\x93NUMPY\1\0", 8);
	to[8] = (char) n;
	to[9] = 0;
	for (int i = 0; i < rows * columns; i++)
		to[10 + n + i] = (char) (first + i);
	return (size_t) (10 + n + rows * columns);
}

static archive make(bool wide, int method)
{
	archive a = { .wide = wide };
	char file[512];
	add(&a, "x.npy", file, npy(file, 3, 2, 0), method);
	add(&a, "readme", "hi", 2, 0);
	add(&a, "y.npy", file, npy(file, 3, 1, 10), 0);
	finish(&a);
	return a;
}

static choir_dataset *open_archive(const archive *a, size_t n, const char *const names[])
{
	return choir_npz_dataset_new(scratch_write("t.npz", a->bytes, a->n), n, names);
}

TEST(arrays_are_columns)
{
	static const char *const yx[] = { "y", "x" };
	for (int wide = 0; wide < 2; wide++)
		for (int method = 0; method <= 8; method += 8) {
			const archive a = make(wide, method);
			choir_dataset *d = open_archive(&a, 0, NULL);
			assert_string_equal(chi_dataset_spec(d)->column[1].name, "y");
			assert_int_equal(chi_dataset_spec(d)->examples, 3);
			assert_pass(d, "[0 1] [10]\n[2 3] [11]\n[4 5] [12]\n");
			assert_pass(open_archive(&a, 2, yx), "[10] [0 1]\n[11] [2 3]\n[12] [4 5]\n");
			assert_pass(open_archive(&a, 1, yx + 1), "[0 1]\n[2 3]\n[4 5]\n");
			d = open_archive(&a, 0, NULL);
			assert_int_equal(chi_dataset_seek(d, 2, 2), CHOIR_OK);
			assert_string_equal(pass_in_words(d), "[4 5] [12]\n");
			choir_dataset_free(d);
		}
}

TEST(what_is_misused)
{
	static const char *const z[] = { "z" }, *const none[] = { NULL };
	archive a = make(false, 8);
	assert_refused(open_archive(&a, 1, z), CHOIR_NOT_FOUND, "\"z\"*\"x\"*\"y\"");
	assert_refused(open_archive(&a, 1, none), CHOIR_NOT_FOUND, "\"(NULL)\"");
	assert_refused(open_archive(&a, 1, NULL), CHOIR_INVALID, "NULL");
	assert_refused(choir_npz_dataset_new(NULL, 0, NULL), CHOIR_INVALID, "NULL");
	assert_refused(choir_npz_dataset_new(scratch_path("none"), 0, NULL), CHOIR_NOT_FOUND, "none");
	a = (archive){ .n = 0 };
	char file[512];
	add(&a, "x.npy", file, npy(file, 3, 2, 0), 0);
	add(&a, "y.npy", file, npy(file, 4, 1, 0), 0);
	finish(&a);
	assert_refused(open_archive(&a, 0, NULL), CHOIR_INVALID, "y.npy*4");
	a = (archive){ .n = 0 };
	add(&a, "readme", "hi", 2, 0);
	finish(&a);
	assert_refused(open_archive(&a, 0, NULL), CHOIR_CORRUPT, "arrays");
	a = (archive){ .n = 0 };
	finish(&a);
	assert_refused(open_archive(&a, 0, NULL), CHOIR_CORRUPT, "arrays");
	a.n = 10;
	assert_refused(open_archive(&a, 0, NULL), CHOIR_CORRUPT, "10 bytes*22");
	a.n = 100;
	assert_refused(open_archive(&a, 0, NULL), CHOIR_CORRUPT, "archive");
	a = (archive){ .n = 0 };
	add(&a, "x.npy", file, npy(file, 3, 2, 0), 12);
	finish(&a);
	assert_refused(open_archive(&a, 0, NULL), CHOIR_UNSUPPORTED, "method 12");
}

// An archive whose directory says that its one member, which is deflated, is of so many bytes more
// than deflate can make of it.
static archive of_too_many(int64_t more)
{
	archive a = { .n = 0 };
	char file[512];
	add(&a, "x.npy", file, npy(file, 3, 2, 0), 8);
	const int64_t packed = a.directory[20] | a.directory[21] << 8;
	size_t at = 24;
	put(a.directory, &at, (uint64_t) (1032 * packed + more), 4);
	finish(&a);
	return a;
}

TEST(no_member_is_larger_than_deflate_can_make_it)
{
	archive a = of_too_many(0);
	assert_refused(open_archive(&a, 0, NULL), CHOIR_CORRUPT, "3 x 2*6 bytes");
	a = of_too_many(1);
	assert_refused(open_archive(&a, 0, NULL), CHOIR_CORRUPT, "\"x.npy\"");
}

TEST(members_share_no_bytes)
{
	archive a = { .n = 0 };
	char file[512];
	add(&a, "x.npy", file, npy(file, 3, 2, 0), 8);
	unsigned char *d = a.directory;
	memcpy(d + a.directory_bytes, d, a.directory_bytes); // the same member, called y
	d[a.directory_bytes + 46] = 'y';
	a.directory_bytes *= 2;
	a.entries++;
	finish(&a);
	assert_refused(open_archive(&a, 0, NULL), CHOIR_CORRUPT, "begins within member \"");
}

// numpy.savez_compressed of n zeros i64: raw deflated data have no trailer, so zlib can have taken
// all of them before it has given all that they are.
TEST(what_zlib_holds_is_read)
{
	enum { MIN = 900, MAX = 1100 };
	static char file[10 + 100 + 8 * MAX];
	for (int n = MIN; n < MAX; n += SERIAL_STRIDE) {
		archive a = { .n = 0 };
		const int header = sprintf(
				file + 10, "{'descr': '<i8', 'fortran_order': False, 'shape': (%d,), }", n);
		memcpy(file, "\x93NUMPY\1\0", 8);
		file[8] = (char) header;
		memset(file + 10 + header, 0, 8 * (size_t) n);
		add(&a, "y.npy", file, (size_t) (10 + header + 8 * n), 8);
		finish(&a);
		const char *path = scratch_write("t.npz", a.bytes, a.n);
		for (int64_t batch = 1; batch <= MAX; batch += batch < 64 ? 1 : 64) {
			int64_t y[MAX];
			assert_int_equal(
					read_to_end(choir_dataset_batch(choir_npz_dataset_new(path, 0, NULL), batch),
							(chi_element){ .column = { y }, .capacity = batch }),
					CHOIR_END);
		}
	}
}

// Checksums see to it that what is read is what was written.
static void use_damaged(const char *path, const char *how)
{
	choir_dataset *d = choir_npz_dataset_new(path, 0, NULL);
	const char *found = pass_in_words(d), *error = strchr(found, '!');
	if (error && !strstr(error, "t.npz"))
		fail_msg("%s: no file in \"%s\"", how, error);
	if (!error && strcmp(found, "[0 1] [10]\n[2 3] [11]\n[4 5] [12]\n") != 0 &&
			strcmp(found, "[0 1]\n[2 3]\n[4 5]\n") != 0 &&
			strcmp(found, "[10]\n[11]\n[12]\n") != 0)
		fail_msg("%s: gave %s", how, found);
	if (!error && strncmp(how, "cut", 3) == 0)
		fail_msg("%s: read all the same", how);
	choir_dataset_free(d);
}

TEST(damaged_archives)
{
	for (int wide = 0; wide < 2; wide++) {
		const archive a = make(wide, wide ? 8 : 0);
		damage("t.npz", a.bytes, a.n, use_damaged);
	}
}

static choir_status read_small(void *path)
{
	unsigned char x[2], y;
	return read_to_end(choir_npz_dataset_new(path, 0, NULL),
			(chi_element){ .column = { x, &y }, .capacity = 1 });
}

TEST(every_allocation_may_fail)
{
	const archive a = make(true, 8);
	char path[256];
	snprintf(path, sizeof path, "%s", scratch_write("t.npz", a.bytes, a.n));
	assert_every_allocation(read_small, path);
}

TEST_GROUP(NULL, scratch_leave)

#else

int main(void)
{
	return 77; // there is no npz without zlib
}

#endif
