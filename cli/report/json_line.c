// A small strict reader of JSON (RFC 8259) without recursion.
#include "report/json_line.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 8 };

static char *skip_space(char *p)
{
	while (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n')
		p++;
	return p;
}

// Four hexadecimal digits; -1: others.
static long hex(const char *p)
{
	long code = 0;
	for (int i = 0; i < 4; i++) {
		if (!isxdigit((unsigned char) p[i]))
			return -1;
		code = code * 16 + (isdigit((unsigned char) p[i]) ? p[i] - '0' : (p[i] | 32) - 'a' + 10);
	}
	return code;
}

static char *put_utf8(char *to, long code)
{
	if (code == 0 || (code >= 0xd800 && code <= 0xdfff))
		code = 0xfffd; // a surrogate: Choir writes none
	if (code < 0x80) {
		*to++ = (char) code;
	} else if (code < 0x800) {
		*to++ = (char) (0xc0 | code >> 6);
		*to++ = (char) (0x80 | (code & 0x3f));
	} else {
		*to++ = (char) (0xe0 | code >> 12);
		*to++ = (char) (0x80 | (code >> 6 & 0x3f));
		*to++ = (char) (0x80 | (code & 0x3f));
	}
	return to;
}

// Reads a string behind its first quote. NULL: it is wrong. *text gets its decoded text.
static char *read_string(char *p, const char **text)
{
	static const char from[] = "\"\\/bfnrt", is[] = "\"\\/\b\f\n\r\t";
	char *to = p;
	*text = p;
	while (*p != '"') {
		if ((unsigned char) *p < ' ')
			return NULL; // also the end
		if (*p != '\\') {
			*to++ = *p++;
			continue;
		}
		const char *known = p[1] == '\0' ? NULL : strchr(from, p[1]);
		const long code = p[1] == 'u' ? hex(p + 2) : -1;
		if (known == NULL && code < 0)
			return NULL;
		to = known != NULL ? (*to = is[known - from], to + 1) : put_utf8(to, code);
		p += known != NULL ? 2 : 6;
	}
	*to = '\0';
	return p + 1;
}

static char *read_number(char *p, double *number)
{
	char *end;
	if (*p != '-' && !isdigit((unsigned char) *p))
		return NULL;
	*number = strtod(p, &end);
	return end == p || !isfinite(*number) ? NULL : end;
}

static char *read_word(char *p, double *number)
{
	static const char *const words[] = { "null", "true", "false" };
	*number = NAN;
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strncmp(p, words[i], strlen(words[i])) == 0)
			return p + strlen(words[i]);
	return read_number(p, number);
}

// Behind the bracket or brace that begins it.
static char *skip_nested(char *p)
{
	const char *ignored;
	for (int depth = 1; depth > 0;) {
		if (*p == '\0' || depth > MAX_DEPTH)
			return NULL;
		if (*p == '"') {
			if ((p = read_string(p + 1, &ignored)) == NULL)
				return NULL;
			continue;
		}
		depth += (*p == '[' || *p == '{') - (*p == ']' || *p == '}');
		p++;
	}
	return p;
}

static bool add_number(json_line *o, double number)
{
	if (o->numbers == o->capacity) {
		const size_t capacity = o->capacity == 0 ? 64 : 2 * o->capacity;
		double *grown = realloc(o->number, capacity * sizeof *grown);
		if (grown == NULL) {
			o->no_memory = true;
			return false;
		}
		o->number = grown;
		o->capacity = capacity;
	}
	o->number[o->numbers++] = number;
	return true;
}

// Behind "[". A list of other things than numbers becomes empty.
static char *read_list(json_line *o, json_field *f, char *p)
{
	double number;
	char *const begin = p;
	f->first = o->numbers;
	for (p = skip_space(p); *p != ']'; p = skip_space(p)) {
		char *end = read_word(p, &number);
		if (end == NULL) {
			f->n = 0;
			o->numbers = f->first;
			return skip_nested(begin);
		}
		if (!add_number(o, number))
			return NULL;
		f->n++;
		p = skip_space(end);
		if (*p == ',')
			p++;
		else if (*p != ']')
			return NULL;
	}
	return p + 1;
}

static char *read_value(json_line *o, json_field *f, char *p)
{
	f->number = NAN;
	if (*p == '"')
		return read_string(p + 1, &f->text);
	if (*p == '[')
		return read_list(o, f, p + 1);
	return *p == '{' ? skip_nested(p + 1) : read_word(p, &f->number);
}

bool json_line_read(json_line *o, char *line)
{
	char *p = skip_space(line);
	o->n = o->numbers = 0;
	if (*p++ != '{')
		return false;
	p = skip_space(p);
	while (*p != '}') {
		if (*p != '"' || o->n == JSON_FIELDS)
			return false;
		json_field *f = &o->field[o->n++];
		*f = (json_field){ .n = 0 };
		if ((p = read_string(p + 1, &f->key)) == NULL || *(p = skip_space(p)) != ':')
			return false;
		if ((p = read_value(o, f, skip_space(p + 1))) == NULL)
			return false;
		p = skip_space(p);
		if (*p == ',')
			p = skip_space(p + 1);
		else if (*p != '}')
			return false;
	}
	return *skip_space(p + 1) == '\0';
}

void json_line_free(json_line *o)
{
	free(o->number);
	*o = (json_line){ .n = 0 };
}

const json_field *json_line_find(const json_line *o, const char *key)
{
	for (size_t i = 0; i < o->n; i++)
		if (strcmp(o->field[i].key, key) == 0)
			return &o->field[i];
	return NULL;
}

const char *json_line_text(const json_line *o, const char *key)
{
	const json_field *f = json_line_find(o, key);
	return f == NULL || f->text == NULL ? "" : f->text;
}

double json_line_number(const json_line *o, const char *key)
{
	const json_field *f = json_line_find(o, key);
	return f == NULL || f->text != NULL ? (double) NAN : f->number;
}
