// A digit is one or two strokes through jittered points, slanted, rotated, scaled and shifted,
// drawn with a random pen. Only + - * / and square roots are used, so all machines make equal
// images.
#include "data/source/synthetic_digits.h"

#include <math.h>
#include <stdbool.h>

#include "data/dataset.h"

enum { SIDE = CHI_GLYPH_SIDE, MAX_POINTS = 13, MAX_STROKES = 2, PIECES = 3 };

typedef struct {
	float x, y; // y goes down
} point;

typedef struct {
	bool bent;
	int n;
	int8_t at[MAX_POINTS][2]; // hundredths of the box
} stroke;

typedef struct {
	int n;
	stroke stroke[MAX_STROKES];
} glyph;

// clang-format off
static const glyph glyphs[10][2] = {
	{ { 1, { { true, 9, { { 55, 3 }, { 28, 15 }, { 18, 50 }, { 30, 87 }, { 52, 97 },
			{ 75, 83 }, { 82, 48 }, { 72, 14 }, { 55, 3 } } } } },
	  { 1, { { true, 9, { { 60, 8 }, { 38, 6 }, { 22, 35 }, { 24, 75 }, { 45, 96 },
			{ 70, 88 }, { 78, 55 }, { 74, 20 }, { 48, 10 } } } } } },
	{ { 1, { { false, 2, { { 50, 3 }, { 50, 97 } } } } },
	  { 1, { { false, 3, { { 32, 22 }, { 52, 4 }, { 52, 97 } } } } } },
	{ { 2, { { true, 7, { { 22, 25 }, { 35, 7 }, { 62, 5 }, { 76, 25 }, { 62, 52 },
			{ 38, 76 }, { 20, 95 } } },
		{ false, 2, { { 20, 95 }, { 80, 93 } } } } },
	  { 1, { { true, 11, { { 25, 20 }, { 45, 5 }, { 70, 15 }, { 66, 45 }, { 42, 78 },
			{ 25, 92 }, { 18, 82 }, { 32, 74 }, { 52, 88 }, { 70, 95 }, { 84, 88 } } } } } },
	{ { 2, { { true, 5, { { 24, 14 }, { 45, 3 }, { 70, 14 }, { 68, 36 }, { 45, 48 } } },
		{ true, 5, { { 45, 48 }, { 72, 58 }, { 76, 80 }, { 52, 97 }, { 22, 86 } } } } },
	  { 2, { { false, 3, { { 22, 7 }, { 74, 6 }, { 46, 42 } } },
		{ true, 5, { { 46, 42 }, { 72, 54 }, { 74, 80 }, { 50, 97 }, { 20, 88 } } } } } },
	{ { 2, { { false, 3, { { 28, 5 }, { 20, 55 }, { 80, 53 } } },
		{ false, 2, { { 68, 10 }, { 64, 97 } } } } },
	  { 2, { { false, 3, { { 62, 3 }, { 17, 62 }, { 84, 62 } } },
		{ false, 2, { { 63, 3 }, { 63, 97 } } } } } },
	{ { 2, { { false, 3, { { 74, 5 }, { 30, 7 }, { 27, 45 } } },
		{ true, 6, { { 27, 45 }, { 55, 40 }, { 76, 58 }, { 70, 86 }, { 45, 97 },
			{ 20, 87 } } } } },
	  { 2, { { false, 2, { { 33, 8 }, { 78, 4 } } },
		{ true, 8, { { 34, 8 }, { 29, 26 }, { 30, 44 }, { 58, 44 }, { 74, 62 }, { 66, 86 },
			{ 44, 96 }, { 22, 90 } } } } } },
	{ { 1, { { true, 9, { { 66, 4 }, { 40, 20 }, { 24, 55 }, { 30, 87 }, { 52, 97 },
			{ 74, 84 }, { 72, 62 }, { 50, 53 }, { 27, 68 } } } } },
	  { 1, { { true, 8, { { 40, 3 }, { 27, 35 }, { 25, 75 }, { 45, 97 }, { 70, 88 },
			{ 70, 66 }, { 48, 60 }, { 28, 78 } } } } } },
	{ { 1, { { false, 3, { { 20, 7 }, { 78, 6 }, { 42, 97 } } } } },
	  { 2, { { false, 3, { { 20, 8 }, { 78, 5 }, { 40, 97 } } },
		{ false, 2, { { 36, 52 }, { 74, 50 } } } } } },
	{ { 1, { { true, 13, { { 50, 49 }, { 28, 32 }, { 32, 10 }, { 52, 3 }, { 72, 12 },
			{ 70, 33 }, { 50, 49 }, { 26, 66 }, { 26, 87 }, { 50, 97 }, { 75, 86 }, { 74, 65 },
			{ 50, 49 } } } } },
	  { 2, { { true, 7, { { 50, 47 }, { 30, 30 }, { 36, 8 }, { 60, 5 }, { 70, 24 },
			{ 62, 40 }, { 50, 47 } } },
		{ true, 7, { { 50, 47 }, { 28, 65 }, { 30, 90 }, { 54, 97 }, { 74, 83 }, { 68, 60 },
			{ 50, 47 } } } } } },
	{ { 2, { { true, 7, { { 70, 30 }, { 55, 47 }, { 32, 42 }, { 28, 18 }, { 48, 4 },
			{ 70, 15 }, { 71, 32 } } },
		{ false, 2, { { 71, 30 }, { 66, 97 } } } } },
	  { 2, { { true, 7, { { 70, 28 }, { 54, 48 }, { 30, 42 }, { 27, 17 }, { 48, 4 },
			{ 69, 13 }, { 71, 30 } } },
		{ true, 4, { { 71, 30 }, { 70, 65 }, { 58, 90 }, { 34, 96 } } } } } },
};
// clang-format on

