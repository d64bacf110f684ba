// Growing text, names and numbers.
#pragma once

#include "choir/export.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
	char *data; // NULL, or ends in a zero byte
	size_t length, capacity;
	bool failed; // out of memory
} chi_text;

void chi_text_free(chi_text *t);
void chi_text_add(chi_text *t, const char *fmt, ...) CHOIR_PRINTF(2, 3);
void chi_text_add_bytes(chi_text *t, const char *bytes, size_t count);
// Adds quotes, too; invalid UTF-8 becomes U+FFFD.
void chi_text_add_json(chi_text *t, const char *text);
// Escapes control characters, direction marks and invalid UTF-8 as \x1b. Writes up to size bytes
// with the zero.
const char *chi_text_clean(const char *text, char *out, size_t size);

// Truncates a text beyond size (at least 16), with a hash.
const char *chi_text_fit(const char *text, char *out, size_t size);

// Truncates; returns the new length.
size_t chi_text_append(char *text, size_t size, size_t at, const char *more);

// Has a decimal point in every locale.
int chi_text_format(char *out, size_t size, const char *fmt, va_list args) CHOIR_PRINTF(3, 0);
const char *chi_text_errno(int error_number, char *out, size_t size);

// False: text is not just a number, or out of range.
bool chi_parse_int64(const char *text, int64_t *out);
bool chi_parse_double(const char *text, double *out);
bool chi_parse_float(const char *text, float *out);

// left bytes are readable; 0: invalid.
size_t chi_utf8_length(const char *s, size_t left);
bool chi_text_is_utf8(const char *text, size_t bytes);
