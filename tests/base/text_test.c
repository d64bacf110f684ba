// Text that grows, JSON strings, clean text for terminals, and numbers read to their end.
#include "base/text.h"
#include "base/alloc.h"
#include "comma.h"
#include "test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(test_add)
{
	chi_text t = { 0 };
	chi_text_add(&t, "%d and ", 12);
	chi_text_add_bytes(&t, "a\0b", 3);
	chi_text_add(&t, "%s", "");
	assert_int_equal(t.length, 10);
	assert_memory_equal(t.data, "12 and a\0b", 11);
	chi_text_add(&t, "%1000d", 5); // longer than any buffer on the stack
	chi_text_add_bytes(&t, NULL, 0);
	assert_int_equal(t.length, 1010);
	assert_true(t.data[1009] == '5' && t.data[1010] == '\0');
	for (int i = 0; i < 1000; i++)
		chi_text_add(&t, "%d", i % 10);
	assert_int_equal(strlen(t.data + 10), 2000);
	assert_false(t.failed);
	chi_text_free(&t);
	assert_null(t.data);
	chi_text_free(&t);
}

TEST(test_out_of_memory)
{
	chi_text t = { 0 };
	chi_alloc_fail(1, false);
	chi_text_add(&t, "lost");
	chi_alloc_fail(0, false);
	assert_true(t.failed);
	assert_null(t.data);
	chi_text_add(&t, "more"); // not after a gap
	assert_int_equal(t.length, 0);
	chi_text_free(&t);
	chi_text_add(&t, "kept");
	chi_alloc_fail(1, false);
	chi_text_add(&t, "%500d", 1);
	chi_alloc_fail(0, false);
	assert_true(t.failed);
	assert_string_equal(t.data, "kept");
	chi_text_add_bytes(&t, "x", SIZE_MAX - 2);
	assert_string_equal(t.data, "kept");
	chi_text_free(&t);
	chi_text_add(&t, "kept");
	chi_text_add_bytes(&t, "x", SIZE_MAX - 2);
	assert_true(t.failed);
	chi_text_free(&t);
}

static void assert_json(const char *text, const char *expected)
{
	chi_text t = { 0 };
	chi_text_add_json(&t, text);
	assert_false(t.failed);
	assert_string_equal(t.data, expected);
	chi_text_free(&t);
}

#define LOST "\xef\xbf\xbd"

TEST(test_json)
{
	assert_json("", "\"\"");
	assert_json("a \"b\" \\ /", "\"a \\\"b\\\" \\\\ /\"");
	assert_json("\n\r\t\x01\x1f", "\"\\n\\r\\t\\u0001\\u001f\"");
	assert_json("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8e\xb5",
			"\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8e\xb5\"");
	assert_json("a\xffz", "\"a" LOST "z\"");
	assert_json("\xc0\xaf", "\"" LOST LOST "\""); // a slash in two bytes
	assert_json("\xed\xa0\x80", "\"" LOST LOST LOST "\""); // half of a pair
	assert_json("\xf4\x90\x80\x80", "\"" LOST LOST LOST LOST "\""); // beyond the last character
	assert_json("\xe2\x82", "\"" LOST LOST "\""); // cut short by the end
}

TEST(test_clean)
{
	char out[32];
	assert_string_equal(chi_text_clean("plain \xc3\xa9", out, sizeof(out)), "plain \xc3\xa9");
	assert_string_equal(chi_text_clean("\x1b[2J\n\x7f", out, sizeof(out)), "\\x1b[2J\\x0a\\x7f");
	assert_string_equal(chi_text_clean("\xc2\x9b\xff", out, sizeof(out)), "\\xc2\\x9b\\xff");
	static const char *const turns[] = { "\xd8\x9c", "\xe2\x80\x8e", "\xe2\x80\x8f",
		"\xe2\x80\xaa", "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa9" };
	for (size_t i = 0; i < sizeof turns / sizeof turns[0]; i++)
		assert_int_equal(chi_text_clean(turns[i], out, sizeof(out))[0], '\\');
	assert_string_equal(chi_text_clean("\xe2\x80\x8d", out, sizeof(out)), "\xe2\x80\x8d");
	char small[6];
	assert_string_equal(chi_text_clean("abcdefgh", small, sizeof(small)), "abcde");
	assert_string_equal(chi_text_clean("ab\x01", small, sizeof(small)), "ab"); // never in parts
	assert_string_equal(chi_text_clean("abcd\xc3\xa9", small, sizeof(small)), "abcd");
	assert_string_equal(chi_text_clean("a\x01z", small, sizeof(small)), "a\\x01");
	assert_string_equal(chi_text_clean("x", small, 1), "");
	assert_string_equal(chi_text_clean("x", small, 0), "");
}

TEST(test_append)
{
	char text[9] = "", guard = text[8] = 'x';
	size_t at = chi_text_append(text, 8, 0, "abc");
	assert_int_equal(at, 3);
	at = chi_text_append(text, 8, at, "");
	at = chi_text_append(text, 8, at, "defg");
	assert_int_equal(at, 7); // all of it, and the zero
	assert_string_equal(text, "abcdefg");
	at = chi_text_append(text, 8, at, "h");
	assert_int_equal(at, 7);
	assert_int_equal(chi_text_append(text, 8, 5, "FGHI"), 7);
	assert_string_equal(text, "abcdeFG");
	assert_int_equal(text[8], guard);
}

TEST(test_parse_int64)
{
	int64_t value = 77;
	static const char *const bad[] = { "", " 1", "1 ", "x", "1x", "1.0", "-", "+", "0x10", "1e3",
		"9223372036854775808", "-9223372036854775809" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(chi_parse_int64(bad[i], &value));
	assert_int_equal(value, 77);
	assert_true(chi_parse_int64("-9223372036854775808", &value) && value == INT64_MIN);
	assert_true(chi_parse_int64("9223372036854775807", &value) && value == INT64_MAX);
	assert_true(chi_parse_int64("007", &value) && value == 7);
}

TEST(test_parse_double)
{
	double value = 77;
	static const char *const bad[] = { "", " 1", "1 ", "x", "1x", "1,5", "-", ".", "1e999",
		"-1e999" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(chi_parse_double(bad[i], &value));
	assert_true(value == 77);
	assert_true(chi_parse_double("-1.5e3", &value) && value == -1500);
	assert_true(chi_parse_double("1e-310", &value) && value > 0); // small is no failure
	assert_true(chi_parse_double("1e-999", &value) && value == 0);
	assert_true(chi_parse_double("nan", &value) && isnan(value));
	assert_true(chi_parse_double("inf", &value) && isinf(value));
}

TEST(test_locale)
{
	if (!comma_set())
		skip();
	char host[16];
	double value = 0;
	snprintf(host, sizeof(host), "%.1f", 0.5);
	chi_text t = { 0 };
	chi_text_add(&t, "%.1f", 0.5);
	bool parsed = chi_parse_double("0.5", &value);
	setlocale(LC_ALL, "C");
	assert_string_equal(host, "0,5");
	assert_string_equal(t.data, "0.5");
	assert_true(parsed && value == 0.5);
	chi_text_free(&t);
}

TEST(test_errno)
{
	char out[64];
	assert_string_equal(chi_text_errno(ENOSPC, out, sizeof(out)), "No space left on device");
	assert_true(strlen(chi_text_errno(123456, out, sizeof(out))) > 0);
}
