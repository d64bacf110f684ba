// TFRecord files: records and their checksums, plain and compressed; what is right is read
// right, and what is wrong in any byte is one error behind the examples that were right.
#include "data/elements.h"
#include "data/source/tfrecord/protos.h"
#include "data/source/scratch.h"

#include "base/alloc.h"
#include "base/status.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH "t.tfrecord"
static const choir_feature number_feature = { .name = "number", .dtype = CHOIR_I64 };

static bytes number_example(int64_t number)
{
	bytes features = { NULL, 0, 0 }, list = int64_list(1, &number);
	put_entry(&features, "number", INT64_LIST, &list);
	return example(&features);
}

// Records of the numbers 0, 1, ... n-1.
static bytes numbers(int64_t n)
{
	bytes b = { NULL, 0, 0 };
	for (int64_t i = 0; i < n; i++) {
		bytes content = number_example(i);
		put_record_of(&b, &content);
	}
	return b;
}

static choir_dataset *open_as(
		const bytes *b, choir_compression compression, choir_bad_record wrong)
{
	save_bytes(PATH, b);
	return choir_tfrecord_dataset_new(PATH,
			CHOIR_OPTIONS(choir_tfrecord_options, .n = 1, .features = &number_feature,
					.compression = compression, .wrong = wrong));
}

static choir_dataset *open_bytes(const bytes *b)
{
	return open_as(b, CHOIR_COMPRESSION_AUTO, CHOIR_BAD_RECORD_ERROR);
}

// Reads to the end or a failure: how many examples there were, which must be 0, 1, ... in order.
static int64_t read_numbers(choir_dataset *d, choir_status *status)
{
	pass p;
	read_pass(d, MAX_NUMBERS, &p);
	for (int64_t i = 0; i < p.n; i++)
		assert_int_equal(p.number[i], i);
	*status = p.status;
	return p.n;
}

TEST(records_are_read_in_order)
{
	bytes b = numbers(5);
	choir_dataset *d = open_bytes(&b);
	for (int i = 0; i < 2; i++)
		assert_numbers(d, NUMBERS(0, 1, 2, 3, 4));
	choir_dataset_free(d);
	assert_numbers(
			d = choir_dataset_shard(choir_dataset_skip(open_bytes(&b), 1), 2, 1), NUMBERS(2, 4));
	choir_dataset_free(d);
	assert_sizes(d = choir_dataset_batch(open_bytes(&b), 3), NUMBERS(3, 2));
	choir_dataset_free(d);
	b.n = 0;
	assert_numbers(d = open_bytes(&b), 0, NULL);
	choir_dataset_free(d);
	free(b.data);
}

TEST(a_feature_may_be_in_several_columns)
{
	static const int64_t none = 77;
	const choir_feature twice[] = {
		{ .name = "number", .as = "a", .dtype = CHOIR_I64 },
		{ .name = "number", .as = "b", .dtype = CHOIR_I32 },
		{ .name = "number", .dtype = CHOIR_I64, .missing = &none },
	};
	bytes b = numbers(3);
	save_bytes("twice.rec", &b);
	choir_dataset *d = choir_tfrecord_dataset_new(
			"twice.rec", CHOIR_OPTIONS(choir_tfrecord_options, .n = 3, .features = twice));
	assert_string_equal(pass_in_words(d), "0 0 0\n1 1 1\n2 2 2\n");
	choir_dataset_free(d);
	free(b.data);
}

