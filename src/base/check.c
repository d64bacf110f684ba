// Ends a program that does not handle a failure.
#include "choir/status.h"

#include <stdio.h>
#include <stdlib.h>

static void die(choir_status status, const char *file, int line)
{
	const char *text = choir_error_status() == status ? choir_error() : "";
	fprintf(stderr, "%s:%d: %s%s%s\n", file, line, choir_status_name(status), *text ? ": " : "",
			text);
	exit(1);
}

void choir_check(choir_status status, const char *file, int line)
{
	if (status != CHOIR_OK)
		die(status, file, line);
}

void choir_check_new(const void *object, const char *file, int line)
{
	if (!object)
		die(choir_error_status(), file, line);
}
