// A source of words of different lengths, for tests of ragged columns.
#pragma once

#include "data/dataset.h"

int64_t word_length(int64_t number); // 0 to 4
choir_dataset *words_new(int64_t n); // "word" u8 [CHOIR_UNKNOWN], "number" i64
// Asserts that the value is the word of this number.
void assert_word(const chi_ragged_value *cell, int64_t number);
