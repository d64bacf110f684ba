// The strategy and the model have all of the training's state, so a checkpoint can follow any
// batch.
#include "base/alloc.h"
#include "base/options.h"
#include "base/text.h"
#include "choir/trace.h"
#include "fit/model_logs.h"
#include "fit/fit_callbacks.h"
#include "input/input.h"
#include "train/metric/metric.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LOG_EVERY = 10 };

typedef struct {
	choir_model *m;
	choir_distributed_dataset *data;
	choir_fit_options o;
	chi_fit_monitors monitors;
	bool stops_in_epochs;
	int64_t batches; // of an epoch, or CHOIR_UNKNOWN_CARDINALITY
	choir_values *batch;
} fit;

static choir_status check_numbers(const choir_fit_options *o)
{
	const struct {
		const char *name;
		int64_t value;
	} numbers[] = { { "epochs", o->epochs }, { "steps_per_epoch", o->steps_per_epoch },
		{ "validation_every", o->validation_every }, { "checkpoint_every", o->checkpoint_every },
		{ "log_every", o->log_every } };
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		if (numbers[i].value < 0)
			return choir_fail(CHOIR_INVALID, "fit: .%s is %" PRId64 "; 0 or more is needed",
					numbers[i].name, numbers[i].value);
	if (o->n_callbacks > 0 && o->callbacks == NULL)
		return chi_error_null("fit: .callbacks");
	return CHOIR_OK;
}

// Callbacks of another version have another size, and so another distance.
static choir_status callback(const fit *f, size_t i, choir_callback *out)
{
	const char *all = (const char *) f->o.callbacks;
	return chi_options_take("fit: a callback's", out, sizeof *out, all + i * f->o.callbacks->size);
}

static choir_status check_callbacks(fit *f)
{
	choir_callback c;
	for (size_t i = 0; i < f->o.n_callbacks; i++) {
		CHOIR_TRY(callback(f, i, &c));
		f->stops_in_epochs = f->stops_in_epochs || c.batch_begin != NULL || c.batch_end != NULL;
	}
	return CHOIR_OK;
}

static choir_status check(fit *f)
{
	const choir_model *m = f->m;
	CHOIR_TRY(chi_model_check(f->m, f->data, "fit"));
	if (m->o.loss == NULL || m->o.optimizer == NULL)
		return choir_fail(CHOIR_INVALID, "fit: model \"%s\" has no %s; it is needed", m->o.name,
				m->o.loss == NULL ? "loss" : "optimizer");
	if (m->fitting)
		return choir_fail(
				CHOIR_STATE, "fit: a callback calls fit with its own model \"%s\"", m->o.name);
	CHOIR_TRY(check_numbers(&f->o));
	if (f->o.validation != NULL)
		CHOIR_TRY(chi_model_check(f->m, f->o.validation, "fit: validation"));
	CHOIR_TRY(chi_fit_monitors_open(&f->monitors, m, &f->o));
	f->batches = choir_distributed_dataset_cardinality(f->data);
	if (f->o.steps_per_epoch > 0)
		f->batches = f->o.steps_per_epoch;
	else if (f->batches == CHOIR_INFINITE_CARDINALITY)
		return choir_fail(CHOIR_INVALID, "fit: the data have no end; .steps_per_epoch is needed");
	return check_callbacks(f);
}

static choir_status begin(fit *f, const choir_fit_options *o)
{
	CHOIR_TRY(chi_options_take("fit: the options'", &f->o, sizeof f->o, o));
	if (f->o.epochs == 0)
		f->o.epochs = 1;
	if (f->o.validation_every == 0)
		f->o.validation_every = 1;
	if (f->o.log_every == 0)
		f->o.log_every = LOG_EVERY;
	return check(f);
}

typedef enum { TRAIN_BEGIN, TRAIN_END, EPOCH_BEGIN, EPOCH_END, BATCH_BEGIN, BATCH_END } moment;

static choir_callback_fn *function_of(const choir_callback *c, moment when)
{
	choir_callback_fn *const all[] = { c->train_begin, c->train_end, c->epoch_begin, c->epoch_end,
		c->batch_begin, c->batch_end };
	return all[when];
}

static choir_status call(const fit *f, moment when)
{
	static const char *const names[] = { "train_begin", "train_end", "epoch_begin", "epoch_end",
		"batch_begin", "batch_end" };
	const choir_model *m = f->m;
	const bool inside = when != TRAIN_BEGIN && when != TRAIN_END && when != EPOCH_END;
	const choir_fit_event e = { .model = f->m,
		.epoch = m->epochs + inside,
		.epochs = f->o.epochs,
		.batch = m->batch,
		.batches = f->batches,
		.step = m->step };
	for (size_t i = 0; i < f->o.n_callbacks; i++) {
		choir_callback c;
		CHOIR_TRY(callback(f, i, &c));
		choir_callback_fn *fn = function_of(&c, when);
		if (fn == NULL)
			continue;
		const chi_suspended_error before = chi_error_suspend();
		const choir_status status = fn(&e, c.user);
		if (status != CHOIR_OK) {
			chi_error_reason(status, "the callback");
			return chi_strategy_abort(
					m->strategy, chi_error_prefix("%s of callback %zu", names[when], i));
		}
		chi_error_resume(before);
	}
	return CHOIR_OK;
}