TEST(files_come_in_the_order_of_their_names)
{
	for (int i = 0; i < 3; i++) {
		bytes b = { NULL, 0, 0 }, content = number_example(i);
		put_record_of(&b, &content);
		save_bytes(i == 0 ? "p-B.rec" : i == 1 ? "p-a.rec" : "p-b.rec", &b);
		free(b.data);
	}
	const choir_tfrecord_options *o =
			CHOIR_OPTIONS(choir_tfrecord_options, .n = 1, .features = &number_feature);
	choir_dataset *d = choir_tfrecord_dataset_new("p-?.rec", o);
	assert_numbers(d, NUMBERS(0, 1, 2)); // by bytes: capitals first
	choir_dataset_free(d);
	choir_tfrecord_options list = *o;
	choir_files *files = choir_files_new(2, (const char *[]){ "p-b.rec", "p-[Ba].rec" });
	list.files = files;
	d = choir_tfrecord_dataset_new(NULL, &list);
	choir_files_free(files);
	assert_numbers(d, NUMBERS(2, 0, 1));
	choir_dataset_free(d);
	// A name that exists is no pattern.
	bytes b = numbers(2);
	save_bytes("p-[Ba].rec", &b);
	d = choir_tfrecord_dataset_new("p-[Ba].rec", o);
	assert_numbers(d, NUMBERS(0, 1));
	choir_dataset_free(d);
	free(b.data);
	assert_int_equal(unlink("p-[Ba].rec"), 0);
	assert_refused(choir_tfrecord_dataset_new("q-*.rec", o), CHOIR_NOT_FOUND,
			"q-*.rec: no file has this name");
	list.files = files = choir_files_new(2, (const char *[]){ "p-B.rec", "q.rec" });
	assert_refused(choir_tfrecord_dataset_new("p-B.rec", &list), CHOIR_INVALID,
			"tfrecord dataset:*given");
	d = choir_tfrecord_dataset_new(NULL, &list);
	choir_files_free(files);
	assert_non_null(d);
	choir_status status;
	assert_int_equal(read_numbers(d, &status), 1);
	assert_int_equal(status, CHOIR_NOT_FOUND);
	assert_failure(CHOIR_NOT_FOUND, "q.rec");
	choir_dataset_free(d);
}

static void save_numbers_in_files(int count)
{
	for (int file = 0; file < count; file++) {
		char path[] = "s-0.rec";
		bytes b = { NULL, 0, 0 };
		path[2] = (char) ('0' + file);
		for (int i = 0; i < 3; i++) {
			bytes content = number_example(3 * file + i);
			put_record_of(&b, &content);
		}
		save_bytes(path, &b);
		free(b.data);
	}
}

// Files go to workers in turn, and each worker needs one.
// spec: B15
TEST(files_are_shared_out_among_workers)
{
	save_numbers_in_files(3);
	for (int worker = 0; worker < 2; worker++) {
		choir_dataset *d = choir_tfrecord_dataset_new("s-[012].rec", NULL);
		assert_int_equal(chi_dataset_shard_files(d, 2, worker), CHOIR_OK);
		if (worker == 0)
			assert_numbers(d, NUMBERS(0, 1, 2, 6, 7, 8));
		else
			assert_numbers(d, NUMBERS(3, 4, 5));
		choir_dataset_free(d);
	}
	choir_dataset *d = choir_tfrecord_dataset_new("s-[012].rec", NULL);
	assert_int_equal(chi_dataset_shard_files(d, 4, 0), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "tfrecord dataset:*3*4 workers*1");
	assert_numbers(d, NUMBERS(0, 1, 2, 3, 4, 5, 6, 7, 8)); // nothing has changed
	choir_dataset_free(d);
}

TEST(an_iterator_goes_to_any_place)
{
	save_numbers_in_files(3);
	choir_dataset *d = choir_tfrecord_dataset_new("s-[012].rec", NULL);
	for (int64_t place = 9; place >= 0; place--) {
		pass p;
		assert_int_equal(chi_dataset_seek(d, place % 2, place), CHOIR_OK);
		read_pass(d, MAX_NUMBERS, &p);
		assert_int_equal(p.n, 9 - place);
		for (int64_t i = 0; i < p.n; i++)
			assert_int_equal(p.number[i], place + i);
	}
	assert_int_not_equal(chi_dataset_seek(d, 0, 10), CHOIR_OK);
	assert_failure(choir_error_status(), "tfrecord");
	choir_dataset_free(d);
}

TEST(a_file_cut_anywhere_is_an_error_behind_what_is_whole)
{
	bytes b = numbers(4);
	const size_t record = b.n / 4, n = b.n;
	for (b.n = 0; b.n < n; b.n++) {
		choir_dataset *d = open_bytes(&b);
		choir_status status;
		char text[128];
		assert_int_equal(read_numbers(d, &status), b.n / record);
		if (b.n % record == 0) {
			assert_int_equal(status, CHOIR_END);
		} else {
			const size_t there = b.n % record;
			snprintf(text, sizeof text,
					PATH ": record %zu at byte %zu: its %s %zu bytes, the file has %zu more",
					b.n / record, b.n - there, there < 12 ? "header has" : "data have",
					there < 12 ? 12 : record - 16, there < 12 ? there : there - 12);
			assert_next_fails(d, CHOIR_CORRUPT, text);
		}
		choir_dataset_free(d);
	}
	free(b.data);
}

