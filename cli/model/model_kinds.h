// The kinds of models: check, build, and formulas for weights, activations and work.
#pragma once

#include "model/model.h"

enum { LAYER_NAME = 64 };

choir_status mlp_check(const model_plan *plan);
choir_status mlp_build(model *m);
double mlp_weights(const model_plan *plan);
double mlp_activations(const model_plan *plan);
model_work mlp_work(const model_plan *plan);

choir_status cnn_check(const model_plan *plan);
choir_status cnn_build(model *m);
double cnn_weights(const model_plan *plan);
double cnn_activations(const model_plan *plan);
model_work cnn_work(const model_plan *plan);

choir_status resnet_check(const model_plan *plan);
choir_status resnet_build(model *m);
double resnet_weights(const model_plan *plan);
double resnet_activations(const model_plan *plan);
model_work resnet_work(const model_plan *plan);

choir_status mobilenet_check(const model_plan *plan);
choir_status mobilenet_build(model *m);
double mobilenet_weights(const model_plan *plan);
double mobilenet_activations(const model_plan *plan);
model_work mobilenet_work(const model_plan *plan);

choir_status gpt_check(const model_plan *plan);
choir_status gpt_build(model *m);
double gpt_weights(const model_plan *plan);
double gpt_activations(const model_plan *plan);
model_work gpt_work(const model_plan *plan);

choir_status lstm_check(const model_plan *plan);
choir_status lstm_build(model *m);
double lstm_weights(const model_plan *plan);
double lstm_activations(const model_plan *plan);
model_work lstm_work(const model_plan *plan);

// CHOIR_INVALID: the examples are not windows of text.
choir_status text_check(const model_plan *plan);

// Needs images of at least min rows and columns; min 0: any numbers.
choir_status image_check(const model_plan *plan, int64_t min);
// CHOIR_INVALID: a rate of 1 or more.
choir_status dropout_check(const model_plan *plan);
int64_t image_channels(const model_plan *plan);

// Numbers from 1 to max with commas. Returns how many; -1: wrong, or more than capacity.
int model_read_list(const char *text, int64_t max, int capacity, int64_t out[]);
