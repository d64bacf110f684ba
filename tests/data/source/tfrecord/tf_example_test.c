// tf.train.Example: everything that protocol buffers allow is read, into columns of every dtype
// that takes it; what does not fit names the feature; and what is written is read back.
#include "data/elements.h"
#include "data/source/tfrecord/protos.h"
#include "data/source/scratch.h"

#include "base/status.h"
#include "data/source/tfrecord/tfrecord.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

// A feature of a name, dtype and number of elements; behind them its bytes and what else is to
// be set.
#define FEATURE(text, type, count, ...) \
	{ \
		.name = text, .name_bytes = sizeof text - 1, .dtype = type, .elements = count, \
		.bytes = __VA_ARGS__ \
	}

static choir_status read_one(bytes *b, const chi_feature *f, void *out)
{
	return chi_example_read(b->data, b->n, 1, f, (void *[]){ out });
}

// An Example with one feature "x"; frees list.
static bytes with_x(unsigned kind, bytes list)
{
	bytes features = { NULL, 0, 0 };
	put_entry(&features, "x", kind, &list);
	return example(&features);
}

static void assert_x_refused(bytes b, const chi_feature *f, const char *text)
{
	char out[64];
	assert_int_equal(read_one(&b, f, out), CHOIR_CORRUPT);
	assert_failure(CHOIR_CORRUPT, text);
	assert_int_equal(read_one(&b, f, NULL), CHOIR_CORRUPT); // unwanted is no less wrong
	assert_failure(CHOIR_CORRUPT, text);
	free(b.data);
}

TEST(features_become_columns_in_any_order)
{
	bytes features = { NULL, 0, 0 };
	bytes f = float_list(2, (float[]){ 1.5f, -2 }), i = int64_list(1, (int64_t[]){ -7 }),
		  b = bytes_list(1, "abc", 3), other = float_list(0, NULL);
	put_entry(&features, "image", BYTES_LIST, &b);
	put_entry(&features, "nobody asks", FLOAT_LIST, &other);
	put_entry(&features, "label", INT64_LIST, &i);
	put_entry(&features, "weights", FLOAT_LIST, &f);
	bytes e = example(&features);
	const chi_feature asked[] = { FEATURE("weights", CHOIR_F32, 2, 8),
		FEATURE("label", CHOIR_I64, 1, 8), FEATURE("image", CHOIR_U8, 3, 3) };
	float weights[2];
	int64_t label;
	char image[4] = "";
	void *out[] = { weights, &label, image };
	assert_int_equal(chi_example_read(e.data, e.n, 3, asked, out), CHOIR_OK);
	assert_true(weights[0] == 1.5f && weights[1] == -2);
	assert_int_equal(label, -7);
	assert_string_equal(image, "abc");
	for (int left_out = 0; left_out < 3; left_out++) {
		void *some[] = { weights, &label, image };
		some[left_out] = NULL;
		assert_int_equal(chi_example_read(e.data, e.n, 3, asked, some), CHOIR_OK);
	}
	free(e.data);
}

