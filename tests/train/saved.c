// The trainings of saved.h.
#include "train/saved.h"

#include "train/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

static choir_strategy *(*const kinds[SAVED_CARRIERS])(const choir_strategy_options *o) = {
	choir_mirrored_strategy_new, choir_central_storage_strategy_new, choir_mirrored_strategy_new,
	choir_mirrored_strategy_new, choir_central_storage_strategy_new
};
const char *const saved_devices[SAVED_CARRIERS] = { "cpu:0", "cpu:0,cpu:1", "cpu:0,cpu:1,cpu:2",
	"far:0,far:1", "cpu:1,cpu:0,cpu:2,cpu:3" };

problem saved_open(
		int carrier, int replicas, choir_optimizer_kind kind, const choir_optimizer_options *o)
{
	problem p;
	if (problem_open_in(&p,
				kinds[carrier](
						CHOIR_OPTIONS(choir_strategy_options, .devices = saved_devices[carrier],
								.replicas = replicas, .seed = 7, .timeout = 20)),
				kind, o) != CHOIR_OK)
		fail_msg("%s: %s", saved_devices[carrier], choir_error());
	return p;
}

void saved_train(problem *p, int steps)
{
	for (int i = 0; i < steps; i++)
		if (problem_step(p) != CHOIR_OK)
			fail_msg("%s", choir_error());
}

choir_checkpoint_manager *saved_manage(
		choir_strategy *s, const char *directory, const choir_checkpoint_options *o)
{
	choir_checkpoint_manager *m = choir_checkpoint_manager_new(s, directory, o);
	if (m == NULL)
		fail_msg("%s", choir_error());
	return m;
}

void saved_must(choir_status status)
{
	if (status != CHOIR_OK)
		fail_msg("%s: %s", choir_status_name(status), choir_error());
}

const char *saved_directory(void)
{
	static char path[512];
	static int n;
	char name[32];
	snprintf(name, sizeof name, "checkpoints-%d", n++);
	snprintf(path, sizeof path, "%s", files_path(name));
	return path;
}

choir_variable *saved_own(choir_strategy *s, choir_aggregation aggregation)
{
	choir_variable *v = NULL;
	CHOIR_SCOPE (s)
		v = choir_variable_new("own", CHOIR_SHAPE(2),
				CHOIR_OPTIONS(choir_variable_options,
						.synchronization = CHOIR_SYNCHRONIZATION_ON_READ,
						.aggregation = aggregation));
	assert_non_null(v);
	return v;
}

choir_status saved_count(choir_replica *r, void *user)
{
	const double x = 0.1 * (choir_replica_id(r) + 1);
	return choir_variable_assign_add(user, choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), x));
}
