// An element goes to its destination if it fits and all columns are packed, else to `leftover`,
// which keeps the rest.
#include "input/input.h"

#include <string.h>

#include "tensor/tensor.h"

choir_status chi_example_stream_init(chi_example_stream *f, choir_dataset *d)
{
	f->data = d;
	f->spec = chi_dataset_spec(d);
	return f->spec ? CHOIR_OK : choir_error_status();
}

void chi_example_stream_free(chi_example_stream *f)
{
	chi_row_buffer_free(&f->leftover);
	choir_dataset_free(f->data);
}

choir_status chi_example_stream_begin(chi_example_stream *f, int64_t pass)
{
	f->leftover_examples = f->used = f->elements = 0;
	return chi_dataset_begin(f->data, pass);
}

static bool varies(const chi_example_stream *f, size_t i)
{
	return chi_shape_varies(&f->spec->column[i].shape);
}

static bool any_varies(const chi_example_stream *f)
{
	for (size_t i = 0; i < f->spec->n; i++)
		if (varies(f, i))
			return true;
	return false;
}

choir_status chi_example_stream_hold(chi_example_stream *f)
{
	if (f->used < f->leftover_examples)
		return CHOIR_OK;
	if (!f->leftover.memory && !chi_row_buffer_new(f->data, f->spec->batch, &f->leftover))
		return choir_error_status();
	chi_element e = { .capacity = f->spec->batch };
	memcpy(e.column, f->leftover.column, sizeof e.column);
	CHOIR_TRY(chi_dataset_next(f->data, &e));
	f->leftover_examples = e.examples;
	f->used = 0;
	f->elements++;
	return CHOIR_OK;
}

choir_tensor *chi_batch_buffer_find(const chi_batch_buffer *to, size_t i, int64_t first, int64_t n,
		int64_t *offset, int64_t *there)
{
	const chi_shape_run *p = to->piece[i];
	int64_t end = to->at;
	for (; p != NULL && p->first > first; p = p->older)
		end = p->first;
	*offset = first - (p == NULL ? 0 : p->first);
	*there = n < end - first ? n : end - first;
	return p == NULL ? to->column[i] : p->tensor;
}

static bool has_space(const choir_tensor *t, int64_t used, const chi_ragged_value *c)
{
	return t != NULL && used < t->shape.dim[0] &&
			memcmp(t->shape.dim + 1, c->shape.dim,
					(size_t) c->shape.rank * sizeof c->shape.dim[0]) == 0;
}

// The previous tensor and row, or a new tensor for rest examples.
static choir_status varying_tensor(const chi_example_stream *f, chi_batch_buffer *to, size_t i,
		const chi_ragged_value *c, int64_t at, int64_t rest, choir_tensor **tensor, int64_t *row)
{
	chi_shape_run *newest = to->piece[i];
	*tensor = newest != NULL ? newest->tensor : to->column[i];
	*row = at - (newest != NULL ? newest->first : 0);
	if (has_space(*tensor, *row, c))
		return CHOIR_OK;
	const bool first = *tensor == NULL;
	choir_shape shape = { .rank = c->shape.rank + 1, .dim = { first ? to->capacity : rest } };
	memcpy(shape.dim + 1, c->shape.dim, (size_t) c->shape.rank * sizeof shape.dim[0]);
	*tensor = chi_tensor_new(to->frame, f->spec->column[i].dtype, &shape);
	*row = 0;
	if (first)
		to->column[i] = *tensor;
	if (first || *tensor == NULL)
		return chi_made(*tensor);
	chi_shape_run *p = chi_arena_alloc(&to->frame->arena, sizeof *p);
	CHOIR_TRY(chi_made(p));
	*p = (chi_shape_run){ *tensor, at, newest };
	to->piece[i] = p;
	return CHOIR_OK;
}

static choir_status copy_ragged_values(const chi_example_stream *f, chi_batch_buffer *to, size_t i,
		const chi_ragged_value *cell, int64_t n, int64_t capacity)
{
	size_t bytes = 0;
	choir_tensor *t;
	int64_t row;
	for (int64_t k = 0; k < n; k++) {
		CHOIR_TRY(varying_tensor(f, to, i, &cell[k], to->at + k, capacity - k, &t, &row));
		if (chi_shape_bytes(&cell[k].shape, f->spec->column[i].dtype, &bytes) && bytes > 0)
			memcpy((char *) t->data + (size_t) row * bytes, cell[k].data, bytes);
	}
	return CHOIR_OK;
}

