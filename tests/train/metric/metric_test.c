// Metrics: what they count, from where they may be updated, and what is refused.
#include "train/problem.h"

#include "base/status.h"
#include "test.h"

#include <math.h>

typedef struct {
	choir_metric *mean, *weighted, *accuracy;
	bool taped;
} metrics;

static metrics open_metrics(choir_strategy *s)
{
	metrics m = { 0 };
	CHOIR_SCOPE (s) {
		m.mean = choir_metric_new("mean", CHOIR_METRIC_MEAN);
		m.weighted = choir_metric_new("weighted", CHOIR_METRIC_MEAN);
		m.accuracy = choir_metric_new("accuracy", CHOIR_METRIC_ACCURACY);
	}
	if (m.mean == NULL || m.weighted == NULL || m.accuracy == NULL)
		fail_msg("%s", choir_error());
	return m;
}

static choir_status update(choir_replica *r, void *user)
{
	const metrics *m = user;
	if (m->taped)
		choir_tape_begin(r->frame);
	choir_tensor *x = choir_replica_arg(r, "x"), *labels = choir_replica_arg(r, "label");
	CHOIR_TRY(choir_metric_update(m->mean, x, NULL));
	CHOIR_TRY(choir_metric_update(m->weighted, x, choir_replica_arg(r, "weight")));
	return choir_metric_update(m->accuracy, labels, x);
}

static void near(double have, double expected)
{
	if (!(fabs(have - expected) < 1e-12))
		fail_msg("%.17g, needed %.17g", have, expected);
}

static choir_values *make_batch(choir_strategy *s)
{
	static const double x[5][3] = { { 1, 2, 3 }, { 3, 3, 1 }, { 0, -1, -2 }, { 5, 6, 5 },
		{ 0, 0, 1 } };
	static const double weight[5][1] = { { 1 }, { 0 }, { 2 }, { 0.5 }, { 1 } };
	static const uint8_t label[5] = { 2, 1, 0, 1,
		0 }; // right: 0, 2 and 3; of equals the first counts
	choir_values *batch = choir_values_new(s);
	choir_frame *f = choir_values_frame(batch);
	choir_status status =
			choir_values_split(batch, "x", choir_borrow(f, CHOIR_F64, CHOIR_SHAPE(5, 3), x));
	if (status == CHOIR_OK)
		status = choir_values_split(
				batch, "weight", choir_borrow(f, CHOIR_F64, CHOIR_SHAPE(5, 1), weight));
	if (status == CHOIR_OK)
		status = choir_values_split(
				batch, "label", choir_borrow(f, CHOIR_U8, CHOIR_SHAPE(5), label));
	if (status != CHOIR_OK)
		fail_msg("%s", choir_error());
	return batch;
}

TEST(counts)
{
	static const char *const devices[] = { "cpu:0", "cpu:0,cpu:1", "far:0,far:1" };
	for (int replicas = 1; replicas <= 8; replicas++) // with 8 some replicas have no example
		for (int i = 0; i < 3; i++) {
			choir_strategy *s = mirrored(devices[i], replicas);
			metrics m = open_metrics(s);
			choir_values *batch = make_batch(s);
			assert_true(isnan(choir_metric_result(m.mean)));
			for (int k = 1; k <= 3; k++) {
				m.taped = k == 2;
				if (choir_strategy_run(s, update, &m, batch, NULL) != CHOIR_OK)
					fail_msg("%s", choir_error());
				near(choir_metric_result(m.mean), 27.0 / 15);
				near(choir_metric_result(m.weighted), (6 - 2 * 3 + 0.5 * 16 + 1) / (3 * 4.5));
				near(choir_metric_result(m.accuracy), 3.0 / 5);
			}
			assert_int_equal(choir_metric_reset(m.mean), CHOIR_OK);
			assert_true(isnan(choir_metric_result(m.mean)));
			near(choir_metric_result(m.accuracy), 3.0 / 5);
			choir_values_free(batch);
			choir_strategy_free(s);
		}
}