// A list may be packed, or not, or both, and come in parts that are joined.
TEST(lists_are_joined_however_they_come)
{
	bytes list = float_list(2, (float[]){ 1, 2 }), more = float_list(1, (float[]){ 4 });
	put_f32_field(&list, 1, 3);
	put_number_field(&list, 9, 5); // unknown
	put(&list, more.data, more.n);
	free(more.data);
	bytes b = with_x(FLOAT_LIST, list);
	const chi_feature f = FEATURE("x", CHOIR_F32, 4, 16);
	float values[4];
	assert_int_equal(read_one(&b, &f, values), CHOIR_OK);
	assert_memory_equal(values, ((float[]){ 1, 2, 3, 4 }), sizeof values);
	free(b.data);

	list = int64_list(1, (int64_t[]){ INT64_MIN });
	put_number_field(&list, 1, 300);
	b = with_x(INT64_LIST, list);
	const chi_feature g = FEATURE("x", CHOIR_I64, 2, 16);
	int64_t numbers[2];
	assert_int_equal(read_one(&b, &g, numbers), CHOIR_OK);
	assert_true(numbers[0] == INT64_MIN && numbers[1] == 300);
	free(b.data);

	// Two messages of one field are one: features, an entry's value, a feature's list.
	bytes value = { NULL, 0, 0 }, entry = { NULL, 0, 0 }, key = { NULL, 0, 0 };
	put(&key, "x", 1);
	for (int i = 0; i < 2; i++) {
		list = bytes_list(1, i ? "cd" : "ab", 2);
		put_field(&value, BYTES_LIST, &list);
		put_field(&entry, 2, &value);
		value = (bytes){ NULL, 0, 0 };
	}
	put_field(&entry, 1, &key); // behind its value
	bytes features = { NULL, 0, 0 }, empty = { NULL, 0, 0 };
	put_field(&features, 1, &entry);
	b = example(&features);
	put_field(&b, 1, &empty);
	const chi_feature h = FEATURE("x", CHOIR_U8, 4, 4);
	char text[5] = "";
	assert_int_equal(read_one(&b, &h, text), CHOIR_OK);
	assert_string_equal(text, "abcd");
	free(b.data);
}

TEST(the_last_of_several_counts)
{
	bytes features = { NULL, 0, 0 };
	bytes a = int64_list(1, (int64_t[]){ 1 }), b = int64_list(1, (int64_t[]){ 2 });
	put_entry(&features, "x", INT64_LIST, &a);
	put_entry(&features, "x", INT64_LIST, &b);
	bytes e = example(&features);
	const chi_feature f = FEATURE("x", CHOIR_I64, 1, 8);
	int64_t value;
	assert_int_equal(read_one(&e, &f, &value), CHOIR_OK);
	assert_int_equal(value, 2);
	free(e.data);
	// Of two kinds in one feature: bytes that are 8 long fit i64 as well.
	bytes feature = { NULL, 0, 0 }, entry = { NULL, 0, 0 }, key = { NULL, 0, 0 };
	features = (bytes){ NULL, 0, 0 };
	a = bytes_list(1, "12345678", 8);
	b = int64_list(1, (int64_t[]){ 3 });
	put_field(&feature, BYTES_LIST, &a);
	put_field(&feature, INT64_LIST, &b);
	put(&key, "x", 1);
	put_field(&entry, 1, &key);
	put_field(&entry, 2, &feature);
	put_field(&features, 1, &entry);
	e = example(&features);
	assert_int_equal(read_one(&e, &f, &value), CHOIR_OK);
	assert_int_equal(value, 3);
	free(e.data);
}

// Unknown fields of every wire type, groups in groups among them.
TEST(what_is_unknown_is_passed_over)
{
	static const unsigned char unknown[] = { 0x78, 0x96, 0x01, // 15: a number
		0x79, 1, 2, 3, 4, 5, 6, 7, 8, 0x7d, 1, 2, 3, 4, 0x7a, 2, 9, 9, // 64, 32, bytes
		0x7b, 0x08, 1, 0x83, 0x01, 0x84, 0x01, 0x7c }; // a group with a number and a group in it
	bytes b = { NULL, 0, 0 }, e = with_x(INT64_LIST, int64_list(1, (int64_t[]){ 5 }));
	put(&b, unknown, sizeof unknown);
	put(&b, e.data, e.n);
	put(&b, unknown, sizeof unknown);
	const chi_feature f = FEATURE("x", CHOIR_U8, 1, 1);
	unsigned char value = 0;
	assert_int_equal(read_one(&b, &f, &value), CHOIR_OK);
	assert_int_equal(value, 5);
	b.data[sizeof unknown - 1] = 0x74; // the group ends as another
	assert_int_equal(read_one(&b, &f, &value), CHOIR_CORRUPT);
	assert_failure(CHOIR_CORRUPT, "byte 21:*group");
	b.n = 0;
	for (int i = 0; i < 40; i++)
		put(&b, "\x0b", 1);
	assert_int_equal(read_one(&b, &f, &value), CHOIR_CORRUPT);
	assert_failure(CHOIR_CORRUPT, "groups");
	free(b.data);
	free(e.data);
}

