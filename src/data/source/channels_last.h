// Images whose channels lie one behind the other, as planes, to images whose channels lie side by
// side in each pixel.
#pragma once

#include <stddef.h>

// [channels, pixels] at from to [pixels, channels] at to, of values of width bytes. The two must
// not overlap.
void chi_channels_last(void *restrict to, const void *restrict from, size_t channels,
		size_t pixels, size_t width);
// The same by the way that needs no instruction set, which the other is tested against.
void chi_channels_last_plainly(void *restrict to, const void *restrict from, size_t channels,
		size_t pixels, size_t width);
