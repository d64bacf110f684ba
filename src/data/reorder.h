// Moves converting stages behind selecting or shuffling ones.
#pragma once

#include "data/data.h"

// take removes a converting stage from the end of *d, unless its output is smaller; else NULL. put
// appends it, or frees it if d is NULL.
choir_dataset *chi_reorder_take(choir_dataset **d);
choir_dataset *chi_reorder_put(choir_dataset *moved, choir_dataset *d);