TEST(values_must_fit_their_dtype)
{
	const chi_feature i32 = FEATURE("x", CHOIR_I32, 2, 8), u8 = FEATURE("x", CHOIR_U8, 2, 2),
					  flag = FEATURE("x", CHOIR_BOOL, 2, 2), f32 = FEATURE("x", CHOIR_F32, 2, 8);
	int32_t numbers[2];
	bytes b = with_x(INT64_LIST, int64_list(2, (int64_t[]){ INT32_MIN, INT32_MAX }));
	assert_int_equal(read_one(&b, &i32, numbers), CHOIR_OK);
	assert_true(numbers[0] == INT32_MIN && numbers[1] == INT32_MAX);
	assert_x_refused(b, &u8, "feature \"x\": value 0 is -2147483648, u8 holds 0 to 255");
	assert_x_refused(with_x(INT64_LIST, int64_list(2, (int64_t[]){ 0, 1ll << 31 })), &i32,
			"feature \"x\": value 1 is 2147483648, i32 holds -2147483648 to 2147483647");
	assert_x_refused(with_x(INT64_LIST, int64_list(2, (int64_t[]){ 1, 2 })), &flag,
			"feature \"x\": value 1 is 2, bool holds 0 to 1");
	assert_x_refused(with_x(BYTES_LIST, bytes_list(1, "\x01\x02", 2)), &flag,
			"feature \"x\": byte 1 is 2*0 or 1");
	assert_x_refused(with_x(INT64_LIST, int64_list(2, (int64_t[]){ 1, 2 })), &f32,
			"feature \"x\":*int64*f32*i64, i32, u8 or bool needed");
	assert_x_refused(with_x(FLOAT_LIST, float_list(2, (float[]){ 1, 2 })), &i32,
			"feature \"x\":*float*i32*f32 needed");
	// Bytes are any dtype, little-endian.
	float values[2];
	b = with_x(BYTES_LIST, bytes_list(2, "\x00\x00\x80\x3f\x00\x00\x00\xc0", 4));
	assert_int_equal(read_one(&b, &f32, values), CHOIR_OK);
	assert_true(values[0] == 1 && values[1] == -2);
	free(b.data);
}

TEST(values_must_be_as_many_as_the_shape_has)
{
	const chi_feature f32 = FEATURE("x", CHOIR_F32, 3, 12), u8 = FEATURE("x", CHOIR_U8, 4, 4),
					  i32 = FEATURE("x", CHOIR_I32, 3, 12);
	assert_x_refused(with_x(FLOAT_LIST, float_list(2, (float[]){ 1, 2 })), &f32,
			"feature \"x\": 2 values, 3 needed");
	assert_x_refused(with_x(FLOAT_LIST, float_list(4, (float[]){ 1, 2, 3, 4 })), &f32,
			"feature \"x\": 4 values, 3 needed");
	assert_x_refused(with_x(INT64_LIST, int64_list(5, (int64_t[]){ 1, 2, 3, 4, 5 })), &i32,
			"feature \"x\": 5 values, 3 needed");
	assert_x_refused(with_x(FLOAT_LIST, float_list(0, NULL)), &f32, "0 values, 3 needed");
	assert_x_refused(with_x(BYTES_LIST, bytes_list(1, "abcde", 5)), &u8,
			"feature \"x\": 5 bytes, 4 needed");
	bytes list = bytes_list(1, "abc", 3), more = bytes_list(1, "d", 1);
	put(&list, more.data, more.n);
	free(more.data);
	assert_x_refused(with_x(BYTES_LIST, list), &u8, "feature \"x\": value 1*1 bytes*3");
}

