// Metrics of classes: precision, recall and the confusion matrix, against counts made by hand,
// over numbers of replicas and devices; and what is refused.
#include "train/problem.h"

#include "base/alloc.h"
#include "base/status.h"
#include "short.h"
#include "test.h"

#include <string.h>

#include <math.h>

static const int64_t matrix[JUDGED_CLASSES][JUDGED_CLASSES] = { { 1, 1, 0 }, { 1, 1, 0 },
	{ 0, 0, 2 } };

typedef struct {
	choir_metric *confusion, *precision, *recall, *strict;
} metrics;

static metrics open_metrics(choir_strategy *s)
{
	metrics m = { 0 };
	CHOIR_SCOPE (s) {
		m.confusion = choir_confusion_matrix_new("confusion", JUDGED_CLASSES);
		m.precision = choir_precision_new("precision", 0.5);
		m.recall = choir_recall_new("recall", 0.5);
		m.strict = choir_recall_new("strict", 2);
	}
	if (m.confusion == NULL || m.precision == NULL || m.recall == NULL || m.strict == NULL)
		fail_msg("%s", choir_error());
	return m;
}

static choir_status update(choir_replica *r, void *user)
{
	const metrics *m = user;
	choir_tensor *chance = choir_replica_arg(r, "chance"), *truth = choir_replica_arg(r, "truth");
	choir_tape_begin(r->frame); // takes no note
	CHOIR_TRY(choir_metric_update(
			m->confusion, choir_replica_arg(r, "label"), choir_replica_arg(r, "scores")));
	CHOIR_TRY(choir_metric_update(m->precision, truth, chance));
	CHOIR_TRY(choir_metric_update(m->recall, truth, chance));
	return choir_metric_update(m->strict, truth, chance);
}

static void assert_matrix(choir_metric *m, int times)
{
	int64_t have[JUDGED_CLASSES][JUDGED_CLASSES];
	choir_frame *f = choir_frame_new(NULL);
	choir_tensor *t = choir_metric_confusion_matrix(m, f);
	if (t == NULL || choir_tensor_to_host(t, have, sizeof have) != CHOIR_OK)
		fail_msg("%s", choir_error());
	for (int i = 0; i < JUDGED_CLASSES; i++)
		for (int k = 0; k < JUDGED_CLASSES; k++)
			assert_int_equal(have[i][k], times * matrix[i][k]);
	choir_frame_free(f);
}

static void assert_counts(const metrics *m)
{
	assert_true(choir_metric_result(m->precision) == 2.0 / 4);
	assert_true(choir_metric_result(m->recall) == 2.0 / 3);
	assert_true(choir_metric_result(m->strict) == 0);
}

static void count_on(choir_strategy *s)
{
	assert_non_null(s);
	metrics m = open_metrics(s);
	choir_values *batch = judged_batch(s);
	assert_true(choir_metric_result(m.precision) == 0); // as in Keras
	assert_matrix(m.confusion, 0);
	for (int k = 1; k <= 3; k++) {
		if (choir_strategy_run(s, update, &m, batch, NULL) != CHOIR_OK)
			fail_msg("%s", choir_error());
		assert_matrix(m.confusion, k);
		assert_counts(&m);
	}
	assert_int_equal(choir_metric_reset(m.confusion), CHOIR_OK);
	assert_int_equal(choir_metric_reset(m.recall), CHOIR_OK);
	assert_matrix(m.confusion, 0);
	assert_true(choir_metric_result(m.recall) == 0);
	assert_true(choir_metric_result(m.precision) == 2.0 / 4); // untouched
	choir_values_free(batch);
	choir_strategy_free(s);
}

// With 8 replicas some have no example.
// spec: A15, A16, A17
TEST(any_replicas_on_any_devices)
{
	static const char *const devices[] = { "cpu:0", "cpu:0,cpu:1", "far:0,far:1", "cpu:0,far:0" };
	for (int replicas = 1; replicas <= 8; replicas++)
		for (int i = 0; i < 4; i++)
			count_on(mirrored(devices[i], replicas));
}

TEST(other_strategies)
{
	static const char *const kinds[] = { "central_storage", "parameter_server" };
	for (int i = 0; i < 2; i++)
		count_on(choir_strategy_new(kinds[i],
				CHOIR_OPTIONS(choir_strategy_options, .replicas = 3, .devices = "cpu:0,cpu:1")));
	count_on(choir_one_device_strategy_new(NULL));
}

