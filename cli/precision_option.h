// The options --precision and --wire of commands that train, measure and predict.
#pragma once

#include <choir/choir.h>

extern const char *const precision_names[]; // ends in NULL
extern const char precision_help[];

// The precision of a name of precision_names; NULL: DEFAULT.
choir_precision precision_of(const char *name);

extern const char *const wire_names[]; // ends in NULL
extern const char wire_help[];
// The dtype of a name of wire_names; NULL: f32.
choir_dtype wire_of(const char *name);

// A dynamic loss scale if replicas compute or sum in f16 (wire: that of s), else NULL: none.
const choir_loss_scale *precision_loss_scale(const choir_strategy *s, choir_dtype wire);

// Prints on standard error what AUTO took, or that a mixed precision is slower than f32 or has no
// instructions here, with the measured factor, or that there is no TF32. Nothing for f32.
choir_status precision_report(const char *who, const char *name, const choir_strategy *s);
// Prints the operations that run in 16 bits or TF32, and those in f32, by the table of rules.
void precision_print_rules(const choir_strategy *s);
