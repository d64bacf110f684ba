// Moving a stage that converts each example by itself from in front of one that selects or
// shuffles to behind it.
#pragma once

#include "data/data.h"

// Takes such a stage off the end of the chain *d, where examples are not larger before it. NULL:
// there is none. It is put behind the stage that was made instead, which may be NULL: a failure,
// with which it is freed.
choir_dataset *chi_reorder_take(choir_dataset **d);
choir_dataset *chi_reorder_put(choir_dataset *moved, choir_dataset *d);
