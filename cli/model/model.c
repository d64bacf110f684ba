// The table of models.
#include "model/model.h"
#include "model/model_kinds.h"

#include <string.h>
#include <sys/stat.h>

enum { CNN_WIDTHS = 3 };

const char *const model_kinds[] = { "mlp", "cnn", "resnet20", "resnet18", "mobilenet", "gpt",
	"lstm", NULL };

// In the order of model_kinds.
static const struct {
	const char *usual_widths;
	model_size usual;
	const model_kind *kind;
} kinds[] = {
	{ "512,512", { 0 }, &mlp_kind },
	{ "32,64,128", { 0 }, &cnn_kind },
	{ NULL, { .width = 16, .layers = 20 }, &resnet_kind },
	{ NULL, { .width = 64 }, &resnet_kind },
	{ NULL, { .width = 32 }, &mobilenet_kind },
	{ NULL, { .width = 128, .layers = 4, .heads = 4, .context = 128 }, &gpt_kind },
	{ NULL, { .width = 256, .layers = 1, .context = 64 }, &lstm_kind },
};
enum { MLP, CNN, GPT = 5, LSTM };

static int kind_index(const char *name)
{
	int k = 0;
	while (model_kinds[k] != NULL && strcmp(model_kinds[k], name) != 0)
		k++;
	return k;
}

choir_status model_plan_set(model_plan *plan, const char *kind, const char *widths)
{
	const int k = kind_index(kind);
	if (model_kinds[k] == NULL)
		return choir_fail(CHOIR_NOT_FOUND,
				"model \"%s\": unknown model; known: mlp, cnn, resnet20, resnet18, mobilenet, "
				"gpt, lstm",
				kind);
	plan->kind = model_kinds[k];
	plan->size = kinds[k].usual;
	plan->widths = 0;
	if (kinds[k].usual_widths == NULL)
		return widths == NULL ? CHOIR_OK
							  : choir_fail(CHOIR_INVALID,
										"widths \"%s\": a %s has no list of widths; needs --width",
										widths, kind);
	plan->widths = model_read_list(
			widths ? widths : kinds[k].usual_widths, MAX_WIDTH, MAX_WIDTHS, plan->width);
	if (plan->widths < 0)
		return choir_fail(CHOIR_INVALID,
				"widths \"%s\": wrong list; needs 1 to %d numbers from 1 to %d with commas",
				widths, MAX_WIDTHS, MAX_WIDTH);
	if (k == CNN && plan->widths != CNN_WIDTHS)
		return choir_fail(CHOIR_INVALID,
				"widths \"%s\": a cnn needs 3 widths, of two convolutions and a dense layer",
				widths);
	return CHOIR_OK;
}

static choir_status set_number(
		const char *kind, const char *name, int64_t usual, int64_t value, int64_t *to)
{
	if (value == 0)
		return CHOIR_OK;
	if (usual == 0)
		return choir_fail(CHOIR_INVALID, "%s %lld: model %s has no such size; needs another model",
				name, (long long) value, kind);
	*to = value;
	return CHOIR_OK;
}

choir_status model_plan_resize(model_plan *plan, const model_size *size)
{
	const int k = kind_index(plan->kind);
	const model_size *usual = &kinds[k].usual;
	model_size *to = &plan->size;
	CHOIR_TRY(set_number(plan->kind, "--width", usual->width, size->width, &to->width));
	CHOIR_TRY(set_number(plan->kind, "--layers", usual->layers, size->layers, &to->layers));
	CHOIR_TRY(set_number(plan->kind, "--heads", usual->heads, size->heads, &to->heads));
	CHOIR_TRY(set_number(plan->kind, "--context", usual->context, size->context, &to->context));
	if (size->dropout != 0 && k < GPT && k != MLP)
		return choir_fail(CHOIR_INVALID,
				"--dropout %g: model %s has no dropout; needs a gpt, an lstm or an mlp",
				size->dropout, plan->kind);
	if (size->batch_norm && k != MLP)
		return choir_fail(CHOIR_INVALID, "--normalization batch: model %s has none; needs an mlp",
				plan->kind);
	to->dropout = size->dropout;
	to->batch_norm = size->batch_norm;
	return CHOIR_OK;
}

bool model_plan_text(const model_plan *plan)
{
	return kind_index(plan->kind) >= GPT;
}

double model_plan_weights(const model_plan *plan)
{
	return kinds[kind_index(plan->kind)].kind->weights(plan);
}

double model_plan_activations(const model_plan *plan)
{
	return kinds[kind_index(plan->kind)].kind->activations(plan);
}

