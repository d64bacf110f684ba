// Records of one size: fields of every kind and order, both ways of reading them, several files,
// and what a file that does not fit is told.
#include "data/elements.h"
#include "data/source/tfrecord/protos.h"
#include "data/source/scratch.h"

#include "base/status.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH "t.bin"

static choir_dataset *open_bytes(
		const bytes *b, size_t n, const choir_field fields[], const choir_fixed_options *o)
{
	save_bytes(PATH, b);
	return choir_fixed_length_record_dataset_new(PATH, n, fields, o);
}

TEST(fields_become_columns)
{
	static const choir_field fields[] = {
		{ .name = "a", .dtype = CHOIR_U8, .shape = { 1, { 3 } } },
		{ .dtype = CHOIR_U8, .shape = { 1, { 2 } } },
		{ .name = "big", .dtype = CHOIR_I32, .big_endian = true },
		{ .name = "little", .dtype = CHOIR_F32 }, { .name = "flag", .dtype = CHOIR_BOOL },
		{ .name = "wide", .dtype = CHOIR_I64, .big_endian = true }
	};
	bytes b = { NULL, 0, 0 };
	put(&b, "header", 6);
	for (int i = 0; i < 5; i++) {
		put(&b, (char[]){ 'x', 'y', (char) i, 9, 9 }, 5);
		put(&b, (unsigned char[]){ 0xff, 0xff, 0xff, (unsigned char) (0xff - i) }, 4);
		put(&b, (unsigned char[]){ 0, 0, 0x80, 0x3f }, 4);
		put(&b, (char[]){ (char) (i % 2) }, 1);
		put(&b, (char[]){ 0, 0, 0, 1, 0, 0, 0, (char) i }, 8);
	}
	choir_dataset *d = open_bytes(&b, 6, fields, CHOIR_OPTIONS(choir_fixed_options, .header = 6));
	assert_int_equal(chi_dataset_spec(d)->n, 5);
	assert_int_equal(chi_dataset_spec(d)->examples, 5);
	d = choir_dataset_batch(d, 4);
	char a[12];
	int32_t big[4];
	float little[4];
	bool flag[4];
	int64_t wide[4];
	chi_element e = { .column = { a, big, little, flag, wide }, .capacity = 4 };
	for (int again = 0; again < 2; again++) {
		for (int64_t first = 0; first < 5; first += 4) {
			assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
			assert_int_equal(e.examples, first ? 1 : 4);
			for (int64_t i = 0; i < e.examples; i++) {
				assert_int_equal(a[3 * i + 2], first + i);
				assert_int_equal(big[i], -1 - (first + i));
				assert_true(little[i] == 1);
				assert_int_equal(flag[i], (first + i) % 2);
				assert_int_equal(wide[i], (1ll << 32) + first + i);
			}
		}
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_END);
		assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	}
	choir_dataset_free(d);
	free(b.data);
}

// Records of a number and 2000 bytes; in the second way of reading a limit asks for a look at
// each.
TEST(both_ways_of_reading_give_the_same)
{
	bytes b = { NULL, 0, 0 };
	unsigned char content[2000], read[40 * 2000], label[40];
	for (int i = 0; i < 300; i++) {
		memset(content, i % 251, sizeof content);
		put(&b, (unsigned char[]){ (unsigned char) (i % 10) }, 1);
		put(&b, content, sizeof content);
	}
	for (int way = 0; way < 4; way++) {
		const choir_field fields[] = {
			{ .name = "label", .dtype = CHOIR_U8, .limit = way % 2 ? 10 : 0 },
			{ .name = "content", .dtype = CHOIR_U8, .shape = { 1, { 2000 } } }
		};
		bytes z = way / 2 ? deflated(&b, 31) : b;
		choir_dataset *d = choir_dataset_batch(
				open_bytes(&z, 2, fields,
						CHOIR_OPTIONS(choir_fixed_options,
								.compression = way / 2 ? CHOIR_COMPRESSION_GZIP
													   : CHOIR_COMPRESSION_NONE)),
				40);
		for (int wanted = 0; wanted < 3; wanted++) { // both, labels, contents
			chi_element e = { .column = { wanted < 2 ? label : NULL, wanted != 1 ? read : NULL },
				.capacity = 40 };
			int n = 0;
			while (chi_dataset_next(d, &e) == CHOIR_OK)
				for (int64_t i = 0; i < e.examples; i++, n++) {
					assert_true(wanted == 2 || label[i] == n % 10);
					assert_true(wanted == 1 ||
							(read[2000 * i] == n % 251 && read[2000 * i + 1999] == n % 251));
				}
			assert_int_equal(n, 300);
			assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
		}
		choir_dataset_free(d);
		if (way / 2)
			free(z.data);
	}
	free(b.data);
}