TEST(a_flip_of_any_bit_is_an_error)
{
	bytes b = numbers(3);
	const size_t record = b.n / 3;
	for (size_t bit = 0; bit < 8 * b.n; bit++) {
		b.data[bit / 8] ^= (unsigned char) (1u << bit % 8);
		choir_dataset *d = open_as(&b, CHOIR_COMPRESSION_NONE, CHOIR_BAD_RECORD_ERROR);
		choir_status status;
		char text[128];
		assert_int_equal(read_numbers(d, &status), bit / 8 / record);
		const size_t at = bit / 8 % record;
		snprintf(text, sizeof text, PATH ": record %zu at byte %zu: the checksum of its %s is ",
				bit / 8 / record, bit / 8 - at, at < 12 ? "length" : "data");
		assert_next_fails(d, CHOIR_CORRUPT, text);
		choir_dataset_free(d);
		d = open_as(&b, CHOIR_COMPRESSION_AUTO, CHOIR_BAD_RECORD_ERROR);
		if (d)
			read_numbers(d, &status);
		assert_true(!d || status == CHOIR_CORRUPT);
		assert_failure(CHOIR_CORRUPT, PATH);
		choir_dataset_free(d);
		b.data[bit / 8] ^= (unsigned char) (1u << bit % 8);
	}
	free(b.data);
}

TEST(bad_records_are_skipped_and_counted_if_asked_for)
{
	bytes b = numbers(6);
	const size_t record = b.n / 6;
	b.data[1 * record + 20] ^= 1; // data
	b.data[3 * record + 13] ^= 1;
	choir_dataset *d = open_as(&b, CHOIR_COMPRESSION_AUTO, CHOIR_BAD_RECORD_SKIP);
	for (int i = 0; i < 2; i++) {
		pass p;
		read_pass(d, MAX_NUMBERS, &p);
		assert_int_equal(p.n, 4);
		assert_int_equal(p.number[1], 2);
		assert_int_equal(p.number[3], 5);
		assert_int_equal(choir_dataset_skipped(d), 2);
		assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
		assert_int_equal(choir_dataset_skipped(d), 0);
	}
	// Skipping by a later step counts the same.
	assert_numbers(d = choir_dataset_skip(d, 2), NUMBERS(4, 5));
	choir_dataset_free(d);
	b.data[4 * record] ^= 1; // a length: where the next record is nobody knows
	assert_numbers(d = open_as(&b, CHOIR_COMPRESSION_AUTO, CHOIR_BAD_RECORD_SKIP), NUMBERS(0, 2));
	pass p;
	read_pass(d, MAX_NUMBERS, &p);
	assert_int_equal(choir_dataset_skipped(d), 3);
	choir_dataset_free(d);
	free(b.data);
	assert_int_equal(choir_dataset_skipped(NULL), 0);
}

TEST(lengths_that_lie_ask_for_no_memory)
{
	static const uint64_t lengths[] = { UINT64_MAX, UINT64_MAX - 3, UINT64_MAX - 16, 1ull << 63,
		(1ull << 63) - 1, 1ull << 40, 70000, 17 };
	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
		bytes b = { NULL, 0, 0 };
		put(&b, &lengths[i], 8);
		const uint32_t crc = slow_masked_crc(b.data, 8);
		put(&b, &crc, 4);
		put(&b, "12345678901234567890", 20);
		bytes z = deflated(&b, 31);
		for (int packed = 0; packed < 2; packed++) {
			choir_dataset *d = open_bytes(packed ? &z : &b);
			const uint64_t before = chi_alloc_count();
			assert_next_fails(d, CHOIR_CORRUPT, PATH ": record 0 at byte 0: ");
			assert_in_range(chi_alloc_count() - before, 0, 8); // opening, and no more
			choir_dataset_free(d);
		}
		free(b.data);
		free(z.data);
	}
}

