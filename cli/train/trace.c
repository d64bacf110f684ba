// What a training records of itself: where its time went (--trace) and how its numbers moved
// (--log).
#include "report.h"
#include "train/training.h"

#include <stdio.h>

enum { EVERY = 10 }; // steps between two rows of scalars

choir_status train_trace_start(training *t)
{
	const train_options *given = t->given;
	if ((given->trace == NULL && given->log == NULL) || !train_is_chief(t))
		return CHOIR_OK;
	return choir_trace_start(given->trace,
			CHOIR_OPTIONS(choir_trace_options, .log = given->log,
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
		breakdown_say(&t->breakdown, t->given->json);
	return stopped;
}

static void log_training(const training *t, int64_t done, double loss)
{
	const int64_t steps = t->share[0].steps;
	choir_trace_scalar("train/loss", steps, loss);
	choir_trace_scalar("train/rate", steps, choir_optimizer_rate(t->optimizer));
	choir_trace_scalar("train/examples_per_s", steps,
			train_rate(t, done * choir_strategy_workers(t->strategy)));
}

void train_trace_step(const training *t, const share *own)
{
	if (t->given->log != NULL && own->steps % EVERY == 0)
		log_training(t, own->done, choir_metric_result(t->loss));
}

void train_trace_epoch(const training *t)
{
	const int64_t steps = t->share[0].steps;
	choir_trace_scalar("epoch/loss", steps, t->last_loss);
	if (t->test_examples != 0)
		choir_trace_scalar(
				t->data.text ? "test/bits_per_byte" : "test/accuracy", steps, t->last_score);
}
