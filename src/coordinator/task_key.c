// A key comes in a file, or as bytes from a supervisor.
#include "coordinator/task_key.h"

#include "trace/health.h"

#include <stdlib.h>

choir_status choir_task_make_key(const char *path)
{
	return path == NULL ? choir_fail(CHOIR_INVALID, "make_key: the path is NULL")
						: chi_key_make(path);
}

choir_status chi_task_find_key(choir_task *t)
{
	const char *file = t->o.key_file != NULL ? t->o.key_file : getenv("CHOIR_KEY_FILE");
	if (file != NULL && file[0] != '\0')
		return chi_key_read(file, &t->key);
	if (chi_health_key(t->key.bytes))
		t->key.size = CHI_HEALTH_KEY;
	return CHOIR_OK;
}
