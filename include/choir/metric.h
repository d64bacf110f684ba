// Metrics: totals over many batches, collected in f64. Each replica has its own component of a
// metric, so an update waits for no other replica. The result adds the components in the order of
// the replicas. Names and definitions are those of Keras.
//
// A metric's variables are "name/total" and "name/count", "name/sums", or the "name/matrix" of a
// confusion matrix. These variables are not saved with the weights.
#pragma once

#include "strategy.h"

CHOIR_C_BEGIN

typedef struct choir_metric choir_metric;
// The kinds of choir_metric_new.
typedef enum {
	CHOIR_METRIC_MEAN, // (sum of values times weights) / (sum of weights)
	CHOIR_METRIC_ACCURACY, // fraction of examples whose highest score is at their label
	// Means over all elements of predictions and targets, with e = prediction - target.
	CHOIR_METRIC_MEAN_SQUARED_ERROR, // mean of e^2
	CHOIR_METRIC_ROOT_MEAN_SQUARED_ERROR, // the square root of that mean
	CHOIR_METRIC_MEAN_ABSOLUTE_ERROR, // mean of |e|
	// 1 - (sum of e^2) / (sum of (target - mean of all targets)^2): the coefficient of
	// determination. NAN if all targets are equal.
	CHOIR_METRIC_R2,
	// exp of the mean of choir_sparse_softmax_cross_entropy: of labels [n, ..] and logits [n, ..,
	// classes]
	CHOIR_METRIC_PERPLEXITY
} choir_metric_kind;

// Constructors. CHOIR_INVALID: an unknown kind; a name that is missing or in use; a threshold
// that is not finite; a number of classes outside 1 to 32768; k below 1. CHOIR_STATE: in a
// replica.

// A metric of one of the kinds above.
choir_metric *choir_metric_new(const char *name, choir_metric_kind kind);
// Precision: of the scores above threshold (in Keras 0.5), the fraction whose label is not 0.
choir_metric *choir_precision_new(const char *name, double threshold);
// Recall: of the labels that are not 0, the fraction whose score is above threshold.
choir_metric *choir_recall_new(const char *name, double threshold);
// The harmonic mean of precision and recall; 0 if there is neither a positive score nor a positive
// label.
choir_metric *choir_f1_new(const char *name, double threshold);
// Numbers of labels: those that are not 0 whose score is above threshold (true positives), those
// that are 0 (false positives), and the same for scores that are not above it (negatives).
choir_metric *choir_true_positives_new(const char *name, double threshold);
choir_metric *choir_false_positives_new(const char *name, double threshold);
choir_metric *choir_true_negatives_new(const char *name, double threshold);
choir_metric *choir_false_negatives_new(const char *name, double threshold);
// The fraction of examples with fewer than k scores that are higher than the score at the label.
choir_metric *choir_top_k_accuracy_new(const char *name, int64_t k);
// The mean over classes of the fraction of their examples whose highest score is at their label
// (balanced accuracy). Classes without examples do not count.
choir_metric *choir_mean_per_class_accuracy_new(const char *name, int64_t classes);
// The area under the curve of true over false positive rates, at thresholds (0: 200) equally
// spaced from 0 to 1, as in Keras: trapezoids between neighbouring thresholds. Scores are
// probabilities. NAN without a positive or without a negative label. CHOIR_INVALID also:
// thresholds below 2.
choir_metric *choir_auc_new(const char *name, int64_t thresholds);
// A confusion matrix: row i, column j counts the examples of class i whose highest score is at j.
choir_metric *choir_confusion_matrix_new(const char *name, int64_t classes);

// Adds a batch, or a replica's part of a batch, which may have no examples.
// - MEAN takes values and weights. Values have any shape, and any dtype that can be cast. Weights
//   broadcast to the values; NULL weights are all 1.
// - ACCURACY takes integer labels [n] and scores [n, classes]. Of several classes with the
//   highest score, the lowest class counts.
// - A confusion matrix, top-k accuracy and the accuracy per class take the same as ACCURACY. A
//   label that is not a class is CHOIR_INVALID.
// - Errors and R2 take targets and predictions of one shape, and of any dtype that can be cast.
// - Precision, recall, F1, AUC, and positives or negatives take scores of any shape, and labels
//   of the same shape and any dtype. Scores are compared with threshold in the scores' dtype; a
//   NAN counts as above threshold.
//
// In a replica of the metric's strategy, the tensors belong to the replica's frame, and the tape
// does not record this call. Outside of replicas, call this on the program's thread, with tensors
// of any frame. If a required tensor is NULL, the call returns the failure of the other tensor's
// frame.
CHOIR_MUST_CHECK choir_status choir_metric_update(
		choir_metric *m, choir_tensor *labels_or_values, choir_tensor *scores_or_weights);
// Like choir_metric_update, with a weight for each label of an accuracy, precision or recall.
// weights broadcast to labels and have any dtype that can be cast. CHOIR_INVALID: weights do not
// broadcast; m is a MEAN or a confusion matrix.
CHOIR_MUST_CHECK choir_status choir_metric_update_weighted(
		choir_metric *m, choir_tensor *labels, choir_tensor *scores, choir_tensor *weights);
// The result over all replicas and updates since the last reset, in cross-replica context. It is
// NAN after a failure, or if nothing was counted. But precision is 0 if no score was above the
// threshold, and recall is 0 if all labels were 0.
double choir_metric_result(choir_metric *m);
// The result of a confusion matrix: an i64 tensor [classes, classes] in f. CHOIR_INVALID: m is
// not a confusion matrix.
choir_tensor *choir_metric_confusion_matrix(choir_metric *m, choir_frame *f);
// Sets the totals to 0, in cross-replica context.
CHOIR_MUST_CHECK choir_status choir_metric_reset(choir_metric *m);

CHOIR_C_END
