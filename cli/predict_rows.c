// Why data or some of their rows get no prediction: other columns, values that are missing, or
// too large for the model.
#include "predict_rows.h"

#include "command_options.h"
#include "terminal_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNTED_AT_ONCE = 1024 };

choir_status predict_check_columns(const char *name, const table_plan *t, const source *data)
{
	char list[COLUMNS_SIZE];
	const size_t length = source_inputs(data, list, sizeof list);
	if (length >= sizeof list || strchr(t->columns, '\t') == NULL || length == 0)
		return CHOIR_OK;
	const char *was = t->columns, *is = list;
	for (int i = 1; *was != '\0' || *is != '\0'; i++) {
		const size_t a = strcspn(was, "\t"), b = strcspn(is, "\t");
		if (a != b || strncmp(was, is, a) != 0)
			return choir_fail(CHOIR_INVALID,
					"data \"%s\": input %d is column \"%.*s\"; the model needs \"%.*s\"", name, i,
					(int) b, is, (int) a, was);
		was += a + (was[a] != '\0');
		is += b + (is[b] != '\0');
	}
	return CHOIR_OK;
}

static bool lacks(const choir_csv_column *c, const float *value)
{
	if (c->kind != CHOIR_CSV_ONE_HOT)
		return isnan(*value);
	for (size_t i = 0; i < c->categories; i++)
		if (value[i] != 0)
			return false;
	return true;
}

static choir_status count_lacking(source *s, choir_values *batch)
{
	const choir_tensor *image = source_column(batch, "image");
	if (image == NULL)
		return choir_error_status();
	const int64_t n = choir_tensor_shape(image)->dim[0];
	const float *value = n > 0 ? choir_tensor_data(image) : NULL;
	for (int64_t i = 0; i < n; i++)
		for (size_t k = 0; k < s->given_inputs; k++) {
			s->counts[k] += lacks(&s->given_input[k], value);
			value += table_column_width(&s->given_input[k]);
		}
	return CHOIR_OK;
}

static choir_status fail_lacking(const source *s)
{
	enum { SHOWN = 6 };
	char list[512] = "", name[CLEAN_TEXT];
	size_t at = 0, shown = 0;
	for (size_t k = 0; k < s->given_inputs && at < sizeof list; k++)
		if (s->counts[k] > 0 && ++shown <= SHOWN)
			at += (size_t) snprintf(list + at, sizeof list - at, "%s%lld lack \"%.60s\"",
					at == 0 ? "" : ", ", (long long) s->counts[k],
					clean_text(s->given_input[k].name, name));
	return choir_fail(CHOIR_INVALID,
			"data \"%.200s\": of %lld rows %s%s; needs a row with all values, or a model that was "
			"trained with --missing impute",
			s->name, (long long) s->examples, list, shown > SHOWN ? ", ..." : "");
}

choir_status predict_explain_dropped(source *s, uint64_t seed)
{
	const char *name = s->name;
	source_close(s);
	s->imputes = true;
	s->examples = s->dropped = 0;
	CHOIR_TRY(source_open(s, name, seed));
	s->counts = calloc(s->given_inputs + 1, sizeof *s->counts);
	if (s->counts == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "predict: out of memory");
	choir_status status = source_inspect(
			s, choir_dataset_batch(source_examples(s), COUNTED_AT_ONCE), true, count_lacking);
	status = status == CHOIR_END || status == CHOIR_OK ? fail_lacking(s) : status;
	free(s->counts);
	s->counts = NULL;
	return status;
}

void predict_print_warning(choir_log_level level, const char *line, void *user)
{
	(void) level;
	(void) user;
	print_error("choir predict", line);
}

choir_status predict_count_auc(choir_metric *auc, choir_tensor *labels, choir_tensor *scores)
{
	choir_frame *f = choir_tensor_frame(scores);
	choir_tensor *label = choir_cast(labels, CHOIR_F32);
	choir_tensor *far = choir_abs(choir_subtract(label, choir_number(f, 0.5)));
	choir_tensor *known = choir_cast(choir_less(far, choir_number(f, 1)), CHOIR_F32);
	return choir_metric_update_weighted(auc, labels, model_ranks(scores), known);
}

// In f64, because rounding errors of many classes add up.
void predict_softmax(int64_t n, const float *scores, float *to)
{
	double sum = 0;
	float max = -HUGE_VALF;
	for (int64_t i = 0; i < n; i++)
		max = fmaxf(max, scores[i]);
	for (int64_t i = 0; i < n; i++)
		sum += exp((double) scores[i] - max);
	for (int64_t i = 0; i < n; i++)
		to[i] = (float) (exp((double) scores[i] - max) / sum);
}

choir_status predict_explain_scores(const char *data, const char *example, const table_plan *t,
		const input_columns *columns, const float *standardized)
{
	static char list[METADATA_SIZE];
	static const char *name[MAX_INPUTS];
	char clean[CLEAN_TEXT];
	const int64_t n = t->inputs;
	int64_t worst = 0;
	if (standardized == NULL || n == 0 || table_number_names(columns, list, name) != (size_t) n)
		return choir_fail(
				CHOIR_INVALID, "data \"%.200s\": %s: the scores are not finite", data, example);
	for (int64_t i = 1; i < n && !isnan(standardized[worst]); i++)
		if (!(fabsf(standardized[i]) <= fabsf(standardized[worst])))
			worst = i;
	return choir_fail(CHOIR_INVALID,
			"data \"%.200s\": %s: the scores are not finite; column \"%s\" is %g, in the training "
			"%g with deviation %g",
			data, example, clean_text(name[worst], clean),
			(double) (standardized[worst] * t->deviation[worst] + t->mean[worst]),
			(double) t->mean[worst], (double) t->deviation[worst]);
}