TEST(cifar10_is_a_preset)
{
	mkdir("cifar", 0777);
	unsigned char record[3073];
	for (int file = 5; file >= 0; file--) {
		bytes b = { NULL, 0, 0 };
		for (int i = 0; i < 4; i++) {
			record[0] = (unsigned char) ((file + i) % 10);
			for (int k = 0; k < 3072; k++)
				record[1 + k] = (unsigned char) (k / 1024 * 50 + k % 1024 % 47 + file);
			put(&b, record, sizeof record);
		}
		char path[] = "cifar/data_batch_0.bin";
		path[17] = (char) ('0' + file);
		save_bytes(file ? path : "cifar/test_batch.bin", &b);
		free(b.data);
	}
	unsigned char label, image[32][32][3];
	chi_element e = { .column = { &label, image }, .capacity = 1 };
	choir_dataset *d = choir_cifar10_dataset_new("cifar", false);
	assert_int_equal(chi_dataset_spec(d)->examples, 20);
	assert_int_equal(chi_dataset_spec(d)->column[1].shape.dim[2], 3);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
		assert_int_equal(label, (i / 4 + 1 + i % 4) % 10);
		for (int k = 0; k < 3072; k++)
			assert_int_equal(image[k % 1024 / 32][k % 32][k / 1024],
					k / 1024 * 50 + k % 1024 % 47 + i / 4 + 1);
	}
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_END);
	choir_dataset_free(d);
	d = choir_cifar10_dataset_new("cifar", true);
	assert_int_equal(chi_dataset_spec(d)->examples, 4);
	choir_dataset_free(d);
	assert_refused(choir_cifar10_dataset_new("no-such", false), CHOIR_NOT_FOUND,
			"no-such/data_batch_*.bin");
	assert_refused(choir_cifar10_dataset_new(NULL, false), CHOIR_INVALID, "NULL");
}

// Which file, which record, which byte.
TEST(a_label_that_is_none_is_an_error)
{
	unsigned char record[3073] = { 10 }, label;
	chi_element e = { .column = { &label }, .capacity = 1 };
	mkdir("cifar", 0777);
	bytes b = { NULL, 0, 0 };
	put(&b, record, sizeof record);
	record[0] = 9;
	put(&b, record, sizeof record);
	for (int i = 0; i < 2; i++) {
		memmove(b.data + 3073, b.data, i ? 3073 : 0);
		b.data[0] = i ? 9 : 10;
		save_bytes("cifar/test_batch.bin", &b);
		choir_dataset *d = choir_cifar10_dataset_new("cifar", true);
		choir_status status;
		while ((status = chi_dataset_next(d, &e)) == CHOIR_OK)
			;
		assert_int_equal(status, CHOIR_CORRUPT);
		assert_failure(CHOIR_CORRUPT,
				i ? "cifar/test_batch.bin: record 1 at byte 3073: \"label\" is 10, 0 to 9 are "
					"possible"
				  : "cifar/test_batch.bin: record 0 at byte 0: \"label\" is 10, 0 to 9 are "
					"possible");
		choir_dataset_free(d);
	}
	free(b.data);
}

