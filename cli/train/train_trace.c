// Records a training: spans of time (--trace) and scalars for TensorBoard (--log).
#include "train/train.h"

#include <stdio.h>

enum { EVERY = 10 }; // steps between two records of scalars

static int worker_of(const training *t)
{
	return t->cluster == NULL ? 0 : choir_cluster_worker(t->cluster);
}

static bool name_trace(const training *t, char path[PATH_SIZE])
{
	const int worker = worker_of(t);
	const int n = worker == 0 ? snprintf(path, PATH_SIZE, "%s", t->given->trace)
							  : snprintf(path, PATH_SIZE, "%s.%d", t->given->trace, worker);
	return n < PATH_SIZE;
}

// With --run, choir report prints the times.
static bool prints_breakdown(const training *t)
{
	return t->given->trace != NULL && t->given->run == NULL;
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
	if (given->trace != NULL && train_is_one_of_many(t))
		CHOIR_TRY(choir_cluster_barrier(t->cluster)); // merged traces begin at the same time
	return choir_trace_start(given->trace == NULL ? NULL : path,
			CHOIR_OPTIONS(choir_trace_options, .log = chief ? given->log : NULL,
					.span = prints_breakdown(t) ? breakdown_add : NULL, .user = &t->breakdown,
					.worker = worker_of(t),
					.workers = t->cluster == NULL ? 1 : choir_cluster_workers(t->cluster)));
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
	if (prints_breakdown(t))
		breakdown_print(&t->breakdown, t->given->json);
	return stopped;
}

static choir_status read_loss(const training *t, choir_values *results, double *loss)
{
	const choir_tensor *sum = choir_strategy_reduce(
			t->strategy, CHOIR_SUM, choir_values_find(results, "loss"), CHOIR_NO_AXIS);
	if (sum == NULL)
		return choir_error_status();
	*loss = choir_tensor_number(sum);
	return CHOIR_OK;
}

choir_status train_trace_step(training *t, choir_values *results)
{
	share *own = &t->share[0];
	const int64_t steps = own->steps;
	if (t->given->log == NULL || steps % EVERY != 0)
		return CHOIR_OK;
	if (results != NULL)
		CHOIR_TRY(read_loss(t, results, &own->loss));
	choir_trace_scalar("train/loss", steps, own->loss);
	choir_trace_scalar("train/rate", steps, choir_optimizer_learning_rate(t->optimizer));
	choir_trace_scalar("train/examples_per_s", steps,
			train_rate(t, own->done * choir_strategy_workers(t->strategy)));
	train_run_step(t, own);
	return CHOIR_OK;
}

void train_trace_epoch(const training *t)
{
	const int64_t steps = t->share[0].steps;
	choir_trace_scalar("epoch/loss", steps, t->last.loss);
	const bool regression = train_is_regression(t);
	if (!t->data.text && !regression)
		choir_trace_scalar("epoch/accuracy", steps, t->last.accuracy);
	if (t->test_examples != 0 && !t->data.text)
		choir_trace_scalar("test/loss", steps, t->last.test_loss);
	if (t->test_examples != 0)
		choir_trace_scalar(t->data.text ? "test/bits_per_byte"
						: regression	? "test/mean_squared_error"
										: "test/accuracy",
				steps, t->last.score);
}
