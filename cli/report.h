// What a command prints: lines for people, or one JSON object a line for programs.
#pragma once

#include "terminal_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A JSON object on one line of standard output; calls between begin and end in order. Numbers
// that are not finite are null; the bytes of a text that are no UTF-8 are U+FFFD.
void json_begin(void);
void json_text(const char *key, const char *text);
void json_integer(const char *key, int64_t value);
void json_unsigned(const char *key, uint64_t value);
void json_number(const char *key, double value);
void json_list(const char *key, size_t n, const int64_t values[]);
// With as many digits as tell all floats apart.
void json_floats(const char *key, size_t n, const float values[]);
// An object in the object: begin_object .. end_item.
void json_begin_object(const char *key);
// A list of objects: begin_list, then for each object begin_item .. end_item, then end_list.
void json_begin_list(const char *key);
void json_begin_item(void);
void json_end_item(void);
void json_end_list(void);
void json_end(void);

// Seconds of a clock that only goes forward.
double now(void);

// A line that is rewritten where standard output is a terminal; nothing elsewhere or under mpirun.
bool progress_on(void);
__attribute__((format(printf, 1, 2))) void progress(const char *fmt, ...);
void progress_clear(void);

// "12.3 MB" into text.
const char *print_bytes(double bytes, char text[32]);
// False: some of what was printed did not get out (a full disk, a closed pipe); said on standard
// error.
bool output_whole(const char *command);
