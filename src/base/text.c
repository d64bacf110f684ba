// Uses the C locale, since the host's may have a decimal comma.
#include "base/text.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "base/size.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static locale_t c_locale; // 0: unavailable
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;

static void make_c_locale(void)
{
	c_locale = newlocale(LC_ALL_MASK, "C", (locale_t) 0);
}

static locale_t enter_c_locale(void)
{
	pthread_once(&c_locale_once, make_c_locale);
	return uselocale(c_locale);
}

const char *chi_text_fit(const char *text, char *out, size_t size)
{
	enum { TAIL = 9 };
	if (strlen(text) < size)
		snprintf(out, size, "%s", text);
	else
		snprintf(out, size, "%.*s~%08x", (int) (size - 1 - TAIL), text,
				(unsigned) (chi_hash_text(text) & 0xffffffffu));
	return out;
}

size_t chi_text_append(char *text, size_t size, size_t at, const char *more)
{
	const size_t length = strnlen(more, size - 1 - at);
	memcpy(text + at, more, length);
	text[at + length] = '\0';
	return at + length;
}

int chi_text_format(char *out, size_t size, const char *fmt, va_list args)
{
	locale_t host = enter_c_locale();
	int length = vsnprintf(out, size, fmt, args);
	uselocale(host);
	return length;
}

const char *chi_text_errno(int error_number, char *out, size_t size)
{
	return strerror_r(error_number, out, size);
}

void chi_text_free(chi_text *t)
{
	chi_free(t->data);
	*t = (chi_text){ 0 };
}

static bool reserve(chi_text *t, size_t count)
{
	size_t need = SIZE_MAX;
	if (chi_size_add(t->length, count, &need) && !chi_size_add(need, 1, &need))
		need = SIZE_MAX;
	t->failed = t->failed || !chi_grow(&t->data, &t->capacity, need, 1);
	return !t->failed;
}

void chi_text_add_bytes(chi_text *t, const char *bytes, size_t count)
{
	if (!reserve(t, count))
		return;
	if (count)
		memcpy(t->data + t->length, bytes, count);
	t->length += count;
	t->data[t->length] = '\0';
}

void chi_text_add(chi_text *t, const char *fmt, ...)
{
	va_list args, again;
	va_start(args, fmt);
	va_copy(again, args);
	char small[256];
	int length = chi_text_format(small, sizeof(small), fmt, args);
	if (length < 0) {
		t->failed = true;
	} else if ((size_t) length < sizeof(small)) {
		chi_text_add_bytes(t, small, (size_t) length);
	} else if (reserve(t, (size_t) length)) {
		chi_text_format(t->data + t->length, (size_t) length + 1, fmt, again);
		t->length += (size_t) length;
	}
	va_end(again);
	va_end(args);
}

enum { ANY_LENGTH = 4 };

static size_t decode_utf8(const char *s, size_t left, uint32_t *code)
{
	static const uint32_t min[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned char first = left > 0 ? (unsigned char) s[0] : 0x80;
	size_t length = first < 0x80 ? 1 : first < 0xc0 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
	if (length == 0 || length > left || first >= 0xf8)
		return 0;
	uint32_t value = length == 1 ? first : first & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		unsigned char next = (unsigned char) s[i];
		if ((next & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (next & 0x3f);
	}
	if (value < min[length] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
		return 0;
	*code = value;
	return length;
}

size_t chi_utf8_length(const char *s, size_t left)
{
	uint32_t code;
	return decode_utf8(s, left, &code);
}

bool chi_text_is_utf8(const char *text, size_t bytes)
{
	while (bytes > 0) {
		size_t length = chi_utf8_length(text, bytes);
		if (length == 0)
			return false;
		text += length;
		bytes -= length;
	}
	return true;
}

static void add_json_control(chi_text *t, unsigned code)
{
	switch (code) {
	case '\n':
		chi_text_add_bytes(t, "\\n", 2);
		break;
	case '\r':
		chi_text_add_bytes(t, "\\r", 2);
		break;
	case '\t':
		chi_text_add_bytes(t, "\\t", 2);
		break;
	default:
		chi_text_add(t, "\\u%04x", code);
	}
}

void chi_text_add_json(chi_text *t, const char *text)
{
	chi_text_add_bytes(t, "\"", 1);
	while (*text) {
		uint32_t code = 0;
		size_t length = decode_utf8(text, ANY_LENGTH, &code);
		if (length == 0)
			chi_text_add_bytes(t, "\xef\xbf\xbd", 3);
		else if (code < 0x20)
			add_json_control(t, code);
		else {
			if (code == '"' || code == '\\')
				chi_text_add_bytes(t, "\\", 1);
			chi_text_add_bytes(t, text, length);
		}
		text += length ? length : 1;
	}
	chi_text_add_bytes(t, "\"", 1);
}

// Terminal controls (also C1) and direction marks.
static bool is_unsafe(uint32_t code)
{
	static const uint32_t unsafe[][2] = { { 0, 0x1f }, { 0x7f, 0x9f }, { 0x61c, 0x61c },
		{ 0x200e, 0x200f }, { 0x202a, 0x202e }, { 0x2066, 0x2069 } };
	for (size_t i = 0; i < sizeof unsafe / sizeof unsafe[0]; i++)
		if (code >= unsafe[i][0] && code <= unsafe[i][1])
			return true;
	return false;
}

const char *chi_text_clean(const char *text, char *out, size_t size)
{
	static const char digits[] = "0123456789abcdef";
	if (size == 0)
		return "";
	size_t used = 0;
	while (*text) {
		uint32_t code = 0;
		size_t length = decode_utf8(text, ANY_LENGTH, &code);
		bool escape = length == 0 || is_unsafe(code);
		if (length == 0)
			length = 1;
		if (length * (escape ? 4 : 1) > size - 1 - used)
			break;
		for (size_t i = 0; i < length; i++) {
			unsigned char byte = (unsigned char) text[i];
			if (escape) {
				out[used++] = '\\';
				out[used++] = 'x';
				out[used++] = digits[byte >> 4];
				out[used++] = digits[byte & 15];
			} else {
				out[used++] = text[i];
			}
		}
		text += length;
	}
	out[used] = '\0';
	return out;
}

static bool starts_number(const char *text)
{
	return *text && !strchr(" \t\n\v\f\r", *text);
}

bool chi_parse_int64(const char *text, int64_t *out)
{
	if (!starts_number(text))
		return false;
	char *end;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	if (errno || *end || end == text)
		return false;
	*out = value;
	return true;
}

static bool parse_real(const char *text, bool narrow, double *out)
{
	if (!starts_number(text))
		return false;
	char *end;
	locale_t host = enter_c_locale();
	errno = 0;
	double value = narrow ? (double) strtof(text, &end) : strtod(text, &end);
	bool too_large = errno == ERANGE && isinf(value);
	uselocale(host);
	if (too_large || *end || end == text)
		return false;
	*out = value;
	return true;
}

bool chi_parse_double(const char *text, double *out)
{
	return parse_real(text, false, out);
}

bool chi_parse_float(const char *text, float *out)
{
	double value;
	if (!parse_real(text, true, &value))
		return false;
	*out = (float) value;
	return true;
}