TEST(outside_replicas)
{
	choir_strategy *s = mirrored("cpu:0,cpu:1", 2);
	metrics m = open_metrics(s);
	choir_frame *f = choir_frame_new(NULL);
	choir_tensor *all =
			choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(JUDGED, JUDGED_CLASSES), judged_scores);
	choir_tensor *label = choir_borrow(f, CHOIR_U8, CHOIR_SHAPE(JUDGED), judged_labels);
	assert_int_equal(choir_metric_update(m.confusion, label, all), CHOIR_OK);
	assert_matrix(m.confusion, 1);
	all = choir_reshape(all, CHOIR_SHAPE(2, JUDGED / 2, JUDGED_CLASSES)); // two sequences
	label = choir_reshape(label, CHOIR_SHAPE(2, JUDGED / 2));
	assert_int_equal(choir_metric_update(m.confusion, label, all), CHOIR_OK);
	assert_matrix(m.confusion, 2);
	choir_tensor *whole = choir_constant(f, CHOIR_I32, CHOIR_SHAPE(2), (int32_t[]){ 0, 1 });
	assert_int_equal(choir_metric_update(m.precision, whole, whole), CHOIR_OK); // integers, too
	assert_true(choir_metric_result(m.precision) == 1);
	const float nan[] = { NAN, 0 };
	choir_tensor *none = choir_constant(f, CHOIR_F32, CHOIR_SHAPE(2), nan);
	assert_int_equal(
			choir_metric_update(m.precision, choir_cast(whole, CHOIR_F64), none), CHOIR_OK);
	assert_true(choir_metric_result(m.precision) == 0.5);
	choir_frame_free(f);
	choir_strategy_free(s);
}

static choir_status label_too_high(choir_replica *r, void *user)
{
	choir_tensor *x = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2, JUDGED_CLASSES), 0);
	const int32_t label[] = { 1, choir_replica_id(r) == 1 ? JUDGED_CLASSES : 0 };
	return choir_metric_update(
			user, choir_constant(r->frame, CHOIR_I32, CHOIR_SHAPE(2), label), x);
}

static choir_status other_classes(choir_replica *r, void *user)
{
	return choir_metric_update(user, choir_fill(r->frame, CHOIR_I32, CHOIR_SHAPE(2), 0),
			choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2, 4), 0));
}

static choir_status other_shapes(choir_replica *r, void *user)
{
	return choir_metric_update(user, choir_fill(r->frame, CHOIR_I32, CHOIR_SHAPE(2), 0),
			choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2, 2), 0));
}

static void refused_when_made(choir_strategy *s)
{
	CHOIR_SCOPE (s) {
		assert_null(choir_confusion_matrix_new("c", 0));
		assert_failed(choir_error_status(), CHOIR_INVALID, "\"c\": 0 classes*1*32768");
		assert_null(choir_confusion_matrix_new("c", 1 << 20));
		assert_failed(choir_error_status(), CHOIR_INVALID, "1048576");
		assert_null(choir_precision_new("p", (double) NAN));
		assert_failed(choir_error_status(), CHOIR_INVALID, "\"p\":*threshold");
		assert_null(choir_recall_new(NULL, 0.5));
		assert_failed(choir_error_status(), CHOIR_INVALID, "metric");
		assert_null(choir_recall_new("recall", 2));
		assert_failed(choir_error_status(), CHOIR_INVALID, "metric \"recall\":*variable");
	}
}

TEST(refused)
{
	choir_strategy *s = mirrored("cpu:0", 2);
	metrics m = open_metrics(s);
	choir_frame *f = choir_frame_new(NULL);
	assert_failed(choir_strategy_run(s, label_too_high, m.confusion, NULL, NULL), CHOIR_INVALID,
			"replica 1*\"confusion\"*indices[1]*3");
	assert_int_equal(choir_metric_reset(m.confusion), CHOIR_OK); // replica 0 had counted already
	assert_failed(choir_strategy_run(s, other_classes, m.confusion, NULL, NULL), CHOIR_INVALID,
			"[n, .., 3]*[n, ..]*[2, 4]*i32*[2]");
	assert_failed(choir_strategy_run(s, other_shapes, m.recall, NULL, NULL), CHOIR_INVALID,
			"metric \"recall\":*[2, 2]*[2]");
	assert_matrix(m.confusion, 0);
	assert_true(isnan(choir_metric_result(m.confusion)));
	assert_failed(choir_error_status(), CHOIR_INVALID, "confusion");
	assert_null(choir_metric_confusion_matrix(m.recall, f));
	assert_failed(choir_error_status(), CHOIR_INVALID, "\"recall\":*number");
	assert_null(choir_metric_confusion_matrix(m.confusion, f)); // the first failure stays
	assert_null(choir_metric_confusion_matrix(m.confusion, NULL));
	choir_frame_free(f);
	refused_when_made(s);
	choir_strategy_free(s);
}

TEST(allocations_may_fail)
{
	for (uint64_t n = 1;; n += SERIAL_STRIDE) {
		choir_strategy *s = mirrored("cpu:0", 1);
		chi_alloc_fail(n, false);
		choir_metric *m = NULL;
		choir_frame *f = choir_frame_new(NULL);
		CHOIR_SCOPE (s)
			m = choir_confusion_matrix_new("confusion", JUDGED_CLASSES);
		bool good = m != NULL && f != NULL;
		good = good &&
				choir_metric_update(m,
						choir_borrow(f, CHOIR_U8, CHOIR_SHAPE(JUDGED), judged_labels),
						choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(JUDGED, JUDGED_CLASSES),
								judged_scores)) == CHOIR_OK;
		good = good && choir_metric_confusion_matrix(m, f) != NULL;
		good = good && choir_metric_reset(m) == CHOIR_OK;
		const bool failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_true(good == !failed);
		if (failed && choir_error_status() != CHOIR_NO_MEMORY)
			fail_msg("allocation %d: %s", (int) n, choir_error());
		chi_error_clear();
		choir_frame_free(f);
		choir_strategy_free(s);
		if (!failed)
			break;
	}
}
