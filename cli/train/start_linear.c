// An mlp on a table begins as a linear or logistic regression of the inputs. A score z is relu(z)
// - relu(-z), so two units of each hidden layer carry one score. The other units begin at random,
// but have no effect on the scores until the first step. The training adds what is not linear.
#include "train/linear_solve.h"
#include "train/train.h"

#include <stdlib.h>
#include <string.h>

enum {
	MAX_NUMBERS = 1 << 22,
	WIDE = 4, // times as many numbers, of a table that would lack rows
	MIN_ROWS_PER_INPUT = 10,
	COLLECTED_AT_ONCE = 1024
};

typedef struct {
	linear_problem of;
	float *input, *number;
	int64_t *label;
} rows;

static choir_status collect(source *s, choir_values *batch)
{
	rows *to = s->user;
	linear_problem *of = &to->of;
	const choir_tensor *input = source_column(batch, s->input);
	const choir_tensor *label = source_column(batch, s->label);
	if (input == NULL || label == NULL)
		return choir_error_status();
	const int64_t n = choir_tensor_shape(input)->dim[0];
	memcpy(to->input + of->rows * of->inputs, choir_tensor_data(input),
			(size_t) (n * of->inputs) * sizeof(float));
	if (of->label == NULL)
		memcpy(to->number + of->rows * of->outputs, choir_tensor_data(label),
				(size_t) (n * of->outputs) * sizeof(float));
	for (int64_t i = 0; of->label != NULL && i < n; i++)
		to->label[of->rows + i] = source_label(label, i);
	of->rows += n;
	return CHOIR_OK;
}

static choir_status reserve(rows *to, int64_t n, bool regression)
{
	to->input = malloc((size_t) (n * to->of.inputs) * sizeof *to->input);
	to->number = regression ? malloc((size_t) (n * to->of.outputs) * sizeof *to->number) : NULL;
	to->label = regression ? NULL : malloc((size_t) n * sizeof *to->label);
	to->of.input = to->input;
	to->of.number = to->number;
	to->of.label = to->label;
	return to->input != NULL && (to->number != NULL || to->label != NULL)
			? CHOIR_OK
			: choir_fail(
					  CHOIR_NO_MEMORY, "--start linear: no memory for %lld rows", (long long) n);
}

// Takes so many rows.
static choir_status solve(const training *t, int64_t n, double *weights)
{
	source s = t->data;
	rows all = {
		.of = { .inputs = s.shape.dim[0], .outputs = s.classes, .class_weight = t->class_weights }
	};
	choir_status status = reserve(&all, n, train_is_regression(t));
	s.user = &all;
	if (status == CHOIR_OK)
		status = source_inspect(&s,
				choir_dataset_batch(choir_dataset_take(train_examples(t), n), COLLECTED_AT_ONCE),
				true, collect);
	if (status == CHOIR_OK || status == CHOIR_END)
		status = linear_solve(&all.of, weights);
	free(all.input);
	free(all.number);
	free(all.label);
	return status;
}

// What element [i, k] of a kernel becomes; carried: twice the scores.
static float weight_of(const training *t, const double *weights, int layer, int64_t i, int64_t k)
{
	const int64_t scores = t->data.classes, inputs = t->data.shape.dim[0];
	const int64_t score = k % scores;
	if (layer == t->model.plan.widths)
		return i == k ? 1 : i == scores + k ? -1 : 0;
	if (layer > 0)
		return i == k;
	const double weight = weights[score * (inputs + 1) + i];
	return (float) (k < scores ? weight : -weight);
}

// Rows i and columns k of the kernel, and the bias as one more row of inputs.
static choir_status set(const training *t, const double *weights, int layer, choir_variable *v)
{
	const choir_shape *shape = choir_variable_shape(v);
	const bool bias = shape->rank == 1, last = layer == t->model.plan.widths;
	const int64_t in = bias ? 1 : shape->dim[0], out = shape->dim[bias ? 0 : 1];
	const int64_t carried = last ? out : 2 * t->data.classes;
	const size_t size = (size_t) choir_shape_elements(shape) * sizeof(float);
	if (bias && layer > 0)
		return CHOIR_OK;
	choir_frame *f = choir_frame_new(NULL);
	const choir_tensor *now = choir_variable_read(v, f);
	float *value = now == NULL ? NULL : malloc(size);
	if (value != NULL)
		memcpy(value, choir_tensor_data(now), size);
	for (int64_t i = 0; value != NULL && i < in; i++)
		for (int64_t k = 0; k < carried; k++)
			value[i * out + k] = weight_of(t, weights, layer, bias ? t->data.shape.dim[0] : i, k);
	choir_status status = CHOIR_OK;
	if (value != NULL)
		status = choir_variable_assign(v, choir_constant(f, CHOIR_F32, *shape, value));
	else
		status = now == NULL ? choir_error_status()
							 : choir_fail(CHOIR_NO_MEMORY, "--start linear: out of memory");
	free(value);
	choir_frame_free(f);
	return status;
}

static choir_status set_all(const training *t, const double *weights)
{
	choir_scope scope;
	CHOIR_TRY(choir_scope_enter(&scope, t->strategy));
	choir_status status = CHOIR_OK;
	for (int i = 0; i < choir_layer_variables(t->model.net) && status == CHOIR_OK; i++)
		status = set(t, weights, i / 2, choir_layer_variable(t->model.net, i));
	const choir_status left = choir_scope_exit(&scope);
	return status == CHOIR_OK ? left : status;
}

// 0: the table or the net is not suited.
static int64_t rows_of(const training *t)
{
	const model_plan *plan = &t->model.plan;
	const int64_t outputs = t->data.classes, inputs = plan->image.dim[0];
	bool suits = t->data.csv && strcmp(plan->kind, "mlp") == 0 && !plan->size.batch_norm &&
			strcmp(t->given->start, "linear") == 0 && t->task == NULL && !train_shards_files(t);
	for (int i = 0; i < plan->widths; i++)
		suits = suits && 4 * outputs <= plan->width[i];
	if (!suits)
		return 0;
	const int64_t max = MAX_NUMBERS / (inputs * outputs);
	const bool wide = max < MIN_ROWS_PER_INPUT * inputs;
	if (t->train_examples <= (wide ? WIDE * max : max))
		return t->train_examples;
	return wide ? 0 : max;
}

choir_status train_start_linear(const training *t)
{
	const int64_t n = rows_of(t);
	const size_t weights = (size_t) (t->data.classes * (t->data.shape.dim[0] + 1));
	if (n == 0)
		return CHOIR_OK;
	double *found = calloc(weights, sizeof *found);
	if (found == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "--start linear: out of memory");
	choir_status status = solve(t, n, found);
	// The processors of workers may round exp differently.
	if (status == CHOIR_OK && t->cluster != NULL)
		status = choir_cluster_broadcast(t->cluster, 0, found, weights * sizeof *found);
	if (status == CHOIR_OK)
		status = set_all(t, found);
	free(found);
	return status;
}
