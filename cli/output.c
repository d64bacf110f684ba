// Prints JSON objects, progress lines and sizes on standard output.
#include "output.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool first_key; // of the current object or list
static FILE *out; // NULL: standard output

void json_to(FILE *file)
{
	out = file;
}

static FILE *sink(void)
{
	return out == NULL ? stdout : out;
}

static void put(char c)
{
	fputc(c, sink());
}

// People read JSON lines on terminals, so control characters are escaped.
static void put_character(const char *text, size_t length, uint32_t code)
{
	if (length == 0)
		fputs("\\ufffd", sink());
	else if (code == '"' || code == '\\')
		fprintf(sink(), "\\%c", (char) code);
	else if (!clean_shows(code))
		fprintf(sink(), "\\u%04x", (unsigned) code); // always below U+10000
	else
		fwrite(text, 1, length, sink());
}

static void put_string(const char *text)
{
	put('"');
	size_t bytes = 0;
	for (size_t left = strlen(text); left > 0; text += bytes, left -= bytes) {
		uint32_t code = 0;
		const size_t length = clean_character(text, left, &code);
		put_character(text, length, code);
		bytes = length == 0 ? 1 : length;
	}
	put('"');
}

static void put_comma(void)
{
	if (!first_key)
		fputs(", ", sink());
	first_key = false;
}

static void put_key(const char *key)
{
	put_comma();
	put_string(key);
	fputs(": ", sink());
}

void json_begin(void)
{
	put('{');
	first_key = true;
}

void json_begin_event(const char *name)
{
	json_begin();
	json_text("event", name);
}

void json_text(const char *key, const char *text)
{
	put_key(key);
	put_string(text);
}

void json_integer(const char *key, int64_t value)
{
	put_key(key);
	fprintf(sink(), "%lld", (long long) value);
}

void json_unsigned(const char *key, uint64_t value)
{
	put_key(key);
	fprintf(sink(), "%llu", (unsigned long long) value);
}

void json_number(const char *key, double value)
{
	put_key(key);
	if (isfinite(value))
		fprintf(sink(), "%.12g", value);
	else
		fputs("null", sink());
}

void json_list(const char *key, size_t n, const int64_t values[])
{
	put_key(key);
	put('[');
	for (size_t i = 0; i < n; i++)
		fprintf(sink(), "%s%lld", i == 0 ? "" : ", ", (long long) values[i]);
	put(']');
}

void json_floats(const char *key, size_t n, const float values[])
{
	put_key(key);
	put('[');
	for (size_t i = 0; i < n; i++) {
		fputs(i == 0 ? "" : ", ", sink());
		if (isfinite(values[i]))
			fprintf(sink(), "%.9g", (double) values[i]);
		else
			fputs("null", sink());
	}
	put(']');
}

void json_begin_object(const char *key)
{
	put_key(key);
	json_begin();
}

void json_begin_list(const char *key)
{
	put_key(key);
	put('[');
	first_key = true;
}

void json_begin_item(void)
{
	put_comma();
	json_begin();
}

void json_end_item(void)
{
	put('}');
	first_key = false;
}

void json_end_list(void)
{
	put(']');
	first_key = false;
}

void json_end(void)
{
	fputs("}\n", sink());
}

double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

bool progress_on(void)
{
	// Open MPI gives its first process a terminal, and may copy the output into a file.
	static const char *const launchers[] = { "OMPI_COMM_WORLD_RANK", "PMI_RANK" };
	for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++)
		if (getenv(launchers[i]) != NULL)
			return false;
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
	fputs("\033[K", stdout); // erases to the end of the line
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
	fprintf(stderr, "%s: standard output: write failed; the output is incomplete\n", command);
	return false;
}
