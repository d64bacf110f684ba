// Finds the weights of a path: a file, or the newest checkpoint of a directory.
#include "model.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool is_directory(const char *path)
{
	struct stat is;
	return stat(path, &is) == 0 && S_ISDIR(is.st_mode);
}

// name NULL: any.
static bool is_wanted(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	return name == NULL || strcmp(slash == NULL ? path : slash + 1, name) == 0;
}

// The newest undamaged checkpoint, or the one of that name.
static choir_status find_step(const char *directory, const char *name, char path[WEIGHTS_PATH])
{
	choir_checkpoint_list *l = choir_checkpoint_list_new(directory);
	if (l == NULL)
		return choir_error_status();
	choir_status status = choir_fail(CHOIR_NOT_FOUND,
			"%s: has no checkpoints; needs weights or a directory of choir train --checkpoint",
			directory);
	for (size_t i = choir_checkpoint_list_steps(l); i-- > 0 && status != CHOIR_OK;) {
		const char *step = choir_checkpoint_list_path(l, i);
		if (!is_wanted(step, name))
			continue;
		status = choir_checkpoint_list_check(l, i);
		if (status == CHOIR_OK &&
				snprintf(path, WEIGHTS_PATH, "%s/weights.safetensors", step) >= WEIGHTS_PATH)
			status = choir_fail(CHOIR_INVALID, "%s: path too long", step);
	}
	choir_checkpoint_list_free(l);
	return status;
}

choir_status model_find_weights(const char **path, char found[WEIGHTS_PATH])
{
	char directory[WEIGHTS_PATH];
	if (!is_directory(*path))
		return CHOIR_OK;
	if (snprintf(directory, sizeof directory, "%s", *path) >= (int) sizeof directory)
		return choir_fail(CHOIR_INVALID, "%s: path too long", *path);
	size_t length = strlen(directory);
	while (length > 1 && directory[length - 1] == '/')
		directory[--length] = '\0';
	char *slash = strrchr(directory, '/');
	const char *last = slash == NULL ? directory : slash + 1;
	if (strncmp(last, "step-", 5) != 0) {
		CHOIR_TRY(find_step(directory, NULL, found));
	} else if (slash == NULL || slash == directory) {
		CHOIR_TRY(find_step(slash == NULL ? "." : "/", last, found));
	} else {
		*slash = '\0';
		CHOIR_TRY(find_step(directory, last, found));
	}
	*path = found;
	return CHOIR_OK;
}
