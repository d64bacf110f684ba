// Gradients that are not finite: the update fails, is left out, or is done, on all replicas alike,
// and what was found is named where the host can see it.
#include "train/problem.h"

#include "choir/log.h"
#include "train/optimizer/optimizer.h"
#include "test.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { N = 7, BAD_STEP = 2, BAD_REPLICA = 1, BAD_ELEMENT = 3, STEPS = 5 };

typedef struct {
	choir_optimizer *optimizer;
	choir_variable *w;
	int t;
} job;

static double element(int replica, int t, int i)
{
	return 0.25 * (i + 1) - replica + 0.125 * t;
}

static choir_status step(choir_replica *r, void *user)
{
	const job *j = user;
	const int id = choir_replica_id(r);
	double g[N];
	for (int i = 0; i < N; i++)
		g[i] = element(id, j->t, i);
	if (id == BAD_REPLICA && j->t == BAD_STEP)
		g[BAD_ELEMENT] = NAN;
	CHOIR_TRY(choir_optimizer_add_gradient(
			j->optimizer, r, j->w, choir_constant(r->frame, CHOIR_F64, CHOIR_SHAPE(N), g)));
	return choir_optimizer_apply_gradients(j->optimizer, r);
}

static choir_strategy *open_job(job *j, const char *devices, const choir_optimizer_options *o)
{
	choir_strategy *s = mirrored(devices, 2);
	*j = (job){ .t = 0 };
	CHOIR_SCOPE (s) {
		j->w = choir_variable_new(
				"w", CHOIR_SHAPE(N), CHOIR_OPTIONS(choir_variable_options, .dtype = CHOIR_F64));
		j->optimizer = choir_optimizer_new(CHOIR_SGD, o);
	}
	assert_non_null(j->optimizer);
	return s;
}

// After all steps but the bad one, with a rate of 0.5 and a norm that is never reached.
static void check_rest(const job *j, bool bad)
{
	double have[N];
	fetch_variable(j->w, have, sizeof have);
	for (int i = 0; i < N; i++) {
		double w = 0;
		for (int t = 0; t < j->t; t++)
			if (t != BAD_STEP || bad)
				w -= 0.5 * (element(0, t, i) + element(1, t, i));
		assert_true(bad && i == BAD_ELEMENT ? isnan(have[i]) : fabs(have[i] - w) < 1e-12);
	}
}

static char said[512];
static atomic_int lines;

static void note(choir_log_level level, const char *line, void *user)
{
	(void) level, (void) user;
	snprintf(said, sizeof said, "%s", line);
	lines++;
}

static const char *const devices[] = { "cpu:0", "cpu:0,cpu:1", "far:0,far:1" };
enum { DEVICES = 3, NOT_THE_HOSTS = 2 };
static const double clips[] = { 0, 1e6 };

// spec: 2.13
TEST(stopping)
{
	for (int i = 0; i < 2 * DEVICES; i++) {
		job j;
		choir_strategy *s = open_job(&j, devices[i / 2],
				CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.5,
						.global_clip_norm = clips[i % 2]));
		for (; j.t < STEPS; j.t++) {
			const choir_status status = choir_strategy_run(s, step, &j, NULL, NULL);
			if (j.t != BAD_STEP)
				assert_int_equal(status, CHOIR_OK);
			else if (i / 2 == NOT_THE_HOSTS)
				assert_failed(status, CHOIR_INVALID, "sgd:*\"w\"*update 3");
			else
				assert_failed(status, CHOIR_INVALID, "replica 1: sgd:*\"w\"*[3]*update 3");
		}
		check_rest(&j, false);
		choir_strategy_free(s);
	}
}

static void log_instead(choir_nonfinite policy, const char *outcome)
{
	for (int i = 0; i < 2 * DEVICES; i++) {
		job j;
		choir_strategy *s = open_job(&j, devices[i / 2],
				CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.5,
						.global_clip_norm = clips[i % 2], .nonfinite = policy));
		lines = 0;
		choir_logger_set(CHOIR_LOG_WARNING, note, NULL);
		for (; j.t < STEPS; j.t++)
			assert_int_equal(choir_strategy_run(s, step, &j, NULL, NULL), CHOIR_OK);
		choir_logger_set(CHOIR_LOG_WARNING, NULL, NULL);
		check_rest(&j, policy == CHOIR_NONFINITE_IGNORE);
		assert_int_equal(chi_atomic64_load(&j.optimizer->step),
				policy == CHOIR_NONFINITE_IGNORE ? STEPS : STEPS - 1);
		assert_int_equal(lines, i / 2 != NOT_THE_HOSTS);
		if (i / 2 != NOT_THE_HOSTS) {
			char whole[200];
			snprintf(whole, sizeof whole,
					"replica 1: sgd: the gradient of \"w\" is nan at [3] in update 3; %s",
					outcome);
			assert_string_equal(said, whole);
		}
		choir_strategy_free(s);
	}
}

// spec: D26
TEST(skipping)
{
	log_instead(CHOIR_NONFINITE_SKIP, "the update is skipped");
}

// What is not finite gets where it belongs and nowhere else.
TEST(going_on)
{
	log_instead(CHOIR_NONFINITE_IGNORE, "the update is applied, and later ones are not reported");
}

TEST(the_first_element)
{
	static const double bad[] = { HUGE_VAL, -HUGE_VAL, (double) NAN };
	static double x[10000];
	static float y[10000];
	for (int i = 0; i < 10000; i++) {
		x[i] = i % 3 == 0 ? 1.79e308 : i % 3 == 1 ? -5e-324 : 0;
		y[i] = i % 3 == 0 ? 3.4e38f : i % 3 == 1 ? -1e-45f : 0;
	}
	assert_int_equal(chi_first_nonfinite(CHOIR_F64, x, 10000), CHOIR_NONE);
	assert_int_equal(chi_first_nonfinite(CHOIR_F32, y, 10000), CHOIR_NONE);
	assert_int_equal(chi_first_nonfinite(CHOIR_F32, y, 0), CHOIR_NONE);
	static const int places[] = { 0, 1, 7, 4095, 4096, 5000, 9999 };
	for (int k = 0; k < 3; k++)
		for (int p = 0; p < 7; p++) {
			const double was = x[places[p]];
			const float was_single = y[places[p]];
			x[places[p]] = bad[k];
			y[places[p]] = (float) bad[k];
			assert_int_equal(chi_first_nonfinite(CHOIR_F64, x, 10000), places[p]);
			assert_int_equal(chi_first_nonfinite(CHOIR_F32, y, 10000), places[p]);
			x[places[p]] = was;
			y[places[p]] = was_single;
		}
}
