// glob() would sort by locale, so Choir sorts by bytes.
#include "base/glob.h"
#include "base/alloc.h"
#include "base/status.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

choir_status chi_glob_add_path(chi_glob *p, const char *path)
{
	if (!chi_grow(&p->path, &p->capacity, p->n + 1, sizeof *p->path))
		return CHOIR_NO_MEMORY;
	p->path[p->n] = chi_strdup(path);
	CHOIR_TRY(chi_made(p->path[p->n]));
	p->n++;
	return CHOIR_OK;
}

static int in_order(const void *a, const void *b)
{
	return strcmp(*(char *const *) a, *(char *const *) b);
}

static choir_status add_matches(chi_glob *p, const glob_t *found)
{
	const size_t before = p->n;
	for (size_t i = 0; i < found->gl_pathc; i++) {
		const char *path = found->gl_pathv[i];
		const size_t n = strlen(path);
		if (n > 0 && path[n - 1] != '/')
			CHOIR_TRY(chi_glob_add_path(p, path));
	}
	if (p->n > before)
		qsort(p->path + before, p->n - before, sizeof *p->path, in_order);
	return CHOIR_OK;
}

choir_status chi_glob_add(chi_glob *p, const char *pattern)
{
	if (access(pattern, F_OK) == 0 || !strpbrk(pattern, "*?["))
		return chi_glob_add_path(p, pattern);
	glob_t found;
	const size_t before = p->n;
	const int result = glob(pattern, GLOB_MARK | GLOB_NOSORT, NULL, &found);
	if (result == GLOB_NOSPACE)
		return choir_fail(CHOIR_NO_MEMORY, "%s: out of memory", pattern);
	choir_status status = CHOIR_OK;
	if (result == 0) {
		status = add_matches(p, &found);
		globfree(&found);
	}
	if (status == CHOIR_OK && p->n == before)
		return choir_fail(
				CHOIR_NOT_FOUND, "%s: no file has this name or matches this pattern", pattern);
	return status;
}

void chi_glob_shard(chi_glob *p, size_t count, size_t index)
{
	size_t n = 0;
	for (size_t i = 0; i < p->n; i++)
		if (i % count == index)
			p->path[n++] = p->path[i];
		else
			chi_free(p->path[i]);
	p->n = n;
}

void chi_glob_free(chi_glob *p)
{
	for (size_t i = 0; i < p->n; i++)
		chi_free(p->path[i]);
	chi_free(p->path);
	*p = (chi_glob){ 0 };
}
