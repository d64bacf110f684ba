// Metrics: totals over many batches, in f64, defined as in Keras. Each replica has a component, so
// an update waits for no other. The result adds the components in the order of replicas.
//
// A metric's variables are "name/total" and "name/count", "name/sums", or a confusion matrix's
// "name/matrix". Weights files lack them.
#pragma once

#include "strategy.h"

CHOIR_C_BEGIN

typedef struct choir_metric choir_metric;
// Kinds of metrics for choir_metric_new.
typedef enum {
	CHOIR_METRIC_MEAN, // (sum of values times weights) / (sum of weights)
	CHOIR_METRIC_ACCURACY, // fraction of examples with the highest score at their label
	// Over all elements, with e = prediction - target.
	CHOIR_METRIC_MEAN_SQUARED_ERROR, // mean of e^2
	CHOIR_METRIC_ROOT_MEAN_SQUARED_ERROR, // the square root of that mean
	CHOIR_METRIC_MEAN_ABSOLUTE_ERROR, // mean of |e|
	// 1 - (sum of e^2) / (sum of (target - mean of all targets)^2); NAN if all targets are equal
	// up to the rounding of these sums.
	CHOIR_METRIC_R2,
	// exp of the mean of choir_sparse_softmax_cross_entropy, with labels [n, ..] and logits [n,
	// .., classes]
	CHOIR_METRIC_PERPLEXITY
} choir_metric_kind;

// Constructors. classes is 1 to 32768, k at least 1. CHOIR_INVALID: a name in use. CHOIR_STATE: in
// a replica.

// A metric of one of the kinds above.
choir_metric *choir_metric_new(const char *name, choir_metric_kind kind);
// The fraction of scores above threshold (Keras: 0.5) whose label is not 0.
choir_metric *choir_precision_new(const char *name, double threshold);
// The fraction of labels other than 0 whose score is above threshold.
choir_metric *choir_recall_new(const char *name, double threshold);
// The harmonic mean of precision and recall; 0 if no score is above threshold or all labels are 0.
choir_metric *choir_f1_new(const char *name, double threshold);
// Count examples: positives have a score above threshold, negatives not. Positives are true if the
// label is not 0, negatives if it is 0.
choir_metric *choir_true_positives_new(const char *name, double threshold);
choir_metric *choir_false_positives_new(const char *name, double threshold);
choir_metric *choir_true_negatives_new(const char *name, double threshold);
choir_metric *choir_false_negatives_new(const char *name, double threshold);
// The fraction of examples with fewer than k scores above the label's score. NAN counts as above.
choir_metric *choir_top_k_accuracy_new(const char *name, int64_t k);
// The mean, over classes with examples, of the accuracy on a class's examples (balanced accuracy).
choir_metric *choir_mean_per_class_accuracy_new(const char *name, int64_t classes);
// The area under the curve of the true positive rate over the false positive rate, by trapezoids,
// as in Keras. The thresholds, 2 to 32768 (0: 200), are equally spaced from 0 to 1. Scores are
// probabilities. NAN if all labels are 0, or none is.
choir_metric *choir_auc_new(const char *name, int64_t thresholds);
// Row i, column j: the examples of class i with the highest score at j.
choir_metric *choir_confusion_matrix_new(const char *name, int64_t classes);

// Adds a batch, or a replica's part of a batch, which may have no examples.
// - MEAN takes values of any shape, and weights that broadcast to them; NULL: all 1.
// - ACCURACY takes integer labels [n, ..] and scores [n, .., classes]. Of equal scores, the lowest
//   class counts. Labels may have a last axis of 1 more.
// - A confusion matrix, top-k accuracy and accuracy per class take the same; each label is a
//   class.
// - Errors and R2 take targets and predictions of one shape.
// - Precision, recall, F1, AUC, and positives or negatives take scores and labels of one shape.
//   Scores are compared with threshold in their dtype; NAN counts as above it.
// - Of two equal shapes, one may lack a last axis of 1, as in losses (nn.h).
//
// Tensors other than integer labels may have any dtype that can be cast. In a replica of the
// metric's strategy, the tensors belong to its frame, and the tape does not record this call.
// Outside of replicas: on the program's thread, with tensors of any frame. With a NULL tensor,
// returns the failure of the other's frame.
CHOIR_MUST_CHECK choir_status choir_metric_update(
		choir_metric *m, choir_tensor *labels_or_values, choir_tensor *scores_or_weights);
// Adds a batch with weights, which broadcast to the labels. m is neither a MEAN nor a confusion
// matrix.
CHOIR_MUST_CHECK choir_status choir_metric_update_weighted(
		choir_metric *m, choir_tensor *labels, choir_tensor *scores, choir_tensor *weights);
// The result over all replicas and updates since the last reset. Called in cross-replica context.
// NAN: the call failed, or nothing was counted. Precision is 0 without a score above threshold,
// recall without a label other than 0.
double choir_metric_result(choir_metric *m);
// The confusion matrix, i64 [classes, classes], in f.
choir_tensor *choir_metric_confusion_matrix(choir_metric *m, choir_frame *f);
// Sets the totals to 0. Called in cross-replica context.
CHOIR_MUST_CHECK choir_status choir_metric_reset(choir_metric *m);

CHOIR_C_END
