// Reads arguments, prints help, and writes options into metadata and reads them back.
#include "command_options.h"
#include "standard_input.h"
#include "output.h"
#include "percent_encoding.h"

#include <choir/choir.h>

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPTIONS = 64, MAX_LETTERS = 64, MAX_TEXT = 1024, HELP_COLUMN = 30 };

const char json_help[] = "print JSON, one object per line";
const char devices_help[] = "devices for the replicas (CHOIR_DEVICES, else all\n"
							"accelerators, else one CPU device per replica, at most\n"
							"one per processor)";
const char replicas_help[] = "number of replicas (one per device in --devices or\n"
							 "CHOIR_DEVICES, else one per accelerator, else one; at\n"
							 "least one per worker)";

void print_error(const char *who, const char *text)
{
	fflush(stdout);
	char shown[MAX_TEXT];
	spool_hide(text, shown, sizeof shown);
	fprintf(stderr, "%s: ", who);
	clean_print(stderr, shown);
	fputc('\n', stderr);
}

int wrong_use(const command *c, const char *fmt, ...)
{
	char text[MAX_TEXT];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	print_error(c->name, text);
	return EXIT_USAGE;
}

int failed(const command *c)
{
	print_error(c->name, choir_error());
	return EXIT_FAILED;
}

// The Levenshtein distance.
static size_t distance(const char *a, const char *b)
{
	size_t row[MAX_LETTERS + 1];
	const size_t n = strlen(b);
	if (n > MAX_LETTERS)
		return SIZE_MAX;
	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 0; a[i] != '\0'; i++) {
		size_t corner = row[0]; // from the row above
		row[0] = i + 1;
		for (size_t j = 0; j < n; j++) {
			const size_t change = corner + (a[i] != b[j]);
			corner = row[j + 1];
			const size_t other = (row[j] < corner ? row[j] : corner) + 1;
			row[j + 1] = change < other ? change : other;
		}
	}
	return row[n];
}

// NULL: none is close.
static const char *nearest(const char *text, size_t n, const char *const known[])
{
	const char *best = NULL;
	size_t min = strlen(text) / 2 + 1;
	for (size_t i = 0; i < n; i++) {
		const size_t d = distance(text, known[i]);
		if (d < min) {
			min = d;
			best = known[i];
		}
	}
	return best;
}

int unknown_name(
		const command *c, const char *of, const char *name, size_t n, const char *const known[])
{
	char list[256] = "";
	size_t at = 0;
	for (size_t i = 0; i < n && at < sizeof list; i++)
		at += (size_t) snprintf(list + at, sizeof list - at, "%s%s", i == 0 ? "" : ", ", known[i]);
	const char *near = nearest(name, n, known);
	return wrong_use(c, "%s %s: unknown;%s%s%s known: %s", of, name, near ? " did you mean " : "",
			near ? near : "", near ? "?" : "", list);
}

static void print_option(const char *name, const char *value, const char *text)
{
	char left[64];
	snprintf(left, sizeof left, "  %s%s%s", name, value ? " " : "", value ? value : "");
	if (strlen(left) >= HELP_COLUMN) {
		puts(left);
		left[0] = '\0';
	}
	while (*text != '\0') {
		const size_t length = strcspn(text, "\n");
		printf("%-*s%.*s\n", HELP_COLUMN, left, (int) length, text);
		text += length + (text[length] == '\n');
		left[0] = '\0';
	}
}

static void print_help(const command *c)
{
	const char *operands = c->operands != NULL ? c->operands : "";
	const char *last = strstr(operands, "[options]") != NULL ? "" : " [options]";
	printf("usage: %s%s%s%s\n\n%s\n\noptions:\n", c->name, operands[0] ? " " : "", operands, last,
			c->about);
	for (size_t i = 0; i < c->n; i++)
		print_option(c->options[i].name, c->options[i].value, c->options[i].help);
	print_option("--help", NULL, "print this text");
	printf("\nexamples:\n  %s\n  %s\n", c->examples[0], c->examples[1]);
}

