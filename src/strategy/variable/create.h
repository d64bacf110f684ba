// Creation of variables, and search by name.
#pragma once

#include "strategy/strategy.h"

typedef struct {
	const char *name;
	const choir_shape *shape;
	const choir_variable_options *options; // of full size; or NULL
	choir_variable *colocated_with;
	bool non_slot;
	void *wrap;
	double l1, l2;
	bool slot; // an optimizer's zeros, which workers need not compare
} chi_creation;
// The caller has checked the context.
choir_variable *chi_strategy_make_variable(choir_strategy *s, const chi_creation *c);
choir_variable *chi_strategy_find_variable(choir_strategy *s, const char *name);
// Between these, one worker at a time makes a variable. May be nested. CHOIR_TIMEOUT: another
// worker did not finish.
choir_status chi_strategy_begin_creation(choir_strategy *s, const char *name);
void chi_strategy_end_creation(choir_strategy *s);
// Zeros, not trainable, not saved with weights.
choir_variable *chi_strategy_make_slot(choir_variable *v, const char *what);
void chi_strategy_delete_variable(choir_variable *v);
