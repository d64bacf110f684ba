// What tests of operations start from: random tensors of random shapes, and a gradient check that
// says what failed.
#pragma once

#include "op/nn/nn.h"
#include "op/tape/tape.h"

typedef struct {
	choir_frame *frame;
	chi_random_key key;
	uint64_t drawn;
} given;

void given_open(given *g, const char *device, uint64_t seed);
void given_close(given *g);
int64_t given_size(given *g, int64_t min, int64_t max); // uniform
choir_shape given_shape(given *g, int min_rank, int max_rank, int64_t max_size);
choir_tensor *given_normal(given *g, choir_shape shape); // f64
choir_tensor *given_positive(given *g, choir_shape shape); // f64, 0.5 and more
choir_tensor *given_labels(given *g, int64_t n, int64_t classes); // i32
// Fails the test with the message if the formula's gradient is wrong.
void given_check(
		given *g, size_t n, choir_tensor *const inputs[], choir_formula_fn *fn, void *user);
// Fails the test unless the last failure has this status and this text in it; clears the frame.
void given_failure(given *g, choir_status status, const char *text);
// Fails the test unless t's elements, as doubles, are these.
void given_equal(const choir_tensor *t, size_t n, const double expected[]);
