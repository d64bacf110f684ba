// Nearly all numbers have at most 19 digits and a power of ten of at most 27. As ten is two times
// five, the result is a product or quotient of two 64-bit integers, computed to at least 64 bits.
// A remainder decides the rounding. The C library converts others.
#include "data/source/csv/decimal.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

enum { MAX_DIGITS = 19, MAX_POWER = 27, MAX_EXPONENT = 99999, MAX_TEXT = 1000 };
enum { F64_BITS = 53, F32_BITS = 24, F64_BIAS = 1023, F32_LAST = 127 };

__extension__ typedef unsigned __int128 wide;

static const uint64_t powers_of_five[MAX_POWER + 1] = {
	1u,
	5u,
	25u,
	125u,
	625u,
	3125u,
	15625u,
	78125u,
	390625u,
	1953125u,
	9765625u,
	48828125u,
	244140625u,
	1220703125u,
	6103515625u,
	30517578125u,
	152587890625u,
	762939453125u,
	3814697265625u,
	19073486328125u,
	95367431640625u,
	476837158203125u,
	2384185791015625u,
	11920928955078125u,
	59604644775390625u,
	298023223876953125u,
	1490116119384765625u,
	7450580596923828125u,
};

static bool is_numeral(char c)
{
	return c >= '0' && c <= '9';
}

// *count: without leading zeros.
static const char *read_digits(const char *p, chi_decimal *d, int *count)
{
	for (; is_numeral(*p); p++) {
		if (*count == MAX_DIGITS) {
			d->inexact = true;
			continue;
		}
		d->digits = d->digits * 10 + (uint64_t) (*p - '0');
		*count += d->digits != 0;
	}
	return p;
}

// An e without digits is ignored.
static const char *read_exponent(const char *p, chi_decimal *d)
{
	const char *q = p + 1;
	const bool negative = *q == '-';
	q += *q == '-' || *q == '+';
	if (!is_numeral(*q))
		return p;
	int exponent = 0;
	for (; is_numeral(*q); q++)
		if (exponent < MAX_EXPONENT)
			exponent = exponent * 10 + (*q - '0');
	d->exponent += negative ? -exponent : exponent;
	d->whole = false;
	return q;
}

bool chi_decimal_read_with(const char *text, char point_mark, chi_decimal *d)
{
	*d = (chi_decimal){
		.text = text, .negative = *text == '-', .whole = true, .point = point_mark
	};
	const char *start = text + (*text == '-' || *text == '+');
	int count = 0;
	const char *p = read_digits(start, d, &count);
	bool some = p > start;
	if (*p == point_mark) {
		const char *point = p + 1;
		p = read_digits(point, d, &count);
		some = some || p > point;
		d->whole = false;
		d->exponent = p - point <= MAX_TEXT ? -(int) (p - point) : 0;
		d->inexact = d->inexact || p - point > MAX_TEXT;
	}
	if (!some)
		return false;
	if (*p == 'e' || *p == 'E')
		p = read_exponent(p, d);
	d->end = p;
	return true;
}

// q 2^*exponent, with q's highest bit set. *more: a remainder. digits is not 0.
static uint64_t leading_bits(const chi_decimal *d, int *exponent, bool *more)
{
	const int shift = __builtin_clzll(d->digits);
	if (d->exponent >= 0) {
		const wide product = (wide) d->digits * powers_of_five[d->exponent];
		const uint64_t high = (uint64_t) (product >> 64);
		const int bits =
				high ? 128 - __builtin_clzll(high) : 64 - __builtin_clzll((uint64_t) product);
		*exponent = d->exponent + bits - 64;
		if (bits <= 64)
			return (uint64_t) product << (64 - bits);
		*more = (product & (((wide) 1 << (bits - 64)) - 1)) != 0;
		return (uint64_t) (product >> (bits - 64));
	}
	// Highest bits are set, so the quotient has 63 or 64 bits.
	const uint64_t five = powers_of_five[-d->exponent];
	const int five_shift = __builtin_clzll(five);
	const uint64_t divisor = five << five_shift;
	const wide dividend = (wide) (d->digits << shift) << 63;
	uint64_t q = (uint64_t) (dividend / divisor);
	*more = dividend % divisor != 0;
	const int last = __builtin_clzll(q);
	*exponent = d->exponent + five_shift - shift - 63 - last;
	return q << last; // the unknown bit is far below
}

