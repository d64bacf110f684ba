// Moves a stage that converts single examples behind one that selects or shuffles.
#pragma once

#include "data/data.h"

// take removes a converting stage from the end of the chain *d, unless its output is smaller than
// its input; NULL: there is none. put appends it to d. If d is NULL, put frees it and gives NULL.
choir_dataset *chi_reorder_take(choir_dataset **d);
choir_dataset *chi_reorder_put(choir_dataset *moved, choir_dataset *d);
