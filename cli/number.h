// Values of any dtype as numbers, and shapes as text.
#pragma once

#include <choir/choir.h>

// Value i of packed ones.
double number_at(choir_dtype dtype, const void *data, int64_t i);

// Bytes of a value.
int number_bytes(choir_dtype dtype);

// "[2, ?]" into text: a shape, of which dimensions may be unknown.
enum { SHAPE_TEXT = 200 };
const char *shape_text(const choir_shape *shape, char text[SHAPE_TEXT]);