TEST(short_examples_are_filled_up_if_asked_for)
{
	const chi_feature f32 = FEATURE("x", CHOIR_F32, 3, 12, .pad = true),
					  u8 = FEATURE("x", CHOIR_U8, 4, 4, .pad = true),
					  i64 = FEATURE("x", CHOIR_I64, 2, 16, .pad = true);
	float values[3] = { 9, 9, 9 };
	bytes b = with_x(FLOAT_LIST, float_list(1, (float[]){ 1 }));
	assert_int_equal(read_one(&b, &f32, values), CHOIR_OK);
	assert_memory_equal(values, ((float[]){ 1, 0, 0 }), sizeof values);
	free(b.data);
	char text[4] = "????";
	b = with_x(BYTES_LIST, bytes_list(1, "ab", 2));
	assert_int_equal(read_one(&b, &u8, text), CHOIR_OK);
	assert_memory_equal(text, "ab\0\0", 4);
	free(b.data);
	int64_t numbers[2] = { 9, 9 };
	b = with_x(INT64_LIST, int64_list(0, NULL));
	assert_int_equal(read_one(&b, &i64, numbers), CHOIR_OK);
	assert_true(numbers[0] == 0 && numbers[1] == 0);
	free(b.data);
	assert_x_refused(with_x(BYTES_LIST, bytes_list(1, "abcde", 5)), &u8,
			"feature \"x\": 5 bytes, at most 4 needed");
	assert_x_refused(with_x(BYTES_LIST, bytes_list(2, "abcd", 2)), &u8,
			"feature \"x\": 2 values of bytes*at most 1");
	assert_x_refused(with_x(FLOAT_LIST, float_list(4, (float[]){ 1, 2, 3, 4 })), &f32,
			"feature \"x\": 4 values, at most 3 needed");
}

TEST(a_missing_feature_has_a_default_or_is_an_error)
{
	const int64_t nine = 9;
	const chi_feature with = FEATURE("x", CHOIR_I64, 1, 8, .missing = &nine),
					  without = FEATURE("x", CHOIR_I64, 1, 8);
	bytes features = { NULL, 0, 0 }, a = float_list(1, (float[]){ 1 }), b = int64_list(0, NULL);
	put_entry(&features, "y", FLOAT_LIST, &a);
	put_entry(&features, "line\nend", INT64_LIST, &b);
	bytes e = example(&features), nothing = { NULL, 0, 0 };
	int64_t value = 0;
	assert_int_equal(read_one(&e, &with, &value), CHOIR_OK);
	assert_int_equal(value, 9);
	assert_int_equal(read_one(&e, &with, NULL), CHOIR_OK);
	assert_int_equal(read_one(&e, &without, &value), CHOIR_NOT_FOUND);
	assert_failure(CHOIR_NOT_FOUND, "no feature \"x\"*\"y\", \"line\\x0aend\"");
	assert_int_equal(read_one(&nothing, &without, &value), CHOIR_NOT_FOUND);
	assert_failure(CHOIR_NOT_FOUND, "feature \"x\"*no features");
	free(e.data);
	// A feature that is there and holds nothing, not even an empty list, is missing too.
	bytes entry = { NULL, 0, 0 }, key = { NULL, 0, 0 };
	features = (bytes){ NULL, 0, 0 };
	put(&key, "x", 1);
	put_field(&entry, 1, &key);
	put_field(&features, 1, &entry);
	e = example(&features);
	value = 0;
	assert_int_equal(read_one(&e, &with, &value), CHOIR_OK);
	assert_int_equal(value, 9);
	free(e.data);
}

