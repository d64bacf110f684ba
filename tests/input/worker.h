// One simulated worker of several: its data, and what its replicas read.
#pragma once

#include "choir/input.h"
#include "choir/source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { MAX = 64, MAX_REPLICAS = 8, MAX_STEPS = 64 };

// The rows of each replica, by step.
typedef struct {
	int steps;
	int64_t rows[MAX_STEPS][MAX_REPLICAS];
	int64_t number[MAX_STEPS][MAX_REPLICAS][MAX];
	choir_status status;
} reading;

choir_dataset *worker_numbers(int64_t n); // "number": 0, 1, ... n - 1; at most MAX
choir_map_fn worker_same; // copies the numbers
choir_strategy *worker_strategy(int replicas);
void assert_input_failed(choir_status status, const char *text); // and clears the failure
// Reads to the end, a failure, or MAX_STEPS steps.
void read_steps(choir_distributed_dataset *data, int replicas, reading *l);
// Distributes d to worker of several, with this sharding policy and global batch.
choir_distributed_dataset *of_worker(choir_strategy *s, choir_dataset *d, int workers, int worker,
		choir_auto_shard policy, int64_t global);
// Asserts the rows of the first n replicas in a step.
void assert_rows(const reading *l, int step, int n, const int64_t rows[]);
#define ROWS(...) \
	(int) (sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (int64_t[]) \
	{ \
		__VA_ARGS__ \
	}
