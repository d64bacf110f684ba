// Creation of variables, and search by name.
#pragma once

#include "strategy/strategy.h"

typedef struct {
	const char *name;
	const choir_shape *shape;
	const choir_variable_options *options; // of full size; or NULL
	choir_variable *colocated_with;
	bool non_slot;
	void *wrap; // the caller's memory, or NULL
	double l1, l2; // the penalty of its regularizer
	bool slot; // an optimizer's zeros, which workers need not compare
} chi_creation;
// Makes a variable and adds it to the strategy's list. The caller has checked the context.
choir_variable *chi_strategy_make_variable(choir_strategy *s, const chi_creation *c);
// Finds a variable or makes it. CHOIR_INVALID: the existing one has another dtype or shape.
choir_variable *chi_strategy_find_or_make_variable(choir_strategy *s, const chi_creation *c);
choir_variable *chi_strategy_find_variable(choir_strategy *s, const char *name);
// Between these, one worker at a time looks for a name and makes a variable. They may be nested.
// CHOIR_TIMEOUT: another worker did not finish.
choir_status chi_strategy_begin_creation(choir_strategy *s, const char *name);
void chi_strategy_end_creation(choir_strategy *s);
// Makes an optimizer's slot, colocated with v: zeros, not trainable, not saved with weights.
choir_variable *chi_strategy_make_slot(choir_variable *v, const char *what);
// Removes a new variable from the strategy's list and frees it. Nothing else may refer to it.
void chi_strategy_delete_variable(choir_variable *v);
