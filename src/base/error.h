// The last failure of a thread: a status and one line.
#pragma once

#include "choir/status.h"

#include <stdarg.h>

enum { CHI_ERROR_SIZE = 512 };

typedef struct {
	choir_status status;
	char text[CHI_ERROR_SIZE];
} chi_error;

// Copies this thread's last failure, sets it, or forgets it.
void chi_error_save(chi_error *e);
void chi_error_restore(const chi_error *e);
void chi_error_clear(void);
choir_status chi_fail_v(choir_status status, const char *fmt, va_list args) CHOIR_PRINTF(2, 0);
// Puts "prefix: " before the text of the last failure, once; returns its status.
choir_status chi_error_prefix(const char *fmt, ...) CHOIR_PRINTF(1, 2);
