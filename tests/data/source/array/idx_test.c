// IDX files: what is right is read right, plain and compressed, and what is wrong in any byte is
// one error that names the file, what was found and what was needed.
#include "data/elements.h"

#include "base/alloc.h"
#include "base/status.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef CHI_HAS_ZLIB
#include <zlib.h>
#endif

enum { BIG_ENOUGH = 4096 };

// A file in the making.
typedef struct {
	unsigned char bytes[BIG_ENOUGH];
	size_t n;
} file;

static void put32(file *f, uint32_t value)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		f->bytes[f->n++] = (unsigned char) (value >> shift);
}

static file header(unsigned char type, int rank, const uint32_t dims[])
{
	file f = { .bytes = { 0, 0, type, (unsigned char) rank }, .n = 4 };
	for (int i = 0; i < rank; i++)
		put32(&f, dims[i]);
	return f;
}

// 5 examples of [2, 3], bytes 0, 1, 2, ...
static file small(void)
{
	file f = header(0x08, 3, (uint32_t[]){ 5, 2, 3 });
	for (int i = 0; i < 30; i++)
		f.bytes[f.n++] = (unsigned char) i;
	return f;
}

static void save(const char *name, const void *bytes, size_t n)
{
	FILE *f = fopen(name, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static choir_dataset *open_bytes(const void *bytes, size_t n)
{
	save("t.idx", bytes, n);
	return choir_idx_dataset_new("t.idx", "image");
}

// Reads a pass in batches of three; true: it was good and gave small()'s values.
static bool reads_as_small(choir_dataset *d)
{
	unsigned char values[3 * 6];
	chi_element e = { .column = { values }, .capacity = 3 };
	d = choir_dataset_batch(d, 3);
	int at = 0;
	choir_status status = d ? CHOIR_OK : choir_error_status();
	while (status == CHOIR_OK && (status = chi_dataset_next(d, &e)) == CHOIR_OK)
		for (int64_t i = 0; i < 6 * e.examples; i++, at++)
			assert_int_equal(values[i], at);
	choir_dataset_free(d);
	assert_true(status != CHOIR_END || at == 30);
	return status == CHOIR_END;
}

TEST(every_value_type_is_read)
{
	file f = header(0x0c, 2, (uint32_t[]){ 2, 1 });
	put32(&f, 1);
	put32(&f, (uint32_t) -2);
	int32_t i32[2];
	chi_element e = { .column = { i32 }, .capacity = 2 };
	choir_dataset *d = choir_dataset_batch(open_bytes(f.bytes, f.n), 2);
	assert_int_equal(chi_dataset_spec(d)->column[0].dtype, CHOIR_I32);
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	assert_int_equal(i32[0], 1);
	assert_int_equal(i32[1], -2);
	choir_dataset_free(d);

	f = header(0x0d, 1, (uint32_t[]){ 1 });
	put32(&f, 0xc0490fdb);
	float f32;
	e = (chi_element){ .column = { &f32 }, .capacity = 1 };
	d = open_bytes(f.bytes, f.n);
	assert_int_equal(chi_dataset_spec(d)->column[0].dtype, CHOIR_F32);
	assert_int_equal(chi_dataset_spec(d)->column[0].shape.rank, 0);
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	assert_true(f32 == -3.14159274f);
	choir_dataset_free(d);

	f = header(0x0e, 1, (uint32_t[]){ 1 });
	put32(&f, 0x400921fb);
	put32(&f, 0x54442d18);
	double f64;
	e = (chi_element){ .column = { &f64 }, .capacity = 1 };
	d = open_bytes(f.bytes, f.n);
	assert_int_equal(chi_dataset_spec(d)->column[0].dtype, CHOIR_F64);
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	assert_true(f64 == 3.141592653589793);
	choir_dataset_free(d);
	file s = small();
	assert_true(reads_as_small(open_bytes(s.bytes, s.n)));
}

TEST(every_rank_is_read)
{
	for (int rank = 1; rank <= 8; rank++) {
		file f = header(0x08, rank, (uint32_t[]){ 3, 1, 1, 1, 1, 1, 1, 1 });
		memcpy(f.bytes + f.n, "abc", 3);
		choir_dataset *d = open_bytes(f.bytes, f.n + 3);
		assert_int_equal(chi_dataset_spec(d)->column[0].shape.rank, rank - 1);
		assert_int_equal(chi_dataset_spec(d)->examples, 3);
		choir_dataset_free(d);
	}
	file f = header(0x08, 2, (uint32_t[]){ 0, 28 });
	choir_dataset *d = open_bytes(f.bytes, f.n);
	unsigned char capacity[28];
	chi_element e = { .column = { capacity }, .capacity = 1 };
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_END);
	choir_dataset_free(d);
}

TEST(steps_can_pass_over_examples)
{
	file f = small();
	unsigned char values[6];
	chi_element e = { .column = { values }, .capacity = 1 };
	choir_dataset *d = choir_dataset_shard(choir_dataset_skip(open_bytes(f.bytes, f.n), 1), 2, 1);
	for (int pass_number = 0; pass_number < 2; pass_number++) {
		for (int i = 2; i < 5; i += 2) {
			assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
			assert_int_equal(values[0], 6 * i);
		}
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_END);
		assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	}
	choir_dataset_free(d);
}

