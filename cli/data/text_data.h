// Text, of which a model learns the next byte.
#pragma once

#include "data/training_data.h"

// CHOIR_INVALID: fewer than two windows of s->context bytes.
choir_status text_open(source *s);
// Non-overlapping windows in order.
choir_dataset *text_examples(const source *s);
// As many windows per pass as the first non-overlapping ones, each from a random byte of that
// part. So a model sees every byte at every position.
choir_dataset *text_training(const source *s, int64_t examples);
