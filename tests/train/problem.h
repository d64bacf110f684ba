// Shared by the tests of training: a small classification problem with dropout, on any devices.
// Its batches have unequal sizes, some with fewer examples than replicas.
#pragma once

#include "choir/checkpoint.h"
#include "choir/layer.h"
#include "choir/metric.h"
#include "choir/optimizer.h"
#include "choir/replay.h"

typedef struct {
	choir_strategy *strategy;
	choir_layer *model;
	choir_optimizer *optimizer;
	choir_metric *loss, *accuracy;
	choir_values *batch;
	int64_t steps; // so far
} problem;

// Opens the problem with seed 7 and a timeout of 20 s. The caller closes it, also after a failure.
choir_status problem_open(problem *p, const char *devices, int replicas, choir_optimizer_kind kind,
		const choir_optimizer_options *o);
// Opens it in strategy s, which it then owns; s NULL: fails with the last error.
choir_status problem_open_in(problem *p, choir_strategy *s, choir_optimizer_kind kind,
		const choir_optimizer_options *o);
void problem_close(problem *p);
// Trains on the next batch.
choir_status problem_step(problem *p);
// Runs one replica of problem_step alone.
choir_status problem_replica(problem *p, int replica);
// Opens a problem, trains it for this number of steps, and closes it. Returns the hash of its
// weights.
uint64_t problem_train(const char *devices, int replicas, choir_optimizer_kind kind,
		const choir_optimizer_options *o, int steps);

// Six examples of three classes, with scores (per class) and chances (for a binary truth). The
// highest scores are at 2, 0 (the lower of two equal ones), 1, 1, 0, 2: wrong for examples 1 and
// 3. Chances above 0.5: 0, 2, 4, 5, of which 0 and 4 are true. True are 0, 1 and 4.
enum { JUDGED = 6, JUDGED_CLASSES = 3 };
extern const float judged_scores[JUDGED][JUDGED_CLASSES], judged_chances[JUDGED];
extern const uint8_t judged_labels[JUDGED];
extern const int32_t judged_truths[JUDGED];
// Makes a batch of them: "scores", "label", "chance", "truth" and one more column.
choir_values *judged_batch(choir_strategy *s);
// Adds a column to a batch; fails the test if it cannot.
void judged_split(choir_values *batch, const char *name, choir_dtype dtype, choir_shape shape,
		const void *data);

// Makes a mirrored strategy for a test with its own layer; fails the test if it cannot.
choir_strategy *mirrored(const char *devices, int replicas);
// A cmocka state: a strategy of one replica, in its scope, with a frame.
typedef struct {
	choir_strategy *strategy;
	choir_frame *frame; // made by choir_frame_new
	choir_scope scope;
} scoped;
int scoped_open(void **state);
int scoped_close(void **state);
// Asserts that the tensor exists and has this shape.
void assert_shape(const choir_tensor *t, choir_shape expected);
// Copies all elements of a variable to the host.
void fetch_variable(choir_variable *v, void *to, size_t bytes);
// Asserts the status of the last failure and facts of its text (test.h), and clears it.
void assert_failed(choir_status status, choir_status expected, const char *text);
