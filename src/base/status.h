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
// A NULL argument, which fmt names. What gave it may have failed before: that failure stays, after
// the name of the argument, since an older one may have nothing to do with it. Without one
// CHOIR_INVALID. Returns the status.
choir_status chi_error_null(const char *fmt, ...) CHOIR_PRINTF(1, 2);

// Around a call of foreign code, so that it is known whether that recorded a failure: this
// thread's last one, out of sight; and back again, unless there is another by then. The text stays
// where it is, so both take no time to speak of.
typedef struct {
	choir_status status;
	char first; // of the text
} chi_suspended_error;
chi_suspended_error chi_error_suspend(void);
void chi_error_resume(chi_suspended_error suspended);
// What foreign code failed with, before which there was no failure on this thread: one without a
// text gets "FMT failed with STATUS and no reason". CHOIR_END, which is no failure and would get
// lost, becomes CHOIR_INVALID. Returns the status.
choir_status chi_error_reason(choir_status status, const char *fmt, ...) CHOIR_PRINTF(2, 3);