typedef struct {
	const chi_random_key *key;
	uint64_t next;
	chi_philox_block block;
	int used;
} dice;

static uint32_t word(dice *d)
{
	if (d->used == 4) {
		d->block = chi_random_block(d->key, d->next++);
		d->used = 0;
	}
	return d->block.word[d->used++];
}

static float between(dice *d, float low, float high)
{
	return low + (high - low) * chi_uniform_float(word(d));
}

typedef struct {
	float xx, xy, yx, yy, x, y;
	float wobble;
	float pen;
	float nearest[CHI_GLYPH_PIXELS];
} canvas;

static void choose(canvas *c, dice *d)
{
	float height = between(d, 16.0f, 21.0f), width = height * between(d, 0.7f, 1.05f);
	float slant = between(d, -0.3f, 0.3f);
	// A rotation without a sine: from the tangent of half its angle.
	float t = between(d, -0.1f, 0.1f);
	float cosine = (1.0f - t * t) / (1.0f + t * t), sine = 2.0f * t / (1.0f + t * t);
	c->xx = width * cosine;
	c->xy = -height * (sine + slant * cosine);
	c->yx = width * sine;
	c->yy = height * (cosine - slant * sine);
	c->x = 13.5f + between(d, -2.0f, 2.0f);
	c->y = 13.5f + between(d, -2.0f, 2.0f);
	c->wobble = between(d, 0.0f, 0.045f);
	c->pen = between(d, 0.6f, 1.6f);
	for (int i = 0; i < CHI_GLYPH_PIXELS; i++)
		c->nearest[i] = 1e6f;
}

static point place(const canvas *c, const int8_t at[2], dice *d)
{
	float x = (float) (at[0] - 50) / 100.0f + between(d, -c->wobble, c->wobble);
	float y = (float) (at[1] - 50) / 100.0f + between(d, -c->wobble, c->wobble);
	return (point){ c->x + c->xx * x + c->xy * y, c->y + c->yx * x + c->yy * y };
}

static int pixel(float at)
{
	return at < 0.0f ? 0 : at > (float) (SIDE - 1) ? SIDE - 1 : (int) at;
}