TEST(records_larger_than_a_block_are_read)
{
	bytes b = { NULL, 0, 0 };
	const size_t sizes[] = { 10, 262144 - 16, 262144, 1, 700000, 300000, 5 };
	const size_t count = sizeof sizes / sizeof sizes[0];
	unsigned char *data = malloc(700000 + 8), *read = malloc(700000);
	for (size_t i = 0; i < 700000 + 8; i++)
		data[i] = (unsigned char) (i * i >> 7);
	for (size_t i = 0; i < count; i++)
		put_record(&b, data + i, sizes[i]);
	bytes z = deflated(&b, 15);
	const choir_feature f = {
		.name = "x", .dtype = CHOIR_U8, .shape = { 1, { 700000 } }, .pad = true
	};
	for (int packed = 0; packed < 2; packed++) {
		save_bytes(PATH, packed ? &z : &b);
		choir_dataset *d = choir_tfrecord_dataset_new(
				PATH, CHOIR_OPTIONS(choir_tfrecord_options, .raw = true, .n = 1, .features = &f));
		chi_element e = { .column = { read }, .capacity = 1 };
		for (size_t i = 0; i < count; i++) {
			assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
			assert_memory_equal(read, data + i, sizes[i]);
			assert_true(sizes[i] == 700000 || read[sizes[i]] == 0);
		}
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_END);
		choir_dataset_free(d);
	}
	free(z.data);
	free(b.data);
	free(data);
	free(read);
}

TEST(raw_records_are_one_value_of_bytes)
{
	bytes b = { NULL, 0, 0 };
	put_record(&b, "abcd", 4);
	put_record(&b, "efgh", 4);
	put_record(&b, "ijk", 3);
	save_bytes(PATH, &b);
	char read[5] = "";
	chi_element e = { .column = { read }, .capacity = 1 };
	choir_dataset *d =
			choir_tfrecord_dataset_new(PATH, CHOIR_OPTIONS(choir_tfrecord_options, .raw = true));
	assert_string_equal(chi_dataset_spec(d)->column[0].name, "record");
	assert_int_equal(chi_dataset_spec(d)->column[0].shape.dim[0], 4);
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	assert_string_equal(read, "abcd");
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	assert_string_equal(read, "efgh");
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_CORRUPT);
	assert_failure(
			CHOIR_CORRUPT, PATH ": record 2 at byte 40: feature \"record\": 3 bytes, 4 needed");
	choir_dataset_free(d);
	free(b.data);
}

#ifdef CHI_HAS_ZLIB

TEST(compressed_files_are_read)
{
	bytes b = numbers(1000);
	for (int windows = 15; windows <= 31; windows += 16) {
		bytes z = deflated(&b, windows);
		const choir_compression named =
				windows == 15 ? CHOIR_COMPRESSION_ZLIB : CHOIR_COMPRESSION_GZIP;
		for (int i = 0; i < 2; i++) {
			choir_dataset *d =
					open_as(&z, i ? named : CHOIR_COMPRESSION_AUTO, CHOIR_BAD_RECORD_ERROR);
			choir_status status;
			for (int again = 0; again < 2; again++) {
				assert_int_equal(read_numbers(d, &status), 1000);
				assert_int_equal(status, CHOIR_END);
				assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
			}
			choir_dataset_free(d);
		}
		free(z.data);
	}
	// A plain file whose first length looks like zlib's, and one like gzip's.
	for (size_t n = 0x0178; n <= 0x8b1f; n += 0x8b1f - 0x0178) {
		char *data = calloc(n, 1), *read = malloc(n);
		bytes plain = { NULL, 0, 0 };
		put_record(&plain, data, n);
		save_bytes(PATH, &plain);
		choir_dataset *d = choir_tfrecord_dataset_new(
				PATH, CHOIR_OPTIONS(choir_tfrecord_options, .raw = true));
		chi_element e = { .column = { read }, .capacity = 1 };
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
		choir_dataset_free(d);
		free(plain.data);
		free(data);
		free(read);
	}
	free(b.data);
}

