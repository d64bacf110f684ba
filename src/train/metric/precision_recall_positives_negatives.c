// Metrics of two classes: a score above the threshold is a positive. metric_kinds.c counts.
#include "train/metric/metric.h"

#include <math.h>

static choir_metric *make_above(const char *name, chi_metric_kind kind, double threshold)
{
	if (isfinite(threshold))
		return chi_metric_make(name, &(choir_metric){ .kind = kind, .threshold = threshold });
	choir_fail(CHOIR_INVALID, "metric \"%s\": the threshold is %g; a finite number is needed",
			name == NULL ? "" : name, threshold);
	return NULL;
}

choir_metric *choir_precision_new(const char *name, double threshold)
{
	return make_above(name, CHI_METRIC_PRECISION, threshold);
}

choir_metric *choir_recall_new(const char *name, double threshold)
{
	return make_above(name, CHI_METRIC_RECALL, threshold);
}

choir_metric *choir_f1_new(const char *name, double threshold)
{
	return make_above(name, CHI_METRIC_F1, threshold);
}

choir_metric *choir_true_positives_new(const char *name, double threshold)
{
	return make_above(name, CHI_METRIC_TRUE_POSITIVES, threshold);
}

choir_metric *choir_false_positives_new(const char *name, double threshold)
{
	return make_above(name, CHI_METRIC_FALSE_POSITIVES, threshold);
}

choir_metric *choir_true_negatives_new(const char *name, double threshold)
{
	return make_above(name, CHI_METRIC_TRUE_NEGATIVES, threshold);
}

choir_metric *choir_false_negatives_new(const char *name, double threshold)
{
	return make_above(name, CHI_METRIC_FALSE_NEGATIVES, threshold);
}