// Without checksums in front of it: either an error, or values.
TEST(cut_and_damaged_examples_are_errors_or_other_examples)
{
	bytes features = { NULL, 0, 0 };
	bytes f = float_list(2, (float[]){ 1.5f, -2 }), i = int64_list(2, (int64_t[]){ -7, 300 }),
		  b = bytes_list(1, "abc", 3);
	put_entry(&features, "f", FLOAT_LIST, &f);
	put_entry(&features, "i", INT64_LIST, &i);
	put_entry(&features, "b", BYTES_LIST, &b);
	bytes e = example(&features);
	const chi_feature asked[] = { FEATURE("f", CHOIR_F32, 2, 8), FEATURE("i", CHOIR_I64, 2, 16),
		FEATURE("b", CHOIR_U8, 3, 3) };
	float floats[2];
	int64_t numbers[2];
	char text[3];
	void *out[] = { floats, numbers, text };
	for (size_t n = 0; n < e.n; n++) {
		unsigned char *cut = malloc(n ? n : 1); // so that reading beyond it is seen
		memcpy(cut, e.data, n);
		assert_int_not_equal(chi_example_read(cut, n, 3, asked, out), CHOIR_OK);
		assert_failure(choir_error_status(), n ? "byte " : "no feature");
		free(cut);
	}
	for (size_t bit = 0; bit < 8 * e.n; bit++) {
		e.data[bit / 8] ^= (unsigned char) (1u << bit % 8);
		if (chi_example_read(e.data, e.n, 3, asked, out) != CHOIR_OK) {
			const bool at_byte = text_holds(choir_error(), "byte");
			assert_failure(choir_error_status(), at_byte ? "byte" : "feature");
		}
		e.data[bit / 8] ^= (unsigned char) (1u << bit % 8);
	}
	free(e.data);
}

TEST(malformed_examples_say_where)
{
	static const struct {
		const char *text, *data;
		size_t n;
	} cases[] = {
		{ "byte 0: no field begins here", "\x80", 1 },
		{ "byte 0: no field begins here", "\x07", 1 }, // number 0
		{ "byte 0: no field begins here", "\xff\xff\xff\xff\xff\x01", 6 },
		{ "byte 0:*field longer",
				"\x0a\x05"
				"abc",
				5 },
		{ "byte 0:*field longer",
				"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
				"a",
				12 },
		{ "byte 0:*number", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12 },
		{ "byte 0: 8 bytes",
				"\x09"
				"1234567",
				8 },
		{ "byte 0: 4 bytes",
				"\x0d"
				"123",
				4 },
		{ "byte 0: a group does not end", "\x1b", 1 },
		{ "byte 0:*end of a group", "\x1c", 1 },
		{ "byte 0:*unknown type", "\x0e", 1 },
		{ "byte 2:*field longer", "\x0a\x02\x0a\x05", 4 },
	};
	const chi_feature f = FEATURE("x", CHOIR_I64, 1, 8);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		bytes b = { NULL, 0, 0 };
		put(&b, cases[i].data, cases[i].n);
		int64_t value;
		assert_int_equal(read_one(&b, &f, &value), CHOIR_CORRUPT);
		assert_failure(CHOIR_CORRUPT, cases[i].text);
		free(b.data);
	}
	bytes list = { NULL, 0, 0 }, packed = { NULL, 0, 0 };
	put(&packed, "12345", 5);
	put_field(&list, 1, &packed);
	const chi_feature g = FEATURE("x", CHOIR_F32, 1, 4);
	assert_x_refused(with_x(FLOAT_LIST, list), &g, "packed floats*4 bytes");
	list = packed = (bytes){ NULL, 0, 0 };
	put(&packed, "\x01\x80", 2);
	put_field(&list, 1, &packed);
	assert_x_refused(with_x(INT64_LIST, list), &f, "packed numbers");
}

