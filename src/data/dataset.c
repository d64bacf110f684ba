// Chains of sources and transforms. After an end or a failure, a stage is not read before the
// rewind.
#include "data/dataset.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "base/text.h"
#include "tensor/tensor.h"

choir_status chi_paths_shard(choir_dataset *d, int64_t count, int64_t index)
{
	chi_glob_shard(d->paths, (size_t) count, (size_t) index);
	d->files = (int64_t) d->paths->n;
	return CHOIR_OK;
}

const char *chi_paths_at(const choir_dataset *d, int64_t i)
{
	return d->paths->path[i];
}

// Computes bytes. NULL: none.
static const char *column_fault(const choir_column *c, bool varies, size_t *bytes)
{
	if ((unsigned) c->dtype > CHOIR_BF16)
		return "the dtype is unknown";
	if (c->shape.rank < 0 || c->shape.rank > CHOIR_MAX_RANK)
		return "the rank must be from 0 to 8";
	for (int i = 0; i < c->shape.rank; i++)
		if (c->shape.dim[i] < 1 && !(varies && c->shape.dim[i] == CHOIR_UNKNOWN))
			return "every dimension of an example must be at least 1";
	*bytes = sizeof(chi_ragged_value);
	if (!chi_shape_varies(&c->shape) && !chi_shape_bytes(&c->shape, c->dtype, bytes))
		return "an example has too many bytes";
	return NULL;
}

choir_status chi_columns_check(
		const char *what, bool varies, size_t n, const choir_column columns[], size_t bytes[])
{
	if (n < 1 || n > CHI_MAX_COLUMNS || !columns)
		return choir_fail(CHOIR_INVALID, "%s: %zu columns given; 1 to %d needed", what,
				columns ? n : 0, (int) CHI_MAX_COLUMNS);
	for (size_t i = 0; i < n; i++) {
		const char *name = columns[i].name;
		if (!name || !name[0])
			return choir_fail(CHOIR_INVALID, "%s: column %zu has no name", what, i);
		const char *fault = column_fault(&columns[i], varies, &bytes[i]);
		for (size_t j = 0; j < i && !fault; j++)
			if (strcmp(columns[j].name, name) == 0)
				fault = "two columns have this name";
		if (fault)
			return choir_fail(CHOIR_INVALID, "%s: column \"%s\": %s", what, name, fault);
	}
	return CHOIR_OK;
}

static bool copy_names(choir_dataset *d)
{
	size_t total = 0;
	for (size_t i = 0; i < d->spec.n; i++)
		if (!chi_size_add(total, strlen(d->spec.column[i].name) + 1, &total))
			return false;
	d->names = chi_alloc(total);
	if (!d->names)
		return false;
	char *to = d->names;
	for (size_t i = 0; i < d->spec.n; i++) {
		size_t size = strlen(d->spec.column[i].name) + 1;
		memcpy(to, d->spec.column[i].name, size);
		d->spec.column[i].name = to;
		to += size;
	}
	return true;
}

bool chi_dataset_set_columns(choir_dataset *d, size_t n, const choir_column columns[])
{
	size_t bytes[CHI_MAX_COLUMNS];
	if (chi_columns_check(d->stage->name, true, n, columns, bytes) != CHOIR_OK)
		return false;
	d->spec.n = n;
	memset(d->spec.categories, 0, sizeof d->spec.categories);
	for (size_t i = 0; i < n; i++) {
		d->spec.column[i] = columns[i];
		d->spec.column[i].data = NULL;
		d->bytes[i] = bytes[i];
	}
	return copy_names(d);
}

void *chi_source_new(const chi_stage *stage, size_t size, size_t n, const choir_column columns[],
		int64_t examples)
{
	size_t bytes[CHI_MAX_COLUMNS];
	if (chi_columns_check(stage->name, stage->varies, n, columns, bytes) != CHOIR_OK)
		return NULL;
	choir_dataset *d = chi_alloc(size);
	if (!d)
		return NULL;
	d->stage = stage;
	d->spec.n = n;
	d->spec.examples = d->elements = examples;
	d->spec.global = CHOIR_UNKNOWN_CARDINALITY;
	for (size_t i = 0; i < n; i++) {
		d->spec.column[i] = columns[i];
		d->spec.column[i].data = NULL;
		d->bytes[i] = bytes[i];
	}
	if (!copy_names(d)) {
		chi_free(d);
		return NULL;
	}
	return d;
}

