// The weights of the best epoch, kept in memory, for a training that stops when it gets no better.
#pragma once

#include <choir/choir.h>

typedef struct {
	int n;
	void **copy; // a packed one of each variable of the model
} best_weights;

// Keeps the values of the layer's variables as they are now, in place of those kept before.
choir_status best_keep(best_weights *b, choir_layer *net);
// Gives the variables what was kept. Nothing was: nothing changes.
choir_status best_restore(const best_weights *b, choir_layer *net);
void best_free(best_weights *b);
