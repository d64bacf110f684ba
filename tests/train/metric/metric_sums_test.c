// Metrics made of sums, against the same numbers in plain C, over numbers of replicas and devices;
// and what is refused.
#include "train/problem.h"

#include "base/status.h"
#include "test.h"

#include <math.h>
#include <string.h>

typedef struct {
	choir_metric *mse, *rmse, *mae, *r2, *f1, *tp, *fp, *tn, *fn, *auc, *top[3], *per_class,
			*perplexity;
	bool weighted;
} metrics;
static const float weights[JUDGED] = { 1, 0.5f, 2, 0, 3, 1 };

static metrics open_metrics(choir_strategy *s)
{
	metrics m = { 0 };
	CHOIR_SCOPE (s) {
		m.mse = choir_metric_new("mse", CHOIR_METRIC_MEAN_SQUARED_ERROR);
		m.rmse = choir_metric_new("rmse", CHOIR_METRIC_ROOT_MEAN_SQUARED_ERROR);
		m.mae = choir_metric_new("mae", CHOIR_METRIC_MEAN_ABSOLUTE_ERROR);
		m.r2 = choir_metric_new("r2", CHOIR_METRIC_R2);
		m.f1 = choir_f1_new("f1", 0.5);
		m.tp = choir_true_positives_new("tp", 0.5);
		m.fp = choir_false_positives_new("fp", 0.5);
		m.tn = choir_true_negatives_new("tn", 0.5);
		m.fn = choir_false_negatives_new("fn", 0.5);
		m.auc = choir_auc_new("auc", 0);
		m.per_class = choir_mean_per_class_accuracy_new("per_class", JUDGED_CLASSES);
		m.perplexity = choir_metric_new("perplexity", CHOIR_METRIC_PERPLEXITY);
		m.top[0] = choir_top_k_accuracy_new("top1", 1);
		m.top[1] = choir_top_k_accuracy_new("top2", 2);
		m.top[2] = choir_top_k_accuracy_new("top9", 9);
	}
	return m;
}

static choir_status update(choir_replica *r, void *user)
{
	const metrics *m = user;
	choir_tensor *chance = choir_replica_arg(r, "chance"), *truth = choir_replica_arg(r, "truth");
	choir_tensor *scores = choir_replica_arg(r, "scores"), *label = choir_replica_arg(r, "label");
	choir_tensor *w = choir_replica_arg(r, "weight");
	choir_metric *const of_chances[] = { m->mse, m->rmse, m->mae, m->r2, m->f1, m->tp, m->fp,
		m->tn, m->fn, m->auc };
	choir_metric *const of_classes[] = { m->top[0], m->top[1], m->top[2], m->per_class,
		m->perplexity };
	for (int i = 0; i < 10; i++)
		CHOIR_TRY(m->weighted ? choir_metric_update_weighted(of_chances[i], truth, chance, w)
							  : choir_metric_update(of_chances[i], truth, chance));
	for (int i = 0; i < 5; i++)
		CHOIR_TRY(m->weighted ? choir_metric_update_weighted(of_classes[i], label, scores, w)
							  : choir_metric_update(of_classes[i], label, scores));
	return CHOIR_OK;
}

static void near(choir_metric *m, double expected)
{
	const double have = choir_metric_result(m);
	if (!(fabs(have - expected) < 1e-12))
		fail_msg("%.17g, needed %.17g", have, expected);
}

static double top(int k, bool weighted)
{
	double hits = 0, all = 0;
	for (int i = 0; i < JUDGED; i++) {
		int higher = 0;
		for (int c = 0; c < JUDGED_CLASSES; c++)
			higher += judged_scores[i][c] > judged_scores[i][judged_labels[i]];
		const double w = weighted ? (double) weights[i] : 1;
		hits += higher < k ? w : 0;
		all += w;
	}
	return hits / all;
}

// The trapezoids between Keras' 200 thresholds.
static double area(bool weighted)
{
	double before[2] = { 0 }, all[2] = { 0 }, sum = 0;
	for (int t = 0; t < 200; t++) {
		const double at = t == 0 ? -1e-7 : t == 199 ? 1 + 1e-7 : t / 199.0;
		double above[2] = { 0 };
		for (int i = 0; i < JUDGED; i++)
			if ((double) judged_chances[i] > at)
				above[judged_truths[i] != 0] += weighted ? (double) weights[i] : 1;
		if (t > 0)
			sum += (before[0] - above[0]) * (before[1] + above[1]) / 2;
		memcpy(before, above, sizeof above);
	}
	for (int i = 0; i < JUDGED; i++)
		all[judged_truths[i] != 0] += weighted ? (double) weights[i] : 1;
	return sum / all[0] / all[1];
}

