// Somebody else's device (tests/device/toy.c) under the installed suite: it passes, and fails as
// soon as its fill writes one byte too many.
#include "device/toy.h"

#include <choir/extend/suite.h>

#include <stdio.h>
#include <string.h>

static choir_device_table right;

static choir_status fill_too_much(void *stream, void *to, int byte, size_t bytes)
{
	return right.fill(stream, to, byte, bytes == 100 ? bytes + 1 : bytes);
}

static int two(void)
{
	return 2;
}

static void print(const char *check, choir_status result, const char *text, void *user)
{
	++*(int *) user;
	printf("%s %s%s%s\n", result == CHOIR_OK ? "ok    " : "FAILED", check,
			result == CHOIR_OK ? "" : ": ", text);
}

int main(void)
{
	int checks = 0;
	right = toy_table("toy", two);
	if (choir_suite_run(CHOIR_OPTIONS(choir_suite_options, .device = &right), print, &checks) !=
			CHOIR_OK) {
		printf("%s\n", choir_error());
		return 1;
	}
	choir_device_table broken = right;
	broken.fill = fill_too_much;
	const bool failed = choir_suite_run(CHOIR_OPTIONS(choir_suite_options, .device = &broken),
								print, &checks) == CHOIR_INTERNAL;
	printf("%s\n", choir_error());
	return !failed || strstr(choir_error(), "a fill sets only its bytes") == NULL || checks < 20;
}
