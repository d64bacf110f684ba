// Bilinear resizing with antialiasing: an output pixel is a weighted mean under a triangle, two
// output pixels wide when the image shrinks. Rows come before columns, with 22-bit weights and
// 8-bit pixels in between, as in Pillow.
#include "data/source/image/resize_loops.h"

#include <math.h>

#include "base/instruction_set.h"
#include "base/size.h"

typedef chi_resize_axis axis;

static const chi_resize_loops *loops(void)
{
#ifdef CHI_HAS_X86_KERNELS
	if (chi_instruction_set_of_processor() >= CHI_INSTRUCTION_SET_AVX2)
		return &chi_resize_avx2;
#endif
	return &chi_resize_baseline;
}

void chi_resize_scratch_free(chi_resize_scratch *s)
{
	chi_free(s->first.memory);
	chi_free(s->weight.memory);
	chi_free(s->rows.memory);
	*s = (chi_resize_scratch){ 0 };
}

static int64_t clamp(double x, int64_t max)
{
	return x < 0 ? 0 : x > (double) max ? max : (int64_t) x;
}

// Of one output, whose middle is at center of the input.
static int64_t set_weights(
		double center, double width, int64_t inputs, int64_t *first, int32_t *to)
{
	const int64_t begin = clamp(center - width + 0.5, inputs);
	const int64_t n = clamp(center + width + 0.5, inputs) - begin;
	double sum = 0;
	for (int64_t pass = 0; pass < 2; pass++)
		for (int64_t k = 0; k < n; k++) {
			const double away = fabs(((double) (k + begin) - center + 0.5) * (1 / width));
			const double w = away < 1 ? 1 - away : 0;
			if (pass == 0)
				sum += w;
			else
				to[k] = (int32_t) (0.5 + w / sum * (1 << CHI_RESIZE_BITS));
		}
	*first = begin;
	return n;
}

// count outputs from begin on are wanted.
static void set_axis(axis *a, int64_t inputs, int64_t outputs, int64_t begin)
{
	const double scale = (double) inputs / (double) outputs, width = scale < 1 ? 1 : scale;
	for (int64_t i = 0; i < a->outputs; i++)
		a->first[2 * i + 1] = set_weights(((double) (begin + i) + 0.5) * scale, width, inputs,
				&a->first[2 * i], a->weight + i * a->taps);
}

static int64_t taps_of(int64_t inputs, int64_t outputs)
{
	return inputs <= outputs ? 3 : 2 * ((inputs + outputs - 1) / outputs) + 1;
}

// Grey rows, and the last RGB row, after which nothing may be read.
static void resize_row(const axis *a, const uint8_t *from, uint8_t *to, int64_t channels)
{
	for (int64_t i = 0; i < a->outputs; i++)
		for (int64_t c = 0; c < channels; c++) {
			const uint8_t *p = from + a->first[2 * i] * channels + c;
			int64_t sum = 1 << (CHI_RESIZE_BITS - 1);
			for (int64_t k = 0; k < a->first[2 * i + 1]; k++)
				sum += (int64_t) a->weight[i * a->taps + k] * p[k * channels];
			const int64_t value = sum >> CHI_RESIZE_BITS;
			*to++ = (uint8_t) (value > 255 ? 255 : value);
		}
}

// One side fits, the other is cut down to a whole number.
static void size_of_cover(
		const chi_image *from, int64_t height, int64_t width, int64_t *tall, int64_t *wide)
{
	*tall = height;
	*wide = width;
	if (from->height * width <= from->width * height)
		*wide = from->width * height / from->height;
	else
		*tall = from->height * width / from->width;
}

// A half is rounded to even, as in torchvision's CenterCrop.
static int64_t margin(int64_t rest)
{
	return rest / 2 + (rest % 4 == 3);
}

static choir_status make_axes(const chi_image *from, axis *across, axis *down, int64_t wide,
		int64_t tall, chi_resize_scratch *s)
{
	size_t a, b;
	across->taps = taps_of(from->width, wide);
	down->taps = taps_of(from->height, tall);
	const size_t places = 2 * (size_t) (across->outputs + down->outputs);
	if (!chi_size_multiply((size_t) across->outputs, (size_t) across->taps, &a) ||
			!chi_size_multiply((size_t) down->outputs, (size_t) down->taps, &b) ||
			!chi_size_add(a, b, &b) || !chi_size_multiply(b, sizeof(int32_t), &b))
		return choir_fail(CHOIR_NO_MEMORY, "resize: too many weights");
	if (!chi_scratch_reserve(&s->first, places * sizeof(int64_t)) ||
			!chi_scratch_reserve(&s->weight, b))
		return CHOIR_NO_MEMORY;
	across->first = (void *) s->first.memory;
	down->first = across->first + 2 * across->outputs;
	across->weight = (void *) s->weight.memory;
	down->weight = across->weight + a;
	set_axis(across, from->width, wide, margin(wide - across->outputs));
	set_axis(down, from->height, tall, margin(tall - down->outputs));
	return CHOIR_OK;
}

choir_status chi_image_cover(const chi_image *from, int64_t height, int64_t width,
		chi_resize_scratch *scratch, uint8_t *to)
{
	int64_t tall, wide;
	size_t bytes;
	axis across = { .outputs = width }, down = { .outputs = height };
	size_of_cover(from, height, width, &tall, &wide);
	CHOIR_TRY(make_axes(from, &across, &down, wide, tall, scratch));
	const int64_t *last = down.first + 2 * (height - 1);
	const int64_t begin = down.first[0], end = last[0] + last[1];
	const int64_t row = width * from->channels, line = from->width * from->channels;
	if (!chi_size_multiply((size_t) (end - begin), (size_t) row, &bytes) ||
			!chi_scratch_reserve(&scratch->rows, bytes))
		return choir_fail(CHOIR_NO_MEMORY, "resize: no memory for %lld rows of %lld bytes",
				(long long) (end - begin), (long long) row);
	uint8_t *rows = (uint8_t *) scratch->rows.memory;
	for (int64_t y = begin; y < end; y++)
		if (from->channels == CHI_IMAGE_CHANNELS && y + 1 < from->height)
			loops()->rgb(&across, from->pixels + y * line, rows + (y - begin) * row);
		else
			resize_row(&across, from->pixels + y * line, rows + (y - begin) * row, from->channels);
	for (int64_t y = 0; y < height; y++)
		loops()->column(down.weight + y * down.taps, down.first[2 * y + 1],
				rows + (down.first[2 * y] - begin) * row, row, to + y * row);
	return CHOIR_OK;
}
