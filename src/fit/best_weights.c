// Host copies of weights.
#include "fit/best_weights.h"

#include "base/alloc.h"
#include "fit/fit_model.h"

#include <string.h>

choir_status chi_best_weights_reserve(chi_best_weights *b, choir_strategy *s)
{
	chi_weights now;
	choir_status status = chi_weights_collect(s, "fit", &now);
	if (status == CHOIR_OK && b->data != NULL && b->weights.n == now.n) {
		chi_weights_free(&now);
		return CHOIR_OK;
	}
	chi_best_weights_free(b);
	b->weights = now;
	b->data = status == CHOIR_OK ? chi_alloc_array(now.n + 1, sizeof *b->data) : NULL;
	bool all = b->data != NULL;
	for (size_t i = 0; all && i < now.n; i++)
		all = (b->data[i] = chi_alloc(chi_variable_bytes(now.variable[i]))) != NULL;
	if (all)
		return CHOIR_OK;
	chi_best_weights_free(b);
	return choir_error_status();
}

typedef struct {
	const chi_best_weights *b;
	size_t at;
} place;

static choir_status keep(const choir_variable *v, const void *data, size_t bytes, void *user)
{
	place *p = user;
	(void) v;
	memcpy(p->b->data[p->at++], data, bytes);
	return CHOIR_OK;
}

choir_status chi_best_weights_keep(chi_best_weights *b, choir_strategy *s)
{
	CHOIR_TRY(chi_best_weights_reserve(b, s));
	const choir_status status = chi_weights_each(&b->weights, keep, &(place){ .b = b });
	b->kept = status == CHOIR_OK;
	return status;
}

choir_status chi_best_weights_restore(const chi_best_weights *b)
{
	choir_frame *f = choir_frame_new(NULL);
	choir_status status = f == NULL ? choir_error_status() : CHOIR_OK;
	for (size_t i = 0; status == CHOIR_OK && i < b->weights.n; i++)
		status = chi_weight_set(b->weights.variable[i], f, b->data[i]);
	choir_frame_free(f);
	return status;
}

void chi_best_weights_free(chi_best_weights *b)
{
	for (size_t i = 0; b->data != NULL && i < b->weights.n; i++)
		chi_free(b->data[i]);
	chi_free(b->data);
	chi_weights_free(&b->weights);
	*b = (chi_best_weights){ .data = NULL };
}

int64_t choir_model_best_epoch(const choir_model *m)
{
	return m == NULL ? 0 : m->best_epoch;
}