TEST(a_compressed_file_cut_or_flipped_anywhere_is_an_error)
{
	bytes b = numbers(3);
	for (int windows = 15; windows <= 31; windows += 16) {
		bytes z = deflated(&b, windows);
		const size_t n = z.n;
		choir_status status;
		for (z.n = 1; z.n < n; z.n++) {
			choir_dataset *d = open_bytes(&z);
			read_numbers(d, &status);
			assert_failure(CHOIR_CORRUPT, PATH ":*byte");
			assert_int_equal(status, CHOIR_CORRUPT);
			choir_dataset_free(d);
		}
		size_t harmless = 0;
		for (size_t bit = 0; bit < 8 * n; bit++) {
			z.data[bit / 8] ^= (unsigned char) (1u << bit % 8);
			choir_dataset *d = open_bytes(&z);
			const int64_t read = d ? read_numbers(d, &status) : 0;
			if (d && status == CHOIR_END) {
				assert_int_equal(read, 3);
				harmless++; // time and system in gzip's header, bits that fill a byte up
			} else {
				assert_failure(CHOIR_CORRUPT, PATH ": ");
			}
			choir_dataset_free(d);
			z.data[bit / 8] ^= (unsigned char) (1u << bit % 8);
		}
		assert_in_range(harmless, 0, windows == 15 ? 8 : 8 * 7);
		free(z.data);
	}
	free(b.data);
}

#endif

TEST(what_cannot_be_is_refused)
{
	bytes b = numbers(1);
	save_bytes(PATH, &b);
	free(b.data);
	assert_refused(
			choir_tfrecord_dataset_new(NULL, NULL), CHOIR_INVALID, "tfrecord dataset:*neither");
	assert_refused(choir_tfrecord_dataset_new("none", NULL), CHOIR_NOT_FOUND, "none");
	assert_refused(choir_tfrecord_dataset_new(".", NULL), CHOIR_IO, "directory");
	choir_tfrecord_options o = { .size = 4 };
	assert_refused(choir_tfrecord_dataset_new(PATH, &o), CHOIR_INVALID,
			"tfrecord dataset:*options*4*CHOIR_OPTIONS");
	o = (choir_tfrecord_options){ .size = sizeof o, .n = 33, .features = &number_feature };
	assert_refused(choir_tfrecord_dataset_new(PATH, &o), CHOIR_INVALID, "33*0*32");
	o = (choir_tfrecord_options){
		.size = sizeof o, .n = 2, .raw = true, .features = &number_feature
	};
	assert_refused(choir_tfrecord_dataset_new(PATH, &o), CHOIR_INVALID, "2*0*1");
	o = (choir_tfrecord_options){ .size = sizeof o, .compression = 9 };
	assert_refused(choir_tfrecord_dataset_new(PATH, &o), CHOIR_INVALID, "compression");
	o = (choir_tfrecord_options){ .size = sizeof o, .wrong = 2 };
	assert_refused(choir_tfrecord_dataset_new(PATH, &o), CHOIR_INVALID,
			"CHOIR_BAD_RECORD_ERROR*CHOIR_BAD_RECORD_SKIP");
	const choir_feature nameless = { .dtype = CHOIR_F32 };
	o = (choir_tfrecord_options){ .size = sizeof o, .n = 1, .features = &nameless };
	assert_refused(
			choir_tfrecord_dataset_new(PATH, &o), CHOIR_INVALID, "tfrecord dataset:*feature 0");
}

static choir_status read_three(void *o)
{
	choir_dataset *d = choir_tfrecord_dataset_new("m-?.rec", o);
	choir_status status = d ? CHOIR_OK : choir_error_status();
	if (d)
		assert_true(read_numbers(d, &status) == 3 || status != CHOIR_END);
	choir_dataset_free(d);
	return status;
}

TEST(allocations_may_fail)
{
	bytes b = numbers(3), z = deflated(&b, 31);
	const int64_t none = -1;
	const choir_feature f = { .name = "number", .as = "n", .dtype = CHOIR_I64, .missing = &none };
	choir_tfrecord_options o = { .size = sizeof o, .n = 1, .features = &f };
	for (int way = 0; way < 4; way++) {
		save_bytes("m-1.rec", way % 2 ? &z : &b);
		assert_every_allocation(read_three, way / 2 ? &o : NULL);
	}
	free(b.data);
	free(z.data);
}

TEST_GROUP(scratch_enter, scratch_leave)