static void segment(canvas *c, point a, point b)
{
	float dx = b.x - a.x, dy = b.y - a.y, square = dx * dx + dy * dy, reach = c->pen + 0.5f;
	float inverse = square > 1e-6f ? 1.0f / square : 0.0f;
	int left = pixel((a.x < b.x ? a.x : b.x) - reach),
		right = pixel((a.x < b.x ? b.x : a.x) + reach + 1.0f);
	int top = pixel((a.y < b.y ? a.y : b.y) - reach),
		bottom = pixel((a.y < b.y ? b.y : a.y) + reach + 1.0f);
	for (int y = top; y <= bottom; y++) {
		float *row = c->nearest + y * SIDE, py = (float) y - a.y;
		for (int x = left; x <= right; x++) {
			float px = (float) x - a.x, t = (px * dx + py * dy) * inverse;
			t = t < 0.0f ? 0.0f : t > 1.0f ? 1.0f : t;
			float ex = px - t * dx, ey = py - t * dy, distance = ex * ex + ey * ey;
			row[x] = distance < row[x] ? distance : row[x];
		}
	}
}

// Catmull and Rom, 1974.
static float bend(float a, float b, float c, float d, float t)
{
	float cubic = 3.0f * (b - c) + d - a, quadratic = 2.0f * a - 5.0f * b + 4.0f * c - d;
	return b + 0.5f * t * (c - a + t * (quadratic + t * cubic));
}

static void follow(canvas *c, const stroke *s, dice *d)
{
	point at[MAX_POINTS];
	for (int i = 0; i < s->n; i++)
		at[i] = place(c, s->at[i], d);
	int pieces = s->bent ? PIECES : 1;
	for (int i = 0; i + 1 < s->n; i++) {
		const point *before = &at[i ? i - 1 : 0], *after = &at[i + 2 < s->n ? i + 2 : i + 1];
		point from = at[i];
		for (int k = 1; k <= pieces; k++) {
			float t = (float) k / (float) pieces;
			point to = at[i + 1];
			if (k < pieces) {
				to.x = bend(before->x, at[i].x, at[i + 1].x, after->x, t);
				to.y = bend(before->y, at[i].y, at[i + 1].y, after->y, t);
			}
			segment(c, from, to);
			from = to;
		}
	}
}

// A word gives noise for four pixels.
static void develop(const canvas *c, dice *d, uint8_t pixels[])
{
	float ink = between(d, 170.0f, 255.0f), noise = between(d, 0.0f, 40.0f) / 255.0f;
	uint32_t random = 0;
	for (int i = 0; i < CHI_GLYPH_PIXELS; i++) {
		if (i % 4 == 0)
			random = word(d);
		float cover = c->pen + 0.5f - sqrtf(c->nearest[i]);
		cover = cover < 0.0f ? 0.0f : cover > 1.0f ? 1.0f : cover;
		float value = ink * cover + noise * ((float) (random & 255u) - 128.0f);
		random >>= 8;
		pixels[i] = (uint8_t) (value < 0.0f ? 0.0f : value > 255.0f ? 255.0f : value);
	}
}

void chi_glyph_draw(int numeral, const chi_random_key *key, uint8_t pixels[CHI_GLYPH_PIXELS])
{
	dice d = { .key = key, .used = 4 };
	canvas c;
	const glyph *g = &glyphs[numeral][word(&d) & 1u];
	choose(&c, &d);
	for (int i = 0; i < g->n; i++)
		follow(&c, &g->stroke[i], &d);
	develop(&c, &d, pixels);
}

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
	if (examples < 0)
		return chi_fail_null(CHOIR_INVALID,
				"digits dataset: %lld examples given; 0 or more needed", (long long) examples);
	digits *s = chi_source_new(&digits_stage, sizeof *s, 2, columns, examples);
	if (!s)
		return NULL;
	s->seed = seed;
	s->base.random = true;
	return &s->base;
}
