// Only whole fields may have thousands separators: in the fast path a number ends at its first
// comma.
#include "data/source/csv/csv.h"

#include <ctype.h>
#include <string.h>

char chi_csv_group_mark(const chi_csv_schema *s)
{
	return s->decimal == '.' ? ',' : '.';
}

static size_t numerals(const char *p, const char *end)
{
	const char *q = p;
	while (q < end && isdigit((unsigned char) *q))
		q++;
	return (size_t) (q - p);
}

// As 1,234,567.8: groups of three digits; the first may be shorter, without a leading 0.
static bool read_groups(const chi_csv_schema *s, const chi_csv_text *field, chi_decimal *d)
{
	enum { GROUP = 3, MAX = 18 }; // so few digits are exact
	const char mark = chi_csv_group_mark(s), *p = field->text, *end = p + field->length;
	char plain[2 * MAX];
	size_t n = 0, group = 0;
	if (field->length > MAX || !memchr(p, mark, field->length))
		return false;
	if (*p == '-' || *p == '+')
		plain[n++] = *p++;
	if (*p == '0')
		return false;
	for (bool first = true; first || (p < end && *p == mark); first = false) {
		p += !first;
		group = numerals(p, end);
		if (group == 0 || group > GROUP || (!first && group < GROUP))
			return false;
		memcpy(plain + n, p, group);
		n += group;
		p += group;
	}
	if (p < end && (*p != s->decimal || numerals(p + 1, end) + 1 != (size_t) (end - p)))
		return false;
	memcpy(plain + n, p, (size_t) (end - p));
	plain[n + (size_t) (end - p)] = '\0';
	if (!chi_decimal_read_with(plain, s->decimal, d))
		return false;
	d->text = field->text;
	d->end = end;
	return true;
}

// If the separator is also the decimal comma, a number continues behind a field without one.
bool chi_csv_number(const chi_csv_schema *s, const chi_csv_text *field, chi_decimal *d)
{
	const bool bounded = s->decimal != '.' && !memchr(field->text, s->decimal, field->length);
	return (chi_decimal_read_with(field->text, bounded ? CHI_CSV_NO_POINT : s->decimal, d) &&
				   d->end == field->text + field->length) ||
			read_groups(s, field, d);
}
