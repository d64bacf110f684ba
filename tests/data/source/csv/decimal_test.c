// Decimal numbers: the same bits as strtod and strtof give, for every kind of text, and where
// they end.
#include "data/source/csv/decimal.h"

#include "base/philox.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void same_as_the_library(const char *text)
{
	chi_decimal d;
	char *end;
	const double wide = strtod(text, &end);
	const float narrow = strtof(text, NULL);
	if (!chi_decimal_read(text, &d))
		fail_msg("%s: no number", text);
	assert_ptr_equal(d.end, end);
	double f64 = 0;
	float f32 = 0;
	const bool has_f64 = chi_decimal_f64(&d, &f64), has_f32 = chi_decimal_f32(&d, &f32);
	if (!has_f64 || memcmp(&wide, &f64, sizeof wide) != 0)
		fail_msg("%s: f64 %a (%d), expected %a", text, f64, has_f64, wide);
	if (!has_f32 || memcmp(&narrow, &f32, sizeof narrow) != 0)
		fail_msg("%s: f32 %a (%d), expected %a", text, (double) f32, has_f32, (double) narrow);
}

TEST(known_numbers)
{
	static const char *const texts[] = { "0", "-0", "0.0", "-0.000", "1", "+1", "-1", "39.1",
		"1e5", "1E+5", "1e-5", ".5", "5.", "-.5e1", "0.1", "0.3", "123456789012345678",
		"1234567890123456789", "12345678901234567890", "9999999999999999999",
		"18446744073709551615", "18446744073709551616", "9007199254740993", "9007199254740992.5",
		"9007199254740993.0000000000000000000000001", "16777217", "16777217.0000000001",
		"16777219", "8388608.5", "1e22", "1e23", "1e27", "1e28", "1e-27", "1e-28", "1e308",
		"1e309", "1.7976931348623157e308", "1.7976931348623159e308", "4.9e-324", "2e-324",
		"1e-400", "2.2250738585072014e-308", "3.4028234663852886e38", "3.4028235e38",
		"3.4028236e38", "3.5e38", "1.7014118346046923e38", "1e-45", "7e-46", "1.17549435e-38",
		"1.1754943e-38", "0.00000000000000000000000000000000001",
		"1000000000000000000000000000000000000000",
		"0000000000000000000000000000012.5000000000000000000", "1e99999999999", "1e-99999999999",
		"0e99999", "1e", "1e+", "12e3x", "1.5.5", "7,8" };
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		same_as_the_library(texts[i]);
}

// Numbers of random digits and exponents, of random bits, and halfway between two neighbours.
TEST(random_numbers)
{
	chi_random_key key = { .seed = 7 };
	char text[400];
	for (uint64_t i = 0; i < 300000; i++) {
		const chi_philox_block b = chi_random_block(&key, i);
		const uint64_t bits = (uint64_t) b.word[0] << 32 | b.word[1];
		double value;
		float narrow;
		memcpy(&value, &bits, sizeof value);
		memcpy(&narrow, &b.word[2], sizeof narrow);
		switch (i % 6) {
		case 0:
			snprintf(text, sizeof text, "%llue%d", (unsigned long long) bits >> b.word[2] % 64,
					(int) (b.word[3] % 64) - 32);
			break;
		case 1:
			snprintf(text, sizeof text, "%.*g", (int) (b.word[3] % 20) + 1, value);
			break;
		case 2:
			snprintf(text, sizeof text, "%.*f", (int) (b.word[3] % 12),
					(double) (int32_t) b.word[0] / 1e5);
			break;
		case 3: // halfway between two f32
			snprintf(text, sizeof text, "%.25g", (double) narrow * (1 + 0x1p-24));
			break;
		case 4: // halfway between two f64 below 2^64
			snprintf(text, sizeof text, "%llu", (unsigned long long) ((bits >> 11 << 11) | 1024));
			break;
		default:
			snprintf(text, sizeof text, "%u.%u", b.word[2] % 1000, b.word[3]);
		}
		if (strchr(text, 'n') == NULL) // inf and nan are not decimal
			same_as_the_library(text);
	}
}

TEST(what_is_none)
{
	static const char *const texts[] = { "", "-", "+", ".", "-.", "e5", "x", " 1", "--1", "nan",
		"inf", "-e1" };
	chi_decimal d;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		if (chi_decimal_read(texts[i], &d))
			fail_msg("\"%s\" is a number", texts[i]);
}

TEST(whole_numbers)
{
	static const struct {
		const char *text;
		bool good;
		int64_t value;
	} cases[] = { { "0", true, 0 }, { "-0", true, 0 }, { "-17", true, -17 }, { "+8", true, 8 },
		{ "9223372036854775807", true, INT64_MAX }, { "-9223372036854775808", true, INT64_MIN },
		{ "9223372036854775808", false, 0 }, { "-9223372036854775809", false, 0 },
		{ "99999999999999999999", false, 0 }, { "1.0", false, 0 }, { "1e3", false, 0 },
		{ "007", true, 7 } };
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		chi_decimal d;
		int64_t value = -5;
		assert_true(chi_decimal_read(cases[i].text, &d));
		if (chi_decimal_i64(&d, &value) != cases[i].good)
			fail_msg("%s", cases[i].text);
		assert_int_equal(value, cases[i].good ? cases[i].value : -5);
	}
}

TEST(whole_values)
{
	static const struct {
		const char *text;
		bool good;
		int64_t value;
	} cases[] = { { "1.0", true, 1 }, { "2e3", true, 2000 }, { "-1.50e1", true, -15 },
		{ "0e-9", true, 0 }, { "1e18", true, 1000000000000000000 }, { "1e19", false, 0 },
		{ "9223372036854775807.0", true, INT64_MAX }, { "1.00000000000000000000000000", true, 1 },
		{ "1.00000000000000000000000001", false, 0 }, { "0.9999999999999999999", false, 0 },
		{ "0.99999999999999999999999", false, 0 }, { "1e-400", false, 0 },
		{ "9007199254740991.6", false, 0 }, { "2.5", false, 0 } };
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		chi_decimal d;
		int64_t value = -5;
		assert_true(chi_decimal_read(cases[i].text, &d));
		if (chi_decimal_whole(&d, &value) != cases[i].good)
			fail_msg("%s", cases[i].text);
		assert_int_equal(value, cases[i].good ? cases[i].value : -5);
	}
}

// As long as a line may be: what has more digits than can be looked at is no number of a file.
TEST(very_long_numbers)
{
	char text[1200];
	memset(text, '7', sizeof text);
	text[1] = '.';
	text[1000] = '\0';
	same_as_the_library(text);
	text[1000] = '7';
	text[1100] = '\0';
	chi_decimal d;
	double f64;
	float f32;
	assert_true(chi_decimal_read(text, &d));
	assert_false(chi_decimal_f64(&d, &f64));
	assert_false(chi_decimal_f32(&d, &f32));
}