TEST(a_file_cut_anywhere_is_an_error)
{
	file f = small();
	char text[128];
	for (size_t n = 0; n < f.n; n++) {
		snprintf(text, sizeof text,
				n == 0			 ? "t.idx:*empty"
						: n < 4	 ? "t.idx:*%zu bytes*at least 8"
						: n < 16 ? "t.idx:*%zu bytes*rank 3*16"
								 : "t.idx:*16 bytes*5 x 2 x 3 = 30 bytes*%zu",
				n < 16 ? n : n - 16);
		assert_refused(open_bytes(f.bytes, n), CHOIR_CORRUPT, text);
	}
	assert_refused(open_bytes(f.bytes, f.n + 1), CHOIR_CORRUPT, "16 bytes*5 x 2*30 bytes*31");
	file g = header(0x0d, 2, (uint32_t[]){ 10, 3 });
	assert_refused(open_bytes(g.bytes, g.n), CHOIR_CORRUPT, "12 bytes*10 x 3 x 4*120 bytes");
}

TEST(a_wrong_header_is_an_error)
{
	file f = small();
	f.bytes[0] = 'P';
	f.bytes[1] = 'K';
	assert_refused(
			open_bytes(f.bytes, f.n), CHOIR_CORRUPT, "t.idx: byte 0:*found 50*4b*08*03*IDX*00");
	f = small();
	f.bytes[2] = 0x0a;
	assert_refused(open_bytes(f.bytes, f.n), CHOIR_CORRUPT, "t.idx: byte 2:*0x0a*IDX");
	f.bytes[2] = 0x0b;
	assert_refused(open_bytes(f.bytes, f.n), CHOIR_UNSUPPORTED, "t.idx: byte 2:*i16");
	f.bytes[2] = 0x09;
	assert_refused(open_bytes(f.bytes, f.n), CHOIR_UNSUPPORTED, "t.idx: byte 2:*i8");
	f = small();
	f.bytes[3] = 0;
	assert_refused(open_bytes(f.bytes, f.n), CHOIR_CORRUPT, "t.idx:*4 bytes*rank 0*1");
	f.bytes[3] = 9;
	assert_refused(open_bytes(f.bytes, f.n), CHOIR_UNSUPPORTED, "t.idx: byte 3:*rank 9*8");
	f = header(0x08, 3, (uint32_t[]){ 5, 0, 3 });
	assert_refused(open_bytes(f.bytes, f.n), CHOIR_CORRUPT, "t.idx:*16 bytes*dimension 1*0");
}

