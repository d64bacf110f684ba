// Options that a kind lacks are refused: an ignored weight decay would show only in the results.
#include "base/options.h"
#include "train/optimizer/optimizer.h"

#include <inttypes.h>
#include <math.h>

static choir_status refuse(
		const chi_optimizer_kind *kind, const char *option, double value, const char *needed)
{
	return choir_fail(
			CHOIR_INVALID, "optimizer %s: %s is %g; %s", kind->name, option, value, needed);
}

// 0 means the default, and CHOIR_ZERO means 0.
static choir_status resolve(const chi_optimizer_kind *kind, const char *option, bool used,
		double standard, double below, double *value)
{
	if (!used && *value != 0 && *value != CHOIR_ZERO)
		return refuse(kind, option, *value, "this kind of optimizer has no such option");
	if (!used || *value == CHOIR_ZERO)
		*value = 0;
	else if (*value == 0)
		*value = standard;
	else if (!(*value > 0 && *value < below))
		return refuse(kind, option, *value,
				isinf(below)
						? "a number of 0 or more is needed (0: the default, CHOIR_ZERO: 0)"
						: "0 or more and less than 1 is needed (0: the default, CHOIR_ZERO: 0)");
	return CHOIR_OK;
}

static choir_status resolve_toggle(
		const chi_optimizer_kind *kind, const char *option, bool used, choir_toggle *value)
{
	if ((unsigned) *value > CHOIR_OFF)
		return refuse(kind, option, (int) *value, "CHOIR_ON or CHOIR_OFF is needed");
	if (*value == CHOIR_DEFAULT)
		*value = CHOIR_OFF;
	if (!used && *value == CHOIR_ON)
		return refuse(kind, option, (int) *value, "this kind of optimizer has no such option");
	return CHOIR_OK;
}

static choir_status check_end(const char *kind, const choir_schedule *s)
{
	if (s->steps <= s->warmup)
		return choir_fail(CHOIR_INVALID,
				"optimizer: a %s schedule has %" PRId64 " steps; "
				"more than its warm-up of %" PRId64 " are needed",
				kind, s->steps, s->warmup);
	if (!(s->factor >= 0 && s->factor <= 1))
		return choir_fail(CHOIR_INVALID,
				"optimizer: the factor of a %s schedule is %g; 0 to 1 is needed", kind, s->factor);
	return CHOIR_OK;
}

static choir_status resolve_polynomial(choir_schedule *s)
{
	if (s->power == 0)
		s->power = 1;
	if (!(s->power > 0 && isfinite(s->power)))
		return choir_fail(CHOIR_INVALID,
				"optimizer: the power of a POLYNOMIAL schedule is %g; more than 0 is needed",
				s->power);
	return check_end("POLYNOMIAL", s);
}

static choir_status resolve_one_cycle(choir_schedule *s)
{
	if (s->factor == 0)
		s->factor = 0.04;
	if (s->warmup == 0 && s->steps > 3)
		s->warmup = (int64_t) (0.3 * (double) s->steps) - 1;
	if (s->steps <= s->warmup + 1)
		return choir_fail(CHOIR_INVALID,
				"optimizer: a ONE_CYCLE schedule has %" PRId64
				" steps; at least two more than the "
				"%" PRId64 " of its warm-up are needed",
				s->steps, s->warmup);
	return check_end("ONE_CYCLE", s);
}

static choir_status resolve_drops(const char *kind, choir_schedule *s)
{
	if (s->factor == 0)
		s->factor = 0.1;
	if (s->steps < 1 || !(s->factor > 0 && isfinite(s->factor)))
		return choir_fail(CHOIR_INVALID,
				"optimizer: %s schedule has factor %g every "
				"%" PRId64 " steps; both must be more than 0",
				kind, s->factor, s->steps);
	return CHOIR_OK;
}

