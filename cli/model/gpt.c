// A GPT on bytes (Radford et al. 2019), with layer norm before attention and dense layers, and no
// bias in the output projection.
#include "model/model_kinds.h"

#include <stdio.h>

static const double EPSILON = 1e-5;

choir_status text_check(const model_plan *plan)
{
	const int64_t context = plan->size.context;
	if (plan->image.rank != 1 || plan->image.dim[0] != context)
		return choir_fail(CHOIR_INVALID,
				"%s: the data are not windows of %lld bytes of text; needs --data text:FILE",
				plan->kind, (long long) context);
	return dropout_check(plan);
}

static choir_status gpt_check(const model_plan *plan)
{
	const model_size *size = &plan->size;
	if (size->width % size->heads != 0)
		return choir_fail(CHOIR_INVALID,
				"gpt: --heads %lld, --width %lld; the number of heads must divide the width",
				(long long) size->heads, (long long) size->width);
	return text_check(plan);
}

// The layers inside a residual connection.
static choir_layer *branch(const model_size *size, const char *block, const char *part,
		choir_layer *first, choir_layer *second)
{
	char norm[LAYER_NAME], dropout[LAYER_NAME];
	choir_layer *layers[4];
	size_t n = 0;
	snprintf(norm, sizeof norm, "%s/%s_norm", block, part);
	snprintf(dropout, sizeof dropout, "%s/%s_dropout", block, part);
	layers[n++] = choir_layer_normalization_new(norm, size->width, EPSILON);
	layers[n++] = first;
	if (second != NULL)
		layers[n++] = second;
	if (size->dropout > 0)
		layers[n++] = choir_dropout_new(dropout, size->dropout);
	return choir_residual_new(choir_sequential_new(n, layers), NULL, CHOIR_LINEAR);
}

static choir_layer *block(const model_plan *plan, int64_t i)
{
	const model_size *size = &plan->size;
	const choir_activation gelu = plan->gelu_tanh ? CHOIR_GELU_TANH : CHOIR_GELU;
	char name[LAYER_NAME / 2], attention[LAYER_NAME], up[LAYER_NAME], down[LAYER_NAME];
	const int64_t width = size->width;
	snprintf(name, sizeof name, "block%lld", (long long) i);
	snprintf(attention, sizeof attention, "%s/attention", name);
	snprintf(up, sizeof up, "%s/up", name);
	snprintf(down, sizeof down, "%s/down", name);
	choir_layer *attend = choir_self_attention_new(attention, width, size->heads, CHOIR_ON);
	choir_layer *both[2] = { branch(size, name, "attention", attend, NULL) };
	choir_layer *wide = choir_dense_new(up, width, 4 * width, gelu);
	choir_layer *narrow = choir_dense_new(down, 4 * width, width, CHOIR_LINEAR);
	both[1] = branch(size, name, "dense", wide, narrow);
	return choir_sequential_new(2, both);
}

static choir_status gpt_build(model *m)
{
	const model_size *size = &m->plan.size;
	choir_layer *layers[MAX_LAYERS + 5];
	size_t n = 0;
	layers[n++] = choir_embedding_new("token", BYTES, size->width);
	layers[n++] = choir_position_embedding_new("place", size->context, size->width);
	if (size->dropout > 0)
		layers[n++] = choir_dropout_new("dropout", size->dropout);
	for (int64_t i = 0; i < size->layers; i++)
		layers[n++] = block(&m->plan, i);
	layers[n++] = choir_layer_normalization_new("norm", size->width, EPSILON);
	layers[n++] = choir_dense_no_bias_new("scores", size->width, BYTES);
	m->net = choir_sequential_new(n, layers);
	return m->net == NULL ? choir_error_status() : CHOIR_OK;
}

static double gpt_weights(const model_plan *plan)
{
	const model_size *size = &plan->size;
	const double w = (double) size->width;
	const double in_block = 12 * w * w + 13 * w; // 4 matrices with biases, 2 norms
	return (double) size->layers * in_block + (2 * BYTES + (double) size->context + 2) * w;
}

static double gpt_activations(const model_plan *plan)
{
	const model_size *size = &plan->size;
	// A block keeps the results of norms, products, attention and GELU, and two sums.
	const double place = 20 * (double) size->width * (double) size->layers + 3 * BYTES;
	return (double) size->context * place;
}

static model_work gpt_work(const model_plan *plan)
{
	const model_size *size = &plan->size;
	const double w = (double) size->width, places = (double) size->context;
	const double layers = (double) size->layers;
	// Two products of a triangle forward, four backward, without what is recomputed.
	const double attention = 6 * w * (places + 1);
	const double products = 3 * 2 * (12 * w * w);
	// Two norms: x and y forward; x, dy and dx, then x and dy for their own gradients, backward.
	// Two residual sums, and two of gradients. GELU, four times as wide. Bias gradients of 9
	// widths.
	const double block = 2 * 7 * w + 4 * 3 * w + 4 * (2 + 3) * w + 9 * w;
	// Both embeddings, the last norm, and the loss.
	const double ends = 15 * w + 3 * BYTES;
	return (model_work){ .products = places * (layers * products + 3 * 2 * w * BYTES),
		.attention = places * layers * attention,
		.numbers = places * (layers * block + ends) };
}

const model_kind gpt_kind = { gpt_check, gpt_build, gpt_weights, gpt_activations, gpt_work };
