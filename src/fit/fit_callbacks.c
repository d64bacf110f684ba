// Early stopping and reductions of the learning rate count epochs without an improvement of a log.
#include "fit/fit_callbacks.h"

#include "base/options.h"
#include "base/text.h"
#include "train/optimizer/optimizer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static bool is_better_when_larger(const char *log)
{
	static const char *const words[] = { "accuracy", "precision", "recall", "auc", "f1", "r2" };
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strstr(log, words[i]) != NULL)
			return true;
	return false;
}

static choir_status list_logs(const choir_model *m, const char *who, const char *unknown)
{
	chi_text text = { 0 };
	for (size_t i = 0; i < m->logs; i++)
		chi_text_add(&text, "%s%s", i == 0 ? "" : ", ", m->log_name[i]);
	const choir_status status = choir_fail(CHOIR_INVALID, "fit: %s: no log \"%.100s\"; known: %s",
			who, unknown, text.failed ? "" : text.data);
	chi_text_free(&text);
	return status;
}

static choir_status watch(chi_fit_monitor *out, const choir_model *m, const choir_fit_options *o,
		const char *who, const char *log, choir_monitor how)
{
	log = log == NULL ? "val_loss" : log;
	out->log = chi_model_find_log(m, log);
	if (out->log == CHOIR_NONE)
		return list_logs(m, who, log);
	if ((size_t) out->log > chi_model_rate_log(m) && o->validation == NULL)
		return choir_fail(CHOIR_INVALID,
				"fit: %s: \"%s\" is a log of the validation; .validation is needed", who, log);
	if ((unsigned) how > CHOIR_MONITOR_MAX)
		return choir_fail(
				CHOIR_INVALID, "fit: %s: monitor %d; a choir_monitor is needed", who, (int) how);
	out->larger_is_better =
			how == CHOIR_MONITOR_AUTO ? is_better_when_larger(log) : how == CHOIR_MONITOR_MAX;
	return CHOIR_OK;
}

static choir_status open_stopping(
		chi_fit_monitors *w, const choir_model *m, const choir_fit_options *o)
{
	choir_early_stopping *e = &w->stopping;
	CHOIR_TRY(chi_options_take("fit: early stopping's", e, sizeof *e, o->early_stopping));
	CHOIR_TRY(watch(&w->stops, m, o, "early stopping", e->log, e->monitor));
	if (e->patience < 0 || !(e->min_delta >= 0))
		return choir_fail(CHOIR_INVALID,
				"fit: early stopping: patience %" PRId64
				", min_delta %g; numbers of 0 or more are needed",
				e->patience, e->min_delta);
	w->stops.min_delta = e->min_delta;
	return CHOIR_OK;
}

static choir_status open_plateau(
		chi_fit_monitors *w, const choir_model *m, const choir_fit_options *o)
{
	choir_reduce_on_plateau *p = &w->plateau;
	CHOIR_TRY(chi_options_take("fit: reduce_on_plateau's", p, sizeof *p, o->reduce_on_plateau));
	CHOIR_TRY(watch(&w->reduces, m, o, "reduce_on_plateau", p->log, p->monitor));
	if (p->factor == 0)
		p->factor = 0.1;
	if (p->patience == 0)
		p->patience = 10;
	w->reduces.min_delta = p->min_delta == 0 ? 1e-4
			: p->min_delta == CHOIR_ZERO	 ? 0
											 : p->min_delta;
	if (p->patience < 0 || p->cooldown < 0 || !(w->reduces.min_delta >= 0) ||
			!(p->factor > 0 && p->factor < 1) || !(p->min_learning_rate >= 0))
		return choir_fail(CHOIR_INVALID,
				"fit: reduce_on_plateau: factor %g, patience %" PRId64 ", cooldown %" PRId64
				", min_delta %g, min_learning_rate %g; a factor between 0 and 1 and numbers of 0 "
				"or more are needed",
				p->factor, p->patience, p->cooldown, p->min_delta, p->min_learning_rate);
	if (m->o.optimizer->schedule.kind == CHOIR_SCHEDULE_FUNCTION)
		return choir_fail(CHOIR_INVALID,
				"fit: reduce_on_plateau: the schedule of the learning rate is a FUNCTION; another "
				"one is needed");
	return CHOIR_OK;
}