static choir_status check_depth(const chi_stage *stage, const choir_dataset *from)
{
	return from->depth < CHI_MAX_STAGES
			? CHOIR_OK
			: choir_fail(CHOIR_INVALID,
					  "%s: the chain has more than %d stages; read a list of files with one "
					  "source, or join datasets pairwise",
					  stage->name, CHI_MAX_STAGES);
}

void *chi_transform_new(const chi_stage *stage, size_t size, choir_dataset *from)
{
	choir_dataset *d = check_depth(stage, from) == CHOIR_OK ? chi_alloc(size) : NULL;
	if (!d)
		return chi_dataset_discard(from);
	d->stage = stage;
	d->from[0] = from;
	d->depth = from->depth + 1;
	d->spec = from->spec;
	memcpy(d->bytes, from->bytes, sizeof d->bytes);
	d->elements = from->elements;
	d->ragged = from->ragged;
	return d;
}

choir_dataset *chi_dataset_add_source(choir_dataset *d, choir_dataset *from)
{
	d->from[1] = from;
	if (from->depth >= d->depth)
		d->depth = from->depth + 1;
	if (check_depth(d->stage, from) == CHOIR_OK)
		return d;
	return chi_dataset_discard(d);
}

void choir_dataset_free(choir_dataset *d)
{
	if (!d)
		return;
	if (d->stage->free)
		d->stage->free(d);
	chi_row_buffer_free(&d->rows);
	chi_free(d->memory);
	choir_dataset_free(d->from[0]);
	choir_dataset_free(d->from[1]);
	chi_free(d->names);
	chi_free(d);
}

bool chi_dataset_given(const choir_dataset *d, const char *what)
{
	if (!d && choir_error_status() == CHOIR_OK)
		choir_fail(CHOIR_INVALID, "%s: the dataset is NULL", what);
	return d != NULL;
}

void *chi_dataset_discard(choir_dataset *d)
{
	choir_dataset_free(d);
	return NULL;
}

void *chi_refuse(choir_dataset *d, choir_status status, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	chi_fail_v(status, fmt, args);
	va_end(args);
	return chi_dataset_discard(d);
}

size_t chi_column_find(const choir_dataset *d, const char *name)
{
	size_t i = 0;
	while (i < d->spec.n && (!name || strcmp(d->spec.column[i].name, name) != 0))
		i++;
	return i;
}

choir_status chi_no_column(const choir_dataset *d, const char *what, const char *name)
{
	chi_text known = { NULL, 0, 0, false };
	for (size_t i = 0; i < d->spec.n; i++)
		chi_text_add(&known, "%s\"%s\"", i ? ", " : "", d->spec.column[i].name);
	choir_status status = known.failed
			? choir_fail(CHOIR_NO_MEMORY, "%s: out of memory", what)
			: choir_fail(CHOIR_NOT_FOUND, "%s: no column \"%s\"; the columns are %s", what,
					  name ? name : "(NULL)", known.data);
	chi_text_free(&known);
	return status;
}

choir_dataset *chi_refuse_column(choir_dataset *d, const char *what, const char *name)
{
	chi_no_column(d, what, name);
	return chi_dataset_discard(d);
}

const chi_spec *chi_dataset_spec(choir_dataset *d)
{
	return chi_dataset_given(d, "dataset") ? &d->spec : NULL;
}

static choir_status read_random(choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	int64_t left = d->spec.examples - d->position;
	int64_t count = want < left ? want : left;
	if (count == 0)
		return CHOIR_END;
	CHOIR_TRY(d->stage->range(d, column, d->position, count));
	d->position += count;
	*got = count;
	return CHOIR_OK;
}

choir_status chi_dataset_keep_failure(choir_dataset *d, choir_status status)
{
	chi_error_save(&d->failure);
	d->failure.status = status;
	d->failed = true;
	return status;
}

choir_status chi_dataset_got(choir_dataset *d, choir_status status, int64_t got)
{
	if (status == CHOIR_END)
		d->ended = true;
	if (got == 0 || status == CHOIR_OK || status == CHOIR_END)
		return got > 0 ? CHOIR_OK : status;
	chi_dataset_keep_failure(d, status);
	chi_error_clear();
	return CHOIR_OK;
}

