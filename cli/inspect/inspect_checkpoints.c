// choir inspect DIR: the checkpoints of a directory, their tensors, and which are damaged.
#include "inspect/inspect.h"

#include "number.h"
#include "output.h"

#include <stdio.h>
#include <unistd.h>

static void print_tensors(choir_checkpoint_list *l, bool json)
{
	char shape[SHAPE_TEXT], name[CLEAN_TEXT];
	if (json)
		json_begin_list("tensors");
	for (size_t k = 0; k < choir_checkpoint_list_tensors(l); k++) {
		const choir_checkpoint_tensor *t = choir_checkpoint_list_tensor(l, k);
		if (json) {
			json_begin_item();
			json_text("name", t->name);
			json_text("of", t->state ? "state" : "weights");
			json_text("dtype", choir_dtype_name(t->dtype));
			json_list("shape", (size_t) t->shape.rank, t->shape.dim);
			json_end_item();
		} else
			printf("    %-8s %-32s %-5s %s\n", t->state ? "state" : "weight",
					clean_text(t->name, name), choir_dtype_name(t->dtype),
					shape_text(&t->shape, shape));
	}
	if (json)
		json_end_list();
}

static bool print_step(choir_checkpoint_list *l, size_t i, bool json)
{
	const bool whole = choir_checkpoint_list_check(l, i) == CHOIR_OK;
	if (json) {
		json_begin_event("step");
		json_integer("step", choir_checkpoint_list_step(l, i));
		json_text("path", choir_checkpoint_list_path(l, i));
		json_integer("replicas", choir_checkpoint_list_replicas(l, i));
		if (whole)
			print_tensors(l, json);
		else
			json_text("damage", choir_error());
		json_end();
	} else if (whole) {
		clean_print(stdout, choir_checkpoint_list_path(l, i));
		printf(": step %lld, %d replicas, undamaged\n",
				(long long) choir_checkpoint_list_step(l, i),
				choir_checkpoint_list_replicas(l, i));
		print_tensors(l, json);
	} else {
		clean_print(stdout, choir_checkpoint_list_path(l, i));
		printf(": damaged: %s\n", choir_error());
	}
	return whole;
}

// Whether it is a checkpoint itself.
static bool is_step(const char *directory)
{
	char path[4096];
	return snprintf(path, sizeof path, "%s/manifest.json", directory) < (int) sizeof path &&
			access(path, F_OK) == 0;
}

choir_status inspect_steps(const char *directory, bool json)
{
	choir_checkpoint_list *l = choir_checkpoint_list_new(directory);
	if (l == NULL)
		return choir_error_status();
	const size_t n = choir_checkpoint_list_steps(l);
	size_t damaged = 0;
	for (size_t i = 0; i < n; i++)
		damaged += !print_step(l, i, json);
	choir_checkpoint_list_free(l);
	if (n == 0)
		return choir_fail(CHOIR_NOT_FOUND, "%s: has no checkpoints; needs %s", directory,
				is_step(directory) ? "its parent directory, as it is a checkpoint itself"
								   : "a directory of choir train --checkpoint");
	return damaged == 0 ? CHOIR_OK
						: choir_fail(CHOIR_CORRUPT, "%s: %zu of %zu checkpoints are damaged",
								  directory, damaged, n);
}
