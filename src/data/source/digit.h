// Drawing one handwritten-looking digit.
#pragma once

#include "base/philox.h"

enum { CHI_DIGIT_SIDE = 28, CHI_DIGIT_PIXELS = CHI_DIGIT_SIDE * CHI_DIGIT_SIDE };

// Draws digit (0 to 9) as the key has it: 28 rows of 28 pixels, 0 (paper) to 255 (ink).
void chi_digit_draw(int digit, const chi_random_key *key, uint8_t pixels[CHI_DIGIT_PIXELS]);
