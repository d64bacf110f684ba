// Elements of any dtype as numbers, and shapes as text.
#pragma once

#include <choir/choir.h>

double number_at(choir_dtype dtype, const void *data, int64_t i);

int number_bytes(choir_dtype dtype);

// "[2, ?]"; ? is an unknown dimension.
enum { SHAPE_TEXT = 200 };
const char *shape_text(const choir_shape *shape, char text[SHAPE_TEXT]);
bool all_finite(const float *values, int64_t n);
