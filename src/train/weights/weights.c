// Values are fetched from any device.
#include "train/weights/weights.h"

#include "strategy/context.h"
#include "strategy/cross/reduce.h"
#include "strategy/remote_variables.h"
#include "base/sort.h"

#include <string.h>

static bool by_name(const void *a, const void *b)
{
	return strcmp(((const choir_variable *) a)->name, ((const choir_variable *) b)->name) < 0;
}

choir_status chi_weights_collect(choir_strategy *s, const char *what, chi_weights *w)
{
	*w = (chi_weights){ 0 };
	CHOIR_TRY(chi_strategy_check(s));
	CHOIR_TRY(chi_context_need_cross(s, what));
	CHOIR_TRY(chi_remote_refresh(s));
	for (choir_variable *v = s->variables; v != NULL; v = v->next)
		CHOIR_TRY(chi_remote_fetch(v, 0, NULL));
	chi_mutex_lock(&s->lock);
	bool grown = true;
	for (choir_variable *v = s->variables; v != NULL && grown; v = v->next) {
		const bool left_out = v->slot || v->parent != NULL; // its parent has its rows
		grown = left_out ||
				chi_grow(&w->variable, &w->capacity, w->n + 1, sizeof(choir_variable *));
		if (grown && !left_out)
			w->variable[w->n++] = v;
	}
	chi_mutex_unlock(&s->lock);
	if (!grown)
		return CHOIR_NO_MEMORY;
	chi_heap_sort(w->variable, w->n, by_name);
	return CHOIR_OK;
}

choir_status chi_weights_collect_to_write(choir_strategy *s, const char *what, chi_weights *w)
{
	CHOIR_TRY(chi_weights_collect(s, what, w));
	return chi_remote_refresh_to_write(s);
}

void chi_weights_free(chi_weights *w)
{
	chi_free(w->variable);
	*w = (chi_weights){ 0 };
}

choir_status chi_weights_fetch(choir_variable *v, choir_frame *f, void *to)
{
	const size_t mark = choir_frame_mark(f);
	choir_tensor *t = v->synchronization == CHOIR_SYNCHRONIZATION_ON_READ
			? chi_read_aggregated(v, f)
			: chi_variable_view(v, 0, f);
	const choir_status status = t == NULL ? chi_frame_status(f) : chi_tensor_to_host(t, to);
	choir_frame_rewind(f, mark);
	return status;
}

choir_status chi_weights_each(const chi_weights *w, chi_weight_fn *fn, void *user)
{
	size_t max = 1;
	for (size_t i = 0; i < w->n; i++)
		if (chi_variable_bytes(w->variable[i]) > max)
			max = chi_variable_bytes(w->variable[i]);
	choir_frame *f = choir_frame_new(NULL);
	void *data = f == NULL ? NULL : chi_alloc_aligned(max);
	choir_status status = chi_made(data);
	for (size_t i = 0; status == CHOIR_OK && i < w->n; i++) {
		choir_variable *v = w->variable[i];
		status = chi_weights_fetch(v, f, data);
		if (status == CHOIR_OK)
			status = fn(v, data, chi_variable_bytes(v), user);
	}
	chi_free(data);
	choir_frame_free(f);
	return status;
}
