// The weights of the best epoch, kept in memory for early stopping.
#pragma once

#include <choir/choir.h>

typedef struct {
	int n;
	void **copy; // packed elements of each variable
} best_weights;

// Copies the layer's variables, and replaces an earlier copy.
choir_status best_keep(best_weights *b, choir_layer *net);
// Writes the copy back into the variables. Does nothing without a copy.
choir_status best_restore(const best_weights *b, choir_layer *net);
void best_free(best_weights *b);
