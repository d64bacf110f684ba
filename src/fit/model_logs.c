// The names of logs are fixed, so an epoch's logs are a row of numbers.
#include "fit/model_logs.h"

#include "base/alloc.h"
#include "base/text.h"
#include "train/metric/metric.h"

#include <math.h>
#include <string.h>

static bool name_log(choir_model *m, size_t at, const char *prefix, const char *name)
{
	chi_text text = { 0 };
	chi_text_add(&text, "%s%s", prefix, name);
	if (text.failed)
		chi_text_free(&text);
	m->log_name[at] = text.data;
	m->log[at] = (double) NAN;
	return text.data != NULL;
}

bool chi_model_name_logs(choir_model *m)
{
	m->logs = 2 * m->metrics + 1;
	m->log_name = chi_alloc_array(m->logs, sizeof *m->log_name);
	m->log = chi_alloc_array(m->logs, sizeof *m->log);
	if (m->log_name == NULL || m->log == NULL ||
			!name_log(m, chi_model_rate_log(m), "", "learning_rate"))
		return false;
	for (size_t i = 0; i < m->metrics; i++) {
		const char *name = i == 0 && m->o.train_step == NULL ? "loss" : m->metric[i]->name;
		if (!name_log(m, chi_model_metric_log(m, i, false), "", name) ||
				!name_log(m, chi_model_metric_log(m, i, true), "val_", name))
			return false;
	}
	return true;
}

int64_t chi_model_find_log(const choir_model *m, const char *name)
{
	for (size_t i = 0; name != NULL && i < m->logs; i++)
		if (strcmp(m->log_name[i], name) == 0)
			return (int64_t) i;
	return CHOIR_NONE;
}

choir_status chi_model_take_metrics(choir_model *m, bool validation)
{
	for (size_t i = 0; i < m->metrics; i++) {
		m->log[chi_model_metric_log(m, i, validation)] = choir_metric_result(m->metric[i]);
		CHOIR_TRY(choir_metric_reset(m->metric[i]));
	}
	return CHOIR_OK;
}

choir_status chi_model_add_history(choir_model *m)
{
	const size_t at = (size_t) m->epochs * m->logs;
	if (!chi_grow(&m->history, &m->capacity, at + m->logs, sizeof *m->history))
		return choir_error_status();
	memcpy(m->history + at, m->log, m->logs * sizeof *m->log);
	m->epochs++;
	return CHOIR_OK;
}

int64_t choir_model_epochs(const choir_model *m)
{
	return m == NULL ? 0 : m->epochs;
}

size_t choir_model_logs(const choir_model *m)
{
	return m == NULL ? 0 : m->logs;
}

const char *choir_model_log_name(const choir_model *m, size_t i)
{
	return m == NULL || i >= m->logs ? NULL : m->log_name[i];
}

double choir_model_log(choir_model *m, const char *name)
{
	const int64_t i = m == NULL ? CHOIR_NONE : chi_model_find_log(m, name);
	if (i == CHOIR_NONE)
		return (double) NAN;
	if (m->counting && (size_t) i < m->metrics)
		return choir_metric_result(m->metric[i]);
	if (m->counting && (size_t) i == chi_model_rate_log(m))
		return choir_optimizer_learning_rate(m->o.optimizer);
	return m->log[i];
}

double choir_model_history(const choir_model *m, const char *name, int64_t epoch)
{
	const int64_t i = m == NULL ? CHOIR_NONE : chi_model_find_log(m, name);
	return i == CHOIR_NONE || epoch < 1 || epoch > m->epochs
			? (double) NAN
			: m->history[(size_t) (epoch - 1) * m->logs + (size_t) i];
}
