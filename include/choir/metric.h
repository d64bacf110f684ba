// Metrics: what is counted over many batches, in f64. A metric has a part for each replica, so an
// update is local and waits for nobody; the result adds up the parts in the order of replicas, so
// it does not depend on devices. It belongs to the strategy that is current where it is made (in
// its scope, not in a replica) and is freed with it. Its state is the variables "name/total" and
// "name/count", or "name/matrix", which are not saved with the weights. Names and meanings are
// those of Keras.
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
// Of what is above the threshold (Keras takes 0.5), the part whose label is not 0. CHOIR_INVALID,
// besides: the threshold is not finite.
choir_metric *choir_precision_new(const char *name, double threshold);
// Of what has a label that is not 0, the part that is above the threshold.
choir_metric *choir_recall_new(const char *name, double threshold);
// How many examples of each class (row) were taken for each class (column). CHOIR_INVALID,
// besides: not 1 to 32768 classes.
choir_metric *choir_confusion_matrix_new(const char *name, int64_t classes);
// Adds a batch, or a replica's part of one; it may have no examples. MEAN: values of any shape, in
// any dtype that can be cast; weights, which broadcast to values, or NULL for all 1. ACCURACY:
// scores [n, classes] and integer labels [n]; of equal scores the lowest class counts. A confusion
// matrix: the same, and a label that is no class is CHOIR_INVALID. Precision and recall: scores of
// any shape, compared with the threshold in their own dtype (a NAN counts as above), and labels of
// the same shape, in any dtype; 0 is no, anything else yes. The tensors' frame says who adds: a
// replica of the metric's strategy, with no tape taking note; or any frame that is no replica's,
// on the program's thread. A NULL tensor where one is needed gives the frame's failure. Threads:
// the frame's.
CHOIR_MUST_CHECK choir_status choir_metric_update(
		choir_metric *m, choir_tensor *values, choir_tensor *labels_or_weights);
// The same with a weight for each label: ACCURACY, precision and recall count each as so many.
// Weights, in any dtype that can be cast, broadcast to labels. CHOIR_INVALID: they do not, or
// another metric: a MEAN takes weights in place of labels, a confusion matrix has whole numbers.
CHOIR_MUST_CHECK choir_status choir_metric_update_weighted(
		choir_metric *m, choir_tensor *values, choir_tensor *labels, choir_tensor *weights);
// Over all replicas and updates since the last reset, in cross-replica context. NAN: nothing was
// counted, or a failure (choir_error). As in Keras, precision is 0 where nothing was above the
// threshold, and recall where no label was yes.
double choir_metric_result(choir_metric *m);
// The same of a confusion matrix: a tensor [classes, classes] of i64 in f. CHOIR_INVALID: m is
// another metric.
choir_tensor *choir_metric_matrix(choir_metric *m, choir_frame *f);
// Starts again from nothing, in cross-replica context.
CHOIR_MUST_CHECK choir_status choir_metric_reset(choir_metric *m);

CHOIR_C_END