choir_status chi_dataset_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	*got = 0;
	if (d->failed)
		return chi_error_restore(&d->failure);
	if (d->ended)
		return CHOIR_END;
	if (chi_dataset_is_cancelled(d))
		return choir_fail(CHOIR_CANCELLED, "%s: cancelled", d->stage->name);
	choir_status status =
			d->random ? read_random(d, column, want, got) : d->stage->read(d, column, want, got);
	if (status == CHOIR_OK)
		return CHOIR_OK;
	*got = 0;
	if (status != CHOIR_END)
		return chi_dataset_keep_failure(d, status);
	d->ended = true;
	return CHOIR_END;
}

choir_status chi_dataset_fill(choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	void *to[CHI_MAX_COLUMNS];
	*got = 0;
	while (*got < want) {
		int64_t n;
		chi_columns_move(d, column, *got, to);
		choir_status status = chi_dataset_read(d, to, want - *got, &n);
		if (status == CHOIR_END)
			return *got ? CHOIR_OK : CHOIR_END;
		CHOIR_TRY(status);
		*got += n;
	}
	return CHOIR_OK;
}

choir_status chi_dataset_drop(choir_dataset *d, int64_t elements, int64_t *got)
{
	static void *const nothing[CHI_MAX_COLUMNS];
	*got = 0;
	while (*got < elements) {
		int64_t n, want = d->spec.batch ? d->spec.batch : elements - *got;
		choir_status status = chi_dataset_read(d, nothing, want, &n);
		if (status == CHOIR_END)
			return CHOIR_OK;
		CHOIR_TRY(status);
		*got += d->spec.batch ? 1 : n;
	}
	return CHOIR_OK;
}

choir_status chi_dataset_next(choir_dataset *d, chi_element *e)
{
	if (!chi_dataset_given(d, "dataset"))
		return choir_error_status();
	int64_t unit = chi_dataset_unit(d);
	if (e->capacity < unit)
		return choir_fail(CHOIR_INTERNAL, "%s: memory for %lld examples given; %lld needed",
				d->stage->name, (long long) e->capacity, (long long) unit);
	return chi_dataset_read(d, e->column, unit, &e->examples);
}

// Ending a stage's own cancel does not end its reader's.
static void add_cancels(choir_dataset *d, uint32_t by)
{
	if (!d)
		return;
	chi_atomic32_add(&d->cancelled, by);
	add_cancels(d->from[0], by);
	add_cancels(d->from[1], by);
}

void chi_dataset_cancel(choir_dataset *d)
{
	add_cancels(d, 1);
}

void chi_dataset_uncancel(choir_dataset *d)
{
	add_cancels(d, UINT32_MAX);
}

bool chi_dataset_is_cancelled(const choir_dataset *d)
{
	while (d && chi_atomic32_load(&d->cancelled) == 0)
		d = d->outer;
	return d != NULL;
}

void chi_dataset_set_outer(choir_dataset *d, choir_dataset *outer)
{
	if (!d)
		return;
	d->outer = outer;
	chi_dataset_set_outer(d->from[0], outer);
	chi_dataset_set_outer(d->from[1], outer);
}

const void *chi_dataset_peek(choir_dataset *d, size_t column, int64_t first, int64_t count)
{
	int64_t end;
	if (!d || column >= d->spec.n || first < 0 || count < 0 ||
			!chi_int64_add(first, count, &end) || end > d->spec.examples || !d->stage->peek)
		return NULL;
	return d->stage->peek(d, column, first, count);
}

size_t choir_dataset_columns(const choir_dataset *d)
{
	return d ? d->spec.n : 0;
}

const choir_column *choir_dataset_column(const choir_dataset *d, size_t i)
{
	return d && i < d->spec.n ? &d->spec.column[i] : NULL;
}

int64_t choir_dataset_cardinality(const choir_dataset *d)
{
	return !d ? 0 : d->spec.endless ? CHOIR_INFINITE_CARDINALITY : d->elements;
}

int64_t choir_dataset_dropped(const choir_dataset *d)
{
	if (!d)
		return 0;
	return (int64_t) chi_atomic64_load(&d->dropped) + choir_dataset_dropped(d->from[0]) +
			choir_dataset_dropped(d->from[1]);
}

int64_t choir_dataset_skipped(const choir_dataset *d)
{
	if (!d)
		return 0;
	return (int64_t) chi_atomic64_load(&d->skipped) + choir_dataset_skipped(d->from[0]) +
			choir_dataset_skipped(d->from[1]);
}
