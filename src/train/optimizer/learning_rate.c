// Rates depend on the number of applied updates, not on devices. A skipped update does not advance
// a schedule.
#include "train/optimizer/optimizer.h"

#include "base/lock.h"
#include "strategy/context.h"

#include <inttypes.h>
#include <math.h>

static double half_wave(double done)
{
	return 0.5 * (1 + cos(3.14159265358979323846 * done));
}

static double done_of(const choir_schedule *s, double past)
{
	const double whole = (double) (s->steps - s->warmup);
	return past < whole ? past / whole : 1;
}

// Cosine decay to factor (Loshchilov and Hutter 2017).
static double wave(const choir_schedule *s, double past)
{
	return s->factor + (1 - s->factor) * half_wave(done_of(s, past));
}

static double polynomial(const choir_schedule *s, double past)
{
	return s->factor + (1 - s->factor) * pow(1 - done_of(s, past), s->power);
}

static double one_cycle(const choir_schedule *s, double step)
{
	const double top = (double) s->warmup, last = (double) (s->steps - 1);
	const double end = s->factor * 1e-4;
	if (step < top)
		return 1 - (1 - s->factor) * half_wave(step / top);
	return end + (1 - end) * half_wave(step < last ? (step - top) / (last - top) : 1);
}

choir_status chi_schedule_rate(const choir_schedule *s, double base, uint64_t step, double *rate)
{
	const double past = (double) step - (double) s->warmup;
	*rate = base;
	if (s->kind == CHOIR_SCHEDULE_FUNCTION) {
		chi_mutex_check_none_held();
		*rate = s->fn((int64_t) step, s->user);
		if (!(*rate >= 0 && isfinite(*rate)))
			return choir_fail(CHOIR_INVALID,
					"optimizer: the schedule's function gave learning rate %g "
					"at step %" PRIu64 "; a number of 0 or more is needed",
					*rate, step);
	} else if (s->kind == CHOIR_SCHEDULE_ONE_CYCLE) {
		*rate = base * one_cycle(s, (double) step);
	} else if (past < 0) {
		*rate = base * ((double) step / (double) s->warmup);
	} else if (s->kind == CHOIR_SCHEDULE_STEP) {
		*rate = base * pow(s->factor, floor(past / (double) s->steps));
	} else if (s->kind == CHOIR_SCHEDULE_COSINE) {
		*rate = base * wave(s, past);
	} else if (s->kind == CHOIR_SCHEDULE_EXPONENTIAL) {
		*rate = base * pow(s->factor, past / (double) s->steps);
	} else if (s->kind == CHOIR_SCHEDULE_POLYNOMIAL) {
		*rate = base * polynomial(s, past);
	}
	return CHOIR_OK;
}

double chi_optimizer_base_rate(const choir_optimizer *o)
{
	return o->set_rate > 0 ? o->set_rate : o->options.learning_rate;
}

choir_status choir_optimizer_set_learning_rate(choir_optimizer *o, double rate)
{
	if (o == NULL)
		return choir_fail(CHOIR_INVALID, "set_learning_rate: the optimizer is NULL");
	CHOIR_TRY(chi_context_need_cross(o->strategy, "set_learning_rate"));
	if (!(rate > 0 && isfinite(rate)))
		return choir_fail(CHOIR_INVALID,
				"set_learning_rate: the rate is %g; a number of more than 0 is needed", rate);
	if (o->schedule.kind == CHOIR_SCHEDULE_FUNCTION)
		return choir_fail(CHOIR_INVALID,
				"set_learning_rate: the schedule of %s is a FUNCTION, which gives the rate itself",
				o->kind->name);
	o->set_rate = rate;
	return CHOIR_OK;
}

double choir_optimizer_learning_rate(const choir_optimizer *o)
{
	double rate;
	chi_error before;
	chi_error_save(&before);
	const bool known = o != NULL &&
			chi_schedule_rate(&o->schedule, chi_optimizer_base_rate(o),
					chi_atomic64_load(&o->step), &rate) == CHOIR_OK;
	chi_error_restore(&before);
	return known ? rate : NAN;
}