// Exp of the mean loss, or the mean accuracy of classes.
static double by_rows(bool weighted, bool losses)
{
	double loss = 0, all = 0, hits[JUDGED_CLASSES] = { 0 }, of[JUDGED_CLASSES] = { 0 };
	double mean = 0, classes = 0;
	for (int i = 0; i < JUDGED; i++) {
		const double w = weighted ? (double) weights[i] : 1;
		double sum = 0;
		int best = 0;
		for (int c = 0; c < JUDGED_CLASSES; c++) {
			sum += exp((double) judged_scores[i][c]);
			best = judged_scores[i][c] > judged_scores[i][best] ? c : best;
		}
		loss += w * (log(sum) - (double) judged_scores[i][judged_labels[i]]);
		all += w;
		hits[judged_labels[i]] += best == judged_labels[i] ? w : 0;
		of[judged_labels[i]] += w;
	}
	for (int c = 0; c < JUDGED_CLASSES; c++)
		if (of[c] > 0) {
			mean += hits[c] / of[c];
			classes++;
		}
	return losses ? exp(loss / all) : mean / classes;
}

static void compare(const metrics *m)
{
	double n = 0, squares = 0, absolutes = 0, sum = 0, of_squares = 0;
	double found[2][2] = { { 0 } }; // [above][true]
	for (int i = 0; i < JUDGED; i++) {
		const double w = m->weighted ? (double) weights[i] : 1;
		const double y = judged_truths[i], e = (double) judged_chances[i] - y;
		n += w;
		squares += w * e * e;
		absolutes += w * fabs(e);
		sum += w * y;
		of_squares += w * y * y;
		found[(double) judged_chances[i] > 0.5][y != 0] += w;
	}
	near(m->mse, squares / n);
	near(m->rmse, sqrt(squares / n));
	near(m->mae, absolutes / n);
	near(m->r2, 1 - squares / (of_squares - sum * sum / n));
	near(m->f1, 2 * found[1][1] / (2 * found[1][1] + found[1][0] + found[0][1]));
	near(m->tp, found[1][1]);
	near(m->fp, found[1][0]);
	near(m->tn, found[0][0]);
	near(m->fn, found[0][1]);
	near(m->auc, area(m->weighted));
	near(m->per_class, by_rows(m->weighted, false));
	near(m->perplexity, by_rows(m->weighted, true));
	for (int i = 0; i < 3; i++)
		near(m->top[i], top(i == 2 ? 9 : i + 1, m->weighted));
}

TEST(any_replicas_on_any_devices)
{
	static const char *const devices[] = { "cpu:0", "cpu:0,cpu:1", "far:0,far:1" };
	for (int replicas = 1; replicas <= 7; replicas += 2) // with 7 one has no example
		for (int i = 0; i < 6; i++) {
			choir_strategy *s = mirrored(devices[i / 2], replicas);
			metrics m = open_metrics(s);
			choir_values *batch = judged_batch(s);
			judged_split(batch, "weight", CHOIR_F32, CHOIR_SHAPE(JUDGED), weights);
			m.weighted = i % 2 == 1;
			assert_true(isnan(choir_metric_result(m.mse)));
			assert_true(choir_metric_result(m.f1) == 0);
			if (choir_strategy_run(s, update, &m, batch, NULL) != CHOIR_OK)
				fail_msg("%s", choir_error());
			compare(&m);
			assert_int_equal(choir_metric_reset(m.tp), CHOIR_OK);
			near(m.tp, 0);
			choir_values_free(batch);
			choir_strategy_free(s);
		}
}

// The weights do not change what one half of the batch adds to the other.
TEST(totals_go_on)
{
	choir_strategy *s = mirrored("cpu:0", 2);
	metrics m = open_metrics(s);
	choir_values *batch = judged_batch(s);
	judged_split(batch, "weight", CHOIR_F32, CHOIR_SHAPE(JUDGED), weights);
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(choir_strategy_run(s, update, &m, batch, NULL), CHOIR_OK);
		near(m.tp, 2 * i);
	}
	near(m.f1, 4 / 7.0);
	choir_values_free(batch);
	choir_strategy_free(s);
}

