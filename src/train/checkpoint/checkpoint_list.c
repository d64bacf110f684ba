// For programs that inspect checkpoints.
#include "choir/checkpoint.h"

#include "base/alloc.h"
#include "train/checkpoint/checkpoint.h"

struct choir_checkpoint_list {
	chi_checkpoints steps;
	chi_checkpoint_content content;
	choir_checkpoint_tensor shown;
};

choir_checkpoint_list *choir_checkpoint_list_new(const char *directory)
{
	if (directory == NULL)
		return chi_fail_null(CHOIR_INVALID, "checkpoint_list: the directory's name is NULL");
	choir_checkpoint_list *l = chi_alloc(sizeof *l);
	if (l == NULL)
		return NULL;
	if (chi_checkpoints_find(directory, &l->steps) == CHOIR_OK)
		return l;
	choir_checkpoint_list_free(l);
	return NULL;
}

void choir_checkpoint_list_free(choir_checkpoint_list *l)
{
	if (l == NULL)
		return;
	chi_checkpoint_content_free(&l->content);
	chi_checkpoints_free(&l->steps);
	chi_free(l);
}

size_t choir_checkpoint_list_steps(const choir_checkpoint_list *l)
{
	return l == NULL ? 0 : l->steps.n;
}

static const chi_checkpoint *step_at(const choir_checkpoint_list *l, size_t i)
{
	return i < choir_checkpoint_list_steps(l) ? &l->steps.step[i] : NULL;
}

int64_t choir_checkpoint_list_step(const choir_checkpoint_list *l, size_t i)
{
	const chi_checkpoint *s = step_at(l, i);
	return s == NULL ? CHOIR_NONE : (int64_t) s->step;
}

const char *choir_checkpoint_list_path(const choir_checkpoint_list *l, size_t i)
{
	const chi_checkpoint *s = step_at(l, i);
	return s == NULL ? NULL : s->path;
}

int choir_checkpoint_list_replicas(const choir_checkpoint_list *l, size_t i)
{
	const chi_checkpoint *s = step_at(l, i);
	return s != NULL && s->readable && s->manifest.replicas <= INT32_MAX
			? (int) s->manifest.replicas
			: 0;
}

const char *choir_checkpoint_list_metadata(
		const choir_checkpoint_list *l, size_t i, const char *key)
{
	const chi_checkpoint *s = step_at(l, i);
	return s != NULL && s->readable && key != NULL ? chi_manifest_find(&s->manifest, key) : NULL;
}

choir_status choir_checkpoint_list_check(choir_checkpoint_list *l, size_t i)
{
	if (l == NULL || i >= l->steps.n)
		return choir_fail(CHOIR_INVALID,
				"checkpoint_list: there is no step at index %zu; there are %zu steps", i,
				choir_checkpoint_list_steps(l));
	chi_checkpoint_content_free(&l->content);
	const choir_status status = chi_checkpoint_content_read(&l->steps.step[i], &l->content);
	if (status != CHOIR_OK)
		chi_checkpoint_content_free(&l->content);
	return status;
}

size_t choir_checkpoint_list_tensors(const choir_checkpoint_list *l)
{
	return l == NULL ? 0
					 : l->content.header[CHI_CHECKPOINT_WEIGHTS].n +
					l->content.header[CHI_CHECKPOINT_STATE].n;
}

const choir_checkpoint_tensor *choir_checkpoint_list_tensor(choir_checkpoint_list *l, size_t k)
{
	if (k >= choir_checkpoint_list_tensors(l))
		return NULL;
	const size_t weights = l->content.header[CHI_CHECKPOINT_WEIGHTS].n;
	const bool state = k >= weights;
	const chi_st_tensor *t = state ? l->content.header[CHI_CHECKPOINT_STATE].tensor[k - weights]
								   : l->content.header[CHI_CHECKPOINT_WEIGHTS].tensor[k];
	l->shown = (choir_checkpoint_tensor){ t->name, state, t->dtype, t->shape };
	return &l->shown;
}
