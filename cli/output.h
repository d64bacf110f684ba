// Output of a command: lines for people, or one JSON object per line for programs.
#pragma once

#include "terminal_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// Sends the following objects to a file. NULL: to standard output.
void json_to(FILE *file);
// A JSON object on one line of standard output, in the order of the calls. Numbers that are not
// finite become null, bytes that are not UTF-8 U+FFFD.
void json_begin(void);
void json_begin_event(const char *name); // also adds "event": name
void json_text(const char *key, const char *text);
void json_integer(const char *key, int64_t value);
void json_unsigned(const char *key, uint64_t value);
void json_number(const char *key, double value);
void json_list(const char *key, size_t n, const int64_t values[]);
// With all digits.
void json_floats(const char *key, size_t n, const float values[]);
// Ends with json_end_item.
void json_begin_object(const char *key);
// A list of objects: json_begin_item .. json_end_item for each, then json_end_list.
void json_begin_list(const char *key);
void json_begin_item(void);
void json_end_item(void);
void json_end_list(void);
void json_end(void);

// Seconds of a monotonic clock.
double now(void);

// A line that overwrites itself, on a terminal without a launcher.
bool progress_on(void);
__attribute__((format(printf, 1, 2))) void progress(const char *fmt, ...);
void progress_clear(void);

// "12.3 MB"
const char *print_bytes(double bytes, char text[32]);
// Flushes standard output. False: output was lost; prints an error.
bool output_whole(const char *command);
