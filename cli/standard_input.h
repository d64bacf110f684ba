// Standard input as a file, for data that must be read more than once.
#pragma once

#include <choir/choir.h>

enum { SPOOL_PATH = 256 };

// Copies standard input to a temporary file, which exists until spool_remove, and sets path.
choir_status spool_input(char path[SPOOL_PATH]);
// Writes text with "standard input" instead of the temporary file.
void spool_hide(const char *text, char *to, size_t size);
void spool_remove(const char *path); // "": none