// whole: the element is one replica's; a new shape gets a tensor of its size.
static choir_status take_leftover(
		chi_example_stream *f, chi_batch_buffer *to, int64_t want, bool whole, int64_t *got)
{
	const int64_t left = f->leftover_examples - f->used, n = whole || left < want ? left : want;
	for (size_t i = 0; to && i < f->spec->n; i++) {
		const size_t bytes = f->data->bytes[i];
		const char *from = (char *) f->leftover.column[i] + (size_t) f->used * bytes;
		if (varies(f, i))
			CHOIR_TRY(copy_ragged_values(f, to, i, (const chi_ragged_value *) (const void *) from,
					n, whole ? n : to->capacity - to->at));
		else
			memcpy((char *) to->column[i]->data + (size_t) to->at * bytes, from,
					(size_t) n * bytes);
	}
	if (to)
		to->at += n;
	f->used += n;
	*got = n;
	return CHOIR_OK;
}

static choir_status read_direct(chi_example_stream *f, chi_batch_buffer *to, int64_t *got)
{
	chi_element e = { .capacity = f->spec->batch };
	for (size_t i = 0; i < f->spec->n; i++)
		e.column[i] = (char *) to->column[i]->data + (size_t) to->at * f->data->bytes[i];
	CHOIR_TRY(chi_dataset_next(f->data, &e));
	f->elements++;
	to->at += e.examples;
	*got = e.examples;
	return CHOIR_OK;
}

choir_status chi_example_stream_read(
		chi_example_stream *f, chi_batch_buffer *to, int64_t want, bool whole, int64_t *got)
{
	*got = 0;
	if (f->used == f->leftover_examples && to && (whole || f->spec->batch <= want) &&
			!any_varies(f))
		return read_direct(f, to, got);
	CHOIR_TRY(chi_example_stream_hold(f));
	return take_leftover(f, to, want, whole, got);
}

choir_status chi_example_stream_fill(
		chi_example_stream *f, chi_batch_buffer *to, int64_t want, int64_t *got)
{
	*got = 0;
	while (*got < want) {
		int64_t n;
		const choir_status status = chi_example_stream_read(f, to, want - *got, false, &n);
		if (status == CHOIR_END)
			break;
		CHOIR_TRY(status);
		*got += n;
	}
	return CHOIR_OK;
}

_Static_assert((int) CHOIR_INPUT_SEEK_POINTS == (int) CHI_MAX_SEEK_POINTS, "all marks fit");
_Static_assert(sizeof(chi_seek_point) == CHOIR_INPUT_SEEK_POINT_NUMBERS * sizeof(int64_t),
		"one seek point, one row");

void chi_example_stream_position(const chi_example_stream *f, choir_input_position *p)
{
	const bool part = f->used < f->leftover_examples;
	p->pass = chi_dataset_pass(f->data);
	p->elements = f->elements - part;
	p->examples = part ? f->used : 0;
	p->seek_points = (int64_t) chi_dataset_seek_index(f->data, (chi_seek_point *) p->seek_point);
}

choir_status chi_example_stream_seek(chi_example_stream *f, const choir_input_position *p)
{
	f->leftover_examples = f->used = 0;
	f->elements = p->elements;
	CHOIR_TRY(chi_dataset_take_seek_index(
			f->data, (size_t) p->seek_points, (const chi_seek_point *) p->seek_point));
	CHOIR_TRY(chi_dataset_seek(f->data, p->pass, p->elements));
	if (p->examples == 0)
		return CHOIR_OK;
	const choir_status status = chi_example_stream_hold(f);
	if (status == CHOIR_END || (status == CHOIR_OK && f->leftover_examples < p->examples))
		return choir_fail(CHOIR_INVALID,
				"distributed dataset: element %lld has %lld examples, the position is after %lld; "
				"it needs the dataset that it was saved with",
				(long long) p->elements, (long long) f->leftover_examples,
				(long long) p->examples);
	CHOIR_TRY(status);
	f->used = p->examples;
	return CHOIR_OK;
}