choir_status chi_fit_monitors_open(
		chi_fit_monitors *w, const choir_model *m, const choir_fit_options *o)
{
	const choir_optimizer *optimizer = m->o.optimizer;
	w->stops.log = w->reduces.log = CHOIR_NONE;
	if ((unsigned) o->use_averages > CHOIR_OFF ||
			(o->use_averages == CHOIR_ON && optimizer->options.ema_momentum == 0))
		return choir_fail(CHOIR_INVALID,
				"fit: .use_averages is %d; CHOIR_OFF, or CHOIR_ON with an optimizer that has "
				".ema_momentum, is needed",
				(int) o->use_averages);
	w->validation_every = o->validation_every;
	if (o->early_stopping != NULL)
		CHOIR_TRY(open_stopping(w, m, o));
	return o->reduce_on_plateau == NULL ? CHOIR_OK : open_plateau(w, m, o);
}

// True: measured after this epoch.
static bool is_new(const chi_fit_monitors *w, const chi_fit_monitor *f, const choir_model *m)
{
	return f->log != CHOIR_NONE &&
			!(isnan(m->log[f->log]) && (size_t) f->log > chi_model_rate_log(m) &&
					m->epochs % w->validation_every != 0);
}

// best NAN: none.
static bool improves(const chi_fit_monitor *f, double value, double best)
{
	const double gain = f->larger_is_better ? value - best : best - value;
	return !isnan(value) && (isnan(best) || gain > f->min_delta);
}

choir_status chi_fit_stopping_see(const chi_fit_monitors *w, choir_model *m)
{
	if (!is_new(w, &w->stops, m))
		return CHOIR_OK;
	const double value = m->log[w->stops.log];
	if (!improves(&w->stops, value, m->best_epoch == 0 ? (double) NAN : m->best)) {
		m->waited++;
		return CHOIR_OK;
	}
	m->best = value;
	m->best_epoch = m->epochs;
	m->waited = 0;
	m->best_weights.kept = false; // they are of an earlier epoch
	return w->stopping.restore_best_weights == CHOIR_ON
			? chi_best_weights_keep(&m->best_weights, m->strategy)
			: CHOIR_OK;
}

choir_status chi_fit_plateau_see(const chi_fit_monitors *w, choir_model *m)
{
	const choir_reduce_on_plateau *p = &w->plateau;
	if (!is_new(w, &w->reduces, m))
		return CHOIR_OK;
	const double value = m->log[w->reduces.log];
	const bool better = improves(&w->reduces, value, m->plateau_best);
	if (m->plateau_cooldown > 0)
		m->plateau_cooldown--;
	if (better)
		m->plateau_best = value;
	m->plateau_waited = better || m->plateau_cooldown > 0 ? 0 : m->plateau_waited + 1;
	if (m->plateau_waited < p->patience)
		return CHOIR_OK;
	m->plateau_waited = 0;
	m->plateau_cooldown = p->cooldown;
	const double rate = chi_optimizer_base_rate(m->o.optimizer), less = rate * p->factor;
	return rate <= p->min_learning_rate
			? CHOIR_OK
			: choir_optimizer_set_learning_rate(
					  m->o.optimizer, less < p->min_learning_rate ? p->min_learning_rate : less);
}

bool chi_fit_has_patience(const chi_fit_monitors *w, const choir_model *m)
{
	const int64_t patience = w->stopping.patience == 0 ? 1 : w->stopping.patience;
	return w->stops.log == CHOIR_NONE || m->waited < patience;
}
