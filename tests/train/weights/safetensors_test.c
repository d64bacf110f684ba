// Reading safetensors files that others may have written: what is good, and everything that is
// refused.
#include "train/weights/safetensors.h"

#include "base/status.h"
#include "train/files.h"
#include "train/problem.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

static const char bytes[256] = { 0 };

static choir_status open_path(const char *path, chi_safetensors *st)
{
	*st = (chi_safetensors){ 0 };
	chi_file *f = chi_file_open(path);
	const choir_status status = f == NULL ? choir_error_status() : chi_safetensors_open(st, f);
	chi_file_close(f);
	return status;
}

TEST(good)
{
	const char *path = files_path("good");
	chi_safetensors st;
	files_write_safetensors(path,
			"{ \"__metadata__\" : {\"b\":\"2\",\"a\":\"one\\n\"}, \"w\" : "
			"{\"shape\":[2,3],\"dtype\":\"F32\",\"data_offsets\":[8,32]},"
			"\"a/b\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]},"
			"\"none\":{\"dtype\":\"U16\",\"shape\":[0,7],\"data_offsets\":[32,32]} } ",
			bytes, 32);
	if (open_path(path, &st) != CHOIR_OK)
		fail_msg("%s", choir_error());
	assert_int_equal(st.n, 3);
	assert_string_equal(st.tensor[0]->name, "a/b");
	assert_int_equal(st.tensor[0]->dtype, CHOIR_F64);
	assert_int_equal(st.tensor[0]->shape.rank, 0);
	assert_string_equal(st.tensor[1]->name, "none");
	assert_false(st.tensor[1]->supported);
	assert_string_equal(st.tensor[2]->name, "w");
	assert_int_equal(st.tensor[2]->shape.dim[1], 3);
	assert_int_equal(st.tensor[2]->begin, 8);
	assert_int_equal(st.pairs, 2);
	assert_string_equal(chi_safetensors_pair(&st, "a")->value, "one\n");
	assert_null(chi_safetensors_pair(&st, "c"));
	chi_safetensors_close(&st);
	files_write_safetensors(path, "{}", NULL, 0);
	assert_int_equal(open_path(path, &st), CHOIR_OK);
	assert_int_equal(st.n, 0);
	chi_safetensors_close(&st);
}

#define W(inside) "{\"w\":{" inside "}}"
static const struct {
	const char *header;
	size_t size;
	choir_status status;
	const char *text;
} bad[] = {
	{ "", 0, CHOIR_CORRUPT, "{" },
	{ "[]", 0, CHOIR_CORRUPT, "{" },
	{ " {}", 0, CHOIR_CORRUPT, "{" },
	{ "{}x", 0, CHOIR_CORRUPT, "after the end" },
	{ "{\"w\":1}", 0, CHOIR_CORRUPT, "object" },
	{ W("\"dtype\":\"F32\",\"shape\":[1]"), 4, CHOIR_CORRUPT, "dtype, shape and data_offsets" },
	{ W("\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]"), 4,
			CHOIR_CORRUPT, "dtype, shape and data_offsets" },
	{ W("\"dtype\":\"F32\",\"more\":1,\"shape\":[1],\"data_offsets\":[0,4]"), 4, CHOIR_CORRUPT,
			"dtype, shape and data_offsets" },
	{ W("\"dtype\":3,\"shape\":[1],\"data_offsets\":[0,4]"), 4, CHOIR_CORRUPT, "dtype*text" },
	{ W("\"dtype\":\"F31\",\"shape\":[1],\"data_offsets\":[0,4]"), 4, CHOIR_UNSUPPORTED,
			"tensor \"w\":*dtype" },
	{ W("\"dtype\":\"F32\",\"shape\":4,\"data_offsets\":[0,4]"), 4, CHOIR_CORRUPT, "shape*array" },
	{ W("\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]"), 4, CHOIR_CORRUPT,
			"a dimension" },
	{ W("\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]"), 4, CHOIR_CORRUPT,
			"a dimension" },
	{ W("\"dtype\":\"F32\",\"shape\":[[1]],\"data_offsets\":[0,4]"), 4, CHOIR_CORRUPT,
			"a dimension" },
	{ W("\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]"), 1,
			CHOIR_UNSUPPORTED, "more than 8" },
	{ W("\"dtype\":\"F32\",\"shape\":[9223372036854775807,8],\"data_offsets\":[0,4]"), 4,
			CHOIR_CORRUPT, "too large" },
	// 2^32 * 2^32 * 4 wraps around to nothing.
	{ W("\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]"), 0,
			CHOIR_CORRUPT, "too large" },
	{ W("\"dtype\":\"F32\",\"shape\":[9223372036854775808],\"data_offsets\":[0,4]"), 4,
			CHOIR_CORRUPT, "a dimension" },
	{ W("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]"), 4, CHOIR_CORRUPT, "two whole" },
	{ W("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]"), 4, CHOIR_CORRUPT,
			"two whole" },
	{ W("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,\"4\"]"), 4, CHOIR_CORRUPT,
			"two whole" },
	{ W("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]"), 4, CHOIR_CORRUPT,
			"do not fit" },
	{ W("\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]"), 4, CHOIR_CORRUPT,
			"do not fit" },
	{ W("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]"), 3, CHOIR_CORRUPT, "4 bytes*3" },
	{ W("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]"), 5, CHOIR_CORRUPT, "4 bytes*5" },
	{ W("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]"), 8, CHOIR_CORRUPT, "a gap" },
	{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
	  "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
			3, CHOIR_CORRUPT, "tensor \"b\": it overlaps another" },
	{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
	  "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[3,5]}}",
			5, CHOIR_CORRUPT, "tensor \"b\": there is a gap" },
	{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
	  "\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[1,1]}}",
			2, CHOIR_CORRUPT, "it overlaps" },
	{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
	  "\"\\u0061\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
			2, CHOIR_CORRUPT, "tensor \"a\":*twice" },
	{ "{\"__metadata__\":{},\"__metadata__\":{}}", 0, CHOIR_CORRUPT, "metadata*twice" },
	{ "{\"__metadata__\":[]}", 0, CHOIR_CORRUPT, "metadata*object" },
	{ "{\"__metadata__\":{\"a\":1}}", 0, CHOIR_CORRUPT, "metadata*text" },
	{ "{\"__metadata__\":{\"a\":{\"b\":\"c\"}}}", 0, CHOIR_CORRUPT, "metadata*text" },
	{ "{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, CHOIR_CORRUPT, "twice" },
	{ "{\"w\":[[[[[[[[[[[[[[[[[[[[", 0, CHOIR_CORRUPT, "object" },
	{ "{\"\x80\":1}", 0, CHOIR_CORRUPT, "character" },
};

TEST(refused)
{
	const char *path = files_path("bad");
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		chi_safetensors st;
		files_write_safetensors(path, bad[i].header, bytes, bad[i].size);
		assert_failed(open_path(path, &st), bad[i].status, bad[i].text);
		chi_safetensors_close(&st);
	}
}