static int unknown_option(const command *c, const char *name, size_t length)
{
	const char *known[MAX_OPTIONS];
	char text[MAX_LETTERS];
	snprintf(text, sizeof text, "%.*s", (int) (length < sizeof text ? length : sizeof text), name);
	size_t n = 0;
	for (; n < c->n && n < MAX_OPTIONS - 1; n++)
		known[n] = c->options[n].name;
	known[n++] = "--help";
	const char *near = nearest(text, n, known);
	if (near != NULL)
		return wrong_use(c, "%s: unknown option; did you mean %s? (--help lists all)", text, near);
	return wrong_use(c, "%s: unknown option (--help lists all)", text);
}

static bool read_integer(const option *o, const char *text)
{
	char *end;
	errno = 0;
	const long long value = strtoll(text, &end, 10);
	if (isspace((unsigned char) text[0]) || end == text || *end != '\0' || errno != 0 ||
			value < o->min || (o->max != 0 && value > o->max))
		return false;
	*(int64_t *) o->to = value;
	return true;
}

static bool read_seed(const option *o, const char *text)
{
	char *end;
	errno = 0;
	const unsigned long long value = strtoull(text, &end, 10);
	if (!isdigit((unsigned char) text[0]) || *end != '\0' || errno != 0)
		return false;
	*(uint64_t *) o->to = value;
	return true;
}

static bool read_number(const option *o, const char *text)
{
	char *end;
	const double value = strtod(text, &end);
	if (isspace((unsigned char) text[0]) || end == text || *end != '\0' || !isfinite(value) ||
			value < 0 || (value == 0 && !o->zero))
		return false;
	*(double *) o->to = value;
	return true;
}

const char *options_choice(const option *o, const char *text)
{
	static const char *const older[][2] = { { "stop", "error" }, { "go_on", "ignore" } };
	for (size_t i = 0; i < sizeof older / sizeof older[0]; i++)
		if (strcmp(text, older[i][0]) == 0)
			text = older[i][1];
	size_t i = 0;
	while (o->choices[i] != NULL && strcmp(o->choices[i], text) != 0)
		i++;
	return o->choices[i];
}

static bool read_choice(const option *o, const char *text)
{
	const char *choice = options_choice(o, text);
	if (choice != NULL)
		*(const char **) o->to = choice;
	return choice != NULL;
}

static bool set_value(const option *o, const char *text)
{
	switch (o->kind) {
	case OPTION_FLAG:
		return false;
	case OPTION_TEXT:
		*(const char **) o->to = text;
		return text[0] != '\0';
	case OPTION_CHOICE:
		return read_choice(o, text);
	case OPTION_INTEGER:
		return read_integer(o, text);
	case OPTION_SEED:
		return read_seed(o, text);
	case OPTION_NUMBER:
		return read_number(o, text);
	}
	return false;
}

static int wrong_integer(const command *c, const option *o, const char *text)
{
	if (o->max != 0)
		return wrong_use(c, "%s %s: wrong value; needs a whole number from %lld to %lld", o->name,
				text, (long long) o->min, (long long) o->max);
	return wrong_use(c, "%s %s: wrong value; needs a whole number of at least %lld", o->name, text,
			(long long) o->min);
}

static int wrong_value(const command *c, const option *o, const char *text)
{
	size_t n = 0;
	switch (o->kind) {
	case OPTION_CHOICE:
		while (o->choices[n] != NULL)
			n++;
		return unknown_name(c, o->name, text, n, o->choices);
	case OPTION_INTEGER:
		return wrong_integer(c, o, text);
	case OPTION_SEED:
		return wrong_use(
				c, "%s %s: wrong value; needs a whole number from 0 to 2^64 - 1", o->name, text);
	case OPTION_NUMBER:
		return wrong_use(c, "%s %s: wrong value; needs a number %s 0", o->name, text,
				o->zero ? "of at least" : "greater than");
	default:
		return wrong_use(c, "%s: empty value; needs %s", o->name, o->value);
	}
}

static const option *find_option(const command *c, const char *name, size_t length)
{
	for (size_t i = 0; i < 2 * c->n; i++) {
		const option *o = &c->options[i / 2];
		const char *known = i % 2 == 0 ? o->name : o->alias;
		if (known != NULL && strncmp(known, name, length) == 0 && known[length] == '\0')
			return o;
	}
	return NULL;
}