// Ties to even; exact as an f64.
static double round_to(uint64_t q, int exponent, bool more, int bits)
{
	const int dropped = 64 - bits;
	const uint64_t half = (uint64_t) 1 << (dropped - 1), rest = q & (2 * half - 1);
	uint64_t kept = q >> dropped;
	if (rest > half || (rest == half && (more || kept & 1)))
		kept++;
	const uint64_t fraction = kept << (F64_BITS - bits);
	// 52 bits are stored. The sum carries the highest bit into the exponent.
	const uint64_t stored = (uint64_t) (exponent + 63 + F64_BIAS - 1) << (F64_BITS - 1);
	const uint64_t value = stored + fraction;
	double out;
	memcpy(&out, &value, sizeof out);
	return out;
}

static bool is_simple(const chi_decimal *d)
{
	return !d->inexact && d->exponent >= -MAX_POWER && d->exponent <= MAX_POWER;
}

static const char *copy_text(const chi_decimal *d, char copy[MAX_TEXT + 1])
{
	const size_t n = (size_t) (d->end - d->text);
	if (n > MAX_TEXT)
		return NULL;
	memcpy(copy, d->text, n);
	copy[n] = '\0';
	char *point = strchr(copy, d->point);
	if (point)
		*point = '.';
	return copy;
}

bool chi_decimal_f64(const chi_decimal *d, double *out)
{
	char copy[MAX_TEXT + 1];
	if (d->digits == 0 && !d->inexact) {
		*out = d->negative ? -0.0 : 0.0;
		return true;
	}
	if (!is_simple(d)) {
		if (!copy_text(d, copy))
			return false;
		if (!chi_parse_double(copy, out)) // a number, so out of range
			*out = d->negative ? -HUGE_VAL : HUGE_VAL;
		return true;
	}
	int exponent = 0;
	bool more = false;
	const uint64_t q = leading_bits(d, &exponent, &more);
	const double value = round_to(q, exponent, more, F64_BITS);
	*out = d->negative ? -value : value;
	return true;
}

bool chi_decimal_f32(const chi_decimal *d, float *out)
{
	char copy[MAX_TEXT + 1];
	if (d->digits == 0 && !d->inexact) {
		*out = d->negative ? -0.0f : 0.0f;
		return true;
	}
	int exponent = 0;
	bool more = false;
	const uint64_t q = is_simple(d) ? leading_bits(d, &exponent, &more) : 0;
	if (q == 0 || exponent + 63 >= F32_LAST) {
		if (!copy_text(d, copy))
			return false;
		if (!chi_parse_float(copy, out))
			*out = d->negative ? -HUGE_VALF : HUGE_VALF;
		return true;
	}
	const float value = (float) round_to(q, exponent, more, F32_BITS);
	*out = d->negative ? -value : value;
	return true;
}

bool chi_decimal_i64(const chi_decimal *d, int64_t *out)
{
	if (!d->whole || d->inexact || d->digits > (uint64_t) INT64_MAX + d->negative)
		return false;
	const bool min = d->digits > INT64_MAX;
	const int64_t value = min ? INT64_MAX : (int64_t) d->digits;
	*out = d->negative ? -value - min : value;
	return true;
}

// Of the digits that d->digits lacks. False: some are not 0.
static bool drop_zeros(chi_decimal *d)
{
	int count = 0;
	if (d->end - d->text > MAX_TEXT)
		return false;
	for (const char *p = d->text; p < d->end && *p != 'e' && *p != 'E'; p++) {
		if (is_numeral(*p) && count < MAX_DIGITS) {
			count += count > 0 || *p != '0';
		} else if (is_numeral(*p)) {
			if (*p != '0')
				return false;
			d->exponent++;
		}
	}
	d->inexact = false;
	return true;
}

bool chi_decimal_whole(const chi_decimal *d, int64_t *out)
{
	chi_decimal same = *d;
	if (chi_decimal_i64(d, out))
		return true;
	if (d->inexact && !drop_zeros(&same))
		return false;
	for (; same.exponent < 0 && same.digits % 10 == 0 && same.digits > 0; same.exponent++)
		same.digits /= 10;
	for (; same.exponent > 0 && same.digits > 0 && same.digits <= INT64_MAX / 10; same.exponent--)
		same.digits *= 10;
	same.whole = same.exponent == 0 || same.digits == 0;
	return chi_decimal_i64(&same, out);
}