TEST(promises_that_no_file_can_keep_are_an_error)
{
	uint32_t max = UINT32_MAX;
	file f = header(0x0e, 8, (uint32_t[]){ max, max, max, max, max, max, max, max });
	assert_refused(open_bytes(f.bytes, f.n), CHOIR_CORRUPT, "8 bytes");
	f = header(0x08, 3, (uint32_t[]){ 0, max, max });
	assert_refused(open_bytes(f.bytes, f.n), CHOIR_CORRUPT, "more than any file has");
	// The product is 2^64, which wraps around to 0.
	f = header(0x08, 3, (uint32_t[]){ 1u << 31, 1u << 31, 4 });
	assert_refused(open_bytes(f.bytes, f.n), CHOIR_CORRUPT, "more than any file has");
	f = header(0x08, 2, (uint32_t[]){ max, 1000 });
	uint64_t before = chi_alloc_count();
	assert_refused(open_bytes(f.bytes, f.n), CHOIR_CORRUPT, "4294967295000");
	assert_in_range(chi_alloc_count() - before, 0, 4); // and nothing large was asked for
}

TEST(other_paths_are_an_error)
{
	assert_refused(choir_idx_dataset_new("missing.idx", "image"), CHOIR_NOT_FOUND, "missing.idx");
	assert_refused(choir_idx_dataset_new(".", "image"), CHOIR_IO, "directory");
	assert_refused(choir_idx_dataset_new(NULL, "image"), CHOIR_INVALID, "idx dataset:*NULL");
	file f = small();
	save("t.idx", f.bytes, f.n);
	assert_refused(choir_idx_dataset_new("t.idx", NULL), CHOIR_INVALID, "idx dataset:*column 0");
	save("two\nlines.idx", f.bytes, 3);
	assert_refused(choir_idx_dataset_new("two\nlines.idx", "image"), CHOIR_CORRUPT,
			"two\\x0alines.idx: ends");
}

TEST(a_file_that_shrinks_meanwhile_is_an_error)
{
	file f = small();
	choir_dataset *d = choir_dataset_batch(open_bytes(f.bytes, f.n), 3);
	unsigned char values[18];
	chi_element e = { .column = { values }, .capacity = 3 };
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	assert_int_equal(truncate("t.idx", 40), 0);
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_CORRUPT);
	assert_failure(CHOIR_CORRUPT, "t.idx: ");
	choir_dataset_free(d);
}

TEST(images_and_labels_must_be_equally_many)
{
	file f = small(), g = header(0x08, 1, (uint32_t[]){ 4 });
	memcpy(g.bytes + g.n, "abcd", 4);
	save("l.idx", g.bytes, g.n + 4);
	assert_refused(
			choir_dataset_zip(open_bytes(f.bytes, f.n), choir_idx_dataset_new("l.idx", "label")),
			CHOIR_INVALID, "zip:*5*\"image\"*4*\"label\"");
}

#ifdef CHI_HAS_ZLIB

// Compresses to one gzip member; a file name in its header makes the header longer.
static file gzip(const void *bytes, size_t n)
{
	file f = { .n = 0 };
	z_stream z = { .next_in = (Bytef *) (uintptr_t) bytes, .avail_in = (uInt) n };
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_out = f.bytes;
	z.avail_out = sizeof f.bytes;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	f.n = sizeof f.bytes - z.avail_out;
	deflateEnd(&z);
	return f;
}

TEST(compressed_files_are_read)
{
	file f = small(), z = gzip(f.bytes, f.n);
	assert_true(reads_as_small(open_bytes(z.bytes, z.n)));
	// Two members are one file.
	file a = gzip(f.bytes, 21), b = gzip(f.bytes + 21, f.n - 21);
	memcpy(a.bytes + a.n, b.bytes, b.n);
	assert_true(reads_as_small(open_bytes(a.bytes, a.n + b.n)));
	// As a shuffle sees it: by number, twice.
	choir_dataset *d = choir_dataset_shuffle(open_bytes(z.bytes, z.n), 5, 1);
	unsigned char values[6];
	chi_element e = { .column = { values }, .capacity = 1 };
	for (int i = 0, sum = 0; i < 2; i++, sum = 0) {
		while (chi_dataset_next(d, &e) == CHOIR_OK)
			sum += values[0];
		assert_int_equal(sum, 60);
		assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	}
	choir_dataset_free(d);
	f = header(0x08, 2, (uint32_t[]){ 0, 28 });
	z = gzip(f.bytes, f.n);
	d = open_bytes(z.bytes, z.n);
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_END);
	choir_dataset_free(d);
}

