// Makes text of files and users safe for a terminal. Control characters, characters that change
// the direction of text, and bytes that are not UTF-8 become escapes like "\x1b".
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { CLEAN_TEXT = 256 };
// Escapes text into out. Cuts it after a whole character if it does not fit.
const char *clean_text(const char *text, char out[CLEAN_TEXT]);

// Writes n bytes with escapes and returns how many. .more: leaves an incomplete character at the
// end for the next call. .lines: does not escape line ends and tabs.
typedef struct {
	bool lines, more;
} clean_options;
size_t clean_write(FILE *to, const void *bytes, size_t n, const clean_options *o);
void clean_print(FILE *to, const char *text);

// Decodes a UTF-8 character (RFC 3629) at the start of n bytes. Returns its bytes; 0: none.
size_t clean_character(const void *bytes, size_t n, uint32_t *code);
// Whether a character is printed without an escape.
bool clean_shows(uint32_t code);
