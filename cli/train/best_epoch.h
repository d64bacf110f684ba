// The weights of the best epoch, for early stopping.
#pragma once

#include <choir/choir.h>

typedef struct {
	int n;
	void **copy; // of each variable
} best_weights;

choir_status best_keep(best_weights *b, choir_layer *net);
// Without a copy it does nothing.
choir_status best_restore(const best_weights *b, choir_layer *net);
void best_free(best_weights *b);
