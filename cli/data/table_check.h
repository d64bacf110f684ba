// What a user should know of a table before a training of it.
#pragma once

#include "data/training_data.h"

enum { FEW_CLASSES = 20 };
// Whether a classification of this many classes is likely a mistake.
bool table_has_many_classes(int64_t classes, int64_t rows);
// CHOIR_INVALID: the target does not fit the task; of a classification after its examples are
// counted.
choir_status table_check_classes(const source *s);
choir_status table_check_targets(const source *s);
// Prints warnings on standard error.
void table_print_warnings(const source *s);
