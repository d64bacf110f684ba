// The strategy and the model have all of the training's state, so a checkpoint can follow any
// batch.
#include "base/alloc.h"
#include "base/log.h"
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

// Only a parameter server has several in a process.
typedef struct {
	choir_distributed_dataset *data;
	choir_values *values, *results;
	int64_t batch, step; // completed in this epoch, and in all
	bool stopped;
	bool looked; // next is the status of the next batch, which is in values
	choir_status next;
} share;

typedef struct {
	choir_model *m;
	choir_fit_options o;
	chi_fit_monitors monitors;
	bool stops_in_epochs;
	bool stop; // known to all workers
	int64_t batches; // of an epoch, or CHOIR_UNKNOWN_CARDINALITY
	share *share; // per worker; the model has the first's counts
} fit;

static choir_status check_numbers(const choir_fit_options *o)
{
	const struct {
		const char *name;
		int64_t value;
	} numbers[] = { { "epochs", o->epochs }, { "steps_per_epoch", o->steps_per_epoch },
		{ "validation_every", o->validation_every }, { "checkpoint_every", o->checkpoint_every },
		{ "log_every", o->log_every == CHOIR_NONE ? 0 : o->log_every } };
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		if (numbers[i].value < 0)
			return choir_fail(CHOIR_INVALID, "fit: .%s is %" PRId64 "; 0 or more is needed",
					numbers[i].name, numbers[i].value);
	if (o->n_callbacks > 0 && o->callbacks == NULL)
		return chi_error_null("fit: .callbacks is NULL");
	return CHOIR_OK;
}

// Callbacks of another version have another size.
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
	if (f->o.stop_in_epochs != CHOIR_DEFAULT)
		f->stops_in_epochs = f->o.stop_in_epochs == CHOIR_ON;
	return CHOIR_OK;
}

static choir_status check_end(const fit *f, int64_t batches)
{
	return f->o.steps_per_epoch > 0 || batches != CHOIR_INFINITE_CARDINALITY
			? CHOIR_OK
			: choir_fail(CHOIR_INVALID, "fit: the data have no end; .steps_per_epoch is needed");
}

static choir_status check_data(fit *f, choir_distributed_dataset *data)
{
	CHOIR_TRY(chi_model_check(f->m, data, "fit", true));
	f->batches = choir_distributed_dataset_cardinality(data);
	CHOIR_TRY(check_end(f, f->batches));
	if (f->o.steps_per_epoch > 0)
		f->batches = f->o.steps_per_epoch;
	return CHOIR_OK;
}

static choir_status open_shares(fit *f, choir_distributed_dataset *data)
{
	f->share = chi_alloc_array((size_t) f->m->strategy->workers, sizeof *f->share);
	if (f->share == NULL)
		return choir_error_status();
	f->share[0].data = data;
	f->batches = CHOIR_UNKNOWN_CARDINALITY;
	if (f->o.worker_data != NULL && (data != NULL || f->o.train_steps != NULL))
		return choir_fail(CHOIR_INVALID, "fit: .worker_data and %s are given; one is needed",
				data != NULL ? "data" : ".train_steps");
	if (f->o.worker_data != NULL && f->o.checkpoints != NULL && f->m->strategy->workers > 1)
		return choir_fail(CHOIR_UNSUPPORTED,
				"fit: .checkpoints: %d workers are in different steps; one is needed",
				f->m->strategy->workers);
	return data == NULL && (f->o.worker_data != NULL || f->o.train_steps != NULL)
			? CHOIR_OK
			: check_data(f, data);
}

static choir_status check(fit *f, choir_distributed_dataset *data)
{
	const choir_model *m = f->m;
	if (m == NULL)
		return chi_error_null("fit: the model is NULL");
	CHOIR_TRY(chi_strategy_check(m->strategy));
	CHOIR_TRY(open_shares(f, data));
	const bool trains = m->o.loss != NULL || m->o.train_step != NULL;
	if (!trains || m->o.optimizer == NULL)
		return chi_error_null("fit: model \"%s\" has no %s; it is needed", m->o.name,
				trains ? "optimizer" : "loss");
	if (m->fitting)
		return choir_fail(
				CHOIR_STATE, "fit: a callback calls fit with its own model \"%s\"", m->o.name);
	CHOIR_TRY(check_numbers(&f->o));
	if (f->o.validation != NULL && m->o.train_step != NULL && m->o.test_step == NULL)
		return choir_fail(CHOIR_INVALID,
				"fit: .validation: model \"%s\" has no .test_step; it is needed", m->o.name);
	if (f->o.validation != NULL)
		CHOIR_TRY(chi_model_check(f->m, f->o.validation, "fit: validation", true));
	if (data == NULL &&
			((m->o.layer != NULL && m->o.input == NULL) ||
					(m->o.loss != NULL && m->o.labels == NULL)))
		return choir_fail(CHOIR_INVALID,
				"fit: model \"%s\" names no columns; without data .input and .labels are needed",
				m->o.name);
	CHOIR_TRY(chi_fit_monitors_open(&f->monitors, m, &f->o));
	return check_callbacks(f);
}

