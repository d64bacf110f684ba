// Metrics: totals over many batches, collected in f64. A metric has one component for each
// replica, so an update waits for no other replica. The result adds them in the order of the
// replicas. Names and definitions are those of Keras.
//
// A metric's state is in variables of the strategy, "name/total" and "name/count", or
// "name/matrix", which are not saved with the weights.
#pragma once

#include "strategy.h"

CHOIR_C_BEGIN

typedef struct choir_metric choir_metric;
typedef enum {
	CHOIR_METRIC_MEAN, // sum of values times weights / sum of weights
	CHOIR_METRIC_ACCURACY // examples whose highest score is at their label
} choir_metric_kind;

// Constructors. CHOIR_INVALID: an unknown kind; a name that is missing or in use; a threshold
// that is not finite; a number of classes outside 1 to 32768. CHOIR_STATE: in a replica.

choir_metric *choir_metric_new(const char *name, choir_metric_kind kind);
// Precision: the fraction of the scores above threshold (in Keras 0.5) whose label is not 0.
choir_metric *choir_precision_new(const char *name, double threshold);
// Recall: the fraction of the labels that are not 0 whose score is above threshold.
choir_metric *choir_recall_new(const char *name, double threshold);
// Row i, column j counts the examples of class i with the highest score at j.
choir_metric *choir_confusion_matrix_new(const char *name, int64_t classes);

// Adds a batch, or a replica's part of one, which may have no examples. As in Keras, labels come
// before scores, and values before weights.
// - MEAN: values of any shape and any dtype that can be cast, and weights, which broadcast to
//   values; NULL: all are 1.
// - ACCURACY: integer labels [n] and scores [n, classes]. Of equal highest scores the one with
//   the lowest class counts.
// - Confusion matrix: the same; a label that is no class is CHOIR_INVALID.
// - Precision and recall: scores of any shape, compared with threshold in their own dtype (a NAN
//   counts as above it), and labels of the same shape and any dtype.
//
// The frame of the tensors is that of a replica of the metric's strategy, with no tape
// recording; or any frame outside of replicas, on the program's thread. If a required tensor is
// NULL, the call fails as the frame did.
CHOIR_MUST_CHECK choir_status choir_metric_update(
		choir_metric *m, choir_tensor *labels_or_values, choir_tensor *scores_or_weights);
// Like choir_metric_update, with a weight for each label of an accuracy, precision or recall.
// weights broadcast to labels and have any dtype that can be cast. CHOIR_INVALID: they do not
// broadcast; a MEAN or a confusion matrix.
CHOIR_MUST_CHECK choir_status choir_metric_update_weighted(
		choir_metric *m, choir_tensor *labels, choir_tensor *scores, choir_tensor *weights);
// The result over all replicas and updates since the last reset, in cross-replica context. NAN
// after a failure, or if nothing was counted; but precision is 0 if no score was above the
// threshold, and recall 0 if no label was positive.
double choir_metric_result(choir_metric *m);
// The same of a confusion matrix: an i64 tensor [classes, classes] in f. CHOIR_INVALID: m is
// another metric.
choir_tensor *choir_metric_confusion_matrix(choir_metric *m, choir_frame *f);
// In cross-replica context.
CHOIR_MUST_CHECK choir_status choir_metric_reset(choir_metric *m);

CHOIR_C_END
