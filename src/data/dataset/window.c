// Neighbouring examples become one, with a new first axis.
#include "data/dataset.h"

#include <string.h>

#include "base/options.h"
#include "base/hash.h"
#include "base/size.h"
#include "tensor/tensor.h"

typedef struct {
	choir_dataset base;
	int64_t length, shift, stride;
	bool drop;
	int64_t span;
	int64_t filled;
	int64_t skip;
} window;

static choir_status top_up(window *w)
{
	choir_dataset *from = w->base.from[0];
	void *to[CHI_MAX_COLUMNS];
	int64_t n;
	if (w->skip > 0) {
		CHOIR_TRY(chi_dataset_drop(from, w->skip, &n));
		w->skip = 0;
	}
	if (w->filled == w->span)
		return CHOIR_OK;
	chi_columns_move(from, w->base.rows.column, w->filled, to);
	choir_status status = chi_dataset_fill(from, to, w->span - w->filled, &n);
	if (status != CHOIR_OK && status != CHOIR_END)
		return status;
	w->filled += n;
	return CHOIR_OK;
}

static choir_status emit(const window *w, void *const column[])
{
	const choir_dataset *from = w->base.from[0];
	int64_t n = (w->filled - 1) / w->stride + 1;
	if (n > w->length)
		n = w->length;
	for (size_t i = 0; i < from->spec.n; i++) {
		const size_t bytes = from->bytes[i];
		char *to = column[i];
		if (to && !w->drop) {
			choir_shape shape = w->base.spec.column[i].shape;
			shape.dim[0] = n;
			CHOIR_TRY(chi_ragged_value_shape(column[i], w->base.spec.column[i].dtype, &shape));
			to = ((chi_ragged_value *) column[i])->data;
		}
		for (int64_t k = 0; to && k < n; k++)
			memcpy(to + (size_t) k * bytes,
					(char *) w->base.rows.column[i] + (size_t) (k * w->stride) * bytes, bytes);
	}
	return CHOIR_OK;
}

static void move_on(window *w)
{
	const choir_dataset *from = w->base.from[0];
	int64_t left = w->filled > w->shift ? w->filled - w->shift : 0;
	w->skip = w->filled < w->shift ? w->shift - w->filled : 0;
	for (size_t i = 0; i < from->spec.n; i++) {
		char *rows = w->base.rows.column[i];
		memmove(rows, rows + (size_t) w->shift * (left ? from->bytes[i] : 0),
				(size_t) left * from->bytes[i]);
	}
	w->filled = left;
}

static choir_status window_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	window *w = (window *) d;
	void *to[CHI_MAX_COLUMNS];
	choir_status status = CHOIR_OK;
	for (; *got < want && status == CHOIR_OK; *got += status == CHOIR_OK) {
		status = top_up(w);
		if (status == CHOIR_OK && (w->filled == 0 || (w->drop && w->filled < w->span)))
			status = CHOIR_END;
		chi_columns_move(d, column, *got, to);
		if (status == CHOIR_OK)
			status = emit(w, to);
		if (status == CHOIR_OK)
			move_on(w);
	}
	return chi_dataset_got(d, status, *got);
}

static choir_status window_rewind(choir_dataset *d)
{
	((window *) d)->filled = ((window *) d)->skip = 0;
	return chi_rewind_from(d);
}

// The last window may be short.
static choir_status window_seek(choir_dataset *d, int64_t elements)
{
	window *w = (window *) d;
	int64_t before;
	if (!chi_int64_multiply(elements - 1, w->shift, &before))
		return chi_dataset_too_short(d, 0, elements);
	CHOIR_TRY(chi_dataset_pass_over(d->from[0], before));
	return chi_dataset_read_over(d, elements - 1, elements);
}

static uint64_t window_signature(const choir_dataset *d)
{
	const window *w = (const window *) d;
	const uint64_t lengths[] = { (uint64_t) w->length, (uint64_t) w->shift, (uint64_t) w->stride };
	return chi_hash_bytes(lengths, sizeof lengths);
}

static const chi_stage window_stage = {
	.name = "window",
	.read = window_read,
	.rewind = window_rewind,
	.seek = window_seek,
	.signature = window_signature,
};

static int64_t count_windows(const window *w, int64_t examples)
{
	if (examples == CHOIR_UNKNOWN_CARDINALITY)
		return CHOIR_UNKNOWN_CARDINALITY;
	if (!w->drop)
		return examples / w->shift + (examples % w->shift != 0);
	return examples < w->span ? 0 : (examples - w->span) / w->shift + 1;
}

static choir_status add_axis(window *w)
{
	choir_dataset *d = &w->base;
	for (size_t i = 0; i < d->spec.n; i++) {
		choir_column *c = &d->spec.column[i];
		if (chi_shape_varies(&c->shape))
			return choir_fail(CHOIR_UNSUPPORTED,
					"window: the shape of column \"%s\" varies; a fixed shape needed", c->name);
		if (c->shape.rank < CHOIR_MAX_RANK) {
			memmove(c->shape.dim + 1, c->shape.dim,
					(size_t) c->shape.rank * sizeof c->shape.dim[0]);
			c->shape.rank++;
			c->shape.dim[0] = w->length;
			if (chi_shape_bytes(&c->shape, c->dtype, &d->bytes[i])) {
				if (!w->drop) {
					c->shape.dim[0] = CHOIR_UNKNOWN;
					d->bytes[i] = sizeof(chi_ragged_value);
				}
				continue;
			}
		}
		return choir_fail(CHOIR_INVALID,
				"window: %lld examples of column \"%s\" do not fit in a tensor",
				(long long) w->length, c->name);
	}
	return CHOIR_OK;
}

static choir_status check_options(
		const choir_dataset *from, choir_window_options *o, const choir_window_options *given)
{
	if (!chi_dataset_given(from, "window"))
		return choir_error_status();
	CHOIR_TRY(chi_options_take("window: the options'", o, sizeof *o, given));
	if (o->length < 1 || o->shift < 0 || o->stride < 0)
		return choir_fail(CHOIR_INVALID,
				"window: length %lld, shift %lld, stride %lld given; at least 1 each needed, or 0 "
				"for the default of shift and stride",
				(long long) o->length, (long long) o->shift, (long long) o->stride);
	if (from->spec.batch)
		return choir_fail(CHOIR_INVALID,
				"window: the dataset has batches of %lld; single examples needed",
				(long long) from->spec.batch);
	return CHOIR_OK;
}

choir_dataset *choir_dataset_window(choir_dataset *from, const choir_window_options *options)
{
	choir_window_options o;
	if (check_options(from, &o, options) != CHOIR_OK)
		return chi_dataset_discard(from);
	window *w = chi_transform_new(&window_stage, sizeof *w, from);
	if (!w)
		return NULL;
	choir_dataset *d = &w->base;
	w->length = o.length;
	w->shift = o.shift ? o.shift : o.length;
	w->stride = o.stride ? o.stride : 1;
	w->drop = o.drop_remainder;
	bool fits = chi_int64_multiply(w->length - 1, w->stride, &w->span) &&
			chi_int64_add(w->span, 1, &w->span);
	if (!fits)
		choir_fail(CHOIR_INVALID, "window: length times stride is too large");
	if (!fits || add_axis(w) != CHOIR_OK || !chi_row_buffer_new(from, w->span, &w->base.rows))
		return chi_dataset_discard(d);
	d->elements = d->spec.examples = count_windows(w, from->elements);
	return d;
}
