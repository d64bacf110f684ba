// Saves now and then between steps, as a training does, by an asynchronous manager: so a save's
// call holds up the program for a copy, and the step behind it shares the machine with the writer.
#include "bench/save.h"

#include "bench/bench.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAVES = 7, COPIES = 9, STEPS_BETWEEN = 3 };

// The median time of a copy to memory that was written before.
static choir_status measure_copy(size_t bytes, double *seconds)
{
	double each[COPIES];
	char *from = malloc(bytes + 1), *to = malloc(bytes + 1);
	if (from == NULL || to == NULL) {
		free(from);
		free(to);
		return choir_fail(CHOIR_NO_MEMORY, "no memory for a copy of %zu bytes", bytes);
	}
	memset(from, 1, bytes);
	memset(to, 2, bytes);
	for (int i = 0; i < COPIES; i++) {
		const double start = now();
		memcpy(to, from, bytes);
		each[i] = now() - start;
		from[0] = (char) (from[0] + to[bytes / 2]);
	}
	free(from);
	free(to);
	*seconds = median(COPIES, each);
	return CHOIR_OK;
}

static choir_status save_often(choir_checkpoint_manager *m,
		choir_status (*steps)(void *user, int n), void *user, save_cost *cost)
{
	double save[SAVES], step[SAVES];
	for (int i = 0; i < SAVES; i++) {
		CHOIR_TRY(steps(user, STEPS_BETWEEN));
		double start = now();
		CHOIR_TRY(choir_checkpoint_manager_save(m, NULL));
		save[i] = now() - start;
		start = now();
		CHOIR_TRY(steps(user, 1));
		step[i] = now() - start;
		CHOIR_TRY(choir_checkpoint_manager_wait(m));
	}
	cost->save_seconds = median(SAVES, save);
	cost->step_seconds = median(SAVES, step);
	return CHOIR_OK;
}

choir_status save_measure(choir_strategy *s, const char *directory,
		choir_status (*steps)(void *user, int n), void *user, save_cost *cost)
{
	choir_checkpoint_manager *m = choir_checkpoint_manager_new(s, directory,
			CHOIR_OPTIONS(choir_checkpoint_options, .keep = 1, .asynchronous = true));
	if (m == NULL)
		return choir_error_status();
	choir_status status = save_often(m, steps, user, cost);
	choir_checkpoint_manager_free(m);
	return status == CHOIR_OK ? measure_copy((size_t) cost->bytes, &cost->copy_seconds) : status;
}
