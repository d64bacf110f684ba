// A dimension without a given size gets the batch's maximum.
#include "data/dataset/batch.h"

#include <string.h>

#include "base/options.h"
#include "base/hash.h"
#include "base/size.h"
#include "tensor/tensor.h"

typedef struct {
	choir_dataset base;
	double value[CHI_MAX_COLUMNS];
	int64_t done;
} pad;

static void fill(char *to, choir_dtype dtype, double value, size_t count)
{
	union {
		double aligned;
		unsigned char bytes[sizeof(double)];
	} one;
	const size_t size = chi_dtype_size(dtype);
	chi_dtype_store(dtype, one.bytes, 0, value);
	for (size_t i = 0; i < count; i++)
		memcpy(to + i * size, one.bytes, size);
}

static void copy_in(char *to, const choir_shape *large, const char *from, const choir_shape *small,
		size_t size)
{
	int rank = small->rank;
	int64_t row = rank ? small->dim[rank - 1] : 1, rows, at[CHOIR_MAX_RANK] = { 0 };
	rows = row ? choir_shape_elements(small) / row : 0;
	for (int64_t r = 0; r < rows; r++) {
		int64_t offset = 0;
		for (int i = 0; i < rank; i++)
			offset = offset * large->dim[i] + at[i];
		memcpy(to + (size_t) offset * size, from, (size_t) row * size);
		from += (size_t) row * size;
		for (int i = rank - 2; i >= 0 && ++at[i] == small->dim[i]; i--)
			at[i] = 0;
	}
}

static choir_status target(const pad *p, size_t i, int64_t examples, choir_shape *shape)
{
	const choir_column *c = &p->base.spec.column[i];
	const chi_ragged_value *value = p->base.rows.column[i];
	*shape = c->shape;
	for (int a = 0; a < shape->rank; a++) {
		bool known = shape->dim[a] != CHOIR_UNKNOWN;
		if (!known)
			shape->dim[a] = 0;
		for (int64_t k = 0; k < examples; k++) {
			int64_t dim = value[k].shape.dim[a];
			if (dim > shape->dim[a] && known)
				return choir_fail(CHOIR_INVALID,
						"padded_batch: batch %lld: example %lld of column \"%s\" has size %lld "
						"along axis %d; the padded shape has only %lld",
						(long long) p->done, (long long) k, c->name, (long long) dim, a,
						(long long) shape->dim[a]);
			if (dim > shape->dim[a])
				shape->dim[a] = dim;
		}
	}
	return CHOIR_OK;
}

static choir_status pad_column(const pad *p, size_t i, void *column, int64_t examples)
{
	const choir_column *c = &p->base.spec.column[i];
	const chi_ragged_value *value = p->base.rows.column[i];
	const size_t size = chi_dtype_size(c->dtype);
	choir_shape shape;
	CHOIR_TRY(target(p, i, examples, &shape));
	bool varies = chi_shape_varies(&c->shape);
	for (int64_t k = 0; column && k < examples; k++) {
		char *to = (char *) column + (size_t) k * p->base.bytes[i];
		if (varies) {
			CHOIR_TRY(chi_ragged_value_shape((chi_ragged_value *) column + k, c->dtype, &shape));
			to = ((chi_ragged_value *) column)[k].data;
		}
		fill(to, c->dtype, p->value[i], (size_t) choir_shape_elements(&shape));
		copy_in(to, &shape, value[k].data, &value[k].shape, size);
	}
	return CHOIR_OK;
}

static choir_status pad_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	(void) want;
	pad *p = (pad *) d;
	choir_dataset *from = d->from[0];
	CHOIR_TRY(chi_dataset_fill(from, p->base.rows.column, d->spec.batch, got));
	if (d->spec.full && *got < d->spec.batch)
		return CHOIR_END;
	for (size_t i = 0; i < d->spec.n; i++)
		if (chi_shape_varies(&from->spec.column[i].shape))
			CHOIR_TRY(pad_column(p, i, column[i], *got));
		else if (column[i])
			memcpy(column[i], p->base.rows.column[i], (size_t) *got * d->bytes[i]);
	p->done++;
	return CHOIR_OK;
}

static choir_status pad_rewind(choir_dataset *d)
{
	((pad *) d)->done = 0;
	return chi_rewind_from(d);
}

