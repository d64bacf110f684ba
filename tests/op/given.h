// Shared by the tests of operations: random tensors of random shapes, and a gradient check.
#pragma once

#include "op/nn/nn.h"
#include "op/tape/tape.h"

typedef struct {
	choir_frame *frame;
	chi_random_key key;
	uint64_t drawn;
} given;

// Makes a frame on a device; random values come from the seed.
void given_open(given *g, const char *device, uint64_t seed);
void given_close(given *g);
int64_t given_size(given *g, int64_t min, int64_t max); // uniform
choir_shape given_shape(given *g, int min_rank, int max_rank, int64_t max_size);
choir_tensor *given_normal(given *g, choir_shape shape); // f64
choir_tensor *given_positive(given *g, choir_shape shape); // f64, at least 0.5
choir_tensor *given_labels(given *g, int64_t n, int64_t classes); // i32
// Fails the test if the formula's gradient is wrong.
void given_check(
		given *g, size_t n, choir_tensor *const inputs[], choir_formula_fn *fn, void *user);
// Asserts the status of the last failure and facts of its text (test.h), and clears the frame.
void given_failure(given *g, choir_status status, const char *text);
// Asserts that t has these elements.
void given_equal(const choir_tensor *t, size_t n, const double expected[]);
