// A strict reader (RFC 8259), token by token, without recursion or allocation; strings are decoded
// in place. Refuses invalid UTF-8, zero characters and nesting beyond CHI_JSON_DEPTH, but not
// duplicate keys.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CHI_JSON_DEPTH = 16 };

typedef enum {
	CHI_JSON_END, // after exactly one value
	CHI_JSON_OBJECT,
	CHI_JSON_OBJECT_END,
	CHI_JSON_ARRAY,
	CHI_JSON_ARRAY_END,
	CHI_JSON_KEY,
	CHI_JSON_STRING,
	CHI_JSON_NUMBER,
	CHI_JSON_TRUE,
	CHI_JSON_FALSE,
	CHI_JSON_NULL,
	CHI_JSON_WRONG // why, at byte `at`; then always
} chi_json_token;

typedef struct {
	char *data;
	size_t size, at;
	int depth;
	uint32_t objects;
	int state;
	char *text; // strings end in a zero byte
	size_t length;
	const char *error;
} chi_json;

void chi_json_open(chi_json *j, char *data, size_t size);
chi_json_token chi_json_next(chi_json *j);
// False: not whole and positive, or out of range.
bool chi_json_uint64(const chi_json *j, uint64_t *out);