static choir_status pad_seek(choir_dataset *d, int64_t elements)
{
	CHOIR_TRY(chi_batch_seek(d, elements));
	((pad *) d)->done = elements;
	return CHOIR_OK;
}

static uint64_t pad_signature(const choir_dataset *d)
{
	return chi_hash_bytes(((const pad *) d)->value, d->spec.n * sizeof(double));
}

static const chi_stage pad_stage = {
	.name = "padded_batch",
	.read = pad_read,
	.rewind = pad_rewind,
	.seek = pad_seek,
	.signature = pad_signature,
};

static const char *value_fault(choir_dtype dtype, double value)
{
	switch (dtype) {
	case CHOIR_F32:
	case CHOIR_F64:
		return NULL;
	case CHOIR_I32:
		return value >= INT32_MIN && value <= INT32_MAX && value == (double) (int32_t) value
				? NULL
				: "not an i32";
	case CHOIR_I64:
		return value >= -0x1p53 && value <= 0x1p53 && value == (double) (int64_t) value
				? NULL
				: "not an i64 that a double holds exactly";
	case CHOIR_U8:
		return value >= 0 && value <= UINT8_MAX && value == (double) (uint8_t) value ? NULL
																					 : "not a u8";
	case CHOIR_BOOL:
		return value == 0 || value == 1 ? NULL : "neither 0 nor 1";
	case CHOIR_F16:
	case CHOIR_BF16:
		break;
	}
	return value == 0 ? NULL : "not 0, the only padding value of f16 and bf16";
}

static choir_status give_shape(pad *p, size_t i, const choir_shape *asked)
{
	choir_dataset *d = &p->base;
	choir_shape *shape = &d->spec.column[i].shape;
	bool fits = asked->rank == shape->rank;
	for (int a = 0; fits && a < shape->rank; a++)
		fits = asked->dim[a] == shape->dim[a] ||
				(shape->dim[a] == CHOIR_UNKNOWN && asked->dim[a] >= 1);
	if (!fits)
		return choir_fail(CHOIR_INVALID,
				"padded_batch: column \"%s\": the padded shape differs in rank or in a fixed "
				"dimension; only dimensions that vary can be set",
				d->spec.column[i].name);
	*shape = *asked;
	if (chi_shape_varies(shape))
		return CHOIR_OK;
	if (chi_shape_bytes(shape, d->spec.column[i].dtype, &d->bytes[i]))
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID, "padded_batch: column \"%s\": an example has too many bytes",
			d->spec.column[i].name);
}

static choir_status apply_options(pad *p, const choir_padded_batch_options *o)
{
	choir_dataset *d = &p->base;
	size_t bytes;
	for (size_t i = 0; i < d->spec.n; i++) {
		choir_column *c = &d->spec.column[i];
		bool varies = chi_shape_varies(&c->shape);
		p->value[i] = o->padding_values ? o->padding_values[i] : 0;
		const char *fault = value_fault(c->dtype, p->value[i]);
		if (fault && varies)
			return choir_fail(CHOIR_INVALID, "padded_batch: column \"%s\": %g is %s", c->name,
					p->value[i], fault);
		if (o->padded_shapes)
			CHOIR_TRY(give_shape(p, i, &o->padded_shapes[i]));
		if (!chi_size_multiply((size_t) d->spec.batch, d->bytes[i], &bytes) || bytes > PTRDIFF_MAX)
			return choir_fail(CHOIR_INVALID,
					"padded_batch: %lld examples of column \"%s\" do not fit in a tensor",
					(long long) d->spec.batch, c->name);
	}
	return CHOIR_OK;
}

choir_dataset *choir_dataset_padded_batch(
		choir_dataset *from, int64_t size, const choir_padded_batch_options *options)
{
	choir_padded_batch_options o;
	if (chi_batch_check(from, "padded_batch", size) != CHOIR_OK ||
			chi_options_take("padded_batch: the options'", &o, sizeof o, options) != CHOIR_OK)
		return chi_dataset_discard(from);
	pad *p = chi_transform_new(&pad_stage, sizeof *p, from);
	if (!p)
		return NULL;
	chi_batch_count(&p->base, size, o.drop_remainder);
	if (!chi_row_buffer_new(from, size, &p->base.rows) || apply_options(p, &o) != CHOIR_OK)
		return chi_dataset_discard(&p->base);
	return &p->base;
}
