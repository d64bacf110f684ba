// Examples that a function of the program makes, one a call. The program may return what it
// likes without a word; the failure that is reported names the example in any case.
#include "data/step.h"

#include "base/alloc.h"
#include "base/size.h"

typedef struct {
	choir_dataset base;
	choir_example_fn *fn;
	void *user;
	int64_t next; // number of the example in this pass
	chi_rows spare; // one example, for columns that nobody wants
} function;

// The first failure of fn, named. Its own text stays, if it recorded one.
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
			out[i] = f->spare.column[i];
	return f->fn(f->next, out, f->user);
}

static choir_status function_read(
		choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	function *f = (function *) d;
	choir_status status = CHOIR_OK;
	chi_error before; // the thread's failure from before is not fn's, and must survive its success
	chi_error_save(&before);
	chi_error_clear();
	while (*got < want && (status = call(f, column, *got)) == CHOIR_OK) {
		++*got;
		f->next++;
	}
	if (status != CHOIR_OK && status != CHOIR_END)
		return report(status, f->next);
	chi_error_restore(&before);
	d->ended = status == CHOIR_END; // it is not asked again after its end
	return *got ? CHOIR_OK : CHOIR_END;
}

static choir_status function_rewind(choir_dataset *d)
{
	((function *) d)->next = 0;
	return CHOIR_OK;
}

static void function_free(choir_dataset *d)
{
	chi_rows_free(&((function *) d)->spare);
}

static const chi_step function_step = {
	.name = "function dataset",
	.range = chi_no_range,
	.read = function_read,
	.rewind = function_rewind,
	.peek = chi_no_peek,
	.free = function_free,
};

choir_dataset *choir_function_dataset_new(
		size_t n, const choir_column columns[], choir_example_fn *fn, void *user)
{
	if (!fn) {
		choir_fail(CHOIR_INVALID, "function dataset: the function is NULL");
		return NULL;
	}
	function *f = chi_source_new(&function_step, sizeof *f, n, columns, CHOIR_NONE);
	if (!f)
		return NULL;
	f->fn = fn;
	f->user = user;
	if (!chi_rows_new(&f->base, 1, &f->spare)) {
		choir_dataset_free(&f->base);
		return NULL;
	}
	return &f->base;
}