static choir_status resolve_schedule(const choir_schedule *given, choir_schedule *s)
{
	CHOIR_TRY(chi_options_take("optimizer: the schedule's", s, sizeof *s, given));
	if (s->warmup < 0)
		return choir_fail(CHOIR_INVALID,
				"optimizer: the warm-up has %" PRId64 " steps; 0 or more are needed", s->warmup);
	switch (s->kind) {
	case CHOIR_SCHEDULE_CONSTANT:
		return CHOIR_OK;
	case CHOIR_SCHEDULE_STEP:
		return resolve_drops("a STEP", s);
	case CHOIR_SCHEDULE_EXPONENTIAL:
		return resolve_drops("an EXPONENTIAL", s);
	case CHOIR_SCHEDULE_COSINE:
		return check_end("COSINE", s);
	case CHOIR_SCHEDULE_POLYNOMIAL:
		return resolve_polynomial(s);
	case CHOIR_SCHEDULE_ONE_CYCLE:
		return resolve_one_cycle(s);
	case CHOIR_SCHEDULE_FUNCTION:
		if (s->fn == NULL || s->warmup != 0)
			return choir_fail(CHOIR_INVALID, "optimizer: a FUNCTION schedule %s",
					s->fn == NULL ? "has no function; one is needed"
								  : "gives the learning rate "
									"itself; a warm-up of 0 is needed");
		return CHOIR_OK;
	}
	return choir_fail(CHOIR_INVALID,
			"optimizer: schedule %d is unknown; known: CONSTANT, STEP, COSINE, FUNCTION, "
			"EXPONENTIAL, POLYNOMIAL and ONE_CYCLE",
			(int) s->kind);
}

choir_status chi_optimizer_resolve(const chi_optimizer_kind *kind,
		const choir_optimizer_options *o, choir_optimizer_options *out, choir_schedule *schedule)
{
	CHOIR_TRY(chi_options_take("optimizer: the options'", out, sizeof *out, o));
	if (out->learning_rate == 0)
		out->learning_rate = kind->rate;
	if (!(out->learning_rate > 0 && isfinite(out->learning_rate)))
		return refuse(
				kind, "learning_rate", out->learning_rate, "a number of more than 0 is needed");
	if (!(out->global_clip_norm >= 0 && isfinite(out->global_clip_norm)))
		return refuse(kind, "global_clip_norm", out->global_clip_norm,
				"a number of more than 0 is needed, or 0 for no clipping");
	if (!(out->ema_momentum >= 0 && out->ema_momentum < 1))
		return refuse(kind, "ema_momentum", out->ema_momentum,
				"0 for no averages, or a number below 1 is needed");
	const double no_limit = HUGE_VAL;
	CHOIR_TRY(
			resolve(kind, "momentum", kind->momentum, kind->standard_momentum, 1, &out->momentum));
	CHOIR_TRY(resolve(kind, "beta1", kind->betas, 0.9, 1, &out->beta1));
	CHOIR_TRY(resolve(kind, "beta2", kind->betas, kind->standard_beta2, 1, &out->beta2));
	CHOIR_TRY(resolve(kind, "epsilon", kind->epsilon, 1e-7, no_limit, &out->epsilon));
	CHOIR_TRY(resolve(kind, "rho", kind->rho, 0.9, 1, &out->rho));
	CHOIR_TRY(resolve(kind, "weight_decay", kind->decay, kind->standard_decay, no_limit,
			&out->weight_decay));
	CHOIR_TRY(resolve(kind, "initial_accumulator", kind->accumulator, 0.1, no_limit,
			&out->initial_accumulator));
	CHOIR_TRY(resolve_toggle(kind, "nesterov", kind->nesterov, &out->nesterov));
	if ((unsigned) out->nonfinite > CHOIR_NONFINITE_IGNORE)
		return refuse(kind, "nonfinite", (int) out->nonfinite,
				"CHOIR_NONFINITE_ERROR, _SKIP or _IGNORE is needed");
	return resolve_schedule(out->schedule, schedule);
}