TEST(a_compressed_file_cut_anywhere_is_an_error)
{
	file f = small(), z = gzip(f.bytes, f.n);
	for (size_t n = 0; n < z.n; n++) {
		assert_false(reads_as_small(open_bytes(z.bytes, n)));
		assert_failure(
				CHOIR_CORRUPT, n < 2 ? "t.idx: " : "t.idx: the file ends within the gzip data");
	}
}

TEST(damage_in_a_compressed_file_is_an_error_or_harmless)
{
	file f = small(), z = gzip(f.bytes, f.n);
	for (size_t i = 0; i < z.n; i++)
		for (unsigned bit = 0; bit < 8; bit++) {
			file damaged = z;
			damaged.bytes[i] ^= (unsigned char) (1u << bit);
			if (reads_as_small(open_bytes(damaged.bytes, damaged.n)))
				assert_true(i < 10 || i == z.n - 9); // time, system; bits that fill a byte up
			else
				assert_failure(choir_error_status(), "t.idx: ");
		}
	file tail = z;
	tail.bytes[z.n - 8] ^= 1;
	assert_false(reads_as_small(open_bytes(tail.bytes, tail.n)));
	assert_failure(CHOIR_CORRUPT, "t.idx:*damaged");
	tail = z;
	tail.bytes[z.n - 1] ^= 1;
	assert_false(reads_as_small(open_bytes(tail.bytes, tail.n)));
	assert_failure(CHOIR_CORRUPT, "incorrect");
	tail = z;
	tail.bytes[tail.n++] = 'x';
	assert_false(reads_as_small(open_bytes(tail.bytes, tail.n)));
	assert_failure(CHOIR_CORRUPT, "t.idx: ");
}

TEST(compressed_content_is_measured)
{
	file f = small(), z = gzip(f.bytes, f.n - 4);
	assert_false(reads_as_small(open_bytes(z.bytes, z.n)));
	assert_failure(CHOIR_CORRUPT, "t.idx:*16 bytes*30 bytes*26");
	z = gzip(f.bytes, f.n + 1);
	assert_false(reads_as_small(open_bytes(z.bytes, z.n)));
	assert_failure(CHOIR_CORRUPT, "t.idx:*after the end");
	z = gzip(f.bytes, 10);
	assert_refused(open_bytes(z.bytes, z.n), CHOIR_CORRUPT, "10 bytes");
	f = header(0x08, 2, (uint32_t[]){ 60000, 784 });
	z = gzip(f.bytes, f.n);
	assert_refused(open_bytes(z.bytes, z.n), CHOIR_CORRUPT, "47040000");
}

// 70 MiB of zeros with a one at the end: too many to keep, so they come as a stream.
enum { LARGE = 70 * 1024, KIB = 1024 };

static void save_large(const char *name)
{
	static unsigned char block[KIB];
	file f = header(0x08, 2, (uint32_t[]){ LARGE, KIB });
	gzFile z = gzopen(name, "wb1");
	assert_non_null(z);
	assert_int_equal(gzwrite(z, f.bytes, (unsigned) f.n), f.n);
	for (int i = 0; i < LARGE; i++) {
		block[0] = i == LARGE - 1;
		assert_int_equal(gzwrite(z, block, KIB), KIB);
	}
	assert_int_equal(gzclose(z), Z_OK);
}

static void flip_byte(const char *name, long from_end)
{
	FILE *f = fopen(name, "r+b");
	assert_non_null(f);
	assert_int_equal(fseek(f, from_end, SEEK_END), 0);
	int byte = fgetc(f);
	assert_int_equal(fseek(f, from_end, SEEK_END), 0);
	assert_int_equal(fputc(byte ^ 1, f), byte ^ 1);
	assert_int_equal(fclose(f), 0);
}

