// The weights that a name stands for: a file's, or those of a folder of checkpoints.
#include "model.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool is_folder(const char *path)
{
	struct stat is;
	return stat(path, &is) == 0 && S_ISDIR(is.st_mode);
}

// Whether a step's folder is called name, or any may be.
static bool is_wanted(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	return name == NULL || strcmp(slash == NULL ? path : slash + 1, name) == 0;
}

// The newest whole step of directory; of name, if there is one, only that.
static choir_status find_step(const char *directory, const char *name, char path[WEIGHTS_PATH])
{
	choir_checkpoint_list *l = choir_checkpoint_list_new(directory);
	if (l == NULL)
		return choir_error_status();
	choir_status status =
			choir_fail(CHOIR_NOT_FOUND, "%s: there are no checkpoints in this folder", directory);
	for (size_t i = choir_checkpoint_list_steps(l); i-- > 0 && status != CHOIR_OK;) {
		const char *step = choir_checkpoint_list_path(l, i);
		if (!is_wanted(step, name))
			continue;
		status = choir_checkpoint_list_check(l, i);
		if (status == CHOIR_OK &&
				snprintf(path, WEIGHTS_PATH, "%s/weights.safetensors", step) >= WEIGHTS_PATH)
			status = choir_fail(CHOIR_INVALID, "%s: the path is too long", step);
	}
	choir_checkpoint_list_free(l);
	return status;
}

choir_status model_find_weights(const char **path, char found[WEIGHTS_PATH])
{
	char folder[WEIGHTS_PATH];
	if (!is_folder(*path))
		return CHOIR_OK;
	if (snprintf(folder, sizeof folder, "%s", *path) >= (int) sizeof folder)
		return choir_fail(CHOIR_INVALID, "%s: the path is too long", *path);
	size_t length = strlen(folder);
	while (length > 1 && folder[length - 1] == '/')
		folder[--length] = '\0';
	char *slash = strrchr(folder, '/');
	const char *last = slash == NULL ? folder : slash + 1;
	if (strncmp(last, "step-", 5) != 0) {
		CHOIR_TRY(find_step(folder, NULL, found));
	} else if (slash == NULL || slash == folder) {
		CHOIR_TRY(find_step(slash == NULL ? "." : "/", last, found));
	} else {
		*slash = '\0';
		CHOIR_TRY(find_step(folder, last, found));
	}
	*path = found;
	return CHOIR_OK;
}
