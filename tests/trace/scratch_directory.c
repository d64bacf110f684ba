// Folders for tests of files.
#include "trace/scratch_directory.h"

#include "base/fs.h"
#include "base/status.h"
#include "base/file.h"
#include "choir/trace.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char root[256];

int directory_enter(void **state)
{
	(void) state;
	char name[] = "trace_test.XXXXXX";
	chi_error_clear();
	return getcwd(root, sizeof root) && mkdtemp(name) ? chdir(name) : -1;
}

int directory_leave(void **state)
{
	(void) state;
	chi_fs_fail(0, 0);
	char here[256], command[300];
	if (!getcwd(here, sizeof here) || chdir(root) != 0)
		return -1;
	snprintf(command, sizeof command, "rm -r '%s'", here);
	return system(command);
}

int directory_entries(const char *directory, char last[256])
{
	int count = 0;
	DIR *d = opendir(directory);
	if (d == NULL)
		return -1;
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		count++;
		if (last != NULL)
			snprintf(last, 256, "%s", e->d_name);
	}
	closedir(d);
	return count;
}

int directory_python(const char *python, const char *script, const char *arguments)
{
	char command[1024];
	snprintf(command, sizeof command, "'%s' '%s/tests/trace/%s' %s", python, CHOIR_SOURCE_DIR,
			script, arguments);
	return system(command);
}

void directory_scalars(void)
{
	for (int64_t step = 0; step < 300; step += 100) {
		choir_trace_scalar("loss", step, 1 / (1 + (double) step));
		choir_trace_scalar("test/accuracy", step, 0.5);
	}
	choir_trace_scalar("large \xc3\xa9", INT64_C(1) << 40, -1e30);
	choir_trace_scalar("before", -3, INFINITY);
}
