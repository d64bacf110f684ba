// map and filter: a team's threads claim the elements of a block; results are delivered in order.
#include "data/component.h"

#include "base/alloc.h"
#include "base/lock.h"
#include "base/options.h"
#include "base/team.h"

enum { BLOCK_ELEMENTS = 64 };

typedef struct {
	choir_status status;
	chi_error error;
} outcome;

typedef struct {
	choir_dataset base;
	choir_map_fn *fn;
	void *user;
	chi_team *team;
	int64_t capacity;
	int64_t *examples;
	chi_row_buffer *spare;
	outcome *outcome;
	int64_t done;
	chi_error failure;
	bool has_failure;
	void *const *column;
	int64_t first;
} map;

static int64_t row_of(const map *m, int64_t element)
{
	return element * chi_dataset_unit(&m->base);
}

static choir_status call(map *m, int member, int64_t i)
{
	choir_dataset *d = &m->base, *from = d->from[0];
	choir_component in[CHI_MAX_COLUMNS], out[CHI_MAX_COLUMNS];
	chi_component_capacity capacity[CHI_MAX_COLUMNS];
	void *to[CHI_MAX_COLUMNS];
	chi_components_of(from, m->base.rows.column, row_of(m, i), m->examples[i], in);
	chi_columns_move(d, m->column, row_of(m, i), to);
	for (size_t k = 0; k < d->spec.n; k++)
		if (!to[k])
			to[k] = m->spare[member].column[k];
	CHOIR_TRY(chi_components_for(d, to, 0, m->examples[i], out, capacity));
	chi_mutex_check_none_held();
	choir_status status = m->fn(in, out, m->user);
	if (status == CHOIR_END)
		status = choir_fail(CHOIR_INVALID,
				"the function returned CHOIR_END; use filter to leave out elements");
	return status == CHOIR_OK ? CHOIR_OK : chi_function_failed(status, "map", m->first + i);
}

static void map_element(void *arg, int member, int64_t i)
{
	map *m = arg;
	chi_error before; // hidden from fn
	chi_error_save(&before);
	chi_error_clear();
	m->outcome[i].status = call(m, member, i);
	if (m->outcome[i].status != CHOIR_OK)
		chi_error_save(&m->outcome[i].error);
	chi_error_restore(&before);
}

// Up to the first failure.
static int64_t good_ones(map *m, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (m->outcome[i].status != CHOIR_OK) {
			m->failure = m->outcome[i].error;
			m->has_failure = true;
			return i;
		}
	return n;
}

static bool nothing_wanted(const choir_dataset *d, void *const column[])
{
	for (size_t i = 0; i < d->spec.n; i++)
		if (column[i])
			return false;
	return true;
}

static choir_status map_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	static void *const nothing[CHI_MAX_COLUMNS]; // from may have more columns
	map *m = (map *) d;
	choir_dataset *from = d->from[0];
	int64_t n, elements = 1;
	if (m->has_failure)
		return chi_error_restore(&m->failure);
	if (nothing_wanted(d, column)) {
		CHOIR_TRY(chi_dataset_read(from, nothing, want, got));
		m->done += d->spec.batch ? 1 : *got;
		return CHOIR_OK;
	}
	if (!d->spec.batch && want > m->capacity)
		want = m->capacity;
	CHOIR_TRY(chi_dataset_read(from, m->base.rows.column, want, &n));
	if (d->spec.batch)
		m->examples[0] = n;
	else
		elements = n;
	m->column = column;
	m->first = m->done;
	CHOIR_TRY(chi_team_run(m->team, elements, map_element, m));
	int64_t good = good_ones(m, elements);
	m->done += good;
	*got = d->spec.batch && good ? n : good;
	if (good)
		return CHOIR_OK;
	return chi_error_restore(&m->failure);
}

static choir_status map_rewind(choir_dataset *d)
{
	((map *) d)->done = 0;
	((map *) d)->has_failure = false;
	return chi_rewind_from(d);
}

static choir_status map_seek(choir_dataset *d, int64_t elements)
{
	((map *) d)->done = elements;
	return chi_dataset_pass_over(d->from[0], elements);
}

static void map_free(choir_dataset *d)
{
	map *m = (map *) d;
	int members = m->team ? chi_team_members(m->team) : 0;
	chi_team_free(m->team);
	for (int i = 0; m->spare && i < members; i++)
		chi_row_buffer_free(&m->spare[i]);
	chi_free(m->spare);
	chi_free(m->examples);
	chi_free(m->outcome);
}

static const chi_stage map_stage = {
	.name = "map",
	.calls = true,
	.read = map_read,
	.rewind = map_rewind,
	.free = map_free,
	.seek = map_seek,
};

