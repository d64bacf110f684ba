// Records a training: spans of time (--trace) and scalars for TensorBoard (--log).
#include "report.h"
#include "train/train.h"

#include <stdio.h>

enum { EVERY = 10 }; // steps between two records of scalars

static bool name_trace(const training *t, char path[PATH_SIZE])
{
	const int worker = train_is_chief(t) ? 0 : choir_cluster_worker(t->cluster);
	const int n = worker == 0 ? snprintf(path, PATH_SIZE, "%s", t->given->trace)
							  : snprintf(path, PATH_SIZE, "%s.%d", t->given->trace, worker);
	return n < PATH_SIZE;
}

choir_status train_trace_start(training *t)
{
	const train_options *given = t->given;
	const bool chief = train_is_chief(t);
	char path[PATH_SIZE];
	if (given->trace == NULL && (given->log == NULL || !chief))
		return CHOIR_OK;
	if (given->trace != NULL && !name_trace(t, path))
		return choir_fail(CHOIR_INVALID, "--trace %.200s: path too long", given->trace);
	return choir_trace_start(given->trace == NULL ? NULL : path,
			CHOIR_OPTIONS(choir_trace_options, .log = chief ? given->log : NULL,
					.span = given->trace == NULL ? NULL : breakdown_add, .user = &t->breakdown));
}

choir_status train_trace_stop(training *t, choir_status status)
{
	char text[512];
	if (!choir_trace_is_on())
		return status;
	snprintf(text, sizeof text, "%s", choir_error());
	const choir_status stopped = choir_trace_stop();
	if (status != CHOIR_OK)
		return choir_fail(status, "%s", text);
	if (t->given->trace != NULL)
		breakdown_print(&t->breakdown, t->given->json);
	return stopped;
}

// Since the last record, from the metric's mean of the epoch so far.
static double recent_loss(training *t, int64_t done)
{
	if (t->logged_epoch != t->epochs) {
		t->logged_sum = 0;
		t->logged_done = 0;
		t->logged_epoch = t->epochs;
	}
	const double sum = (double) done * choir_metric_result(t->loss);
	const double loss = (sum - t->logged_sum) / (double) (done - t->logged_done);
	t->logged_sum = sum;
	t->logged_done = done;
	return loss;
}

static void log_training(const training *t, int64_t done, double loss)
{
	const int64_t steps = t->share[0].steps;
	choir_trace_scalar("train/loss", steps, loss);
	choir_trace_scalar("train/rate", steps, choir_optimizer_learning_rate(t->optimizer));
	choir_trace_scalar("train/examples_per_s", steps,
			train_rate(t, done * choir_strategy_workers(t->strategy)));
}

void train_trace_step(training *t, const share *own)
{
	if (t->given->log != NULL && own->steps % EVERY == 0)
		log_training(t, own->done, recent_loss(t, own->done));
}

void train_trace_epoch(const training *t)
{
	const int64_t steps = t->share[0].steps;
	choir_trace_scalar("epoch/loss", steps, t->last_loss);
	const bool regression = train_is_regression(t);
	if (!t->data.text && !regression)
		choir_trace_scalar("epoch/accuracy", steps, t->last_accuracy);
	if (t->test_examples != 0 && !t->data.text)
		choir_trace_scalar("test/loss", steps, t->last_test_loss);
	if (t->test_examples != 0)
		choir_trace_scalar(t->data.text ? "test/bits_per_byte"
						: regression	? "test/mean_squared_error"
										: "test/accuracy",
				steps, t->last_score);
}
