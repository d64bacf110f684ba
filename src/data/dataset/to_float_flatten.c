// flatten changes only the shape. to_float converts from the source's memory, or a block in the
// cache.
#include "data/dataset.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "tensor/tensor.h"

typedef void convert_fn(float *restrict to, const void *restrict from, size_t n, double scale);

// In f32 where that is exact, else in f64.
#define NAME convert_u8
#define FROM uint8_t
#define WIDE float
#include "data/dataset/to_float.inc"
#define NAME convert_f32
#define FROM float
#define WIDE float
#include "data/dataset/to_float.inc"
#define NAME convert_i32
#define FROM int32_t
#define WIDE double
#include "data/dataset/to_float.inc"
#define NAME convert_i64
#define FROM int64_t
#define WIDE double
#include "data/dataset/to_float.inc"
#define NAME convert_f64
#define FROM double
#define WIDE double
#include "data/dataset/to_float.inc"

static convert_fn *const converters[] = {
	[CHOIR_F32] = convert_f32,
	[CHOIR_F64] = convert_f64,
	[CHOIR_I32] = convert_i32,
	[CHOIR_I64] = convert_i64,
	[CHOIR_U8] = convert_u8,
	[CHOIR_BOOL] = convert_u8,
	[CHOIR_F16] = NULL,
	[CHOIR_BF16] = NULL,
};

typedef struct {
	choir_dataset base;
	size_t column;
	double scale;
	convert_fn *convert;
	size_t values;
	int64_t capacity;
} to_float;

static void convert(const to_float *f, void *to, const void *from, int64_t examples)
{
	f->convert(to, from, (size_t) examples * f->values, f->scale);
}

static void exchange(const to_float *f, void *const column[], void *mine, void *out[])
{
	chi_columns_move(&f->base, column, 0, out);
	out[f->column] = mine;
}

static choir_status to_float_range(
		choir_dataset *d, void *const column[], int64_t first, int64_t count)
{
	const to_float *f = (to_float *) d;
	choir_dataset *from = d->from[0];
	void *mine = column[f->column], *out[CHI_MAX_COLUMNS];
	if (!mine)
		return from->stage->range(from, column, first, count);
	const void *there = chi_dataset_peek(from, f->column, first, count);
	if (there) {
		convert(f, mine, there, count);
		exchange(f, column, NULL, out);
		return d->spec.n > 1 ? from->stage->range(from, out, first, count) : CHOIR_OK;
	}
	for (int64_t done = 0; done < count; done += f->capacity) {
		int64_t n = count - done < f->capacity ? count - done : f->capacity;
		chi_columns_move(d, column, done, out);
		mine = out[f->column];
		out[f->column] = f->base.memory;
		CHOIR_TRY(from->stage->range(from, out, first + done, n));
		convert(f, mine, f->base.memory, n);
	}
	return CHOIR_OK;
}

static choir_status to_float_read(
		choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	const to_float *f = (to_float *) d;
	if (!column[f->column])
		return chi_dataset_read(d->from[0], column, want, got);
	void *out[CHI_MAX_COLUMNS];
	exchange(f, column, f->base.memory, out);
	CHOIR_TRY(chi_dataset_read(d->from[0], out, want < f->capacity ? want : f->capacity, got));
	convert(f, column[f->column], f->base.memory, *got);
	return CHOIR_OK;
}

static const void *to_float_peek(choir_dataset *d, size_t column, int64_t first, int64_t count)
{
	return column == ((to_float *) d)->column ? NULL
											  : chi_dataset_peek(d->from[0], column, first, count);
}

static uint64_t to_float_signature(const choir_dataset *d)
{
	uint64_t bits;
	memcpy(&bits, &((const to_float *) d)->scale, sizeof bits);
	return bits + ((const to_float *) d)->column;
}

static const chi_stage to_float_stage = {
	.name = "to_float",
	.range = to_float_range,
	.read = to_float_read,
	.rewind = chi_rewind_from,
	.peek = to_float_peek,
	.seek = chi_seek_from,
	.reorderable = true,
	.signature = to_float_signature,
};

choir_dataset *choir_dataset_to_float(choir_dataset *from, const char *column, double scale)
{
	if (!chi_dataset_given(from, "to_float"))
		return NULL;
	size_t i = chi_column_find(from, column);
	if (i == from->spec.n)
		return chi_refuse_column(from, "to_float", column);
	choir_column *c = &from->spec.column[i];
	if (!converters[c->dtype])
		return chi_refuse(from, CHOIR_UNSUPPORTED,
				"to_float: column \"%s\" is %s; f32, f64, i32, i64, u8 or bool needed", column,
				choir_dtype_name(c->dtype));
	if (!(fabs(scale) <= (double) FLT_MAX))
		return chi_refuse(
				from, CHOIR_INVALID, "to_float: scale %g given; a finite f32 needed", scale);
	if (chi_shape_varies(&c->shape))
		return chi_refuse(from, CHOIR_UNSUPPORTED,
				"to_float: the shape of column \"%s\" varies; a fixed shape needed", column);
	size_t bytes, values = from->bytes[i] / chi_dtype_size(c->dtype);
	if (!chi_size_multiply(values, sizeof(float), &bytes))
		return chi_refuse(
				from, CHOIR_INVALID, "to_float: column \"%s\" has too many values", column);
	to_float *f = chi_transform_new(&to_float_stage, sizeof *f, from);
	if (!f)
		return NULL;
	choir_dataset *d = &f->base;
	f->column = i;
	f->scale = scale;
	f->convert = converters[c->dtype];
	f->values = values;
	f->capacity = d->spec.batch ? d->spec.batch : chi_block_examples(d);
	f->base.memory = chi_alloc_array((size_t) f->capacity, d->bytes[i]);
	if (!f->base.memory)
		return chi_dataset_discard(d);
	d->bytes[i] = bytes;
	d->spec.column[i].dtype = CHOIR_F32;
	d->random = from->random;
	return d;
}

static choir_status flatten_range(
		choir_dataset *d, void *const column[], int64_t first, int64_t count)
{
	return d->from[0]->stage->range(d->from[0], column, first, count);
}

static choir_status flatten_read(
		choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	return chi_dataset_read(d->from[0], column, want, got);
}

static const chi_stage flatten_stage = {
	.name = "flatten",
	.range = flatten_range,
	.read = flatten_read,
	.rewind = chi_rewind_from,
	.peek = chi_peek_from,
	.reorderable = true,
	.seek = chi_seek_from,
};

choir_dataset *choir_dataset_flatten(choir_dataset *from, const char *column)
{
	if (!chi_dataset_given(from, "flatten"))
		return NULL;
	size_t i = chi_column_find(from, column);
	if (i == from->spec.n)
		return chi_refuse_column(from, "flatten", column);
	if (chi_shape_varies(&from->spec.column[i].shape))
		return chi_refuse(from, CHOIR_UNSUPPORTED,
				"flatten: the shape of column \"%s\" varies; a fixed shape needed", column);
	choir_dataset *d = chi_transform_new(&flatten_stage, sizeof *d, from);
	if (!d)
		return NULL;
	choir_shape *shape = &d->spec.column[i].shape;
	int64_t values = choir_shape_elements(shape);
	*shape = (choir_shape){ 1, { values } };
	d->random = from->random;
	return d;
}
