// A thread's last failure: a status and one line of text.
#pragma once

#include "choir/status.h"

#include <stdarg.h>

enum { CHI_ERROR_SIZE = 512 };

typedef struct {
	choir_status status;
	char text[CHI_ERROR_SIZE];
} chi_error;

void chi_error_save(chi_error *e);
choir_status chi_error_restore(const chi_error *e); // returns its status
void chi_error_clear(void);
choir_status chi_fail_v(choir_status status, const char *fmt, va_list args) CHOIR_PRINTF(2, 0);
void *chi_fail_null(choir_status status, const char *fmt, ...) CHOIR_PRINTF(2, 3);
// NULL: the failure that the constructor recorded.
static inline choir_status chi_made(const void *object)
{
	return object != NULL ? CHOIR_OK : choir_error_status();
}
// Puts "prefix: " before the text, once.
choir_status chi_error_prefix(const char *fmt, ...) CHOIR_PRINTF(1, 2);
// A NULL argument, named by fmt. The thread's last failure follows if it is the cause; else
// CHOIR_INVALID.
choir_status chi_error_null(const char *fmt, ...) CHOIR_PRINTF(1, 2);

// Whether foreign code between suspend and resume recorded a failure; if not, resume restores the
// earlier one.
typedef struct {
	choir_status status;
	char first;
} chi_suspended_error;
chi_suspended_error chi_error_suspend(void);
void chi_error_resume(chi_suspended_error suspended);
// For failures of foreign code: without a text records "FMT failed with STATUS and no reason";
// CHOIR_END becomes CHOIR_INVALID.
choir_status chi_error_reason(choir_status status, const char *fmt, ...) CHOIR_PRINTF(2, 3);
