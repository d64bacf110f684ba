// The option --precision of commands that train, measure and predict.
#pragma once

#include <choir/choir.h>

extern const char *const precision_names[]; // ends in NULL
extern const char precision_help[];

// The precision of a name of precision_names; NULL: DEFAULT.
choir_precision precision_of(const char *name);

// A dynamic loss scale for f16, else NULL: none.
const choir_loss_scale *precision_loss_scale(const choir_strategy *s);

// Prints on standard error what AUTO took, or that a mixed precision is slower than f32 or has no
// instructions here, with the measured factor. Nothing for f32.
choir_status precision_report(const char *who, const char *name, const choir_strategy *s);
// Prints the operations that run in 16 bits and in f32, by the table of rules.
void precision_print_rules(const choir_strategy *s);