TEST(what_is_written_is_read_back)
{
	const float f[2] = { 0.5f, -1 };
	const int64_t i64[3] = { INT64_MIN, -1, INT64_MAX };
	const int32_t i32 = -70000;
	const unsigned char u8 = 200, image[300] = { 1, 2, 3 };
	const bool flag[2] = { true, false };
	const choir_column columns[] = { { "f", CHOIR_F32, CHOIR_SHAPE(2), f },
		{ "i64", CHOIR_I64, CHOIR_SHAPE(3), i64 }, { "i32", CHOIR_I32, CHOIR_SCALAR, &i32 },
		{ "u8", CHOIR_U8, CHOIR_SCALAR, &u8 }, { "image", CHOIR_U8, CHOIR_SHAPE(100, 3), image },
		{ "flag", CHOIR_BOOL, CHOIR_SHAPE(2), flag } };
	chi_text t = { NULL, 0, 0, false };
	assert_int_equal(chi_example_write(&t, 6, columns), CHOIR_OK);
	const chi_feature asked[] = { FEATURE("f", CHOIR_F32, 2, 8), FEATURE("i64", CHOIR_I64, 3, 24),
		FEATURE("i32", CHOIR_I32, 1, 4), FEATURE("u8", CHOIR_U8, 1, 1),
		FEATURE("image", CHOIR_U8, 300, 300), FEATURE("flag", CHOIR_BOOL, 2, 2) };
	float f_read[2];
	int64_t i64_read[3];
	int32_t i32_read;
	unsigned char u8_read, image_read[300];
	bool flag_read[2];
	void *out[] = { f_read, i64_read, &i32_read, &u8_read, image_read, flag_read };
	const unsigned char *data = (const unsigned char *) t.data;
	assert_int_equal(chi_example_read(data, t.length, 6, asked, out), CHOIR_OK);
	assert_memory_equal(f_read, f, sizeof f);
	assert_memory_equal(i64_read, i64, sizeof i64);
	assert_int_equal(i32_read, i32);
	assert_int_equal(u8_read, u8);
	assert_memory_equal(image_read, image, sizeof image);
	assert_memory_equal(flag_read, flag, sizeof flag);
	chi_text_free(&t);
	const choir_column no[] = { { "half", CHOIR_F16, CHOIR_SCALAR, f } };
	assert_int_equal(chi_example_write(&t, 1, no), CHOIR_UNSUPPORTED);
	assert_failure(CHOIR_UNSUPPORTED, "\"half\"*f16*f32*i32*i64*u8");
}

// The columns of the first example, in the order of their names.
TEST(columns_can_be_taken_from_the_first_example)
{
	bytes features = { NULL, 0, 0 }, file = { NULL, 0, 0 };
	bytes f = float_list(2, (float[]){ 1.5f, -2 }), i = int64_list(1, (int64_t[]){ -7 }),
		  b = bytes_list(1, "abc", 3), m = bytes_list(2, "abcd", 2);
	put_entry(&features, "z", FLOAT_LIST, &f);
	put_entry(&features, "label", INT64_LIST, &i);
	put_entry(&features, "image", BYTES_LIST, &b);
	put_entry(&features, "many", BYTES_LIST, &m);
	bytes e = example(&features);
	put_record_of(&file, &e);
	save_bytes("e.tfrecord", &file);
	choir_dataset *d = choir_tfrecord_dataset_new("e.tfrecord", NULL);
	const chi_spec *spec = chi_dataset_spec(d);
	static const struct {
		const char *name;
		choir_dtype dtype;
		choir_shape shape;
	} expected[] = { { "image", CHOIR_U8, { 1, { 3 } } }, { "label", CHOIR_I64, { 0, { 0 } } },
		{ "many", CHOIR_U8, { 2, { 2, 2 } } }, { "z", CHOIR_F32, { 1, { 2 } } } };
	assert_int_equal(spec->n, 4);
	for (size_t c = 0; c < 4; c++) {
		assert_string_equal(spec->column[c].name, expected[c].name);
		assert_int_equal(spec->column[c].dtype, expected[c].dtype);
		assert_int_equal(spec->column[c].shape.rank, expected[c].shape.rank);
		for (int axis = 0; axis < expected[c].shape.rank; axis++)
			assert_int_equal(spec->column[c].shape.dim[axis], expected[c].shape.dim[axis]);
	}
	char image[4] = "";
	chi_element element = { .column = { image }, .capacity = 1 };
	assert_int_equal(chi_dataset_next(d, &element), CHOIR_OK);
	assert_string_equal(image, "abc");
	assert_int_equal(chi_dataset_next(d, &element), CHOIR_END);
	choir_dataset_free(d);
	const choir_feature asked[] = { { .name = "z", .shape = { .rank = CHOIR_NONE } },
		{ .name = "label", .dtype = CHOIR_U8, .shape = { .rank = CHOIR_NONE } } };
	d = choir_tfrecord_dataset_new(
			"e.tfrecord", CHOIR_OPTIONS(choir_tfrecord_options, .n = 2, .features = asked));
	assert_int_equal(chi_dataset_spec(d)->column[0].shape.dim[0], 2);
	assert_int_equal(chi_dataset_spec(d)->column[1].dtype, CHOIR_I64);
	choir_dataset_free(d);
	const choir_feature none = { .name = "y", .shape = { .rank = CHOIR_NONE } };
	assert_refused(choir_tfrecord_dataset_new("e.tfrecord",
						   CHOIR_OPTIONS(choir_tfrecord_options, .n = 1, .features = &none)),
			CHOIR_NOT_FOUND, "e.tfrecord:*record 0*byte 0*\"y\"");
	file.n = 0;
	save_bytes("e.tfrecord", &file);
	assert_refused(
			choir_tfrecord_dataset_new("e.tfrecord", NULL), CHOIR_INVALID, "e.tfrecord:*columns");
	free(file.data);
}

