// Standard input is kept in a temporary file in TMPDIR or /tmp, which only this user may read.
#include "standard_input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char spooled[SPOOL_PATH]; // "": none

static choir_status copy(int to, const char *path)
{
	char part[1 << 16];
	ssize_t n;
	while ((n = read(STDIN_FILENO, part, sizeof part)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return choir_fail(CHOIR_IO, "standard input: %s", strerror(errno));
		for (ssize_t done = 0, more; done < n; done += more) {
			more = write(to, part + done, (size_t) (n - done));
			if (more < 0)
				return choir_fail(CHOIR_IO, "%s: %s", path, strerror(errno));
		}
	}
	return CHOIR_OK;
}

choir_status spool_input(char path[SPOOL_PATH])
{
	const char *directory = getenv("TMPDIR");
	const int n = snprintf(path, SPOOL_PATH, "%s/choir-input-XXXXXX.csv",
			directory == NULL || directory[0] == '\0' ? "/tmp" : directory);
	const int to = n < SPOOL_PATH ? mkstemps(path, 4) : -1;
	if (to < 0) {
		path[0] = '\0';
		return choir_fail(CHOIR_IO, "standard input: no temporary file in TMPDIR or /tmp: %s",
				strerror(n < SPOOL_PATH ? errno : ENAMETOOLONG));
	}
	strcpy(spooled, path);
	choir_status status = copy(to, path);
	if (close(to) != 0 && status == CHOIR_OK)
		status = choir_fail(CHOIR_IO, "%s: %s", path, strerror(errno));
	return status;
}

void spool_hide(const char *text, char *to, size_t size)
{
	static const char kind[] = "csv:";
	const size_t n = sizeof kind - 1;
	size_t at = 0;
	const char *found;
	while (spooled[0] != '\0' && at < size && (found = strstr(text, spooled)) != NULL) {
		const size_t before = (size_t) (found - text);
		const bool named = before >= n && memcmp(found - n, kind, n) == 0;
		at += (size_t) snprintf(
				to + at, size - at, "%.*sstandard input", (int) (before - named * n), text);
		text = found + strlen(spooled);
	}
	if (at < size)
		snprintf(to + at, size - at, "%s", text);
}

void spool_remove(const char *path)
{
	if (path[0] != '\0')
		unlink(path);
}