// Any worker may want to stop.
static choir_status agree(const fit *f, bool *stop)
{
	chi_process_group *p = f->m->strategy->process_group;
	const int32_t own = chi_atomic32_load(&f->m->stop) != 0;
	*stop = own != 0;
	if (p == NULL)
		return CHOIR_OK;
	int32_t *all = chi_alloc_array((size_t) p->workers, sizeof *all);
	if (all == NULL)
		return chi_strategy_abort(f->m->strategy, choir_error_status());
	const choir_status status =
			chi_process_group_all_gather(p, &own, sizeof own, all, "stops of fit");
	for (int w = 0; status == CHOIR_OK && w < p->workers; w++)
		*stop = *stop || all[w] != 0;
	chi_free(all);
	return status;
}

static choir_status save(const fit *f)
{
	const choir_model *m = f->m;
	if (f->o.checkpoints == NULL)
		return CHOIR_OK;
	chi_text text = { 0 };
	if (f->o.metadata != NULL)
		chi_text_add(&text, "%s\n", f->o.metadata);
	chi_text_add(&text, "epoch=%" PRId64 "\nstep=%" PRId64 "\n", m->epochs, m->step);
	for (size_t i = 0; i < m->logs; i++)
		chi_text_add(&text, "%s=%.17g\n", m->log_name[i],
				m->epochs == 0 ? (double) NAN
							   : m->history[(size_t) (m->epochs - 1) * m->logs + i]);
	const choir_status status = text.failed
			? choir_fail(CHOIR_NO_MEMORY, "metadata of %zu bytes", text.length)
			: choir_checkpoint_manager_save(f->o.checkpoints, text.data);
	chi_text_free(&text);
	return status;
}

static choir_status resume(const fit *f)
{
	if (f->o.checkpoints == NULL || f->o.resume == CHOIR_OFF || f->m->restored)
		return CHOIR_OK;
	const choir_status status = choir_checkpoint_manager_restore_latest(f->o.checkpoints);
	return status == CHOIR_NOT_FOUND ? CHOIR_OK : status;
}

// A step's loss is the growth of the metric's total over that of its count.
typedef struct {
	double total, count;
} loss_so_far;

static bool is_logged(const fit *f)
{
	return choir_trace_is_on() && (f->m->step + 1) % f->o.log_every == 0;
}

static choir_status read_loss(const fit *f, bool logged, loss_so_far *now)
{
	return logged ? chi_metric_totals(f->m->loss, &now->total, &now->count) : CHOIR_OK;
}

static choir_status log_step(const fit *f, bool logged, const loss_so_far *before)
{
	loss_so_far now = { 0 };
	CHOIR_TRY(read_loss(f, logged, &now));
	if (!logged)
		return CHOIR_OK;
	choir_trace_scalar(
			"train/loss", f->m->step, (now.total - before->total) / (now.count - before->count));
	choir_trace_scalar(
			"train/learning_rate", f->m->step, choir_optimizer_learning_rate(f->m->o.optimizer));
	return CHOIR_OK;
}

// CHOIR_END: the epoch has ended. steps_per_epoch leaves the data where they are.
static choir_status next_batch(fit *f)
{
	const bool counted = f->o.steps_per_epoch > 0;
	if (counted && f->m->batch == f->o.steps_per_epoch)
		return CHOIR_END;
	choir_status status = choir_distributed_dataset_next(f->data, &f->batch);
	if (status != CHOIR_END)
		return status;
	CHOIR_TRY(choir_distributed_dataset_rewind(f->data));
	if (counted)
		status = choir_distributed_dataset_next(f->data, &f->batch);
	return counted && status == CHOIR_END
			? choir_fail(CHOIR_INVALID, "the data have no batch; at least one is needed")
			: status;
}

static choir_status train_batch(fit *f)
{
	choir_model *m = f->m;
	loss_so_far before = { 0 };
	const bool logged = is_logged(f);
	CHOIR_TRY(call(f, BATCH_BEGIN));
	CHOIR_TRY(read_loss(f, logged, &before));
	CHOIR_TRY(choir_strategy_run(m->strategy, chi_model_train_step, m, f->batch, NULL));
	m->batch++;
	m->step++;
	CHOIR_TRY(log_step(f, logged, &before));
	CHOIR_TRY(call(f, BATCH_END));
	if (f->o.checkpoints != NULL)
		CHOIR_TRY(choir_checkpoint_manager_check(f->o.checkpoints));
	return f->o.checkpoint_every > 0 && m->step % f->o.checkpoint_every == 0 ? save(f) : CHOIR_OK;
}

