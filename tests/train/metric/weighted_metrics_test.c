// Metrics of examples with weights, against sums made by hand, over numbers of replicas and of
// devices.
#include "train/problem.h"

#include "base/status.h"
#include "test.h"

#include <math.h>

static const float weights[JUDGED] = { 1, 0.5f, 2, 4, 8, 0.25f };

typedef struct {
	choir_metric *accuracy, *precision, *recall, *mean, *confusion;
	bool alike; // one weight for all
} metrics;

static metrics open_metrics(choir_strategy *s)
{
	metrics m = { 0 };
	CHOIR_SCOPE (s) {
		m.accuracy = choir_metric_new("accuracy", CHOIR_METRIC_ACCURACY);
		m.precision = choir_precision_new("precision", 0.5);
		m.recall = choir_recall_new("recall", 0.5);
		m.mean = choir_metric_new("mean", CHOIR_METRIC_MEAN);
		m.confusion = choir_confusion_matrix_new("confusion", JUDGED_CLASSES);
	}
	assert_non_null(m.confusion);
	return m;
}

static choir_status update(choir_replica *r, void *user)
{
	const metrics *m = user;
	choir_tensor *chance = choir_replica_arg(r, "chance"), *truth = choir_replica_arg(r, "truth");
	choir_tensor *w = m->alike ? choir_fill(r->frame, CHOIR_I32, CHOIR_SHAPE(1), 3)
							   : choir_replica_arg(r, "weight");
	choir_tape_begin(r->frame); // takes no note
	CHOIR_TRY(choir_metric_update_weighted(
			m->accuracy, choir_replica_arg(r, "label"), choir_replica_arg(r, "scores"), w));
	CHOIR_TRY(choir_metric_update_weighted(m->precision, truth, chance, w));
	return choir_metric_update_weighted(m->recall, truth, chance, w);
}

static choir_values *make_batch(choir_strategy *s)
{
	choir_values *batch = judged_batch(s);
	judged_split(batch, "weight", CHOIR_F32, CHOIR_SHAPE(JUDGED), weights);
	return batch;
}

TEST(examples_count_as_much_as_they_weigh)
{
	static const char *const devices[] = { "cpu:0", "cpu:0,cpu:1", "far:0,far:1" };
	for (int replicas = 1; replicas <= 8; replicas++) // with 8 some replicas have no example
		for (int i = 0; i < 6; i++) {
			choir_strategy *s = mirrored(devices[i % 3], replicas);
			metrics m = open_metrics(s);
			m.alike = i >= 3;
			choir_values *batch = make_batch(s);
			for (int k = 0; k < 2; k++)
				if (choir_strategy_run(s, update, &m, batch, NULL) != CHOIR_OK)
					fail_msg("%s", choir_error());
			const double accuracy = m.alike ? 4.0 / 6 : (1 + 2 + 8 + 0.25) / 15.75;
			const double precision = m.alike ? 2.0 / 4 : (1 + 8) / (1 + 2 + 8 + 0.25);
			const double recall = m.alike ? 2.0 / 3 : (1 + 8) / (1 + 0.5 + 8);
			assert_true(fabs(choir_metric_result(m.accuracy) - accuracy) < 1e-15);
			assert_true(fabs(choir_metric_result(m.precision) - precision) < 1e-15);
			assert_true(fabs(choir_metric_result(m.recall) - recall) < 1e-15);
			choir_values_free(batch);
			choir_strategy_free(s);
		}
}

TEST(refused)
{
	choir_strategy *s = mirrored("cpu:0", 1);
	metrics m = open_metrics(s);
	choir_cross *x = choir_strategy_cross(s);
	choir_frame *f = x->frame;
	choir_metric *const wrong[] = { m.precision, m.accuracy, m.mean, m.confusion };
	static const char *const text[] = { "weights [2, 6]*labels [6]", "multiply",
		"choir_metric_update", "without weights" };
	for (int i = 0; i < 4; i++) {
		choir_tensor *t = i == 0 ? choir_constant(f, CHOIR_I32, CHOIR_SHAPE(JUDGED), judged_truths)
								 : choir_constant(f, CHOIR_U8, CHOIR_SHAPE(JUDGED), judged_labels);
		choir_tensor *values = i == 0 || i == 2
				? choir_constant(f, CHOIR_F32, CHOIR_SHAPE(JUDGED), judged_chances)
				: choir_constant(f, CHOIR_F32, CHOIR_SHAPE(JUDGED, JUDGED_CLASSES), judged_scores);
		const choir_shape shape = i == 0 ? CHOIR_SHAPE(2, JUDGED) : CHOIR_SHAPE(4);
		assert_failed(choir_metric_update_weighted(
							  wrong[i], t, values, choir_fill(f, CHOIR_F32, shape, 1)),
				CHOIR_INVALID, text[i]);
		choir_frame_clear(f);
	}
	assert_true(choir_metric_result(m.precision) == 0); // nothing was counted
	choir_tensor *chance = choir_constant(f, CHOIR_F32, CHOIR_SHAPE(JUDGED), judged_chances);
	assert_failed(choir_metric_update_weighted(m.recall, chance, chance, NULL), CHOIR_INVALID,
			"NULL*tensor");
	choir_frame_clear(f);
	choir_strategy_free(s);
}
