// Values of any dtype as numbers.
#pragma once

#include <choir/choir.h>

// Value i of packed ones.
double number_at(choir_dtype dtype, const void *data, int64_t i);
