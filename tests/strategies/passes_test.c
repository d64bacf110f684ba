// Passes of workers in step, of which one reads ahead, into the next pass, and the other does not:
// what a thread has read does not count.
#include "process_group.h"
#include "plain_kernels.h"

#include "base/thread.h"
#include "data/source/scratch.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

enum { N = 20, PASSES = 3 };
static char path[256];

static const char *read_passes(choir_strategy *s, int worker, void *user)
{
	static _Thread_local char text[100];
	const choir_field field = { .name = "number", .dtype = CHOIR_I64 };
	choir_values *batch = NULL;
	(void) user;
	choir_distributed_dataset *data = s == NULL
			? NULL
			: choir_strategy_distribute_dataset(s,
					  choir_dataset_batch(
							  choir_fixed_length_record_dataset_new(path, 1, &field, NULL), 4),
					  CHOIR_OPTIONS(choir_input_options,
							  .read_ahead = worker == 0 ? CHOIR_OFF : CHOIR_ON,
							  .read_ahead_steps = worker == 0 ? 0 : 4));
	choir_status status = data == NULL ? choir_error_status() : CHOIR_OK;
	for (int pass = 0; status == CHOIR_OK && pass < PASSES; pass++) {
		int steps = 0;
		while ((status = choir_distributed_dataset_next(data, &batch)) == CHOIR_OK) {
			chi_thread_nap(worker * 2e-3); // the thread comes to the next pass meanwhile
			steps++;
		}
		snprintf(text, sizeof text, "pass %d has %d steps", pass, steps);
		if (status == CHOIR_END && steps != N / 4)
			return text;
		status = status == CHOIR_END ? choir_distributed_dataset_rewind(data) : status;
	}
	choir_values_free(batch);
	return status == CHOIR_OK ? NULL : choir_error();
}

// spec: 2.11
TEST(test_one_reads_ahead)
{
	peers_run(&(peers_job){ .replicas = 2, .place = { 2, "cpu:0" }, .fn = read_passes });
}

static int write_file(void **state)
{
	(void) state;
	snprintf(path, sizeof path, "%s", scratch_numbers("numbers", N));
	return 0;
}

TEST_GROUP(write_file, scratch_leave)
