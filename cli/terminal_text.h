// Makes text of files and users safe for a terminal. Control characters (also U+0080 to U+009F),
// characters that change the direction of text (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066
// to U+2069) and bytes that are not UTF-8 become escapes like "\x1b".
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { CLEAN_TEXT = 256 };
// Escapes text into out. Cuts it after a whole character if it does not fit.
const char *clean_text(const char *text, char out[CLEAN_TEXT]);

// Writes n bytes with escapes. Returns the number consumed: with .more, an incomplete character at
// the end is left for the next call. With .lines, line ends and tabs are not escaped.
typedef struct {
	bool lines, more;
} clean_options;
size_t clean_write(FILE *to, const void *bytes, size_t n, const clean_options *o);
// Writes a zero-terminated text as one line, without a line end.
void clean_print(FILE *to, const char *text);

// Decodes the first UTF-8 character of n bytes (RFC 3629) into *code. Returns its bytes; 0 if
// there is none.
size_t clean_character(const void *bytes, size_t n, uint32_t *code);
// Whether a character is printed without an escape.
bool clean_shows(uint32_t code);
