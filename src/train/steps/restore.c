// From a step's folder to a strategy that goes on from it.
#include "choir/checkpoint.h"

#include "strategy/context.h"
#include "train/steps/steps.h"

choir_status chi_step_apply(choir_strategy *s, const chi_step_content *c)
{
	const chi_safetensors *weights = &c->header[CHI_STEP_WEIGHTS];
	const chi_safetensors *st = &c->header[CHI_STEP_STATE];
	unsigned char *data = c->data[CHI_STEP_STATE] + st->data;
	chi_state state = { 0 };
	choir_status status = CHOIR_OK;
	for (size_t i = 0; status == CHOIR_OK && i < st->n; i++) {
		const chi_st_tensor *t = st->tensor[i];
		status = !t->supported
				? choir_fail(CHOIR_UNSUPPORTED, "%s: state \"%.100s\": dtype %.10s is none of "
						"Choir's", c->path, t->name, t->dtype_name)
				: chi_state_lend(&state, t->name, t->dtype, &t->shape, data + t->begin);
	}
	if (status == CHOIR_OK)
		status = chi_snapshot_apply(s, c->path, weights,
				(char *) c->data[CHI_STEP_WEIGHTS] + weights->data, &state);
	chi_state_free(&state);
	return status;
}

choir_status choir_strategy_restore_step(choir_strategy *s, const char *path)
{
	chi_step step = { 0 };
	chi_step_content c = { 0 };
	if (path == NULL)
		return choir_fail(CHOIR_INVALID, "restore_step: the path is NULL");
	CHOIR_TRY(chi_strategy_check(s));
	CHOIR_TRY(chi_context_need_cross(s, "restore_step"));
	choir_status status = chi_step_open(path, &step);
	if (status == CHOIR_OK)
		status = chi_step_read(&step, &c);
	if (status == CHOIR_OK)
		status = chi_step_apply(s, &c);
	chi_step_content_free(&c);
	chi_step_free(&step);
	return status;
}