static choir_status train_batches(fit *f, bool *stop)
{
	choir_status status = CHOIR_OK;
	const bool asks = f->stops_in_epochs || f->m->strategy->process_group == NULL;
	int64_t at = f->m->batch + 1;
	while (status == CHOIR_OK && !*stop && (status = next_batch(f)) == CHOIR_OK) {
		at = f->m->batch + 1;
		status = train_batch(f);
		if (status == CHOIR_OK && asks)
			status = agree(f, stop);
	}
	if (status != CHOIR_OK && status != CHOIR_END)
		return chi_error_prefix("epoch %" PRId64 ", batch %" PRId64, f->m->epochs + 1, at);
	if (f->m->batch == 0 && !*stop)
		return choir_fail(CHOIR_INVALID, "the data have no batch; at least one is needed");
	return CHOIR_OK;
}

static choir_status validate(const fit *f)
{
	choir_model *m = f->m;
	for (size_t i = chi_model_rate_log(m) + 1; i < m->logs; i++)
		m->log[i] = (double) NAN;
	return f->o.validation == NULL || (m->epochs + 1) % f->o.validation_every != 0
			? CHOIR_OK
			: choir_evaluate(m, f->o.validation);
}

static choir_status measure(fit *f)
{
	choir_model *m = f->m;
	const bool averages = f->o.use_averages == CHOIR_ON;
	if (averages)
		CHOIR_TRY(choir_optimizer_swap_averages(m->o.optimizer));
	choir_status status = validate(f);
	if (status == CHOIR_OK)
		status = chi_model_add_history(m);
	if (status != CHOIR_OK)
		return status;
	m->batch = 0;
	CHOIR_TRY(chi_fit_stopping_see(&f->monitors, m));
	return averages ? choir_optimizer_swap_averages(m->o.optimizer) : CHOIR_OK;
}

static void log_epoch(const choir_model *m)
{
	char name[128];
	for (size_t i = 0; choir_trace_is_on() && i < m->logs; i++)
		if (!isnan(m->log[i]) &&
				snprintf(name, sizeof name, "epoch/%s", m->log_name[i]) < (int) sizeof name)
			choir_trace_scalar(name, m->step, m->log[i]);
}

static choir_status train_epoch(fit *f, bool *stop)
{
	choir_model *m = f->m;
	m->counting = true;
	choir_status status = m->batch == 0 ? call(f, EPOCH_BEGIN) : CHOIR_OK;
	if (status == CHOIR_OK)
		status = train_batches(f, stop);
	m->counting = false;
	if (status != CHOIR_OK || *stop)
		return status;
	m->log[chi_model_rate_log(m)] = choir_optimizer_learning_rate(m->o.optimizer);
	CHOIR_TRY(chi_model_take_metrics(m, false));
	CHOIR_TRY(measure(f));
	CHOIR_TRY(chi_fit_plateau_see(&f->monitors, m));
	log_epoch(m);
	CHOIR_TRY(call(f, EPOCH_END));
	CHOIR_TRY(save(f));
	return agree(f, stop);
}

static choir_status train(fit *f)
{
	choir_model *m = f->m;
	bool stop = false;
	if (choir_optimizer_has_swapped(m->o.optimizer))
		CHOIR_TRY(choir_optimizer_swap_averages(m->o.optimizer));
	CHOIR_TRY(resume(f));
	if (!m->restored)
		chi_model_forget(m);
	m->restored = false;
	CHOIR_TRY(call(f, TRAIN_BEGIN));
	while (!stop && m->epochs < f->o.epochs && chi_fit_has_patience(&f->monitors, m))
		CHOIR_TRY(train_epoch(f, &stop));
	if (f->o.checkpoints != NULL)
		CHOIR_TRY(choir_checkpoint_manager_wait(f->o.checkpoints));
	if (f->monitors.stopping.restore_best_weights == CHOIR_ON && m->best_epoch > 0)
		CHOIR_TRY(chi_best_weights_restore(&m->best_weights));
	else if (f->o.use_averages == CHOIR_ON)
		CHOIR_TRY(choir_optimizer_swap_averages(m->o.optimizer));
	return call(f, TRAIN_END);
}

choir_status choir_fit(choir_model *m, choir_distributed_dataset *data, const choir_fit_options *o)
{
	fit f = { .m = m, .data = data };
	CHOIR_TRY(begin(&f, o));
	m->fitting = true;
	chi_atomic32_store(&m->stop, 0);
	const choir_status status = train(&f);
	m->fitting = m->counting = false;
	choir_values_free(f.batch);
	return status == CHOIR_OK ? status : chi_error_prefix("fit");
}