// Its last three examples, two and one.
static choir_dataset *open_large(void)
{
	choir_dataset *d = choir_idx_dataset_new("large.idx.gz", "x");
	assert_null(chi_dataset_peek(d, 0, 0, 1));
	return choir_dataset_batch(choir_dataset_skip(d, LARGE - 3), 2);
}

TEST(large_compressed_files_are_streams)
{
	save_large("large.idx.gz");
	static unsigned char block[2 * KIB];
	chi_element e = { .column = { block }, .capacity = 2 };
	choir_dataset *d = open_large();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
		assert_int_equal(e.examples, 2);
		assert_int_equal(block[KIB], 0);
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
		assert_int_equal(e.examples, 1);
		assert_int_equal(block[0], 1);
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_END);
		assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	}
	choir_dataset_free(d);
	// With a damaged tail, or something behind it, the last example is not handed out.
	flip_byte("large.idx.gz", -8);
	d = open_large();
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_CORRUPT);
	assert_failure(CHOIR_CORRUPT, "large.idx.gz:*damaged");
	flip_byte("large.idx.gz", -8);
	FILE *f = fopen("large.idx.gz", "ab");
	assert_non_null(f);
	assert_int_equal(fputc('x', f), 'x');
	assert_int_equal(fclose(f), 0);
	choir_dataset_free(d);
	d = open_large();
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_CORRUPT);
	assert_failure(CHOIR_CORRUPT, "large.idx.gz: ");
	choir_dataset_free(d);
}

static uint64_t fnv(uint64_t hash, const unsigned char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
	return hash;
}

TEST(the_shipped_digits_are_whole)
{
	const char *directory = CHOIR_SOURCE_DIR "/data/";
	char images[512], labels[512];
	snprintf(images, sizeof images, "%smnist-10k-images-idx3-ubyte.gz", directory);
	snprintf(labels, sizeof labels, "%smnist-10k-labels-idx1-ubyte.gz", directory);
	choir_dataset *d = choir_dataset_zip(
			choir_idx_dataset_new(images, "image"), choir_idx_dataset_new(labels, "label"));
	d = choir_dataset_batch(d, 1000);
	static unsigned char image[1000][784], label[1000];
	chi_element e = { .column = { image, label }, .capacity = 1000 };
	int count[10] = { 0 };
	uint64_t hash = UINT64_C(14695981039346656037);
	assert_int_equal(chi_dataset_spec(d)->examples, 10000);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
		assert_int_equal(e.examples, 1000);
		hash = fnv(hash, image[0], sizeof image);
		for (int j = 0; j < 1000; j++)
			count[label[j]]++;
		if (i == 0)
			assert_memory_equal(label, "\7\2\1\0\4\1\4\11\5\11", 10);
	}
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_END);
	assert_true(hash == UINT64_C(0x8614c3e55764d65f));
	static const int expected[10] = { 980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009 };
	assert_memory_equal(count, expected, sizeof count);
	choir_dataset_free(d);
}

TEST(every_allocation_may_fail)
{
	file f = small(), z = gzip(f.bytes, f.n);
	uint64_t n = 1;
	for (bool hit = true; hit; n++) {
		chi_alloc_fail(n, true);
		bool good = reads_as_small(open_bytes(z.bytes, z.n));
		hit = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(good, !hit);
		if (hit)
			assert_failure(CHOIR_NO_MEMORY, "bytes");
	}
	assert_true(n > 8);
}

#else

TEST(compressed_files_need_zlib)
{
	assert_refused(open_bytes("\x1f\x8b\x08", 3), CHOIR_UNSUPPORTED, "t.idx:*compressed");
}

#endif

static char directory_name[] = "idx_test.XXXXXX";

static int enter_directory(void **state)
{
	(void) state;
	return mkdtemp(directory_name) ? chdir(directory_name) : -1;
}

static int leave_directory(void **state)
{
	(void) state;
	static const char *const files[] = { "t.idx", "l.idx", "two\nlines.idx", "large.idx.gz" };
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
		unlink(files[i]);
	return chdir("..") == 0 ? rmdir(directory_name) : -1;
}

TEST_GROUP(enter_directory, leave_directory)