TEST(lengths)
{
	const char *path = files_path("length");
	static const struct {
		const char *data;
		size_t size;
		const char *text;
	} cases[] = {
		{ "", 0, "cut short" },
		{ "\2\0\0\0\0\0\0", 7, "cut short" },
		{ "\0\0\0\0\0\0\0\0", 8, "{" },
		{ "\3\0\0\0\0\0\0\0{}", 10, "3 bytes*10 bytes" },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, "a header of 18446744073709551615 bytes" },
		{ "\xf8\xff\xff\xff\xff\xff\xff\xff{}", 10, "a header of" },
		{ "\0\0\0\6\0\0\0\0{}", 10, "a header of 100663296 bytes" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		chi_safetensors st;
		files_write(path, cases[i].data, cases[i].size);
		assert_failed(open_path(path, &st), CHOIR_CORRUPT, cases[i].text);
		chi_safetensors_close(&st);
	}
	chi_safetensors st;
	assert_failed(open_path(files_path("no such file"), &st), CHOIR_NOT_FOUND, "no such file");
}

// What is printed is read back, whatever the names are.
TEST(printed)
{
	const chi_st_tensor tensors[] = {
		{ .name = "q\"\\\n\x01/\xc3\xa9",
				.dtype = CHOIR_BF16,
				.shape = { 2, { 3, 2 } },
				.end = 12 },
		{ .name = "", .dtype = CHOIR_BOOL, .shape = { 0, { 0 } }, .begin = 12, .end = 13 },
	};
	const chi_st_pair pairs[] = { { "key", "a = \"b\"" }, { "\t", "" } };
	for (size_t n = 0; n <= 2; n++)
		for (size_t k = 0; k <= 2; k++) {
			chi_text text = { 0 };
			chi_safetensors st;
			chi_safetensors_print(&text, n, tensors, k, pairs);
			chi_text_add_bytes(&text, bytes, n == 0 ? 0 : 11 + n);
			files_write(files_path("printed"), text.data, text.length);
			if (open_path(files_path("printed"), &st) != CHOIR_OK)
				fail_msg("%s", choir_error());
			assert_int_equal(st.n, n);
			assert_int_equal(st.pairs, k);
			assert_int_equal(st.data % 8, 0);
			if (n == 2)
				assert_string_equal(st.tensor[1]->name, tensors[0].name);
			if (k > 0)
				assert_string_equal(chi_safetensors_pair(&st, "key")->value, "a = \"b\"");
			chi_safetensors_close(&st);
			chi_text_free(&text);
		}
}

TEST_GROUP(NULL, files_teardown)