TEST(outside_replicas)
{
	static const char *const devices[] = { "cpu:0,cpu:1", "far:0,far:1" };
	for (int i = 0; i < 2; i++) {
		choir_strategy *s = mirrored(devices[i], 2);
		metrics m = open_metrics(s);
		choir_frame *f = choir_frame_new(NULL);
		assert_int_equal(choir_metric_update(m.mean, choir_number(f, 3), NULL), CHOIR_OK);
		choir_tensor *x = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(3), 7);
		assert_int_equal(choir_metric_update(m.mean, x, NULL), CHOIR_OK);
		near(choir_metric_result(m.mean), 6);
		choir_frame_free(f);
		choir_strategy_free(s);
	}
}

TEST(in_the_default_replica)
{
	metrics m = open_metrics(choir_default_strategy());
	choir_frame *f = choir_replica_current()->frame;
	choir_tensor *scores = choir_constant(f, CHOIR_F32, CHOIR_SHAPE(1, 2), (float[]){ 1, 2 });
	choir_tensor *label = choir_constant(f, CHOIR_I64, CHOIR_SHAPE(1), (int64_t[]){ 1 });
	assert_int_equal(choir_metric_update(m.accuracy, label, scores), CHOIR_OK);
	near(choir_metric_result(m.accuracy), 1);
	choir_frame_clear(f);
}

static choir_status bad_update(choir_replica *r, void *user)
{
	choir_tensor *scores = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(4, 2), 0);
	choir_tensor *labels = choir_fill(r->frame, CHOIR_I32, CHOIR_SHAPE(3), 0);
	return choir_metric_update(user, labels, scores);
}

static choir_status ask_inside(choir_replica *r, void *user)
{
	(void) r;
	return isnan(choir_metric_result(user)) ? choir_error_status() : CHOIR_OK;
}

static choir_status make_inside(choir_replica *r, void *user)
{
	(void) r, (void) user;
	return choir_metric_new("inside", CHOIR_METRIC_MEAN) == NULL ? choir_error_status() : CHOIR_OK;
}

TEST(refused)
{
	choir_strategy *s = mirrored("cpu:0", 2), *other = mirrored("cpu:0", 2);
	metrics m = open_metrics(s);
	CHOIR_SCOPE (s) {
		assert_null(choir_metric_new("mean", CHOIR_METRIC_MEAN));
		assert_failed(choir_error_status(), CHOIR_INVALID, "metric \"mean\":*\"mean/total\"");
		assert_null(choir_metric_new("nine", (choir_metric_kind) 9));
		assert_failed(choir_error_status(), CHOIR_INVALID, "kind 9*\"nine\"");
		assert_null(choir_metric_new(NULL, CHOIR_METRIC_MEAN));
		chi_error_clear();
	}
	assert_failed(choir_strategy_run(s, bad_update, m.accuracy, NULL, NULL), CHOIR_INVALID,
			"[n, .., classes]*[n, ..]*[4, 2]*i32*[3]");
	assert_failed(
			choir_strategy_run(s, bad_update, m.mean, NULL, NULL), CHOIR_INVALID, "[4, 2]*[3]");
	assert_failed(choir_strategy_run(other, bad_update, m.mean, NULL, NULL), CHOIR_INVALID,
			"replica 0:*[4, 2]*[3]");
	assert_failed(
			choir_strategy_run(s, ask_inside, m.mean, NULL, NULL), CHOIR_STATE, "metric_result");
	assert_failed(choir_strategy_run(s, make_inside, NULL, NULL, NULL), CHOIR_STATE, "metric");
	assert_true(isnan(choir_metric_result(m.accuracy)));
	assert_true(isnan(choir_metric_result(NULL)));
	assert_failed(choir_error_status(), CHOIR_INVALID, "NULL");
	assert_failed(choir_metric_update(NULL, NULL, NULL), CHOIR_INVALID, "metric");
	choir_strategy_free(other);
	choir_strategy_free(s);
}
