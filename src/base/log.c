// An event that is not logged costs one atomic load.
#include "base/log.h"
#include "base/atomic.h"
#include "base/lock.h"
#include "base/text.h"

#include <stdarg.h>

enum { LINE_SIZE = 1024, LONGEST = 4 };

static struct {
	chi_mutex mutex;
	choir_log_fn *fn;
	void *user;
} sink = { CHI_MUTEX_STATIC(CHI_RANK_LOG, "log"), NULL, NULL };

static chi_atomic32 max_level;

// Drops events logged inside the log function.
static _Thread_local bool inside;

void choir_logger_set(choir_log_level max, choir_log_fn *fn, void *user)
{
	chi_mutex_lock(&sink.mutex);
	sink.fn = fn;
	sink.user = user;
	chi_atomic32_store(&max_level, fn ? (uint32_t) max : 0);
	chi_mutex_unlock(&sink.mutex);
}

void chi_log(choir_log_level level, const char *fmt, ...)
{
	if ((uint32_t) level > chi_atomic32_load(&max_level) || inside)
		return;
	char line[LINE_SIZE], clean[LONGEST * LINE_SIZE];
	va_list args;
	va_start(args, fmt);
	int length = chi_text_format(line, sizeof(line), fmt, args);
	va_end(args);
	if (length < 0)
		return;
	for (char *c = line; *c; c++)
		if (*c == '\n' || *c == '\r')
			*c = ' ';
	chi_mutex_lock(&sink.mutex);
	choir_log_fn *fn = sink.fn;
	void *user = sink.user;
	chi_mutex_unlock(&sink.mutex);
	if (!fn)
		return;
	inside = true;
	chi_mutex_check_none_held();
	fn(level, chi_text_clean(line, clean, sizeof(clean)), user);
	inside = false;
}
