// Text: a buffer that grows, and small helpers for names and numbers.
#pragma once

#include "choir/export.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
	char *data; // NULL or ends in a zero byte
	size_t length, capacity;
	bool failed; // an allocation failed: the text is not whole
} chi_text;

void chi_text_free(chi_text *t); // usable again as if zeroed
void chi_text_add(chi_text *t, const char *fmt, ...) CHOIR_PRINTF(2, 3);
void chi_text_add_bytes(chi_text *t, const char *bytes, size_t count);
// A JSON string with its quotes; bytes that are no UTF-8 become U+FFFD.
void chi_text_add_json(chi_text *t, const char *text);
// text for messages: control characters, marks of the direction of writing and bytes that are no
// UTF-8 as \x1b. Writes at most size bytes with the zero.
const char *chi_text_clean(const char *text, char *out, size_t size);

// text in size bytes, at least 16: of one that is longer the beginning, and a hash of all of it,
// so that texts which differ do so still.
const char *chi_text_fit(const char *text, char *out, size_t size);

// Appends what fits of more to a text of length at, in size bytes; for texts that are made too
// often for printf. The new length.
size_t chi_text_append(char *text, size_t size, size_t at, const char *more);

// As vsnprintf, but with a decimal point whatever the host's locale says.
int chi_text_format(char *out, size_t size, const char *fmt, va_list args) CHOIR_PRINTF(3, 0);
// What the system says about an error number; the result may be out or constant text.
const char *chi_text_errno(int error_number, char *out, size_t size);

// The whole of text as a number; false if it is none, has more behind it, or does not fit.
bool chi_parse_int64(const char *text, int64_t *out);
bool chi_parse_double(const char *text, double *out);
bool chi_parse_float(const char *text, float *out);

// The bytes of the UTF-8 character at s, of which left bytes can be read; 0: it is none.
size_t chi_utf8_length(const char *s, size_t left);
bool chi_text_is_utf8(const char *text, size_t bytes);
