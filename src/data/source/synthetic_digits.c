// Example i depends only on the seed and i. Each ten from 10 k on have each digit once.
#include "data/stage.h"

#include "data/source/glyph.h"

enum { CLASSES = 10, PLACE_IMAGE = 0x64726177, PLACE_LABEL = 0x6c61626c };

typedef struct {
	choir_dataset base;
	uint64_t seed;
} digits;

static int label_of(uint64_t seed, int64_t number)
{
	chi_random_key key = {
		.seed = seed, .step = (uint64_t) (number / CLASSES), .place = PLACE_LABEL
	};
	chi_philox_block block = { { 0 } };
	int hand[CLASSES];
	for (int i = 0; i < CLASSES; i++) {
		if (i % 4 == 0)
			block = chi_random_block(&key, (uint64_t) i / 4);
		int at = (int) ((uint64_t) block.word[i % 4] * (uint64_t) (i + 1) >> 32);
		hand[i] = hand[at];
		hand[at] = i;
	}
	return hand[number % CLASSES];
}

static choir_status digits_range(
		choir_dataset *d, void *const column[], int64_t first, int64_t count)
{
	const digits *s = (digits *) d;
	uint8_t *image = column[0], *label = column[1];
	for (int64_t i = 0; i < count; i++) {
		int numeral = label_of(s->seed, first + i);
		chi_random_key key = {
			.seed = s->seed, .step = (uint64_t) (first + i), .place = PLACE_IMAGE
		};
		if (image)
			chi_glyph_draw(numeral, &key, image + i * CHI_GLYPH_PIXELS);
		if (label)
			label[i] = (uint8_t) numeral;
	}
	return CHOIR_OK;
}

static uint64_t digits_signature(const choir_dataset *d)
{
	return ((const digits *) d)->seed;
}

static const chi_stage digits_stage = {
	.name = "digits dataset",
	.range = digits_range,
	.signature = digits_signature,
};

choir_dataset *choir_synthetic_digits_dataset_new(int64_t examples, uint64_t seed)
{
	static const choir_column columns[] = {
		{ .name = "image", .dtype = CHOIR_U8, .shape = { 2, { CHI_GLYPH_SIDE, CHI_GLYPH_SIDE } } },
		{ .name = "label", .dtype = CHOIR_U8 },
	};
	if (examples < 0) {
		choir_fail(CHOIR_INVALID, "digits dataset: %lld examples given; 0 or more needed",
				(long long) examples);
		return NULL;
	}
	digits *s = chi_source_new(&digits_stage, sizeof *s, 2, columns, examples);
	if (!s)
		return NULL;
	s->seed = seed;
	s->base.random = true;
	return &s->base;
}