TEST_WITHIN(equal_targets_have_no_r2, scoped_open, scoped_close)
{
	const scoped *at = *state;
	static const float targets[] = { 2, 2, 2 }, predictions[] = { 1, 2, 4 };
	choir_metric *m = choir_metric_new("r2", CHOIR_METRIC_R2);
	assert_int_equal(
			choir_metric_update(m, choir_constant(at->frame, CHOIR_F32, CHOIR_SHAPE(3), targets),
					choir_constant(at->frame, CHOIR_F32, CHOIR_SHAPE(3), predictions)),
			CHOIR_OK);
	assert_true(isnan(choir_metric_result(m)));
	choir_metric *auc = choir_auc_new("auc", 0); // all labels are positive
	assert_int_equal(
			choir_metric_update(auc, choir_constant(at->frame, CHOIR_F32, CHOIR_SHAPE(3), targets),
					choir_constant(at->frame, CHOIR_F32, CHOIR_SHAPE(3), predictions)),
			CHOIR_OK);
	assert_true(isnan(choir_metric_result(auc)));
}

// Whose sums are rounded.
TEST_WITHIN(many_equal_targets_have_no_r2, scoped_open, scoped_close)
{
	const scoped *at = *state;
	choir_metric *m = choir_metric_new("r2", CHOIR_METRIC_R2);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(
				choir_metric_update(m, choir_fill(at->frame, CHOIR_F64, CHOIR_SHAPE(3), 0.3),
						choir_fill(at->frame, CHOIR_F64, CHOIR_SHAPE(3), 0.4)),
				CHOIR_OK);
		const double result = choir_metric_result(m);
		if (!isnan(result))
			fail_msg("%d targets: %g", 3 * i + 3, result);
	}
	const double other[] = { 0.3001, 0.3 };
	choir_tensor *targets = choir_constant(at->frame, CHOIR_F64, CHOIR_SHAPE(2), other);
	assert_int_equal(choir_metric_update(m, targets, targets), CHOIR_OK);
	assert_true(choir_metric_result(m) < 0);
}

TEST_WITHIN(scores_that_are_nan_are_no_hits, scoped_open, scoped_close)
{
	const scoped *at = *state;
	static const float nan = (float) NAN;
	const float scores[][3] = { { nan, nan, nan }, { 1, nan, 0 }, { nan, 2, 1 }, { 3, 2, 1 } };
	static const uint8_t labels[] = { 1, 1, 1, 1 };
	choir_metric *m = choir_top_k_accuracy_new("top", 2);
	assert_int_equal(
			choir_metric_update(m, choir_constant(at->frame, CHOIR_U8, CHOIR_SHAPE(4), labels),
					choir_constant(at->frame, CHOIR_F32, CHOIR_SHAPE(4, 3), scores)),
			CHOIR_OK);
	assert_float_equal((float) choir_metric_result(m), 0.5f, 1e-6f);
}

// Of scores [2, 3, classes] and labels [2, 3], which one metric gets as [6, classes] and [6].
TEST_WITHIN(positions_count_as_examples, scoped_open, scoped_close)
{
	const scoped *at = *state;
	for (int kind = 0; kind < 6; kind++) {
		double result[3];
		for (int flat = 0; flat < 3; flat++) { // 2: labels with a last axis of 1, as in Keras
			char name[8] = { 'm', (char) ('0' + kind), (char) ('0' + flat) };
			choir_metric *m = kind < 2 ? choir_metric_new(name, CHOIR_METRIC_ACCURACY)
					: kind < 4		   ? choir_top_k_accuracy_new(name, 2)
									   : choir_mean_per_class_accuracy_new(name, JUDGED_CLASSES);
			choir_tensor *scores = choir_borrow(at->frame, CHOIR_F32,
					flat ? CHOIR_SHAPE(JUDGED, JUDGED_CLASSES)
						 : CHOIR_SHAPE(2, JUDGED / 2, JUDGED_CLASSES),
					judged_scores);
			const choir_shape rows = flat == 2 ? CHOIR_SHAPE(JUDGED, 1)
					: flat					   ? CHOIR_SHAPE(JUDGED)
											   : CHOIR_SHAPE(2, JUDGED / 2);
			choir_tensor *labels = choir_borrow(at->frame, CHOIR_U8, rows, judged_labels);
			choir_tensor *w = choir_borrow(at->frame, CHOIR_F32, rows, weights);
			assert_int_equal(kind % 2 == 0 ? choir_metric_update(m, labels, scores)
										   : choir_metric_update_weighted(m, labels, scores, w),
					CHOIR_OK);
			result[flat] = choir_metric_result(m);
		}
		assert_true(result[0] > 0 && result[0] == result[1] && result[1] == result[2]);
	}
}

