// Channels to the end: every count of pixels around the steps of the fast way, other counts of
// channels and widths of values, against positions worked out one by one.
#include "data/source/channels_last.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

typedef void move_fn(void *restrict to, const void *restrict from, size_t channels, size_t pixels,
		size_t width);

// Byte k of the value of channel c in pixel i.
static uint8_t byte_at(size_t c, size_t i, size_t k)
{
	return (uint8_t) (101 * c + 7 * i + 31 * k + i / 256);
}

// In memory of exactly its size, which a sanitizer guards.
static void check(move_fn *move, size_t channels, size_t pixels, size_t width)
{
	const size_t bytes = channels * pixels * width;
	uint8_t *from = malloc(bytes + 1), *to = malloc(bytes + 1);
	assert_true(from && to);
	for (size_t c = 0; c < channels; c++)
		for (size_t i = 0; i < pixels; i++)
			for (size_t k = 0; k < width; k++)
				from[(c * pixels + i) * width + k] = byte_at(c, i, k);
	to[bytes] = 77;
	move(to, from, channels, pixels, width);
	for (size_t i = 0; i < pixels; i++)
		for (size_t c = 0; c < channels; c++)
			for (size_t k = 0; k < width; k++)
				if (to[(i * channels + c) * width + k] != byte_at(c, i, k))
					fail_msg("%zu channels, %zu pixels, width %zu: pixel %zu, channel %zu",
							channels, pixels, width, i, c);
	assert_int_equal(to[bytes], 77);
	free(from);
	free(to);
}

TEST(every_value_comes_to_its_pixel)
{
	for (int way = 0; way < 2; way++) {
		move_fn *move = way ? chi_channels_last_plainly : chi_channels_last;
		for (size_t pixels = 0; pixels < 200; pixels++)
			check(move, 3, pixels, 1);
		check(move, 3, 32 * 32, 1);
		for (size_t channels = 1; channels < 6; channels++)
			for (size_t width = 1; width <= 8; width *= 2)
				check(move, channels, 37, width);
	}
}
