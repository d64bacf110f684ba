// Text from files and from users as a terminal may show it. A file can hold what commands a
// terminal (control characters, U+0080 to U+009F among them), what turns around the order of the
// letters around it (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069), and bytes that
// are no UTF-8. Each byte of these becomes "\x1b"; all else is written as it is.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { CLEAN_TEXT = 256 };
// Leaves out what does not fit, whole characters of it.
const char *clean_text(const char *text, char out[CLEAN_TEXT]);

// Writes n bytes, zeros among them. Returns how many it wrote: all, but with more to come the
// bytes of a character that is not whole yet wait for the next call. Lines: ends of lines and tabs
// are written as they are.
typedef struct {
	bool lines, more;
} clean_options;
size_t clean_write(FILE *to, const void *bytes, size_t n, const clean_options *o);
// A zero-terminated text in one line.
void clean_print(FILE *to, const char *text);

// The bytes of the UTF-8 character that n bytes begin with, its code in *code; 0: they begin with
// none (RFC 3629).
size_t clean_character(const void *bytes, size_t n, uint32_t *code);
// Whether a terminal may show a character.
bool clean_shows(uint32_t code);