// Advances *i if the value is the next argument.
static int read_option(const command *c, int argc, char **argv, int *i)
{
	const char *argument = argv[*i];
	const size_t length = strcspn(argument, "=");
	const option *o = find_option(c, argument, length);
	if (o == NULL)
		return unknown_option(c, argument, length);
	const char *value = argument[length] == '=' ? argument + length + 1 : NULL;
	if (o->kind == OPTION_FLAG) {
		*(bool *) o->to = true;
		return value == NULL ? EXIT_OK : wrong_use(c, "%s: has a value; needs none", o->name);
	}
	if (value == NULL && *i + 1 < argc)
		value = argv[++*i];
	if (value == NULL)
		return wrong_use(c, "%s: no value; needs %s", o->name, o->value);
	return set_value(o, value) ? EXIT_OK : wrong_value(c, o, value);
}

// --help also counts after a wrong argument, but not as the value of an option.
static bool asks_for_help(const command *c, int argc, char **argv)
{
	for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
		const option *o = find_option(c, argv[i], strlen(argv[i]));
		i += o != NULL && o->kind == OPTION_TEXT;
	}
	return false;
}

void options_read(const command *c, int argc, char **argv, const char *operands[])
{
	const int max = c->operands == NULL ? 0 : c->max_operands == 0 ? 1 : c->max_operands;
	int given = 0;
	bool may_be_option = true;
	if (asks_for_help(c, argc, argv)) {
		print_help(c);
		exit(output_whole("choir") ? EXIT_OK : EXIT_FAILED);
	}
	for (int i = 0; i < argc; i++) {
		if (may_be_option && strcmp(argv[i], "--") == 0) {
			may_be_option = false;
		} else if (may_be_option && argv[i][0] == '-' && argv[i][1] != '\0') {
			if (read_option(c, argc, argv, &i) != EXIT_OK)
				exit(EXIT_USAGE);
		} else if (given == max) {
			exit(wrong_use(c, "\"%s\": unexpected argument (--help lists the options)", argv[i]));
		} else {
			operands[given++] = argv[i];
		}
	}
	if (given == 0 && max > 0 && !c->optional)
		exit(wrong_use(
				c, "an argument is missing; needs %s (--help lists the options)", c->operands));
}

// Writes the fewest digits, at least 15, that are read back as this number.
static size_t write_number(double value, char *to, size_t size)
{
	int digits = 15;
	while (digits < 17 && (snprintf(to, size, "%.*g", digits, value), strtod(to, NULL) != value))
		digits++;
	return (size_t) snprintf(to, size, "%.*g", digits, value);
}

size_t options_value(const option *o, char *to, size_t size)
{
	const char *const *text = o->to;
	switch (o->kind) {
	case OPTION_FLAG:
		return *(bool *) o->to ? percent_encode("on", to, size) : 0;
	case OPTION_TEXT:
	case OPTION_CHOICE:
		return *text == NULL ? 0 : percent_encode(*text, to, size);
	case OPTION_INTEGER:
		return *(int64_t *) o->to == 0
				? 0
				: (size_t) snprintf(to, size, "%lld", (long long) *(int64_t *) o->to);
	case OPTION_SEED:
		return (size_t) snprintf(to, size, "%llu", (unsigned long long) *(uint64_t *) o->to);
	case OPTION_NUMBER:
		return *(double *) o->to == 0 ? 0 : write_number(*(double *) o->to, to, size);
	}
	return 0;
}

const char *options_key(const option *o)
{
	return (o->alias != NULL ? o->alias : o->name) + 2;
}

bool options_write(const command *c, const char *prefix, char *text, size_t size)
{
	size_t at = 0;
	for (size_t i = 0; i < c->n; i++) {
		const option *o = &c->options[i];
		size_t end = at;
		if (!o->recorded)
			continue;
		end += (size_t) snprintf(text + at, size - at, "%s/%s=", prefix, options_key(o));
		const size_t written = end < size ? options_value(o, text + end, size - end) : 0;
		if (end + written + 1 >= size)
			return false;
		if (written == 0)
			continue;
		at = end + written;
		text[at++] = '\n';
	}
	text[at] = '\0';
	return true;
}

bool options_read_back(const option *o, char *text)
{
	percent_decode(text);
	return set_value(o, text);
}
