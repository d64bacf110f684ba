// Elements of any dtype as numbers, and shapes as text.
#pragma once

#include <choir/choir.h>

// Element i of a packed array.
double number_at(choir_dtype dtype, const void *data, int64_t i);

// Bytes of an element.
int number_bytes(choir_dtype dtype);

// Writes a shape like "[2, ?]" into text; ? is an unknown dimension.
enum { SHAPE_TEXT = 200 };
const char *shape_text(const choir_shape *shape, char text[SHAPE_TEXT]);