#ifdef CHI_HAS_ZLIB
// The checksum is at the end: of a file that is larger than what is looked at at once, whole
// batches come before, and then the failure, for good; of a smaller one it is the first thing.
TEST(a_wrong_checksum_behind_many_records_is_an_error)
{
	enum { N = 40000, BATCH = 1000 };
	static int64_t read[BATCH];
	static const choir_field number = { .name = "number", .dtype = CHOIR_I64, .limit = N };
	bytes b = { NULL, 0, 0 };
	for (int64_t i = 0; i < N; i++)
		put(&b, &i, 8);
	for (int large = 0; large < 2; large++) {
		b.n = large ? 8 * (size_t) N : 8 * BATCH;
		bytes z = deflated(&b, 31);
		z.data[z.n - 8] ^= 1; // of the checksum
		choir_dataset *d = choir_dataset_batch(
				open_bytes(&z, 1, &number,
						CHOIR_OPTIONS(choir_fixed_options, .compression = CHOIR_COMPRESSION_GZIP)),
				BATCH);
		for (int time = 0; time < 2; time++) {
			chi_element e = { .column = { read }, .capacity = BATCH };
			int64_t n = 0;
			for (; chi_dataset_next(d, &e) == CHOIR_OK; n += BATCH) {
				assert_int_equal(e.examples, BATCH);
				assert_int_equal(read[0], n);
				assert_int_equal(read[BATCH - 1], n + BATCH - 1);
			}
			assert_in_range(n, large ? BATCH : 0, large ? N - BATCH : 0);
			char where[80];
			snprintf(where, sizeof where,
					PATH ": the gzip data are damaged before byte %zu: ", z.n - 4);
			assert_failure(CHOIR_CORRUPT, where);
			assert_next_fails(d, CHOIR_CORRUPT, where);
			assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
		}
		choir_dataset_free(d);
		free(z.data);
	}
	free(b.data);
}
#endif

TEST(a_file_cut_anywhere_is_an_error)
{
	static const choir_field number = { .name = "number", .dtype = CHOIR_I64 };
	bytes b = { NULL, 0, 0 };
	for (int64_t i = 0; i < 4; i++)
		put(&b, &i, 8);
	const size_t n = b.n;
	for (b.n = 0; b.n <= n; b.n++) {
		choir_dataset *d = open_bytes(&b, 1, &number, NULL);
		if (b.n % 8) {
			assert_refused(d, CHOIR_CORRUPT, "8*multiple");
			continue;
		}
		assert_numbers(d, (int64_t) b.n / 8, (int64_t[]){ 0, 1, 2, 3 });
		choir_dataset_free(d);
	}
	for (size_t cut = 1; cut < 8; cut++) {
		b.n = n - cut;
		bytes z = deflated(&b, 15);
		choir_dataset *d = open_bytes(&z, 1, &number,
				CHOIR_OPTIONS(choir_fixed_options, .compression = CHOIR_COMPRESSION_ZLIB));
#ifdef CHI_HAS_ZLIB
		pass p;
		read_pass(d, 3, &p);
		assert_int_equal(p.n, 3);
		assert_next_fails(d, CHOIR_CORRUPT, "record 3*8 bytes");
#endif
		choir_dataset_free(d);
		chi_error_clear();
		free(z.data);
	}
	b.n = 3;
	assert_refused(open_bytes(&b, 1, &number, CHOIR_OPTIONS(choir_fixed_options, .header = 4)),
			CHOIR_CORRUPT, PATH ":*3 bytes*4*header*8");
	free(b.data);
}

// Shorter than when it was looked at: what was read before is right.
TEST(a_file_cut_while_it_is_read_is_an_error)
{
	enum { N = 100000 };
	static const choir_field number = { .name = "number", .dtype = CHOIR_I64 };
	static int64_t numbers[N];
	for (int64_t i = 0; i < N; i++)
		numbers[i] = i;
	choir_dataset *d = choir_fixed_length_record_dataset_new(
			scratch_write(PATH, numbers, sizeof numbers), 1, &number, NULL);
	int64_t found, n = 0;
	chi_element e = { .column = { &found }, .capacity = 1 };
	while (n < 10 && chi_dataset_next(d, &e) == CHOIR_OK)
		assert_int_equal(found, n++);
	assert_int_equal(truncate(scratch_path(PATH), 12), 0);
	while (chi_dataset_next(d, &e) == CHOIR_OK)
		assert_int_equal(found, n++);
	assert_in_range(n, 10, N - 1);
	assert_next_fails(d, CHOIR_CORRUPT, PATH);
	choir_dataset_free(d);
}

