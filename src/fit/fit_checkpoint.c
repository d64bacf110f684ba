// A model in checkpoints.
#include "base/alloc.h"
#include "base/text.h"
#include "fit/fit_model.h"

#include <string.h>

static const char *name(const void *self)
{
	return ((const choir_model *) self)->o.name;
}

typedef struct {
	const char *name;
	int64_t *value;
} count;
enum { COUNTS = 7 };

static void list_counts(choir_model *m, count out[COUNTS])
{
	const count all[COUNTS] = { { "epochs", &m->epochs }, { "batch", &m->batch },
		{ "step", &m->step }, { "best_epoch", &m->best_epoch }, { "waited", &m->waited },
		{ "plateau_waited", &m->plateau_waited }, { "plateau_cooldown", &m->plateau_cooldown } };
	memcpy(out, all, sizeof all);
}

static bool has_best_weights(const choir_model *m)
{
	return m->best_epoch > 0 && m->best_weights.kept;
}

static choir_status save_weight(chi_state_dict *to, const choir_variable *v, const void *data)
{
	chi_text text = { 0 };
	chi_text_add(&text, "best/%s", v->name);
	void *copy = text.failed ? NULL : chi_state_dict_add(to, text.data, v->dtype, &v->shape);
	chi_text_free(&text);
	if (copy == NULL)
		return choir_error_status();
	memcpy(copy, data, chi_variable_bytes(v));
	return CHOIR_OK;
}

static choir_status save(void *self, chi_state_dict *to)
{
	choir_model *m = self;
	count counts[COUNTS];
	list_counts(m, counts);
	for (int i = 0; i < COUNTS; i++)
		CHOIR_TRY(chi_state_dict_add_count(to, counts[i].name, (uint64_t) *counts[i].value));
	double *best = chi_state_dict_add(to, "best", CHOIR_F64, &CHOIR_SHAPE(2));
	double *history = chi_state_dict_add(
			to, "history", CHOIR_F64, &CHOIR_SHAPE(m->epochs, (int64_t) m->logs));
	if (best == NULL || history == NULL)
		return choir_error_status();
	best[0] = m->best;
	best[1] = m->plateau_best;
	if (m->epochs > 0)
		memcpy(history, m->history, (size_t) m->epochs * m->logs * sizeof *history);
	const chi_best_weights *b = &m->best_weights;
	for (size_t i = 0; has_best_weights(m) && i < b->weights.n; i++)
		CHOIR_TRY(save_weight(to, b->weights.variable[i], b->data[i]));
	return CHOIR_OK;
}

static choir_status take_weight(chi_state_dict *from, const choir_variable *v, const void **data)
{
	chi_text text = { 0 };
	chi_text_add(&text, "best/%s", v->name);
	*data = NULL;
	choir_status status = text.failed ? CHOIR_NO_MEMORY : CHOIR_OK;
	if (status == CHOIR_OK && chi_state_dict_find(from, text.data) != NULL)
		status = chi_state_dict_take(from, text.data, v->dtype, &v->shape, data);
	chi_text_free(&text);
	return status;
}

static choir_status take_history(
		const choir_model *m, chi_state_dict *from, int64_t epochs, const double **history)
{
	const void *data;
	CHOIR_TRY(chi_state_dict_take(
			from, "history", CHOIR_F64, &CHOIR_SHAPE(epochs, (int64_t) m->logs), &data));
	*history = data;
	return CHOIR_OK;
}

static choir_status take_count(chi_state_dict *from, const char *what, int64_t *value)
{
	uint64_t number;
	CHOIR_TRY(chi_state_dict_take_count(from, what, &number));
	if (number > INT64_MAX / 2)
		return choir_fail(CHOIR_INVALID, "%s: state \"%s/%s\" is %llu; at most %lld is possible",
				from->path, from->object, what, (unsigned long long) number,
				(long long) (INT64_MAX / 2));
	*value = (int64_t) number;
	return CHOIR_OK;
}

static choir_status check(void *self, chi_state_dict *from)
{
	choir_model *m = self;
	choir_model copy = *m;
	count counts[COUNTS];
	const void *data;
	const double *history;
	list_counts(&copy, counts);
	for (int i = 0; i < COUNTS; i++)
		CHOIR_TRY(take_count(from, counts[i].name, counts[i].value));
	CHOIR_TRY(chi_state_dict_take(from, "best", CHOIR_F64, &CHOIR_SHAPE(2), &data));
	CHOIR_TRY(take_history(m, from, copy.epochs, &history));
	if (!chi_grow(
				&m->history, &m->capacity, (size_t) copy.epochs * m->logs + 1, sizeof *m->history))
		return choir_error_status();
	CHOIR_TRY(chi_best_weights_reserve(&m->best_weights, m->strategy));
	for (size_t i = 0; i < m->best_weights.weights.n; i++)
		CHOIR_TRY(take_weight(from, m->best_weights.weights.variable[i], &data));
	return CHOIR_OK;
}

static choir_status restore(void *self, chi_state_dict *from)
{
	choir_model *m = self;
	count counts[COUNTS];
	const void *data;
	const double *history;
	list_counts(m, counts);
	for (int i = 0; i < COUNTS; i++)
		CHOIR_TRY(take_count(from, counts[i].name, counts[i].value));
	CHOIR_TRY(chi_state_dict_take(from, "best", CHOIR_F64, &CHOIR_SHAPE(2), &data));
	double best[2];
	memcpy(best, data, sizeof best);
	m->best = best[0];
	m->plateau_best = best[1];
	CHOIR_TRY(take_history(m, from, m->epochs, &history));
	if (m->epochs > 0)
		memcpy(m->history, history, (size_t) m->epochs * m->logs * sizeof *history);
	chi_best_weights *b = &m->best_weights;
	b->kept = b->weights.n > 0;
	for (size_t i = 0; i < b->weights.n; i++) {
		CHOIR_TRY(take_weight(from, b->weights.variable[i], &data));
		b->kept = b->kept && data != NULL;
		if (data != NULL)
			memcpy(b->data[i], data, chi_variable_bytes(b->weights.variable[i]));
	}
	m->restored = true;
	return CHOIR_OK;
}

const chi_stateful_table chi_model_state = {
	.free = chi_model_free, .name = name, .save = save, .check = check, .restore = restore
};