TEST_WITHIN(a_last_axis_of_1_may_be_missing, scoped_open, scoped_close)
{
	const scoped *at = *state;
	choir_metric *m[] = { choir_metric_new("mse", CHOIR_METRIC_MEAN_SQUARED_ERROR),
		choir_metric_new("r2", CHOIR_METRIC_R2), choir_auc_new("auc", 0) };
	for (int i = 0; i < 3; i++) {
		double result[4];
		for (int axes = 0; axes < 4; axes++) {
			const choir_shape row = CHOIR_SHAPE(JUDGED), column = CHOIR_SHAPE(JUDGED, 1);
			choir_tensor *truths =
					choir_borrow(at->frame, CHOIR_I32, axes & 1 ? column : row, judged_truths);
			choir_tensor *chances =
					choir_borrow(at->frame, CHOIR_F32, axes & 2 ? column : row, judged_chances);
			choir_tensor *w = choir_borrow(at->frame, CHOIR_F32, row, weights);
			assert_int_equal(choir_metric_update_weighted(m[i], truths, chances, w), CHOIR_OK);
			result[axes] = choir_metric_result(m[i]);
			assert_int_equal(choir_metric_reset(m[i]), CHOIR_OK);
		}
		for (int axes = 0; axes < 4; axes++)
			assert_true(result[axes] == result[0]);
	}
}

TEST_WITHIN(what_is_refused, scoped_open, scoped_close)
{
	const scoped *at = *state;
	choir_metric *error = choir_metric_new("error", CHOIR_METRIC_MEAN_ABSOLUTE_ERROR);
	choir_metric *best = choir_top_k_accuracy_new("best", 2);
	choir_tensor *three = choir_fill(at->frame, CHOIR_F32, CHOIR_SHAPE(3), 1);
	choir_tensor *four = choir_fill(at->frame, CHOIR_F32, CHOIR_SHAPE(4, 1), 1);
	assert_failed(choir_metric_update(error, three, four), CHOIR_INVALID, "error*[4, 1]*[3]");
	choir_frame_clear(at->frame);
	three = choir_fill(at->frame, CHOIR_F32, CHOIR_SHAPE(3), 1);
	assert_failed(choir_metric_update(
						  best, three, choir_fill(at->frame, CHOIR_F32, CHOIR_SHAPE(3, 2), 1)),
			CHOIR_INVALID, "best*accuracy*f32");
	choir_frame_clear(at->frame);
	static const int32_t beyond[] = { 1, 2, 0 };
	assert_failed(
			choir_metric_update(best, choir_constant(at->frame, CHOIR_I32, CHOIR_SHAPE(3), beyond),
					choir_fill(at->frame, CHOIR_F32, CHOIR_SHAPE(3, 2), 1)),
			CHOIR_INVALID, "best*labels*2");
	choir_frame_clear(at->frame);
	choir_metric *one = choir_metric_new("one", CHOIR_METRIC_ACCURACY);
	assert_failed(choir_metric_update(one, choir_fill(at->frame, CHOIR_I32, CHOIR_SHAPE(3, 1), 1),
						  choir_fill(at->frame, CHOIR_F32, CHOIR_SHAPE(3, 1), 1)),
			CHOIR_INVALID, "one*[3, 1]*[3, 1]");
	assert_null(choir_top_k_accuracy_new("none", 0));
	assert_failed(choir_error_status(), CHOIR_INVALID, "none*k*0");
	assert_null(choir_auc_new("curve", 1));
	assert_failed(choir_error_status(), CHOIR_INVALID, "curve*1 thresholds*2 to");
	assert_null(choir_mean_per_class_accuracy_new("classes", 0));
	assert_failed(choir_error_status(), CHOIR_INVALID, "classes*0 classes");
	assert_null(choir_f1_new("f", (double) NAN));
	assert_failed(choir_error_status(), CHOIR_INVALID, "f*threshold*nan");
	assert_null(choir_metric_new("kind", (choir_metric_kind) 7));
	assert_failed(choir_error_status(), CHOIR_INVALID, "kind 7*CHOIR_METRIC_MEAN*_R2");
}