static choir_status begin(fit *f, choir_distributed_dataset *data, const choir_fit_options *o)
{
	CHOIR_TRY(chi_options_take("fit: the options'", &f->o, sizeof f->o, o));
	if (f->o.epochs == 0)
		f->o.epochs = 1;
	if (f->o.validation_every == 0)
		f->o.validation_every = 1;
	if (f->o.log_every == 0)
		f->o.log_every = LOG_EVERY;
	return check(f, data);
}

typedef enum {
	TRAIN_BEGIN,
	TRAIN_END,
	EPOCH_BEGIN,
	EPOCH_END,
	BATCH_BEGIN,
	BATCH_END,
	VALIDATION_BEGIN
} moment;

static choir_callback_fn *function_of(const choir_callback *c, moment when)
{
	choir_callback_fn *const all[] = { c->train_begin, c->train_end, c->epoch_begin, c->epoch_end,
		c->batch_begin, c->batch_end, c->validation_begin };
	return all[when];
}

static choir_fit_event event_at(const fit *f, moment when)
{
	const choir_model *m = f->m;
	const bool inside = when != TRAIN_BEGIN && when != TRAIN_END && when != EPOCH_END;
	return (choir_fit_event){ .model = f->m,
		.epoch = m->epochs + inside,
		.epochs = f->o.epochs,
		.batch = m->batch,
		.batches = f->batches,
		.step = m->step,
		.results = when == BATCH_END ? f->share[0].results : NULL };
}

static choir_status call_one(
		const fit *f, moment when, choir_callback_fn *fn, void *user, const char *what)
{
	const choir_fit_event e = event_at(f, when);
	const chi_suspended_error before = chi_error_suspend();
	const choir_status status = fn(&e, user);
	if (status == CHOIR_OK)
		chi_error_resume(before);
	else
		chi_error_reason(status, "%s", what);
	return status;
}

