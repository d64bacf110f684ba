// The reader of JSON: what its tokens are, and everything that it must refuse.
#include "base/json.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

// All tokens of a text as one line: "{ k(a) n(1) } .", where . is a good end and ! a bad one.
static const char *tokens(const char *data, size_t size)
{
	static char text[4096], line[4096];
	static const char *const shown[] = { [CHI_JSON_END] = ".",
		[CHI_JSON_OBJECT] = "{",
		[CHI_JSON_OBJECT_END] = "}",
		[CHI_JSON_ARRAY] = "[",
		[CHI_JSON_ARRAY_END] = "]",
		[CHI_JSON_KEY] = "k",
		[CHI_JSON_STRING] = "s",
		[CHI_JSON_NUMBER] = "n",
		[CHI_JSON_TRUE] = "t",
		[CHI_JSON_FALSE] = "f",
		[CHI_JSON_NULL] = "0",
		[CHI_JSON_WRONG] = "!" };
	chi_json j;
	chi_json_token token;
	size_t used = 0;
	memcpy(text, data, size);
	chi_json_open(&j, text, size);
	do {
		token = chi_json_next(&j);
		used += (size_t) snprintf(line + used, sizeof line - used, "%s", shown[token]);
		if (token == CHI_JSON_KEY || token == CHI_JSON_STRING || token == CHI_JSON_NUMBER)
			used += (size_t) snprintf(
					line + used, sizeof line - used, "(%.*s)", (int) j.length, j.text);
	} while (token != CHI_JSON_END && token != CHI_JSON_WRONG);
	if (token == CHI_JSON_WRONG) {
		assert_non_null(j.error);
		assert_int_equal(chi_json_next(&j), CHI_JSON_WRONG); // it stays so
	}
	return line;
}

TEST(good)
{
	static const char *const cases[][2] = {
		{ "{}", "{}." },
		{ " [ ] ", "[]." },
		{ "{\"a\":1,\"b\":[true,false,null,\"x\"]}", "{k(a)n(1)k(b)[tf0s(x)]}." },
		{ "[[],{},[{}]]", "[[]{}[{}]]." },
		{ "-0.5e+10", "n(-0.5e+10)." },
		{ "[0, 10, 1E5, 0.0]", "[n(0)n(10)n(1E5)n(0.0)]." },
		{ "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "s(\"\\/\b\f\n\r\t)." },
		{ "\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"", "s(A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80)." },
		{ "\"\xc3\xa9\xf4\x8f\xbf\xbf\"", "s(\xc3\xa9\xf4\x8f\xbf\xbf)." },
		{ "\t{\r\n\"\" : \"\"\t}\n", "{k()s()}." },
		{ "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]", "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]." },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_string_equal(tokens(cases[i][0], strlen(cases[i][0])), cases[i][1]);
}

TEST(bad)
{
	static const char *const cases[] = { "", " ", "{", "}", "[", "]", "{]", "[}", "[1,]", "[,1]",
		"[1 2]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{1:2}", "{\"a\" 1}", "{\"a\":1 \"b\":2}",
		"{,}", "1 2", "{}{}", "tru", "truex", "nul", "+1", "01", "-", "1.", ".5", "1e", "1e+",
		"0x1", "NaN", "\"", "\"a", "\"\\\"", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"\\u0000\"",
		"\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\u0041\"", "\"\\ud800\\ud800\"", "\"\n\"",
		"\"\x01\"", "\"\x80\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"",
		"\"\xe2\x82\"", "\"\xff\"", "'a'", "[1]]", "{\"a\":[}", "// x",
		"[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]" };
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const char *line = tokens(cases[i], strlen(cases[i]));
		if (line[strlen(line) - 1] != '!')
			fail_msg("\"%s\" was read as %s", cases[i], line);
	}
	const char *line = tokens("\"a\0b\"", 5); // a zero byte ends no text
	assert_int_equal(line[strlen(line) - 1], '!');
}

// Every beginning of a good text is bad.
TEST(cut_short)
{
	static const char text[] = "{\"a\":[1,-2.5e3,true],\"b\\u00e9\":{\"c\":null}}";
	for (size_t n = 0; n < sizeof text - 1; n++) {
		const char *line = tokens(text, n);
		assert_int_equal(line[strlen(line) - 1], '!');
	}
}

TEST(numbers)
{
	static const struct {
		const char *text;
		bool good;
		uint64_t value;
	} cases[] = { { "0", true, 0 }, { "18446744073709551615", true, UINT64_MAX },
		{ "18446744073709551616", false, 0 }, { "99999999999999999999", false, 0 },
		{ "-1", false, 0 }, { "1.0", false, 0 }, { "1e3", false, 0 }, { "42", true, 42 } };
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char text[64];
		chi_json j;
		uint64_t value = 7;
		strcpy(text, cases[i].text);
		chi_json_open(&j, text, strlen(text));
		assert_int_equal(chi_json_next(&j), CHI_JSON_NUMBER);
		assert_int_equal(chi_json_uint64(&j, &value), cases[i].good);
		if (cases[i].good)
			assert_true(value == cases[i].value);
	}
}
