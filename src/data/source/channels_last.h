// Conversion of images to channels last.
#pragma once

#include <stddef.h>

// [channels, pixels] to [pixels, channels]. width: bytes of a value.
void chi_channels_last(void *restrict to, const void *restrict from, size_t channels,
		size_t pixels, size_t width);
void chi_channels_last_plainly(void *restrict to, const void *restrict from, size_t channels,
		size_t pixels, size_t width);
