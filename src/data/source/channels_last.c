// AVX2 converts images with three channels of bytes, 32 pixels at a time.
#include "data/source/channels_last.h"

#include <stdint.h>
#include <string.h>

#include "base/instruction_set.h"

void chi_channels_last_plainly(
		void *restrict to, const void *restrict from, size_t channels, size_t pixels, size_t width)
{
	const char *value = from;
	for (size_t c = 0; c < channels; c++) {
		char *place = (char *) to + c * width;
		for (size_t i = 0; i < pixels; i++, value += width, place += channels * width)
			if (width == 1)
				*place = *value;
			else
				memcpy(place, value, width);
	}
}

#if defined(__x86_64__)
#include <immintrin.h>

enum { BLOCK = 32 };

// 16 pixels give three vectors. Byte b of vector k belongs to channel (k + b) % 3, so one shuffle
// per channel serves all. order[c][b] is the pixel of channel c at byte b.
static const uint8_t order[3][16] = {
	{ 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15, 10, 5 },
	{ 5, 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15, 10 },
	{ 10, 5, 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15 },
};
// 255 where b % 3 is 1; where it is 2
static const uint8_t second[16] = { 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0 };
static const uint8_t third[16] = { 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0 };

#define WITH_AVX2 __attribute__((target("avx2"))) static inline

WITH_AVX2 __m256i twice(const uint8_t table[16])
{
	return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *) (const void *) table));
}

WITH_AVX2 __m256i plane(const uint8_t *p, const uint8_t table[16])
{
	const __m256i pixels = _mm256_loadu_si256((const __m256i *) (const void *) p);
	return _mm256_shuffle_epi8(pixels, twice(table));
}

WITH_AVX2 __m256i choose(__m256i a, __m256i b, __m256i c)
{
	return _mm256_blendv_epi8(_mm256_blendv_epi8(a, b, twice(second)), c, twice(third));
}

WITH_AVX2 void put(uint8_t *to, __m256i bytes)
{
	_mm256_storeu_si256((__m256i *) (void *) to, bytes);
}

// Returns the number of pixels. Upper halves hold the next 16.
__attribute__((target("avx2"))) static size_t three_planes(
		uint8_t *restrict to, const uint8_t *restrict from, size_t pixels)
{
	size_t i = 0;
	for (; i + BLOCK <= pixels; i += BLOCK, to += 3 * BLOCK) {
		const __m256i a = plane(from + i, order[0]);
		const __m256i b = plane(from + pixels + i, order[1]);
		const __m256i c = plane(from + 2 * pixels + i, order[2]);
		const __m256i x = choose(a, b, c), y = choose(b, c, a), z = choose(c, a, b);
		put(to, _mm256_permute2x128_si256(x, y, 0x20));
		put(to + 32, _mm256_blend_epi32(z, x, 0xf0));
		put(to + 64, _mm256_permute2x128_si256(y, z, 0x31));
	}
	return i;
}

#else

static size_t three_planes(uint8_t *restrict to, const uint8_t *restrict from, size_t pixels)
{
	(void) to;
	(void) from;
	(void) pixels;
	return 0;
}

#endif

void chi_channels_last(
		void *restrict to, const void *restrict from, size_t channels, size_t pixels, size_t width)
{
	uint8_t *out = to;
	const uint8_t *in = from;
	if (channels != 3 || width != 1 ||
			chi_instruction_set_of_processor() < CHI_INSTRUCTION_SET_AVX2) {
		chi_channels_last_plainly(to, from, channels, pixels, width);
		return;
	}
	for (size_t i = three_planes(out, in, pixels); i < pixels; i++)
		for (size_t c = 0; c < 3; c++)
			out[3 * i + c] = in[c * pixels + i];
}
