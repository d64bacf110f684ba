// A strict reader of JSON text (RFC 8259), one token after another: no recursion, no allocation.
// Strings are decoded where they stand, so the text is changed on the way. Refused besides what is
// no JSON: text that is no UTF-8, zero characters in strings, deeper nesting than CHI_JSON_DEPTH.
// Whether keys stand twice is for the caller to see.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CHI_JSON_DEPTH = 16 };

typedef enum {
	CHI_JSON_END, // of the text: there was one value, whole
	CHI_JSON_OBJECT, // {
	CHI_JSON_OBJECT_END, // }
	CHI_JSON_ARRAY, // [
	CHI_JSON_ARRAY_END, // ]
	CHI_JSON_KEY, // text, and its value is the next token
	CHI_JSON_STRING, // text
	CHI_JSON_NUMBER, // text: as it is written
	CHI_JSON_TRUE,
	CHI_JSON_FALSE,
	CHI_JSON_NULL,
	CHI_JSON_WRONG // error says why, at byte at; it stays so
} chi_json_token;

typedef struct {
	char *data;
	size_t size, at; // at: the next byte to read
	int depth;
	uint32_t objects; // bit i: level i is an object
	int state;
	char *text; // of the last KEY, STRING or NUMBER; for strings with a zero byte behind it
	size_t length;
	const char *error;
} chi_json;

void chi_json_open(chi_json *j, char *data, size_t size);
chi_json_token chi_json_next(chi_json *j);
// The last NUMBER as a whole number without sign, point or exponent; false if it is none.
bool chi_json_uint64(const chi_json *j, uint64_t *out);
