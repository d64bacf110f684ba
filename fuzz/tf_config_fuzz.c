// Fuzzes the reader of TF_CONFIG; the input is its text. An accepted text defines a job in which
// this process has a task, and gives the same result with spaces around it. A refused text gives a
// message that says where.
#include "fuzz.h"

#include "cluster/tf_config.h"

// Reads a copy of exactly the text's size, because reading changes the text.
static choir_status read_copy(chi_roles *r, const uint8_t *data, size_t size, size_t spaces)
{
	char *copy = malloc(size + 2 * spaces + 1);
	demand(copy != NULL, "memory");
	memset(copy, ' ', size + 2 * spaces);
	if (size > 0)
		memcpy(copy + spaces, data, size);
	chi_error_clear();
	const choir_status status = chi_roles_read(r, "TF_CONFIG", copy, size + 2 * spaces);
	free(copy);
	return status == CHOIR_OK ? chi_roles_settle(r) : status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	chi_roles once, again;
	const choir_status status = read_copy(&once, data, size, 0);
	demand(status == read_copy(&again, data, size, 3), "spaces change what it means");
	if (status != CHOIR_OK) {
		demand(status == CHOIR_INVALID, "refused with another status");
		demand(strncmp(choir_error(), "TF_CONFIG: ", 11) == 0, "refused without saying what");
		return 0;
	}
	demand(once.workers >= 1 && once.worker >= 0 && once.worker < once.workers,
			"no place in the job");
	demand(once.worker == again.worker && once.workers == again.workers &&
					once.task == again.task && once.index == again.index,
			"read twice, it differs");
	for (int i = 0; i < CHI_TASKS; i++)
		demand(once.count[i] >= 0 && (size_t) once.count[i] <= size, "more tasks than bytes");
	if (once.source != NULL)
		demand(once.task_given, "a cluster without this process's task");
	return 0;
}