static choir_status call(const fit *f, moment when)
{
	static const char *const names[] = { "train_begin", "train_end", "epoch_begin", "epoch_end",
		"batch_begin", "batch_end", "validation_begin" };
	for (size_t i = 0; i < f->o.n_callbacks; i++) {
		choir_callback c;
		CHOIR_TRY(callback(f, i, &c));
		choir_callback_fn *fn = function_of(&c, when);
		const choir_status status =
				fn == NULL ? CHOIR_OK : call_one(f, when, fn, c.user, "the callback");
		if (status != CHOIR_OK)
			return chi_strategy_abort(
					f->m->strategy, chi_error_prefix("%s of callback %zu", names[when], i));
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
	if (*stop)
		chi_atomic32_store(&f->m->stop, 1);
	return status;
}

static choir_status save(const fit *f, moment when)
{
	const choir_model *m = f->m;
	if (f->o.save != NULL)
		return call_one(f, when, f->o.save, f->o.user, "the function save");
	chi_text text = { 0 };
	if (f->o.metadata != NULL)
		chi_text_add(&text, "%s\n", f->o.metadata);
	chi_text_add(&text, "epoch=%" PRId64 "\nstep=%" PRId64 "\n", m->epochs, m->step);
	for (size_t i = 0; i < m->logs; i++)
		chi_text_add(&text, "%s=%.17g\n", m->log_name[i],
				when == EPOCH_END ? m->history[(size_t) (m->epochs - 1) * m->logs + i]
								  : (double) NAN);
	const choir_status status = text.failed
			? choir_fail(CHOIR_NO_MEMORY, "metadata of %zu bytes", text.length)
			: choir_checkpoint_manager_save(f->o.checkpoints, text.data);
	chi_text_free(&text);
	return status;
}

static choir_status judge(const fit *f, moment when, choir_status status)
{
	const bool system = status == CHOIR_IO || status == CHOIR_NO_MEMORY;
	const choir_fit_event e = event_at(f, when);
	if (f->o.unsaved != NULL && system)
		status = f->o.unsaved(&e, f->o.user);
	return chi_strategy_abort(f->m->strategy, status);
}

// After a stop the save must succeed: the user expects to continue from there.
static choir_status save_now(const fit *f, moment when, bool due)
{
	choir_checkpoint_manager *c = f->o.checkpoints;
	if (c == NULL || !(due || (f->stop && f->o.save_at_stop == CHOIR_ON)))
		return CHOIR_OK;
	if (!f->stop)
		return judge(f, when, save(f, when));
	CHOIR_TRY(judge(f, when, choir_checkpoint_manager_wait(c))); // of an earlier one
	const choir_status status = save(f, when);
	return chi_strategy_abort(
			f->m->strategy, status == CHOIR_OK ? choir_checkpoint_manager_wait(c) : status);
}

static choir_status resume(const fit *f)
{
	if (f->o.checkpoints == NULL || f->o.resume == CHOIR_OFF || f->m->restored)
		return CHOIR_OK;
	const choir_status status = choir_checkpoint_manager_restore_latest(f->o.checkpoints);
	return status == CHOIR_NOT_FOUND ? CHOIR_OK : status;
}

// A step's loss: the growth of the metric's total over that of its count.
typedef struct {
	double total, count;
} loss_so_far;

static bool is_logged(const fit *f)
{
	return f->o.log_every != CHOIR_NONE && choir_trace_is_on() &&
			(f->m->step + 1) % f->o.log_every == 0;
}

// Workers with data of their own make their own steps.
static choir_status read_loss(const fit *f, const choir_strategy *group, loss_so_far *now)
{
	return f->m->loss == NULL
			? CHOIR_OK
			: chi_metric_totals(f->m->loss, f->o.worker_data == NULL ? NULL : group, &now->total,
					  &now->count);
}

static choir_status log_step(const fit *f, const choir_strategy *group, const loss_so_far *before)
{
	loss_so_far now = { 0 };
	CHOIR_TRY(read_loss(f, group, &now));
	if (f->m->loss != NULL)
		choir_trace_scalar("train/loss", f->m->step,
				(now.total - before->total) / (now.count - before->count));
	choir_trace_scalar(
			"train/learning_rate", f->m->step, choir_optimizer_learning_rate(f->m->o.optimizer));
	return CHOIR_OK;
}

// CHOIR_END: the epoch has ended. steps_per_epoch leaves the data where they are.
static choir_status next_batch(const fit *f, share *own)
{
	const bool counted = f->o.steps_per_epoch > 0;
	if (counted && own->batch == f->o.steps_per_epoch)
		return CHOIR_END;
	choir_status status = choir_distributed_dataset_next(own->data, &own->values);
	if (status != CHOIR_END)
		return status;
	CHOIR_TRY(choir_distributed_dataset_rewind(own->data));
	if (counted)
		status = choir_distributed_dataset_next(own->data, &own->values);
	return counted && status == CHOIR_END
			? choir_fail(CHOIR_INVALID, "the data have no batch; at least one is needed")
			: status;
}

// Before a save, which an end makes superfluous.
static choir_status look_ahead(const fit *f, share *own)
{
	own->next = next_batch(f, own);
	own->looked = own->next == CHOIR_OK || own->next == CHOIR_END; // a failure comes again
	if (own->next == CHOIR_OK)
		chi_input_hold_position(own->data, true);
	return own->next;
}

static choir_status take_batch(const fit *f, share *own)
{
	if (!own->looked)
		return next_batch(f, own);
	own->looked = false;
	if (own->next == CHOIR_OK)
		chi_input_hold_position(own->data, false);
	return own->next;
}

static choir_status run_step(const fit *f, choir_strategy *group, share *own)
{
	choir_values **results = f->m->o.train_step == NULL ? NULL : &own->results;
	CHOIR_TRY(choir_strategy_run(group, chi_model_train_step, f->m, own->values, results));
	own->batch++;
	own->step++;
	return CHOIR_OK;
}

static choir_status end_step(fit *f, share *own, bool due)
{
	if (f->o.checkpoints != NULL)
		CHOIR_TRY(judge(f, BATCH_END, choir_checkpoint_manager_check(f->o.checkpoints)));
	if (f->stops_in_epochs || f->m->strategy->process_group == NULL)
		CHOIR_TRY(agree(f, &f->stop));
	if (due && !f->stop && f->o.checkpoints != NULL) // the epoch's end saves
		due = f->batches != CHOIR_UNKNOWN_CARDINALITY || own == NULL
				? f->m->batch != f->batches
				: look_ahead(f, own) != CHOIR_END;
	return save_now(f, BATCH_END, due);
}

// The first worker calls callbacks and saves.
static choir_status lead_step(fit *f, choir_strategy *group, share *own)
{
	choir_model *m = f->m;
	loss_so_far before = { 0 };
	const bool logged = is_logged(f);
	CHOIR_TRY(call(f, BATCH_BEGIN));
	if (logged)
		CHOIR_TRY(read_loss(f, group, &before));
	CHOIR_TRY(run_step(f, group, own));
	m->batch = own->batch;
	m->step = own->step;
	if (logged)
		CHOIR_TRY(log_step(f, group, &before));
	CHOIR_TRY(call(f, BATCH_END));
	return end_step(f, own, f->o.checkpoint_every > 0 && m->step % f->o.checkpoint_every == 0);
}

static choir_status open_worker_data(const fit *f, choir_strategy *group, int worker)
{
	share *own = &f->share[worker];
	own->data = f->o.worker_data(group, worker, f->o.user);
	const choir_status status = choir_error_status();
	if (own->data == NULL)
		return chi_error_reason(
				status == CHOIR_OK ? CHOIR_INVALID : status, "the function worker_data");
	return check_end(f, choir_distributed_dataset_cardinality(own->data));
}

// A choir_worker_fn.
static choir_status train_worker(choir_strategy *group, int worker, void *user)
{
	fit *f = user;
	share *own = &f->share[worker];
	choir_status status = CHOIR_OK;
	if (own->data == NULL)
		CHOIR_TRY(open_worker_data(f, group, worker));
	own->batch = worker == 0 ? f->m->batch : 0;
	bool stop = false;
	int64_t batch = 0, step = 0;
	while (status == CHOIR_OK && !stop) {
		batch = own->batch + 1;
		step = own->step + 1;
		if ((status = take_batch(f, own)) != CHOIR_OK)
			break;
		status = worker == 0 ? lead_step(f, group, own) : run_step(f, group, own);
		stop = worker == 0 ? f->stop : chi_atomic32_load(&f->m->stop) != 0;
	}
	if (status != CHOIR_OK && status != CHOIR_END)
		return chi_error_prefix("epoch %" PRId64 ", batch %" PRId64 ", step %" PRId64,
				f->m->epochs + 1, batch, step);
	own->stopped = stop;
	if (worker == 0 && own->batch == 0 && !stop)
		return choir_fail(CHOIR_INVALID, "the data have no batch; at least one is needed");
	return CHOIR_OK;
}

static choir_status train_steps(fit *f)
{
	while (!f->stop) {
		const choir_fit_event e = event_at(f, BATCH_BEGIN);
		const choir_status status = f->o.train_steps(&e, f->o.user);
		if (status != CHOIR_OK && status != CHOIR_END)
			return chi_strategy_abort(
					f->m->strategy, chi_error_reason(status, "the function train_steps"));
		if (status == CHOIR_END)
			return CHOIR_OK;
		CHOIR_TRY(end_step(f, NULL, true));
	}
	return CHOIR_OK;
}

static choir_status train_batches(fit *f)
{
	if (f->o.train_steps != NULL)
		return train_steps(f);
	if (f->o.worker_data == NULL)
		return train_worker(f->m->strategy, 0, f);
	CHOIR_TRY(choir_strategy_run_workers(f->m->strategy, train_worker, f));
	for (int w = 0; w < f->m->strategy->workers; w++)
		f->stop = f->stop || f->share[w].stopped;
	return CHOIR_OK;
}

static choir_status validate(const fit *f)
{
	choir_model *m = f->m;
	for (size_t i = chi_model_rate_log(m) + 1; i < m->logs; i++)
		m->log[i] = (double) NAN;
	if (f->o.validation == NULL || (m->epochs + 1) % f->o.validation_every != 0)
		return CHOIR_OK;
	CHOIR_TRY(call(f, VALIDATION_BEGIN));
	return choir_evaluate(m, f->o.validation);
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

static void log_epoch(const fit *f)
{
	const choir_model *m = f->m;
	const bool logs = choir_trace_is_on() && f->o.log_every != CHOIR_NONE;
	char name[128];
	for (size_t i = 0; logs && i < m->logs; i++)
		if (!isnan(m->log[i]) &&
				snprintf(name, sizeof name, "epoch/%s", m->log_name[i]) < (int) sizeof name)
			choir_trace_scalar(name, m->step, m->log[i]);
}

static choir_status end_epoch(fit *f)
{
	choir_model *m = f->m;
	m->log[chi_model_rate_log(m)] = choir_optimizer_learning_rate(m->o.optimizer);
	CHOIR_TRY(chi_model_take_metrics(m, false));
	CHOIR_TRY(measure(f));
	CHOIR_TRY(chi_fit_plateau_see(&f->monitors, m));
	log_epoch(f);
	CHOIR_TRY(call(f, EPOCH_END));
	CHOIR_TRY(agree(f, &f->stop));
	return save_now(f, EPOCH_END, true);
}

static choir_status train_epoch(fit *f)
{
	choir_model *m = f->m;
	const int64_t epoch = m->epochs + 1;
	m->counting = true;
	choir_status status = m->batch == 0 ? call(f, EPOCH_BEGIN) : CHOIR_OK;
	const bool begun = status == CHOIR_OK;
	if (begun)
		status = train_batches(f);
	m->counting = false;
	if (begun && (status != CHOIR_OK || f->stop))
		return status;
	if (begun)
		status = end_epoch(f);
	return status == CHOIR_OK ? status : chi_error_prefix("epoch %" PRId64, epoch);
}

// A checkpoint may lack them: the next epoch is then the best so far.
static void forget_unknown_best(const fit *f)
{
	choir_model *m = f->m;
	if (f->monitors.stopping.restore_best_weights != CHOIR_ON || m->best_epoch == 0 ||
			m->best_weights.kept)
		return;
	chi_log(CHOIR_LOG_WARNING,
			"fit: the checkpoint lacks the weights of the best epoch, %" PRId64
			"; early stopping begins anew",
			m->best_epoch);
	m->best_epoch = m->waited = 0;
}

static choir_status train(fit *f)
{
	choir_model *m = f->m;
	if (choir_optimizer_has_swapped(m->o.optimizer))
		CHOIR_TRY(choir_optimizer_swap_averages(m->o.optimizer));
	CHOIR_TRY(resume(f));
	if (!m->restored)
		chi_model_forget(m);
	m->restored = false;
	forget_unknown_best(f);
	f->share[0].step = m->step;
	CHOIR_TRY(call(f, TRAIN_BEGIN));
	while (!f->stop && m->epochs < f->o.epochs && chi_fit_has_patience(&f->monitors, m))
		CHOIR_TRY(train_epoch(f));
	if (f->o.checkpoints != NULL)
		CHOIR_TRY(judge(f, TRAIN_END, choir_checkpoint_manager_wait(f->o.checkpoints)));
	if (f->monitors.stopping.restore_best_weights == CHOIR_ON && m->best_epoch > 0)
		CHOIR_TRY(chi_best_weights_restore(&m->best_weights));
	else if (f->o.use_averages == CHOIR_ON)
		CHOIR_TRY(choir_optimizer_swap_averages(m->o.optimizer));
	return call(f, TRAIN_END);
}

static choir_status run(fit *f, choir_distributed_dataset *data, const choir_fit_options *o)
{
	CHOIR_TRY(begin(f, data, o));
	f->m->fitting = true;
	chi_atomic32_store(&f->m->stop, 0);
	const choir_status status = train(f);
	f->m->stopped = f->stop;
	f->m->fitting = f->m->counting = false;
	return status == CHOIR_OK ? status : chi_error_prefix("fit");
}

choir_status choir_fit(choir_model *m, choir_distributed_dataset *data, const choir_fit_options *o)
{
	fit f = { .m = m };
	const choir_status status = run(&f, data, o);
	for (int w = 0; f.share != NULL && w < m->strategy->workers; w++) {
		choir_values_free(f.share[w].values);
		choir_values_free(f.share[w].results);
	}
	chi_free(f.share);
	return status;
}
