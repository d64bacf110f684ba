// The logs of steps of a parameter server's workers, which train at the same time.
#include "base/atomic.h"
#include "base/clock.h"
#include "choir/op.h"
#include "choir/trace.h"
#include "fit/training.h"
#include "test.h"
#include "train/files.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 3 };

static chi_atomic64 steps_of_0, steps_of_1;

static void wait_for(chi_atomic64 *steps, uint64_t needed)
{
	const double deadline = chi_clock_deadline(60);
	while (chi_atomic64_load(steps) < needed && chi_clock_now() < deadline)
		sched_yield();
}

// Losses are 0 in worker 0 and 1 in worker 1, which trains one step and begins another while
// worker 0 is in its first.
static choir_tensor *loss_of_worker(choir_tensor *labels, choir_tensor *results)
{
	if (*(const float *) choir_tensor_data(labels) == 0) {
		chi_atomic64_add(&steps_of_0, 1);
		wait_for(&steps_of_1, 2);
	} else {
		wait_for(&steps_of_0, 1);
		chi_atomic64_add(&steps_of_1, 1);
	}
	return choir_reshape(choir_add(choir_scale(results, 0), labels), CHOIR_SHAPE(1));
}

static choir_distributed_dataset *worker_as_label(choir_strategy *group, int worker, void *user)
{
	(void) user;
	static const float label[2][STEPS] = { { 0, 0, 0 }, { 1, 1, 1 } };
	const choir_column columns[] = {
		{ .name = "x", .dtype = CHOIR_F32, .shape = CHOIR_SHAPE(1), .data = label[worker] },
		{ .name = "y", .dtype = CHOIR_F32, .shape = CHOIR_SHAPE(1), .data = label[worker] }
	};
	return choir_strategy_distribute_dataset(group,
			choir_dataset_batch(choir_memory_dataset_new(STEPS, 2, columns, false), 1), NULL);
}

// Gives the sum of all numbers of a tag in the only event file of a folder, and how many they are.
static int logged(const char *folder, const char *tag, float *sum)
{
	enum { KEY = 1 }; // of the number, behind the tag
	char path[400];
	size_t size;
	int n = 0;
	DIR *d = opendir(folder);
	const struct dirent *entry = NULL;
	while (d != NULL && (entry = readdir(d)) != NULL && entry->d_name[0] == '.')
		;
	assert_non_null(entry);
	snprintf(path, sizeof path, "%s/%.200s", folder, entry->d_name);
	closedir(d);
	char *bytes = files_read(path, &size);
	const size_t length = strlen(tag);
	*sum = 0;
	for (size_t i = 0; i + length + KEY + sizeof *sum <= size; i++)
		if (memcmp(bytes + i, tag, length) == 0) {
			float value;
			memcpy(&value, bytes + i + length + KEY, sizeof value);
			*sum += value;
			n++;
		}
	free(bytes);
	return n;
}

TEST(losses_of_steps_are_those_of_worker_0)
{
	choir_strategy *s = choir_parameter_server_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .workers = 2, .devices = "cpu:0,cpu:1"));
	choir_model *m = NULL;
	float sum;
	CHOIR_SCOPE (s)
		m = choir_model_new(CHOIR_OPTIONS(choir_model_options, .loss = loss_of_worker,
				.layer = choir_dense_new("y", 1, 1, CHOIR_LINEAR), .input = "x", .labels = "y",
				.optimizer = choir_optimizer_new(CHOIR_SGD, NULL)));
	must(choir_trace_start(NULL, CHOIR_OPTIONS(choir_trace_options, .log = files_path("events"))));
	must(choir_fit(m, NULL,
			CHOIR_OPTIONS(choir_fit_options, .worker_data = worker_as_label, .log_every = 1)));
	must(choir_trace_stop());
	assert_int_equal(STEPS, logged(files_path("events"), "train/loss", &sum));
	assert_float_equal(sum, 0, 0);
	assert_float_equal((float) choir_model_log(m, "loss"), 0.5f, 1e-6f); // of all workers
	choir_strategy_free(s);
}

TEST_GROUP(NULL, files_teardown)
