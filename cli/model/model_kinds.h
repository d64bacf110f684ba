// The kinds of models: check, build, and formulas for weights, activations and work.
#pragma once

#include "model/model.h"

enum { LAYER_NAME = 64 };

typedef struct {
	choir_status (*check)(const model_plan *plan);
	choir_status (*build)(model *m);
	double (*weights)(const model_plan *plan), (*activations)(const model_plan *plan);
	model_work (*work)(const model_plan *plan);
} model_kind;

extern const model_kind mlp_kind, cnn_kind, resnet_kind, mobilenet_kind, gpt_kind, lstm_kind;

choir_status text_check(const model_plan *plan);

// Needs images of at least min rows and columns; min 0: any numbers.
choir_status image_check(const model_plan *plan, int64_t min);
// CHOIR_INVALID: a rate of 1 or more.
choir_status dropout_check(const model_plan *plan);
int64_t image_channels(const model_plan *plan);

// Numbers from 1 to max with commas. Returns how many; -1: wrong, or more than capacity.
int model_read_list(const char *text, int64_t max, int capacity, int64_t out[]);