model_work model_plan_work(const model_plan *plan)
{
	return kinds[kind_index(plan->kind)].kind->work(plan);
}

choir_status model_plan_check(const model_plan *plan)
{
	return kinds[kind_index(plan->kind)].kind->check(plan);
}

choir_status model_build(model *m, const model_plan *plan)
{
	m->plan = *plan;
	m->net = NULL;
	CHOIR_TRY(model_plan_check(plan));
	return kinds[kind_index(plan->kind)].kind->build(m);
}

choir_shape model_input(const model_plan *plan)
{
	const choir_shape *one = &plan->image;
	const int kind = kind_index(plan->kind);
	if (kind == MLP)
		return CHOIR_SHAPE(choir_shape_elements(one));
	if (kind >= GPT)
		return *one;
	return CHOIR_SHAPE(one->dim[0], one->dim[1], one->rank == 3 ? one->dim[2] : 1);
}

choir_tensor *model_apply(const model *m, choir_tensor *input)
{
	const choir_shape one = model_input(&m->plan);
	choir_shape all = { one.rank + 1,
		{ choir_tensor_shape(input)->dim[0] } }; // the batch may be empty
	memcpy(all.dim + 1, one.dim, (size_t) one.rank * sizeof one.dim[0]);
	// A text may be shorter than the context.
	return choir_layer_apply(
			m->net, model_plan_text(&m->plan) ? input : choir_reshape(input, all));
}

choir_status model_plan_fits(const model_plan *plan, const char *path)
{
	struct stat file;
	const double weights = model_plan_weights(plan);
	if (stat(path, &file) != 0) // reading it will report why
		return CHOIR_OK;
	if (weights * (double) sizeof(float) <= 2 * (double) file.st_size)
		return CHOIR_OK;
	return choir_fail(CHOIR_CORRUPT, "%s: %lld bytes; a %s of %.0f weights needs more", path,
			(long long) file.st_size, plan->kind, weights);
}

choir_status model_load(model *m, choir_strategy *s, const model_plan *plan, const char *path)
{
	choir_scope scope;
	CHOIR_TRY(model_plan_fits(plan, path));
	CHOIR_TRY(choir_scope_enter(&scope, s));
	const choir_status status = model_build(m, plan);
	CHOIR_TRY(choir_scope_exit(&scope));
	CHOIR_TRY(status);
	return choir_strategy_restore(s, path);
}

bool model_plan_regression(const model_plan *plan)
{
	return plan->table != NULL && plan->table->targets > 0;
}

choir_tensor *model_numbers(const model *m, choir_tensor *standardized)
{
	const table_plan *t = m->plan.table;
	const choir_shape row = CHOIR_SHAPE(t->targets);
	choir_frame *f = choir_tensor_frame(standardized);
	return choir_add(
			choir_multiply(standardized, choir_constant(f, CHOIR_F32, row, t->target_deviation)),
			choir_constant(f, CHOIR_F32, row, t->target_mean));
}

choir_tensor *model_ranks(choir_tensor *scores)
{
	choir_frame *f = choir_tensor_frame(scores);
	choir_tensor *logit =
			choir_subtract(choir_slice(scores, 1, 1, 1), choir_slice(scores, 1, 0, 1));
	choir_tensor *size = choir_add(choir_abs(logit), choir_number(f, 1));
	return choir_add(
			choir_divide(choir_multiply(logit, choir_number(f, 0.5)), size), choir_number(f, 0.5));
}

choir_tensor *model_standardized(const model *m, choir_tensor *numbers)
{
	const table_plan *t = m->plan.table;
	const choir_shape row = CHOIR_SHAPE(t->targets);
	choir_frame *f = choir_tensor_frame(numbers);
	float deviation[MAX_TARGETS];
	for (int64_t i = 0; i < t->targets; i++)
		deviation[i] = t->target_deviation[i] > 0 ? t->target_deviation[i] : 1;
	return choir_divide(choir_subtract(numbers, choir_constant(f, CHOIR_F32, row, t->target_mean)),
			choir_constant(f, CHOIR_F32, row, deviation));
}

choir_tensor *model_losses(const model *m, choir_tensor *labels, choir_tensor *scores)
{
	if (model_plan_regression(&m->plan))
		return choir_mean_squared_error(
				choir_reshape(labels, *choir_tensor_shape(scores)), scores);
	choir_tensor *losses = choir_sparse_softmax_cross_entropy(labels, scores);
	return model_plan_text(&m->plan) ? choir_mean(losses, CHOIR_AXIS(1)) : losses;
}
