// Making variables, and finding them by name.
#pragma once

#include "strategy/strategy.h"

typedef struct {
	const char *name;
	const choir_shape *shape;
	const choir_variable_options *options; // of this library's size; NULL: all defaults
	choir_variable *colocated_with; // NULL: wherever the strategy says
	bool non_slot; // where the strategy's non-slot variables lie
	void *wrap; // the caller's memory; NULL
	bool slot; // zeros of an optimizer, of which workers that agree on the rest need not speak
} chi_creation;
// Makes a variable and enters it in the list. The calling context has been checked.
choir_variable *chi_strategy_make_variable(choir_strategy *s, const chi_creation *c);
// The variable of c's name, made if there is none. CHOIR_INVALID: it has another dtype or shape.
choir_variable *chi_strategy_find_or_make_variable(choir_strategy *s, const chi_creation *c);
choir_variable *chi_strategy_find_variable(choir_strategy *s, const char *name); // NULL: none
// Between these one worker at a time asks for a name and makes a variable; they may be nested.
// CHOIR_TIMEOUT naming what was to be made.
choir_status chi_strategy_begin_creation(choir_strategy *s, const char *name);
void chi_strategy_end_creation(choir_strategy *s);
// A slot of an optimizer, colocated with v: zeros, not trainable, not saved with the weights.
choir_variable *chi_strategy_make_slot(choir_variable *v, const char *what);
// Takes back a variable that was just made and that nobody else has: it leaves the list and is
// freed.
void chi_strategy_delete_variable(choir_variable *v);
