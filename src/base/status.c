// A fixed buffer, so that recording cannot fail. An argument may be the old text, so the new text
// is formatted elsewhere.
#include "base/status.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static _Thread_local chi_error last;

const char *choir_status_name(choir_status status)
{
	static const char *const names[] = {
		[CHOIR_OK] = "CHOIR_OK",
		[CHOIR_END] = "CHOIR_END",
		[CHOIR_INVALID] = "CHOIR_INVALID",
		[CHOIR_STATE] = "CHOIR_STATE",
		[CHOIR_NOT_FOUND] = "CHOIR_NOT_FOUND",
		[CHOIR_NO_MEMORY] = "CHOIR_NO_MEMORY",
		[CHOIR_IO] = "CHOIR_IO",
		[CHOIR_CORRUPT] = "CHOIR_CORRUPT",
		[CHOIR_UNSUPPORTED] = "CHOIR_UNSUPPORTED",
		[CHOIR_CANCELLED] = "CHOIR_CANCELLED",
		[CHOIR_PEER_LOST] = "CHOIR_PEER_LOST",
		[CHOIR_TIMEOUT] = "CHOIR_TIMEOUT",
		[CHOIR_INTERNAL] = "CHOIR_INTERNAL",
	};
	size_t i = (size_t) status;
	return i < sizeof(names) / sizeof(names[0]) ? names[i] : "unknown status";
}

const char *choir_error(void)
{
	return last.text;
}

choir_status choir_error_status(void)
{
	return last.status;
}

static void mark_cut(char text[CHI_ERROR_SIZE])
{
	size_t end = CHI_ERROR_SIZE - sizeof("...");
	while (end > 0 && ((unsigned char) text[end] & 0xc0) == 0x80)
		end--;
	memcpy(text + end, "...", sizeof("..."));
}

// Without terminal controls. False: it was truncated.
CHOIR_PRINTF(2, 0)
static bool format_line(char text[CHI_ERROR_SIZE], const char *fmt, va_list args)
{
	enum { LONGEST = 4 };
	char clean[LONGEST * CHI_ERROR_SIZE];
	int length = chi_text_format(text, CHI_ERROR_SIZE, fmt, args);
	if (length < 0)
		text[0] = '\0';
	for (char *c = text; *c; c++)
		if (*c == '\n' || *c == '\r')
			*c = ' ';
	const size_t whole = strlen(chi_text_clean(text, clean, sizeof clean));
	const size_t scratch = whole < CHI_ERROR_SIZE ? whole : CHI_ERROR_SIZE - 1;
	memcpy(text, clean, scratch);
	text[scratch] = '\0';
	return length < CHI_ERROR_SIZE && scratch == whole;
}

choir_status chi_fail_v(choir_status status, const char *fmt, va_list args)
{
	if (status == CHOIR_OK || status == CHOIR_END)
		return status;
	int saved_errno = errno;
	char text[CHI_ERROR_SIZE];
	if (!format_line(text, fmt, args))
		mark_cut(text);
	if (text[0] == '\0')
		snprintf(text, sizeof(text), "%s", choir_status_name(status));
	last.status = status;
	memcpy(last.text, text, sizeof(text));
	errno = saved_errno;
	return status;
}

choir_status choir_fail(choir_status status, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	chi_fail_v(status, fmt, args);
	va_end(args);
	return status;
}

void *chi_fail_null(choir_status status, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	chi_fail_v(status, fmt, args);
	va_end(args);
	return NULL;
}

choir_status choir_fail_text(choir_status status, const char *text)
{
	return choir_fail(status, "%s", text ? text : "");
}

choir_status chi_error_prefix(const char *fmt, ...)
{
	if (last.status == CHOIR_OK)
		return CHOIR_OK;
	char prefix[CHI_ERROR_SIZE];
	va_list args;
	va_start(args, fmt);
	format_line(prefix, fmt, args);
	va_end(args);
	size_t length = strlen(prefix);
	if (strncmp(last.text, prefix, length) == 0 && strncmp(last.text + length, ": ", 2) == 0)
		return last.status;
	return choir_fail(last.status, "%s: %s", prefix, last.text);
}

choir_status chi_error_null(const char *fmt, ...)
{
	static const char behind[] = "; the last failure before it: ";
	char what[CHI_ERROR_SIZE];
	va_list args;
	va_start(args, fmt);
	format_line(what, fmt, args);
	va_end(args);
	if (last.status == CHOIR_OK)
		return choir_fail(CHOIR_INVALID, "%s", what);
	const char *cause = strstr(last.text, behind);
	cause = cause == NULL ? last.text : cause + sizeof behind - 1;
	return choir_fail(last.status, "%s%s%s", what, behind, cause);
}

void chi_error_save(chi_error *e)
{
	*e = last;
}

choir_status chi_error_restore(const chi_error *e)
{
	last = *e;
	return e->status;
}

void chi_error_clear(void)
{
	last.status = CHOIR_OK;
	last.text[0] = '\0';
}

chi_suspended_error chi_error_suspend(void)
{
	const chi_suspended_error suspended = { last.status, last.text[0] };
	chi_error_clear();
	return suspended;
}

void chi_error_resume(chi_suspended_error suspended)
{
	if (last.status != CHOIR_OK)
		return;
	last.status = suspended.status;
	last.text[0] = suspended.first;
}

choir_status chi_error_reason(choir_status status, const char *fmt, ...)
{
	const choir_status failure = status == CHOIR_END ? CHOIR_INVALID : status;
	if (last.status != CHOIR_OK)
		return failure;
	va_list args;
	va_start(args, fmt);
	chi_fail_v(failure, fmt, args);
	va_end(args);
	return choir_fail(
			failure, "%s failed with %s and no reason", last.text, choir_status_name(status));
}
