// Lines for people and for programs.
#include "report.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool first_key; // of the object or list that is being written

// Bytes of the character that p begins with; 0: it is no UTF-8. (RFC 3629, without its care for
// surrogates and for what could be shorter.)
static int character(const char *p)
{
	const unsigned char *c = (const unsigned char *) p;
	const int more = c[0] < 0x80 ? 0 : c[0] >= 0xf0 ? 3 : c[0] >= 0xe0 ? 2 : 1;
	if ((c[0] >= 0x80 && c[0] < 0xc2) || c[0] > 0xf4)
		return 0;
	for (int i = 1; i <= more; i++)
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	return 1 + more;
}

static void put_string(const char *text)
{
	putchar('"');
	for (const char *p = text; *p != '\0';) {
		const unsigned char c = (unsigned char) *p;
		const int length = character(p);
		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			printf("\\u%04x", c);
		else if (length == 0)
			fputs("\\ufffd", stdout);
		else
			printf("%.*s", length, p);
		p += length == 0 ? 1 : length;
	}
	putchar('"');
}

// To some terminals U+0080 to U+009F are commands, too.
static bool is_shown(const char *p, int length)
{
	const unsigned char *c = (const unsigned char *) p;
	return length > 0 && c[0] >= 0x20 && c[0] != 0x7f && !(c[0] == 0xc2 && c[1] < 0xa0);
}

const char *clean_text(const char *text, char out[CLEAN_TEXT])
{
	size_t at = 0;
	for (const char *p = text; *p != '\0' && at + 8 < CLEAN_TEXT;) {
		const int length = character(p), bytes = length == 0 ? 1 : length;
		for (int i = 0; i < bytes; i++)
			if (is_shown(p, length))
				out[at++] = p[i];
			else
				at += (size_t) snprintf(out + at, 5, "\\x%02x", (unsigned char) p[i]);
		p += bytes;
	}
	out[at] = '\0';
	return out;
}

static void put_comma(void)
{
	if (!first_key)
		fputs(", ", stdout);
	first_key = false;
}

static void put_key(const char *key)
{
	put_comma();
	put_string(key);
	fputs(": ", stdout);
}

void json_begin(void)
{
	putchar('{');
	first_key = true;
}

void json_text(const char *key, const char *text)
{
	put_key(key);
	put_string(text);
}

void json_integer(const char *key, int64_t value)
{
	put_key(key);
	printf("%lld", (long long) value);
}

void json_number(const char *key, double value)
{
	put_key(key);
	if (isfinite(value))
		printf("%.12g", value);
	else
		fputs("null", stdout);
}

void json_list(const char *key, size_t n, const int64_t values[])
{
	put_key(key);
	putchar('[');
	for (size_t i = 0; i < n; i++)
		printf("%s%lld", i == 0 ? "" : ", ", (long long) values[i]);
	putchar(']');
}

void json_floats(const char *key, size_t n, const float values[])
{
	put_key(key);
	putchar('[');
	for (size_t i = 0; i < n; i++) {
		fputs(i == 0 ? "" : ", ", stdout);
		if (isfinite(values[i]))
			printf("%.9g", (double) values[i]);
		else
			fputs("null", stdout);
	}
	putchar(']');
}

void json_begin_object(const char *key)
{
	put_key(key);
	json_begin();
}

void json_begin_list(const char *key)
{
	put_key(key);
	putchar('[');
	first_key = true;
}

void json_begin_item(void)
{
	put_comma();
	json_begin();
}

void json_end_item(void)
{
	putchar('}');
	first_key = false;
}

void json_end_list(void)
{
	putchar(']');
	first_key = false;
}

void json_end(void)
{
	puts("}");
}

double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

bool progress_on(void)
{
	return isatty(STDOUT_FILENO) == 1;
}

void progress(const char *fmt, ...)
{
	va_list args;
	if (!progress_on())
		return;
	putchar('\r');
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	fputs("\033[K", stdout); // what is left of a longer line
	fflush(stdout);
}

void progress_clear(void)
{
	if (progress_on())
		fputs("\r\033[K", stdout);
}

const char *print_bytes(double bytes, char text[32])
{
	static const char *const units[] = { "bytes", "kB", "MB", "GB", "TB" };
	size_t unit = 0;
	for (; bytes >= 999.5 && unit + 1 < sizeof units / sizeof units[0]; unit++)
		bytes /= 1000;
	snprintf(text, 32, unit == 0 ? "%.0f %s" : "%.3g %s", bytes, units[unit]);
	return text;
}

bool output_whole(const char *command)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return true;
	fprintf(stderr, "%s: standard output: not all could be written\n", command);
	return false;
}
