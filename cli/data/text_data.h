// Text as data of the command: a model learns to predict the next byte.
#pragma once

#include "data/source.h"

// Sets s->examples to the number of non-overlapping windows of s->context bytes. CHOIR_INVALID:
// fewer than two.
choir_status text_open(source *s);
// Non-overlapping windows, in the order of the files and of the text.
choir_dataset *text_examples(const source *s);
// The training windows: as many per pass as the first non-overlapping ones, but each starts at a
// random byte of that part, in each pass at another. So a model sees every byte at every position.
choir_dataset *text_training(const source *s, int64_t examples);
