// Metrics: what is counted over many batches, in f64. A metric has a part for each replica, so an
// update is local and waits for nobody; the result adds up the parts in the order of replicas, so
// it does not depend on devices. It belongs to the strategy that is current where it is made (in
// its scope, not in a replica) and is freed with it. Its state is the variables "name/total" and
// "name/count", which are not saved with the weights.
#pragma once

#include "strategy.h"

CHOIR_C_BEGIN

typedef struct choir_metric choir_metric;
typedef enum {
	CHOIR_METRIC_MEAN, // sum of values times weights / sum of weights
	CHOIR_METRIC_ACCURACY // part of the examples whose highest score is at their label
} choir_metric_kind;

// NULL: CHOIR_INVALID (an unknown kind, a name that is missing or in use), CHOIR_STATE in a
// replica.
choir_metric *choir_metric_new(choir_metric_kind kind, const char *name);
// Adds a batch, or a replica's part of one; it may have no examples. MEAN: values of any shape, in
// any dtype that can be cast; weights, which broadcast to values, or NULL for all 1. ACCURACY:
// scores [n, classes] and integer labels [n]; of equal scores the lowest class counts. The
// tensors' frame says who adds: a replica of the metric's strategy, with no tape taking note; or
// any frame that is no replica's, on the program's thread. A NULL tensor where one is needed gives
// the frame's failure. Threads: the frame's.
choir_status choir_metric_update(
		choir_metric *m, choir_tensor *values, choir_tensor *labels_or_weights);
// Over all replicas and updates since the last reset, in cross-replica context. NAN: nothing was
// counted, or a failure (choir_error).
double choir_metric_result(choir_metric *m);
// Starts again from nothing, in cross-replica context.
choir_status choir_metric_reset(choir_metric *m);

CHOIR_C_END