TEST(steps_can_pass_over_records_of_several_files)
{
	static const choir_field number = { .name = "number", .dtype = CHOIR_I64 };
	for (int64_t file = 0; file < 3; file++) {
		bytes b = { NULL, 0, 0 };
		for (int64_t i = 0; i < file; i++)
			put(&b, &(int64_t){ 10 * file + i }, 8);
		save_bytes(file == 0 ? "r-0" : file == 1 ? "r-1" : "r-2", &b);
		free(b.data);
	}
	choir_dataset *d = choir_fixed_length_record_dataset_new("r-[0-2]", 1, &number, NULL);
	assert_numbers(d, NUMBERS(10, 20, 21));
	for (int64_t skip = 0; skip <= 4; skip++) {
		pass p;
		const choir_status status = chi_dataset_seek(d, 0, skip);
		if (skip == 4) {
			assert_int_not_equal(status, CHOIR_OK);
			chi_error_clear();
			continue;
		}
		assert_int_equal(status, CHOIR_OK);
		read_pass(d, 1, &p);
		assert_int_equal(p.n, skip < 3);
		assert_true(skip == 3 || p.number[0] == ((int64_t[]){ 10, 20, 21 })[skip]);
	}
	choir_dataset_free(d);
	d = choir_fixed_length_record_dataset_new("r-[0-2]", 1, &number, NULL);
	assert_int_equal(chi_dataset_shard_files(d, 2, 0), CHOIR_OK);
	assert_numbers(d, NUMBERS(20, 21));
	choir_dataset_free(d);
}

TEST(what_cannot_be_is_refused)
{
	const choir_field fields[] = { { .name = "x", .dtype = CHOIR_F32, .limit = 3 },
		{ .name = "x", .dtype = CHOIR_U8, .channels_first = true },
		{ .name = "x", .dtype = CHOIR_U8, .shape = { 1, { 0 } } },
		{ .dtype = CHOIR_U8, .shape = { 1, { 1ll << 40 } } }, { .dtype = CHOIR_U8 },
		{ .name = "x", .dtype = CHOIR_U8, .limit = -1 } };
	static const char *const texts[] = { "field 0, \"x\": a limit of 3 for f32", "rank 2 or more",
		"column \"x\": every dimension", "0 columns given", "0 columns given",
		"a limit of -1 for u8" };
	for (size_t i = 0; i < 6; i++)
		assert_refused(choir_fixed_length_record_dataset_new(PATH, 1, &fields[i], NULL),
				CHOIR_INVALID, texts[i]);
	const choir_field large[] = { { .name = "x", .dtype = CHOIR_U8 }, fields[3] };
	assert_refused(choir_fixed_length_record_dataset_new(PATH, 2, large, NULL), CHOIR_INVALID,
			"2*larger");
	assert_refused(choir_fixed_length_record_dataset_new(PATH, 0, fields, NULL), CHOIR_INVALID,
			"0*fields");
	assert_refused(
			choir_fixed_length_record_dataset_new(NULL, 1, large, NULL), CHOIR_INVALID, "neither");
	assert_refused(choir_fixed_length_record_dataset_new("none", 1, large, NULL), CHOIR_NOT_FOUND,
			"none");
	choir_fixed_options o = { .size = 1 };
	assert_refused(choir_fixed_length_record_dataset_new(PATH, 1, large, &o), CHOIR_INVALID,
			"fixed dataset:*options*1*CHOIR_OPTIONS");
	o = (choir_fixed_options){ .size = sizeof o, .header = -1 };
	assert_refused(
			choir_fixed_length_record_dataset_new(PATH, 1, large, &o), CHOIR_INVALID, "-1*header");
	o = (choir_fixed_options){ .size = sizeof o, .compression = 4 };
	assert_refused(choir_fixed_length_record_dataset_new(PATH, 1, large, &o), CHOIR_INVALID,
			"compression");
}

static choir_status read_number(void *user)
{
	static const choir_field number = { .name = "number", .dtype = CHOIR_I64 };
	int64_t value;
	(void) user;
	return read_to_end(choir_fixed_length_record_dataset_new("m-?", 1, &number, NULL),
			(chi_element){ .column = { &value }, .capacity = 1 });
}

TEST(allocations_may_fail)
{
	bytes b = { NULL, 0, 0 };
	put(&b, &(int64_t){ 5 }, 8);
	save_bytes("m-1", &b);
	free(b.data);
	assert_every_allocation(read_number, NULL);
}

TEST_GROUP(scratch_enter, scratch_leave)
