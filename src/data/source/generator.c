// A seek calls the program's seek function or generates the earlier examples again.
#include "data/dataset.h"

#include "base/lock.h"

typedef struct {
	choir_dataset base;
	choir_example_fn *fn;
	choir_seek_fn *seek;
	void *user;
	int64_t next;
} function;

static choir_status report(choir_status status, int64_t position)
{
	if (choir_error_status() != status || !choir_error()[0])
		choir_fail(status, "the function returned %s", choir_status_name(status));
	chi_error_prefix("function dataset: example %lld", (long long) position);
	return status;
}

static choir_status call(function *f, void *const column[], int64_t row)
{
	void *out[CHI_MAX_COLUMNS];
	chi_columns_move(&f->base, column, row, out);
	for (size_t i = 0; i < f->base.spec.n; i++)
		if (!out[i])
			out[i] = f->base.rows.column[i];
	chi_mutex_check_none_held();
	return f->fn(f->next, out, f->user);
}

static choir_status function_read(
		choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	function *f = (function *) d;
	choir_status status = CHOIR_OK;
	chi_error before; // hidden from fn
	chi_error_save(&before);
	chi_error_clear();
	while (*got < want && (status = call(f, column, *got)) == CHOIR_OK) {
		++*got;
		f->next++;
	}
	if (status != CHOIR_OK && status != CHOIR_END)
		report(status, f->next);
	status = chi_dataset_got(d, status, *got);
	if (status == CHOIR_OK || status == CHOIR_END)
		chi_error_restore(&before);
	return status;
}

static choir_status go_to(function *f, int64_t position)
{
	chi_error before;
	f->next = position;
	if (!f->seek)
		return CHOIR_OK;
	chi_error_save(&before);
	chi_error_clear();
	chi_mutex_check_none_held();
	const choir_status status = f->seek(f->base.pass, position, f->user);
	if (status == CHOIR_OK) {
		chi_error_restore(&before);
		return CHOIR_OK;
	}
	return report(status == CHOIR_END ? CHOIR_INVALID : status, position);
}

static choir_status function_rewind(choir_dataset *d)
{
	return go_to((function *) d, 0);
}

static choir_status function_seek(choir_dataset *d, int64_t elements)
{
	return go_to((function *) d, elements);
}

#define GENERATOR_STAGE \
	.name = "function dataset", .read = function_read, .rewind = function_rewind, .calls = true

static const chi_stage function_stage = { GENERATOR_STAGE };
static const chi_stage seekable_stage = { GENERATOR_STAGE, .seek = function_seek, .blind = true };

static choir_dataset *make(
		const chi_stage *stage, size_t n, const choir_column columns[], const function *like)
{
	if (!like->fn)
		return chi_fail_null(CHOIR_INVALID, "function dataset: the function is NULL");
	function *f = chi_source_new(stage, sizeof *f, n, columns, CHOIR_UNKNOWN_CARDINALITY);
	if (!f)
		return NULL;
	f->fn = like->fn;
	f->seek = like->seek;
	f->user = like->user;
	if (!chi_row_buffer_new(&f->base, 1, &f->base.rows))
		return chi_dataset_discard(&f->base);
	return &f->base;
}

choir_dataset *choir_generator_dataset_new(
		size_t n, const choir_column columns[], choir_example_fn *fn, void *user)
{
	return make(&function_stage, n, columns, &(function){ .fn = fn, .user = user });
}

choir_dataset *choir_seekable_generator_dataset_new(size_t n, const choir_column columns[],
		choir_example_fn *fn, choir_seek_fn *seek, void *user)
{
	if (!seek)
		return chi_fail_null(CHOIR_INVALID, "function dataset: the seek function is NULL");
	return make(&seekable_stage, n, columns, &(function){ .fn = fn, .seek = seek, .user = user });
}
