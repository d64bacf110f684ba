// A dataset as a stream of examples. An element goes straight to where it is wanted if it is sure
// to fit there and all its columns are packed; else through spare, which keeps what is left.
#include "input/input.h"

#include <string.h>

#include "base/alloc.h"
#include "tensor/tensor.h"

choir_status chi_feed_init(chi_feed *f, choir_dataset *d)
{
	f->data = d;
	f->spec = chi_dataset_spec(d);
	return f->spec ? CHOIR_OK : choir_error_status();
}

void chi_feed_free(chi_feed *f)
{
	chi_rows_free(&f->spare);
	choir_dataset_free(f->data);
}

choir_status chi_feed_begin(chi_feed *f, int64_t pass)
{
	f->held = f->used = f->elements = 0;
	return chi_dataset_begin(f->data, pass);
}

static bool varies(const chi_feed *f, size_t i)
{
	return chi_shape_varies(&f->spec->column[i].shape);
}

static bool any_varies(const chi_feed *f)
{
	for (size_t i = 0; i < f->spec->n; i++)
		if (varies(f, i))
			return true;
	return false;
}

choir_status chi_feed_hold(chi_feed *f)
{
	if (f->used < f->held)
		return CHOIR_OK;
	if (!f->spare.memory && !chi_rows_new(f->data, f->spec->batch, &f->spare))
		return choir_error_status();
	chi_element e = { .capacity = f->spec->batch };
	memcpy(e.column, f->spare.column, sizeof e.column);
	CHOIR_TRY(chi_dataset_next(f->data, &e));
	f->held = e.examples;
	f->used = 0;
	f->elements++;
	return CHOIR_OK;
}

// The tensor of a column that varies, made by its first example.
static choir_status varying_tensor(const chi_feed *f, chi_target *to, size_t i, const chi_cell *c)
{
	choir_tensor **t = &to->column[i];
	if (!*t) {
		choir_shape shape = { .rank = c->shape.rank + 1, .dim = { to->room } };
		memcpy(shape.dim + 1, c->shape.dim, (size_t) c->shape.rank * sizeof shape.dim[0]);
		*t = chi_tensor_new(to->frame, f->spec->column[i].dtype, &shape);
		return *t ? CHOIR_OK : choir_error_status();
	}
	if (memcmp((*t)->shape.dim + 1, c->shape.dim,
				(size_t) c->shape.rank * sizeof c->shape.dim[0]) == 0)
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID,
			"distributed dataset: column \"%s\": batches of different shapes in one global batch; "
			"pad them to a given shape, or make the dataset's batch the global batch",
			f->spec->column[i].name);
}

static choir_status copy_cells(
		const chi_feed *f, chi_target *to, size_t i, const chi_cell *cell, int64_t n)
{
	size_t bytes = 0;
	for (int64_t k = 0; k < n; k++) {
		CHOIR_TRY(varying_tensor(f, to, i, &cell[k]));
		if (chi_shape_bytes(&cell[k].shape, f->spec->column[i].dtype, &bytes) && bytes > 0)
			memcpy((char *) to->column[i]->data + (size_t) (to->at + k) * bytes, cell[k].data,
					bytes);
	}
	return CHOIR_OK;
}

// Takes up to want examples out of spare.
static choir_status take_held(chi_feed *f, chi_target *to, int64_t want, int64_t *got)
{
	const int64_t left = f->held - f->used, n = left < want ? left : want;
	for (size_t i = 0; to && i < f->spec->n; i++) {
		const size_t bytes = f->data->bytes[i];
		const char *from = (char *) f->spare.column[i] + (size_t) f->used * bytes;
		if (varies(f, i))
			CHOIR_TRY(copy_cells(f, to, i, (const chi_cell *) (const void *) from, n));
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

// Reads one element straight to the target.
static choir_status read_direct(chi_feed *f, chi_target *to, int64_t *got)
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

choir_status chi_feed_read(chi_feed *f, chi_target *to, int64_t want, bool whole, int64_t *got)
{
	*got = 0;
	if (f->used == f->held && to && (whole || f->spec->batch <= want) && !any_varies(f))
		return read_direct(f, to, got);
	CHOIR_TRY(chi_feed_hold(f));
	return take_held(f, to, whole ? INT64_MAX : want, got);
}

choir_status chi_feed_fill(chi_feed *f, chi_target *to, int64_t want, int64_t *got)
{
	*got = 0;
	while (*got < want) {
		int64_t n;
		const choir_status status = chi_feed_read(f, to, want - *got, false, &n);
		if (status == CHOIR_END)
			break;
		CHOIR_TRY(status);
		*got += n;
	}
	return CHOIR_OK;
}

_Static_assert((int) CHOIR_INPUT_MARKS == (int) CHI_MOST_MARKS, "all marks fit");
_Static_assert(
		sizeof(chi_mark) == CHOIR_INPUT_MARK_NUMBERS * sizeof(int64_t), "one mark, one row");

void chi_feed_where(const chi_feed *f, choir_input_position *p)
{
	const bool part = f->used < f->held;
	p->pass = chi_dataset_pass(f->data);
	p->elements = f->elements - part;
	p->examples = part ? f->used : 0;
	p->marks = (int64_t) chi_dataset_marks(f->data, (chi_mark *) p->mark);
}

choir_status chi_feed_go(chi_feed *f, const choir_input_position *p)
{
	f->held = f->used = 0;
	f->elements = p->elements;
	CHOIR_TRY(chi_dataset_take_marks(f->data, (size_t) p->marks, (const chi_mark *) p->mark));
	CHOIR_TRY(chi_dataset_seek(f->data, p->pass, p->elements));
	if (p->examples == 0)
		return CHOIR_OK;
	const choir_status status = chi_feed_hold(f);
	if (status == CHOIR_END || (status == CHOIR_OK && f->held < p->examples))
		return choir_fail(CHOIR_INVALID,
				"distributed dataset: element %lld has %lld examples, but %lld were used of it: "
				"not the dataset that the position is of",
				(long long) p->elements, (long long) f->held, (long long) p->examples);
	CHOIR_TRY(status);
	f->used = p->examples;
	return CHOIR_OK;
}
