// Up to cycle datasets are read in turn, block by block. An ended one is replaced at its next
// turn. They may read ahead: only they decide the order.
#include "data/component.h"

#include "base/alloc.h"
#include "base/lock.h"
#include "base/options.h"
#include "base/hash.h"

typedef struct {
	choir_dataset *dataset;
	int64_t dropped, skipped;
} opened;

typedef struct {
	choir_dataset base;
	choir_interleave_fn *fn;
	void *user;
	int64_t cycle, block;
	bool ahead;
	opened *open;
	int64_t made;
	int64_t place;
	int64_t taken;
	bool dry;
} interleave;

static const char *inner_fault(const choir_dataset *d, const choir_dataset *inner)
{
	if (inner->spec.batch)
		return "the batch size (single examples needed)";
	return chi_columns_differ(&d->spec, &inner->spec);
}

static choir_status call(interleave *v, choir_dataset **made)
{
	choir_component in[CHI_MAX_COLUMNS];
	chi_error before; // hidden from fn
	chi_error_save(&before);
	chi_error_clear();
	chi_components_of(v->base.from[0], v->base.rows.column, 0, 1, in);
	chi_mutex_check_none_held();
	*made = v->fn(in, v->user);
	if (*made) {
		chi_error_restore(&before);
		return CHOIR_OK;
	}
	choir_status status = choir_error_status();
	return chi_function_failed(
			status == CHOIR_OK ? CHOIR_INVALID : status, v->base.stage->name, v->made);
}

static choir_status open_next(interleave *v)
{
	choir_dataset *from = v->base.from[0], *inner;
	int64_t n;
	choir_status status = chi_dataset_read(from, v->base.rows.column, 1, &n);
	if (status == CHOIR_END) {
		v->dry = true;
		return CHOIR_OK;
	}
	CHOIR_TRY(status);
	CHOIR_TRY(call(v, &inner));
	const char *fault = inner_fault(&v->base, inner);
	if (fault) {
		choir_dataset_free(inner);
		return choir_fail(CHOIR_INVALID,
				"%s: element %lld: its dataset differs in %s; all "
				"datasets need the declared columns",
				v->base.stage->name, (long long) v->made, fault);
	}
	if (v->ahead)
		inner = choir_dataset_prefetch(inner, (int) (2 * chi_block_examples(&v->base)));
	CHOIR_TRY(chi_made(inner));
	chi_dataset_set_outer(inner, &v->base);
	v->open[v->place] = (opened){ .dataset = inner };
	v->made++;
	return chi_dataset_begin(inner, v->base.pass);
}

static bool any_open(const interleave *v)
{
	for (int64_t i = 0; i < v->cycle; i++)
		if (v->open[i].dataset)
			return true;
	return false;
}

static void next_place(interleave *v)
{
	v->place = (v->place + 1) % v->cycle;
	v->taken = 0;
}

static void count(interleave *v, opened *o)
{
	const int64_t dropped = choir_dataset_dropped(o->dataset);
	const int64_t skipped = choir_dataset_skipped(o->dataset);
	chi_atomic64_add(&v->base.dropped, (uint64_t) (dropped - o->dropped));
	chi_atomic64_add(&v->base.skipped, (uint64_t) (skipped - o->skipped));
	o->dropped = dropped;
	o->skipped = skipped;
}

static choir_status take(interleave *v, void *const column[], int64_t want, int64_t *got)
{
	opened *open = &v->open[v->place];
	if (v->block != CHOIR_FOREVER && want > v->block - v->taken)
		want = v->block - v->taken;
	choir_status status = chi_dataset_read(open->dataset, column, want, got);
	count(v, open);
	if (status == CHOIR_END) {
		choir_dataset_free(open->dataset);
		open->dataset = NULL;
		next_place(v);
		return CHOIR_OK;
	}
	if (status != CHOIR_OK)
		return chi_error_prefix("%s", v->base.stage->name);
	v->taken += *got;
	if (v->taken == v->block)
		next_place(v);
	return CHOIR_OK;
}

static choir_status interleave_read(
		choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	interleave *v = (interleave *) d;
	while (*got == 0) {
		if (v->open[v->place].dataset) {
			CHOIR_TRY(take(v, column, want, got));
		} else if (v->dry) {
			if (!any_open(v))
				return CHOIR_END;
			next_place(v);
		} else {
			CHOIR_TRY(open_next(v));
		}
	}
	return CHOIR_OK;
}

