// The weights after the best epoch of a training.
#pragma once

#include "train/weights/weights.h"

// Host memory.
typedef struct {
	chi_weights weights;
	void **data;
	bool kept; // data are weights
} chi_best_weights;

choir_status chi_best_weights_reserve(chi_best_weights *b, choir_strategy *s);
choir_status chi_best_weights_keep(chi_best_weights *b, choir_strategy *s);
choir_status chi_best_weights_restore(const chi_best_weights *b);
void chi_best_weights_free(chi_best_weights *b);
