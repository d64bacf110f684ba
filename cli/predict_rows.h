// Data and rows that get no prediction.
#pragma once

#include "data/training_data.h"

// Fails unless columns come in the order of the training. name: of the data, in the message.
choir_status predict_check_columns(const char *name, const table_plan *t, const source *data);
// Fails with how many rows lack which input column. s: opening it has found no row with a value in
// each.
choir_status predict_explain_dropped(source *s, uint64_t seed);
// Fails for an example (as "row 3") whose scores are not finite. standardized: the numbers of the
// columns; NULL: they have no names.
choir_status predict_explain_scores(const char *data, const char *example, const table_plan *t,
		const input_columns *columns, const float *standardized);
// A choir_log_fn.
void predict_print_warning(choir_log_level level, const char *line, void *user);
// Adds examples with label 0 or 1 to the area under the curve.
choir_status predict_count_auc(choir_metric *auc, choir_tensor *labels, choir_tensor *scores);
// Probabilities of n classes, whose sum is 1.
void predict_softmax(int64_t n, const float *scores, float *to);