static void close_all(interleave *v)
{
	for (int64_t i = 0; v->open && i < v->cycle; i++) {
		choir_dataset_free(v->open[i].dataset);
		v->open[i].dataset = NULL;
	}
}

static choir_status interleave_rewind(choir_dataset *d)
{
	interleave *v = (interleave *) d;
	close_all(v);
	v->place = v->taken = v->made = 0;
	v->dry = false;
	return chi_rewind_from(d);
}

static uint64_t interleave_signature(const choir_dataset *d)
{
	const interleave *v = (const interleave *) d;
	return chi_hash_mix((uint64_t) v->cycle) + (uint64_t) v->block;
}

static void interleave_free(choir_dataset *d)
{
	interleave *v = (interleave *) d;
	close_all(v);
	chi_free(v->open);
}

#define INTERLEAVE_STAGE(subject, sharded) \
	{ \
		.name = subject, .read = interleave_read, .rewind = interleave_rewind, \
		.free = interleave_free, .signature = interleave_signature, .files = sharded, \
		.calls = true, \
	}

// the second of each serves a source of file names
static const chi_stage interleave_stages[] = { INTERLEAVE_STAGE("interleave", CHI_FILES_THROUGH),
	INTERLEAVE_STAGE("interleave", CHI_FILES_BEFORE) };
static const chi_stage flat_map_stages[] = { INTERLEAVE_STAGE("flat_map", CHI_FILES_THROUGH),
	INTERLEAVE_STAGE("flat_map", CHI_FILES_BEFORE) };

static choir_status check(const choir_dataset *from, const char *what, choir_interleave_options *o,
		const choir_interleave_options *given, choir_interleave_fn *fn)
{
	if (!chi_dataset_given(from, what))
		return choir_error_status();
	if (chi_options_take("the options'", o, sizeof *o, given) != CHOIR_OK)
		return chi_error_prefix("%s", what);
	if (!fn)
		return choir_fail(CHOIR_INVALID, "%s: the function is NULL", what);
	if (o->cycle_length < 0 || o->block_length < 0)
		return choir_fail(CHOIR_INVALID,
				"%s: cycle length %lld and block length %lld given; "
				"at least 1 each needed, or 0 for 1",
				what, (long long) o->cycle_length, (long long) o->block_length);
	if (from->spec.batch)
		return choir_fail(CHOIR_INVALID,
				"%s: the dataset has batches of %lld; single examples needed", what,
				(long long) from->spec.batch);
	return CHOIR_OK;
}

static choir_dataset *make(const chi_stage *stage, choir_dataset *from,
		const choir_interleave_options *o, choir_interleave_fn *fn, void *user)
{
	interleave *v = chi_transform_new(stage, sizeof *v, from);
	if (!v)
		return NULL;
	choir_dataset *d = &v->base;
	v->fn = fn;
	v->user = user;
	v->ahead = o->read_ahead;
	v->cycle = o->cycle_length ? o->cycle_length : 1;
	v->block = o->block_length ? o->block_length : 1;
	d->elements = d->spec.examples = CHOIR_UNKNOWN_CARDINALITY;
	v->open = chi_alloc_array((size_t) v->cycle, sizeof *v->open);
	if (!v->open || (o->columns && !chi_dataset_set_columns(d, o->n, o->columns)) ||
			!chi_row_buffer_new(from, 1, &v->base.rows))
		return chi_dataset_discard(d);
	return d;
}

choir_dataset *choir_dataset_interleave(choir_dataset *from,
		const choir_interleave_options *options, choir_interleave_fn *fn, void *user)
{
	choir_interleave_options o;
	if (check(from, "interleave", &o, options, fn) != CHOIR_OK)
		return chi_dataset_discard(from);
	return make(&interleave_stages[o.files], from, &o, fn, user);
}

choir_dataset *choir_dataset_flat_map(choir_dataset *from, const choir_interleave_options *options,
		choir_interleave_fn *fn, void *user)
{
	choir_interleave_options o;
	if (check(from, "flat_map", &o, options, fn) != CHOIR_OK)
		return chi_dataset_discard(from);
	if (o.cycle_length > 1 || o.block_length > 0)
		return chi_refuse(from, CHOIR_INVALID,
				"flat_map: a cycle length or block length given; use interleave, since flat_map "
				"reads one dataset after another");
	choir_dataset *d = make(&flat_map_stages[o.files], from, &o, fn, user);
	if (d)
		((interleave *) d)->block = CHOIR_FOREVER;
	return d;
}