TEST(a_column_may_have_another_name)
{
	const choir_feature renamed = { .name = "x", .as = "y", .dtype = CHOIR_I32 };
	bytes file = { NULL, 0, 0 }, e = with_x(INT64_LIST, int64_list(1, (int64_t[]){ -7 }));
	put_record_of(&file, &e);
	save_bytes("e.tfrecord", &file);
	free(file.data);
	int32_t y = 0;
	chi_element element = { .column = { &y }, .capacity = 1 };
	choir_dataset *d = choir_tfrecord_dataset_new(
			"e.tfrecord", CHOIR_OPTIONS(choir_tfrecord_options, .n = 1, .features = &renamed));
	assert_string_equal(chi_dataset_spec(d)->column[0].name, "y");
	assert_int_equal(chi_dataset_next(d, &element), CHOIR_OK);
	assert_int_equal(y, -7);
	choir_dataset_free(d);
}

TEST(examples_without_a_shape_are_refused)
{
	for (int way = 0; way < 4; way++) {
		bytes file = { NULL, 0, 0 }, features = { NULL, 0, 0 };
		bytes list = way == 0 ? float_list(0, NULL) : bytes_list(1, "ab", way == 1 ? 0 : 2);
		bytes more = bytes_list(1, "c", 1);
		if (way == 2)
			put(&list, more.data, more.n);
		free(more.data);
		put_entry(&features, way == 3 ? "" : "x", way == 0 ? FLOAT_LIST : BYTES_LIST, &list);
		bytes e = example(&features);
		put_record_of(&file, &e);
		save_bytes("e.tfrecord", &file);
		free(file.data);
		static const char *const texts[] = { "feature \"x\" has 0 values of float*shape",
			"feature \"x\" has 1 values of bytes*shape",
			"2 values of bytes of different lengths*shape", "feature \"\"*name" };
		assert_refused(choir_tfrecord_dataset_new("e.tfrecord", NULL), CHOIR_CORRUPT, texts[way]);
	}
	bytes file = { NULL, 0, 0 }, features = { NULL, 0, 0 };
	for (int i = 0; i < 40; i++) {
		char name[3] = { (char) ('a' + i % 26), (char) ('a' + i / 26), '\0' };
		bytes list = float_list(1, (float[]){ 1 });
		put_entry(&features, name, FLOAT_LIST, &list);
	}
	bytes e = example(&features);
	put_record_of(&file, &e);
	save_bytes("e.tfrecord", &file);
	free(file.data);
	assert_refused(choir_tfrecord_dataset_new("e.tfrecord", NULL), CHOIR_UNSUPPORTED,
			"e.tfrecord:*record 0*byte 0*40*32 columns");
}

TEST_GROUP(scratch_enter, scratch_leave)
