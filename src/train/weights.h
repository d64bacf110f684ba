// The weights of a strategy: all its variables but slots, in the order of their names, and their
// values on the host.
#pragma once

#include "strategy/strategy.h"

typedef struct {
	size_t n, room;
	choir_variable **variable;
} chi_weights;

// All there are, in cross-replica context; what names the caller in messages. *w is to be freed
// (chi_weights_free) whatever happens.
choir_status chi_weights_collect(choir_strategy *s, const char *what, chi_weights *w);
void chi_weights_free(chi_weights *w);
// Calls fn with the value of each as it is saved (docs/rules.md, section 7: of ON_READ
// variables what they aggregate to), packed, in w's order; until one fails.
typedef choir_status chi_weight_fn(
		const choir_variable *v, const void *data, size_t bytes, void *user);
choir_status chi_weights_each(const chi_weights *w, chi_weight_fn *fn, void *user);
