// Each example has its own Philox block, whose counter is its position in the pass.
#include "data/dataset.h"

#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/philox.h"
#include "base/size.h"
#include "tensor/tensor.h"

enum { PLACE = 0x6175676d };

typedef struct {
	choir_dataset base;
	size_t column;
	int64_t height, width, padding;
	int64_t rows, columns;
	size_t pixel;
	bool flip;
	uint64_t seed;
	int64_t done;
	int64_t capacity;
} augment;

static const char what[] = "augment_images";

static int64_t draw(uint32_t word, int64_t n)
{
	return (int64_t) ((uint64_t) word * (uint64_t) n >> 32);
}

static void copy_row(const augment *a, char *to, const char *from, bool flip)
{
	if (!flip) {
		memcpy(to, from, (size_t) a->columns * a->pixel);
		return;
	}
	for (int64_t x = a->columns; x-- > 0; from += a->pixel)
		memcpy(to + (size_t) x * a->pixel, from, a->pixel);
}

static void crop_row(const augment *a, char *to, const char *row, int64_t left, bool flip)
{
	for (int64_t x = 0; x < a->columns; x++) {
		const int64_t at = left + x, place = flip ? a->columns - 1 - x : x;
		char *pixel = to + (size_t) place * a->pixel;
		if (at < 0 || at >= a->width)
			memset(pixel, 0, a->pixel);
		else
			memcpy(pixel, row + (size_t) at * a->pixel, a->pixel);
	}
}

static void augment_one(const augment *a, int64_t position, char *to, const char *from)
{
	const chi_random_key key = {
		.seed = a->seed, .step = (uint64_t) a->base.pass, .place = PLACE
	};
	const chi_philox_block random = chi_random_block(&key, (uint64_t) position);
	const int64_t tall = a->height + 2 * a->padding, wide = a->width + 2 * a->padding;
	const int64_t top = draw(random.word[0], tall - a->rows + 1) - a->padding;
	const int64_t left = draw(random.word[1], wide - a->columns + 1) - a->padding;
	const bool flip = a->flip && (random.word[2] & 1),
			   inside = left >= 0 && left + a->columns <= a->width;
	const size_t line = (size_t) a->columns * a->pixel;
	for (int64_t y = top; y < top + a->rows; y++, to += line) {
		const char *row = from + (size_t) (y < 0 ? 0 : y) * (size_t) a->width * a->pixel;
		if (y < 0 || y >= a->height)
			memset(to, 0, line);
		else if (inside)
			copy_row(a, to, row + (size_t) left * a->pixel, flip);
		else
			crop_row(a, to, row, left, flip);
	}
}

static choir_status augment_read(
		choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	augment *a = (augment *) d;
	const choir_dataset *from = d->from[0];
	void *out[CHI_MAX_COLUMNS];
	char *to = column[a->column];
	chi_columns_move(d, column, 0, out);
	if (to) {
		out[a->column] = a->base.memory;
		want = want < a->capacity ? want : a->capacity;
	}
	CHOIR_TRY(chi_dataset_read(d->from[0], out, want, got));
	for (int64_t i = 0; to && i < *got; i++, to += d->bytes[a->column])
		augment_one(a, a->done + i, to,
				(const char *) a->base.memory + (size_t) i * from->bytes[a->column]);
	a->done += *got;
	return CHOIR_OK;
}

static choir_status augment_rewind(choir_dataset *d)
{
	((augment *) d)->done = 0;
	return chi_rewind_from(d);
}

static choir_status augment_seek(choir_dataset *d, int64_t elements)
{
	((augment *) d)->done = elements;
	return chi_seek_from(d, elements);
}

static uint64_t augment_signature(const choir_dataset *d)
{
	const augment *a = (const augment *) d;
	return a->seed + (uint64_t) a->padding * 2 + a->flip + a->column;
}

static const chi_stage augment_stage = {
	.name = what,
	.read = augment_read,
	.rewind = augment_rewind,
	.seek = augment_seek,
	.signature = augment_signature,
};

static choir_status check(const choir_dataset *d, const char *column, choir_augment_options *o,
		const choir_augment_options *given)
{
	int64_t twice, tall, wide;
	if (chi_options_take("the options'", o, sizeof *o, given) != CHOIR_OK)
		return chi_error_prefix("%s", what);
	const size_t i = chi_column_find(d, column);
	if (i == d->spec.n)
		return chi_no_column(d, what, column);
	const choir_shape *s = &d->spec.column[i].shape;
	if (d->spec.batch || chi_shape_varies(s) || (s->rank != 2 && s->rank != 3))
		return choir_fail(CHOIR_INVALID,
				"%s: column \"%s\" has %s; needs single images [height, width] or [height, width, "
				"channels]",
				what, column, d->spec.batch ? "batches" : "another shape");
	o->height = o->height ? o->height : s->dim[0];
	o->width = o->width ? o->width : s->dim[1];
	if (o->padding < 0 || o->height < 1 || o->width < 1 ||
			!chi_int64_multiply(2, o->padding, &twice) ||
			!chi_int64_add(twice, s->dim[0], &tall) || !chi_int64_add(twice, s->dim[1], &wide) ||
			o->height > tall || o->width > wide || tall > INT32_MAX || wide > INT32_MAX)
		return choir_fail(CHOIR_INVALID,
				"%s: a crop of %lld x %lld pixels and a padding of %lld, from images of %lld x "
				"%lld; needs a crop that fits into the padded image",
				what, (long long) o->height, (long long) o->width, (long long) o->padding,
				(long long) s->dim[0], (long long) s->dim[1]);
	return CHOIR_OK;
}

static choir_status set(augment *a, const choir_augment_options *o, size_t column)
{
	choir_dataset *d = &a->base;
	choir_shape *shape = &d->spec.column[column].shape;
	const choir_dtype dtype = d->spec.column[column].dtype;
	a->column = column;
	a->height = shape->dim[0];
	a->width = shape->dim[1];
	a->rows = shape->dim[0] = o->height;
	a->columns = shape->dim[1] = o->width;
	a->padding = o->padding;
	a->flip = o->flip;
	a->seed = o->seed;
	a->pixel = chi_dtype_size(dtype) * (size_t) (shape->rank == 3 ? shape->dim[2] : 1);
	a->capacity = chi_block_examples(d->from[0]);
	a->base.memory = chi_alloc_array((size_t) a->capacity, d->bytes[column]);
	CHOIR_TRY(chi_made(a->base.memory));
	return chi_shape_bytes(shape, dtype, &d->bytes[column])
			? CHOIR_OK
			: choir_fail(CHOIR_INVALID, "%s: the crop is too large", what);
}

choir_dataset *choir_dataset_augment_images(
		choir_dataset *from, const char *column, const choir_augment_options *options)
{
	choir_augment_options o;
	if (!chi_dataset_given(from, what))
		return NULL;
	if (check(from, column, &o, options) != CHOIR_OK)
		return chi_dataset_discard(from);
	augment *a = chi_transform_new(&augment_stage, sizeof *a, from);
	if (!a)
		return NULL;
	if (set(a, &o, chi_column_find(from, column)) == CHOIR_OK)
		return &a->base;
	return chi_dataset_discard(&a->base);
}
