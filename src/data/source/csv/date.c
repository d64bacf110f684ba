// ISO 8601.
#include "data/source/csv/date.h"

#include <stdint.h>

typedef struct {
	const char *at, *end;
} reading;

static bool decimal(reading *r, int n, int *value)
{
	*value = 0;
	if (r->end - r->at < n)
		return false;
	for (int i = 0; i < n; i++, r->at++) {
		if (*r->at < '0' || *r->at > '9')
			return false;
		*value = *value * 10 + (*r->at - '0');
	}
	return true;
}

static bool mark(reading *r, char c)
{
	if (r->at == r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

static bool is_leap(int year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int64_t leap_years_before(int year)
{
	const int last = year - 1;
	return year == 0 ? 0 : 1 + last / 4 - last / 100 + last / 400; // year 0 is one
}

static bool read_day(reading *r, int64_t *days)
{
	static const int before[] = { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365 };
	enum { DAYS_TO_1970 = 719528 }; // from 0000-01-01
	int year, month, day;
	if (!decimal(r, 4, &year))
		return false;
	const char between = mark(r, '-') ? '-' : '/';
	if ((between == '/' && !mark(r, '/')) || !decimal(r, 2, &month) || !mark(r, between) ||
			!decimal(r, 2, &day) || month < 1 || month > 12 || day < 1)
		return false;
	const int leap = is_leap(year);
	if (day > before[month] - before[month - 1] + (leap && month == 2))
		return false;
	*days = (int64_t) year * 365 + leap_years_before(year) + before[month - 1] + day - 1 +
			(leap && month > 2) - DAYS_TO_1970;
	return true;
}

static bool read_hour(reading *r, double *seconds)
{
	int hour, minute, second = 0;
	double fraction = 0, unit = 1;
	if (!decimal(r, 2, &hour) || !mark(r, ':') || !decimal(r, 2, &minute))
		return false;
	const bool to_the_second = mark(r, ':');
	if (to_the_second && !decimal(r, 2, &second))
		return false;
	if (to_the_second && (mark(r, '.') || mark(r, ',')))
		for (int next; decimal(r, 1, &next);)
			fraction += next * (unit /= 10);
	*seconds = hour * 3600 + minute * 60 + second + fraction;
	return hour <= 24 && minute < 60 && second <= 60 && *seconds <= 86400;
}

static bool read_zone(reading *r, double *seconds)
{
	int hours, minutes = 0;
	*seconds = 0;
	if (r->at == r->end || mark(r, 'Z'))
		return true;
	const int sign = mark(r, '-') ? -1 : 1;
	if ((sign > 0 && !mark(r, '+')) || !decimal(r, 2, &hours))
		return false;
	if (r->at < r->end && ((void) mark(r, ':'), !decimal(r, 2, &minutes)))
		return false;
	*seconds = sign * (hours * 3600 + minutes * 60);
	return hours < 24 && minutes < 60;
}

bool chi_date_read(const char *text, size_t length, double *days)
{
	reading r = { text, text + length };
	int64_t day;
	double seconds = 0, zone = 0;
	if (!read_day(&r, &day))
		return false;
	if (r.at < r.end &&
			!((mark(&r, 'T') || mark(&r, ' ')) && read_hour(&r, &seconds) && read_zone(&r, &zone)))
		return false;
	*days = (double) day + (seconds - zone) / 86400;
	return r.at == r.end;
}
