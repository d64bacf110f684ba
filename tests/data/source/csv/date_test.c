// Dates: every day of eight centuries by the C library's calendar, times, zones, and what is no
// date.
#include "data/source/csv/date.h"

#include "test.h"

#include <math.h>
#include <string.h>
#include <time.h>

static double days_of(const char *text)
{
	double days = -1e9;
	if (!chi_date_read(text, strlen(text), &days))
		fail_msg("%s: no date", text);
	return days;
}

TEST(every_day_of_eight_centuries)
{
	char text[16], slashes[16];
	for (int day = -135140; day <= 157054; day++) { // 1600 to 2399
		const time_t seconds = (time_t) day * 86400;
		struct tm t;
		assert_non_null(gmtime_r(&seconds, &t));
		assert_true(strftime(text, sizeof text, "%Y-%m-%d", &t) == 10);
		assert_true(strftime(slashes, sizeof slashes, "%Y/%m/%d", &t) == 10);
		if (days_of(text) != day || days_of(slashes) != day)
			fail_msg("%s: %g, needed %d", text, days_of(text), day);
	}
	assert_true(days_of("0000-01-01") == -719528 && days_of("9999-12-31") == 2932896);
}

TEST(times_and_zones)
{
	static const struct {
		const char *text;
		double seconds; // of the second of January 1970
	} cases[] = {
		{ "1970-01-02T00:00", 0 },
		{ "1970-01-02 17:05", 17 * 3600 + 5 * 60 },
		{ "1970-01-02 17:05:30", 17 * 3600 + 5 * 60 + 30 },
		{ "1970-01-02T17:05:30.25Z", 17 * 3600 + 5 * 60 + 30.25 },
		{ "1970-01-02T17:05:30,25", 17 * 3600 + 5 * 60 + 30.25 },
		{ "1970-01-02T24:00", 86400 },
		{ "1970-01-02T06:00+05:30", 1800 },
		{ "1970-01-02T06:00:00-0530", 11.5 * 3600 },
		{ "1970-01-02T06:00+01", 5 * 3600 },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_true(fabs(days_of(cases[i].text) - 1 - cases[i].seconds / 86400) < 1e-12);
}

TEST(what_is_no_date)
{
	static const char *const texts[] = { "", "2026", "2026-11", "2026-11-2", "26-11-24",
		"2026-13-01", "2026-00-10", "2026-11-31", "2026-11-00", "2025-02-29", "1900-02-29",
		"2026-11/24", "2026/11-24", "24.11.2026", "2026-11-24x", "2026-11-24 ", "2026-11-24T",
		"2026-11-24T5:00", "2026-11-24T25:00", "2026-11-24T24:01", "2026-11-24T10:60",
		"2026-11-24T10:00:61", "2026-11-24T10:00Zx", "2026-11-24T10:00+1",
		"2026-11-24T10:00+24:00", "2026-11-24T10:00.5", "-026-11-24", "2026-11-24T10:00+01:60",
		"2026--1-24" };
	double days;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		if (chi_date_read(texts[i], strlen(texts[i]), &days))
			fail_msg("\"%s\" is taken for a date", texts[i]);
	assert_true(days_of("2024-02-29") == days_of("2024-03-01") - 1);
	assert_true(chi_date_read("2026-11-24 and more", 10, &days)); // only the given bytes count
}

TEST_GROUP(NULL, NULL)
