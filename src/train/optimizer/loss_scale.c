// A scale keeps small gradients of narrow dtypes from becoming zero. A dynamic scale grows after a
// number of finite updates and shrinks after others. The gate decides by the sums over all
// replicas.
#include "base/options.h"
#include "strategy/replica/replica.h"
#include "train/optimizer/optimizer.h"

#include <float.h>
#include <math.h>

static choir_status refuse(const char *option, double value, const char *needed)
{
	return choir_fail(CHOIR_INVALID, "optimizer: loss scale: %s is %g; %s", option, value, needed);
}

bool chi_is_loss_scale(double x)
{
	return x >= 1 && x <= (double) FLT_MAX;
}

choir_status chi_loss_scale_resolve(const choir_loss_scale *given, choir_loss_scale *s)
{
	*s = (choir_loss_scale){ .kind = CHOIR_LOSS_SCALE_FIXED, .initial = 1 };
	if (given == NULL)
		return CHOIR_OK;
	CHOIR_TRY(chi_options_take("optimizer: the loss scale's", s, sizeof *s, given));
	if ((unsigned) s->kind > CHOIR_LOSS_SCALE_FIXED)
		return refuse("kind", (int) s->kind, "CHOIR_LOSS_SCALE_DYNAMIC or _FIXED is needed");
	const bool fixed = s->kind == CHOIR_LOSS_SCALE_FIXED;
	if (fixed && (s->period != 0 || s->multiplier != 0))
		return refuse(s->period != 0 ? "period" : "multiplier",
				s->period != 0 ? (double) s->period : s->multiplier,
				"a FIXED loss scale has no such option");
	if (s->initial == 0 && !fixed)
		s->initial = 32768;
	if (s->period == 0)
		s->period = 2000;
	if (s->multiplier == 0)
		s->multiplier = 2;
	if (!chi_is_loss_scale(s->initial))
		return refuse("initial", s->initial, "a number from 1 to the largest f32 is needed");
	if (s->period < 1)
		return refuse("period", (double) s->period, "1 update or more is needed");
	if (!(s->multiplier > 1 && chi_is_loss_scale(s->multiplier)))
		return refuse(
				"multiplier", s->multiplier, "a number above 1, up to the largest f32, is needed");
	return CHOIR_OK;
}

void chi_loss_scale_move(choir_optimizer *o, bool finite)
{
	const choir_loss_scale *s = &o->loss_scale;
	if (!finite) {
		o->scale = fmax(o->scale / s->multiplier, 1);
		o->finite_updates = 0;
	} else if (++o->finite_updates >= s->period) {
		if (chi_is_loss_scale(o->scale * s->multiplier))
			o->scale *= s->multiplier;
		o->finite_updates = 0;
	}
}

double choir_optimizer_loss_scale(const choir_optimizer *o)
{
	return o == NULL ? 1 : o->scale;
}

choir_tensor *choir_optimizer_scale_loss(
		choir_optimizer *o, choir_replica *replica, choir_tensor *loss)
{
	if (chi_optimizer_check_replica(o, replica) != CHOIR_OK)
		return NULL;
	choir_frame *f = replica->frame;
	if (loss == NULL)
		return chi_frame_null_argument(f, "scale_loss");
	if (chi_replica_check(replica, "scale_loss") != CHOIR_OK)
		return NULL;
	// A pending update may change the scale.
	if (chi_gradients_finish_updates_of(chi_replica_of(replica), NULL) != CHOIR_OK)
		return NULL;
	return o->scale == 1 ? loss : choir_scale(loss, o->scale);
}
