// Measures asynchronous saves. A save blocks the program for a copy, and the next step shares the
// machine with the writing thread. Both are compared with a copy and with the step before.
#include "bench/checkpoint_cost.h"

#include "bench/bench.h"
#include "output.h"

#include <stdlib.h>
#include <string.h>

enum { SAVES = 9, STEPS_BETWEEN = 3 };

typedef struct {
	choir_checkpoint_manager *manager;
	choir_status (*steps)(void *user, int n);
	void *user;
	char *from, *to;
	double save[SAVES], copy[SAVES], before[SAVES], after[SAVES];
} saving;

static double measure_copy(saving *s, size_t bytes)
{
	double start = 0;
	for (int i = 0; i < 2; i++) {
		start = now();
		memcpy(s->to, s->from, bytes);
		s->from[0] = (char) (s->from[0] + s->to[bytes / 2]);
	}
	return now() - start;
}

static choir_status measure_step(const saving *s, double *seconds)
{
	const double start = now();
	CHOIR_TRY(s->steps(s->user, 1));
	*seconds = now() - start;
	return CHOIR_OK;
}

static choir_status save_often(saving *s, size_t bytes)
{
	for (int i = 0; i < SAVES; i++) {
		CHOIR_TRY(choir_checkpoint_manager_check(s->manager)); // as after each step of a training
		s->copy[i] = measure_copy(s, bytes);
		CHOIR_TRY(s->steps(s->user, STEPS_BETWEEN));
		CHOIR_TRY(measure_step(s, &s->before[i]));
		const double start = now();
		CHOIR_TRY(choir_checkpoint_manager_save(s->manager, NULL));
		s->save[i] = now() - start;
		CHOIR_TRY(measure_step(s, &s->after[i]));
		CHOIR_TRY(choir_checkpoint_manager_wait(s->manager));
	}
	return CHOIR_OK;
}

static choir_status prepare(
		saving *s, choir_strategy *strategy, const char *directory, size_t bytes)
{
	s->manager = choir_checkpoint_manager_new(strategy, directory,
			CHOIR_OPTIONS(choir_checkpoint_options, .max_to_keep = 1, .asynchronous = true));
	s->from = malloc(bytes + 1);
	s->to = malloc(bytes + 1);
	if (s->manager == NULL)
		return choir_error_status();
	if (s->from == NULL || s->to == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "--save: no memory for a copy of %zu bytes", bytes);
	memset(s->from, 1, bytes);
	memset(s->to, 2, bytes);
	return CHOIR_OK;
}

choir_status save_measure(choir_strategy *strategy, const char *directory,
		choir_status (*steps)(void *user, int n), void *user, save_cost *cost)
{
	saving s = { .steps = steps, .user = user };
	const size_t bytes = (size_t) cost->bytes;
	choir_status status = prepare(&s, strategy, directory, bytes);
	if (status == CHOIR_OK)
		status = save_often(&s, bytes);
	choir_checkpoint_manager_free(s.manager);
	free(s.from);
	free(s.to);
	cost->first_seconds = s.save[0];
	cost->save_seconds = median(SAVES - 1, s.save + 1);
	cost->copy_seconds = median(SAVES - 1, s.copy + 1);
	cost->before_seconds = median(SAVES - 1, s.before + 1);
	cost->after_seconds = median(SAVES - 1, s.after + 1);
	return status;
}
