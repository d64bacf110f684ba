// What tests of training start from: a small classification problem with dropout, on any devices,
// whose batches have unequal sizes, some with fewer examples than replicas.
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

// Makes everything, with seed 7 and a time-out of 20 s; the failure is the thread's. Whatever
// happens, the problem is to be closed.
choir_status problem_open(problem *p, const char *devices, int replicas, choir_optimizer_kind kind,
		const choir_optimizer_options *o);
// The same in a strategy, which is taken over; NULL: its failure is the problem's.
choir_status problem_open_in(problem *p, choir_strategy *s, choir_optimizer_kind kind,
		const choir_optimizer_options *o);
void problem_close(problem *p);
// Trains on the next batch.
choir_status problem_step(problem *p);
// One replica of what problem_step would do, alone.
choir_status problem_replica(problem *p, int replica);
// Opens a problem, trains for so many steps, which must go well, and closes it: the hash of its
// weights.
uint64_t problem_train(const char *devices, int replicas, choir_optimizer_kind kind,
		const choir_optimizer_options *o, int steps);

// Six examples of three classes, judged by scores, and as true or not by chances. The highest
// scores are at 2, 0 (of equal ones the lowest), 1, 1, 0, 2: right but for examples 1 and 3.
// Chances above 0.5: 0, 2, 4, 5; of these 0 and 4 are true, of 0, 1, 4 that are.
enum { JUDGED = 6, JUDGED_CLASSES = 3 };
extern const float judged_scores[JUDGED][JUDGED_CLASSES], judged_chances[JUDGED];
extern const uint8_t judged_labels[JUDGED];
extern const int32_t judged_truths[JUDGED];
// All of them as "scores", "label", "chance" and "truth"; and another column.
choir_values *judged_batch(choir_strategy *s);
void judged_split(choir_values *batch, const char *name, choir_dtype dtype, choir_shape shape,
		const void *data);

// One layer of one's own for tests: makes a mirrored strategy of replicas on devices, or fails the
// test.
choir_strategy *mirrored(const char *devices, int replicas);
// A test's own strategy of one replica, in its scope, with a frame: a cmocka state.
typedef struct {
	choir_strategy *strategy;
	choir_frame *frame; // a program's own
	choir_scope scope;
} scoped;
int scoped_open(void **state);
int scoped_close(void **state);
// The tensor is there and has that shape; else the test fails with the thread's last failure.
void assert_shape(const choir_tensor *t, choir_shape expected);
// All of a variable's elements on the host, of a program's own reading of it.
void fetch_variable(choir_variable *v, void *to, size_t bytes);
// The thread's last failure has that status and holds the text. Forgets it.
void assert_failed(choir_status status, choir_status expected, const char *text);