static bool map_capacity(map *m, int threads)
{
	choir_dataset *d = &m->base;
	m->capacity = d->spec.batch ? 1 : BLOCK_ELEMENTS;
	m->team = chi_team_new(&(chi_team_options){
			.name = "choir-map",
			.threads = threads,
	});
	m->spare = chi_alloc_array((size_t) threads, sizeof *m->spare);
	m->examples = chi_alloc_array((size_t) m->capacity, sizeof *m->examples);
	m->outcome = chi_alloc_array((size_t) m->capacity, sizeof *m->outcome);
	if (!m->team || !m->spare || !m->examples || !m->outcome)
		return false;
	for (int64_t i = 0; i < m->capacity; i++)
		m->examples[i] = 1;
	for (int i = 0; i < threads; i++)
		if (!chi_row_buffer_new(d, chi_dataset_unit(d), &m->spare[i]))
			return false;
	return chi_row_buffer_new(d->from[0], m->capacity * chi_dataset_unit(d), &m->base.rows);
}

static choir_status map_options(choir_map_options *o, const choir_map_options *given)
{
	CHOIR_TRY(chi_options_take("map: the options'", o, sizeof *o, given));
	if (o->threads < 0 || o->threads > 1024)
		return choir_fail(
				CHOIR_INVALID, "map: %d threads given; 1 to 1024 needed, or 0 for 1", o->threads);
	return CHOIR_OK;
}

choir_dataset *choir_dataset_map(
		choir_dataset *from, const choir_map_options *options, choir_map_fn *fn, void *user)
{
	choir_map_options o;
	if (!chi_dataset_given(from, "map"))
		return NULL;
	if (map_options(&o, options) != CHOIR_OK)
		return chi_dataset_discard(from);
	if (!fn)
		return chi_refuse(from, CHOIR_INVALID, "map: the function is NULL");
	if (chi_components_check(from, "map") != CHOIR_OK)
		return chi_dataset_discard(from);
	map *m = chi_transform_new(&map_stage, sizeof *m, from);
	if (!m)
		return NULL;
	m->fn = fn;
	m->user = user;
	if (o.columns && !chi_dataset_set_columns(&m->base, o.n, o.columns))
		return chi_dataset_discard(&m->base);
	if (chi_components_check(&m->base, "map") != CHOIR_OK ||
			!map_capacity(m, o.threads ? o.threads : 1))
		return chi_dataset_discard(&m->base);
	if (from->spec.batch && !from->spec.full)
		m->base.spec.global = CHOIR_UNKNOWN_CARDINALITY;
	return &m->base;
}

typedef struct {
	choir_dataset base;
	choir_filter_fn *fn;
	void *user;
	int64_t capacity;
} filter;

static bool passes(const filter *f, int64_t at, int64_t examples)
{
	choir_component in[CHI_MAX_COLUMNS];
	chi_components_of(f->base.from[0], f->base.rows.column, at, examples, in);
	chi_mutex_check_none_held();
	return f->fn(in, f->user);
}

static choir_status filter_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	filter *f = (filter *) d;
	void *to[CHI_MAX_COLUMNS];
	int64_t n, unit = d->spec.batch ? d->spec.batch : 1;
	if (!d->spec.batch && want > f->capacity)
		want = f->capacity;
	while (*got == 0) {
		CHOIR_TRY(chi_dataset_read(d->from[0], f->base.rows.column, want, &n));
		if (unit > 1 || d->spec.batch) {
			if (!passes(f, 0, n))
				continue;
			*got = n;
			return chi_row_buffer_copy(d, column, &f->base.rows, 0, n);
		}
		for (int64_t i = 0; i < n; i++) {
			if (!passes(f, i, 1))
				continue;
			chi_columns_move(d, column, (*got)++, to);
			CHOIR_TRY(chi_row_buffer_copy(d, to, &f->base.rows, i, 1));
		}
	}
	return CHOIR_OK;
}

static const chi_stage filter_stage = {
	.name = "filter",
	.calls = true,
	.read = filter_read,
	.rewind = chi_rewind_from,
};

choir_dataset *choir_dataset_filter(choir_dataset *from, choir_filter_fn *fn, void *user)
{
	if (!chi_dataset_given(from, "filter"))
		return NULL;
	if (!fn)
		return chi_refuse(from, CHOIR_INVALID, "filter: the function is NULL");
	if (chi_components_check(from, "filter") != CHOIR_OK)
		return chi_dataset_discard(from);
	filter *f = chi_transform_new(&filter_stage, sizeof *f, from);
	if (!f)
		return NULL;
	choir_dataset *d = &f->base;
	f->fn = fn;
	f->user = user;
	f->capacity = d->spec.batch ? d->spec.batch : chi_block_examples(from);
	d->elements = d->spec.examples = CHOIR_UNKNOWN_CARDINALITY;
	d->ragged = from->ragged || chi_dataset_has_short_batch(from);
	if (!chi_row_buffer_new(d, f->capacity, &f->base.rows))
		return chi_dataset_discard(d);
	return d;
}
