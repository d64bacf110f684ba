// A recurrent language model on bytes: an embedding, LSTMs (Hochreiter and Schmidhuber 1997), and
// a dense layer that scores the next byte at each position.
#include "model/model_kinds.h"

#include <stdio.h>

static choir_status lstm_build(model *m)
{
	const model_size *size = &m->plan.size;
	choir_layer *layers[2 * MAX_LAYERS + 2];
	size_t n = 0;
	layers[n++] = choir_embedding_new("token", BYTES, size->width);
	for (int64_t i = 0; i < size->layers; i++) {
		char name[LAYER_NAME], dropout[LAYER_NAME];
		snprintf(name, sizeof name, "lstm%lld", (long long) i);
		snprintf(dropout, sizeof dropout, "lstm%lld/dropout", (long long) i);
		layers[n++] = choir_lstm_new(name, size->width, size->width);
		if (size->dropout > 0)
			layers[n++] = choir_dropout_new(dropout, size->dropout);
	}
	layers[n++] = choir_dense_new("scores", size->width, BYTES, CHOIR_LINEAR);
	m->net = choir_sequential_new(n, layers);
	return m->net == NULL ? choir_error_status() : CHOIR_OK;
}

static double lstm_weights(const model_plan *plan)
{
	const double w = (double) plan->size.width;
	return (double) plan->size.layers * (8 * w * w + 4 * w) + (2 * w + 1) * BYTES;
}

static double lstm_activations(const model_plan *plan)
{
	// Each LSTM keeps the input's part of the gates, a row of six values, and the state.
	const double place = 11 * (double) plan->size.width * (double) plan->size.layers + 3 * BYTES;
	return (double) plan->size.context * place;
}

static model_work lstm_work(const model_plan *plan)
{
	const double w = (double) plan->size.width, places = (double) plan->size.context;
	const double layers = (double) plan->size.layers;
	// Forward, it reads the gates, writes the row and copies the state. Backward, it reads row, dy
	// and cell, and writes the gates' gradients, which the bias reads.
	const double step = 4 * w + 6 * w + 2 * w + 8 * w + 4 * w + 4 * w;
	return (model_work){ .products = places * 3 * 2 * (layers * 8 * w * w + w * BYTES),
		.numbers = places * (layers * step + 3 * w + 4 * BYTES) };
}

const model_kind lstm_kind = { text_check, lstm_build, lstm_weights, lstm_activations, lstm_work };
