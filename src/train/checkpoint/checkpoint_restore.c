// The chief reads the files and sends their bytes to all workers.
#include "choir/checkpoint.h"

#include "strategy/context.h"
#include "train/checkpoint/checkpoint.h"

#include <string.h>

static choir_status share(choir_strategy *s, chi_checkpoint_content *c)
{
	void *path = c->path;
	size_t bytes = path == NULL ? 0 : strlen(path) + 1;
	if (s->process_group == NULL)
		return CHOIR_OK;
	CHOIR_TRY(chi_strategy_share(s, &path, &bytes, "a checkpoint's path"));
	c->path = path;
	for (int i = 0; i < CHI_CHECKPOINT_FILES; i++) {
		void *data = c->data[i];
		CHOIR_TRY(chi_strategy_share(s, &data, &c->bytes[i], chi_checkpoint_file_name[i]));
		c->data[i] = data;
		if (!choir_strategy_is_chief(s) &&
				chi_safetensors_view(&c->header[i], c->path, data, c->bytes[i]) != CHOIR_OK)
			return chi_strategy_abort(s, choir_error_status());
	}
	return CHOIR_OK;
}

static choir_status lend(chi_state_dict *state, const chi_checkpoint_content *c)
{
	const chi_safetensors *st = &c->header[CHI_CHECKPOINT_STATE];
	unsigned char *data = c->data[CHI_CHECKPOINT_STATE] + st->data;
	for (size_t i = 0; i < st->n; i++) {
		const chi_st_tensor *t = st->tensor[i];
		if (!t->supported)
			return choir_fail(CHOIR_UNSUPPORTED, "%s: state \"%.100s\": Choir has no dtype %.10s",
					c->path, t->name, t->dtype_name);
		CHOIR_TRY(chi_state_dict_lend(state, t->name, t->dtype, &t->shape, data + t->begin));
	}
	return CHOIR_OK;
}

choir_status chi_checkpoint_content_apply(
		choir_strategy *s, choir_status status, chi_checkpoint_content *c)
{
	chi_state_dict state = { 0 };
	CHOIR_TRY(chi_strategy_agree(s, status, "reading a checkpoint"));
	CHOIR_TRY(share(s, c));
	const chi_safetensors *weights = &c->header[CHI_CHECKPOINT_WEIGHTS];
	status = chi_strategy_agree(s, lend(&state, c), "the state in a checkpoint");
	if (status == CHOIR_OK)
		status = chi_snapshot_apply(s, c->path, weights,
				(char *) c->data[CHI_CHECKPOINT_WEIGHTS] + weights->data, &state);
	chi_state_dict_free(&state);
	return status;
}

static choir_status read_here(const choir_strategy *s, const char *path, chi_checkpoint_content *c)
{
	chi_checkpoint step = { 0 };
	if (path == NULL)
		return choir_fail(CHOIR_INVALID, "restore_checkpoint: the path is NULL");
	if (!choir_strategy_is_chief(s))
		return CHOIR_OK;
	choir_status status = chi_checkpoint_open(path, &step);
	if (status == CHOIR_OK)
		status = chi_checkpoint_content_read(&step, c);
	chi_checkpoint_free(&step);
	return status;
}

choir_status choir_strategy_restore_checkpoint(choir_strategy *s, const char *path)
{
	chi_checkpoint_content c = { 0 };
	CHOIR_TRY(chi_strategy_check(s));
	CHOIR_TRY(chi_context_need_cross(s, "restore_checkpoint"));
	const choir_status status = chi_checkpoint_content_apply(s, read_here(s, path, &c), &c);
	chi_checkpoint_content_free(&c);
	return status;
}
