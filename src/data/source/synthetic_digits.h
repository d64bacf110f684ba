// Synthetic handwritten digits.
#pragma once

#include "base/philox.h"

enum { CHI_GLYPH_SIDE = 28, CHI_GLYPH_PIXELS = CHI_GLYPH_SIDE * CHI_GLYPH_SIDE };

// 28 rows of 28 pixels, 0 (paper) to 255 (ink).
void chi_glyph_draw(int numeral, const chi_random_key *key, uint8_t pixels[CHI_GLYPH_PIXELS]);
