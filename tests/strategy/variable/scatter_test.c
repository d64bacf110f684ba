// Writing rows of variables: what each context, aggregation and way does, against a model of
// whole numbers; and what is refused before anything is written.
#include "choir/op.h"

#include "base/alloc.h"
#include "strategy/strategy.h"
#include "strategy/world.h"
#include "short.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

static choir_strategy *strategy;
static int replicas;

enum { ROWS = 5, WIDTH = 2 };

static choir_variable *make(const char *name, choir_dtype dtype, choir_aggregation aggregation)
{
	return world_variable(strategy, name, CHOIR_SHAPE(ROWS, WIDTH),
			CHOIR_OPTIONS(choir_variable_options, .dtype = dtype, .aggregation = aggregation));
}

// The rows of v as numbers, equal in both columns and in all copies.
static void fetch(choir_variable *v, double rows[ROWS])
{
	char host[ROWS * WIDTH * 8];
	for (int copy = 0; copy < choir_variable_copies(v); copy++) {
		world_ok(chi_variable_to_host(v, copy, host));
		for (int i = 0; i < ROWS; i++) {
			const double x = chi_dtype_load(v->dtype, host, WIDTH * i);
			assert_true(x == chi_dtype_load(v->dtype, host, WIDTH * i + 1));
			assert_true(copy == 0 || x == rows[i]);
			rows[i] = x;
		}
	}
}

static double combine(choir_scatter how, double a, double b)
{
	switch (how) {
	case CHOIR_SCATTER_ADD:
		return a + b;
	case CHOIR_SCATTER_SUB:
		return a - b;
	case CHOIR_SCATTER_MUL:
		return a * b;
	case CHOIR_SCATTER_DIV:
		return a / b;
	case CHOIR_SCATTER_MIN:
		return a < b ? a : b;
	case CHOIR_SCATTER_MAX:
		return a > b ? a : b;
	default:
		return b;
	}
}

// What replica id brings: id + 1 rows, of which the first and the last are row 1.
static int brought(int id, int64_t index[], double value[])
{
	for (int i = 0; i <= id; i++) {
		index[i] = i == id ? 1 : 1 + i % 3;
		value[i] = 4 << (id + i) % 3;
	}
	return id + 1;
}

static choir_tensor *rows_of(choir_frame *f, choir_dtype dtype, int n, const double value[])
{
	char data[16 * WIDTH * 8];
	for (int i = 0; i < WIDTH * n; i++)
		chi_dtype_store(dtype, data, i, value[i / WIDTH]);
	return choir_constant(f, dtype, CHOIR_SHAPE(n, WIDTH), data);
}

typedef struct {
	choir_variable *v;
	choir_scatter how;
	choir_dtype index_dtype;
} job;

static choir_status bring(choir_frame *f, const job *j, int id)
{
	int64_t index[16] = { 0 };
	double value[16] = { 0 };
	const int n = brought(id, index, value);
	choir_tensor *indices = choir_constant(f, CHOIR_I64, CHOIR_SHAPE(n), index);
	return choir_variable_scatter(
			j->v, j->how, choir_cast(indices, j->index_dtype), rows_of(f, j->v->dtype, n, value));
}

static choir_status bring_own(choir_replica *r, void *user)
{
	const job *j = user;
	CHOIR_TRY(bring(r->frame, j, choir_replica_id(r)));
	return choir_variable_read(j->v, r->frame) == NULL ? choir_error_status() : CHOIR_OK;
}

static void set_to_eight(choir_variable *v)
{
	choir_frame *f = choir_frame_new(NULL);
	world_ok(choir_variable_assign(v, choir_number(f, 8)));
	choir_frame_free(f);
}

// The model: replica after replica, its values divided by their number for MEAN.
static void check_rows(const job *j, int first, int last, double divisor)
{
	double expected[ROWS] = { 8, 8, 8, 8, 8 }, got[ROWS];
	for (int r = first; r < last; r++) {
		int64_t index[16] = { 0 };
		double value[16] = { 0 };
		const int n = brought(r, index, value);
		for (int i = 0; i < n; i++)
			expected[index[i]] = (double) (float) combine(
					j->how, expected[index[i]], (double) (float) (value[i] / divisor));
	}
	fetch(j->v, got);
	for (int i = 0; i < ROWS; i++)
		assert_float_equal((float) got[i], (float) expected[i], 0);
}

static void scatter_in_replicas(void)
{
	choir_variable *sum = make("sum", CHOIR_F32, CHOIR_AGGREGATION_SUM);
	choir_variable *mean = make("mean", CHOIR_F32, CHOIR_AGGREGATION_MEAN);
	choir_variable *first = make("first", CHOIR_F32, CHOIR_AGGREGATION_ONLY_FIRST_REPLICA);
	for (int how = CHOIR_SCATTER_ADD; how <= CHOIR_SCATTER_UPDATE; how++) {
		const choir_dtype index_dtype = how % 2 == 0 ? CHOIR_I32 : CHOIR_I64;
		choir_variable *const all[] = { first, sum, mean };
		for (int i = 0; i < (how <= CHOIR_SCATTER_DIV ? 3 : 1); i++) {
			job j = { all[i], (choir_scatter) how, index_dtype };
			set_to_eight(j.v);
			world_ok(choir_strategy_run(strategy, bring_own, &j, NULL, NULL));
			check_rows(&j, 0, i == 0 ? 1 : replicas, i == 2 ? replicas : 1);
		}
	}
}

// spec: A13, D13, 2.5
TEST(replicas_bring_rows)
{
	world_on_every_deal(&strategy, &replicas, 1, scatter_in_replicas);
}

static choir_status scatter_copy(choir_update *u, void *user)
{
	const job *j = user;
	CHOIR_TRY(bring(u->frame, j, 3));
	choir_tensor *row = choir_constant(u->frame, CHOIR_I32, CHOIR_SHAPE(1), (int32_t[]){ 0 });
	return choir_variable_scatter(
			j->v, CHOIR_SCATTER_UPDATE, row, choir_number(u->frame, 8)); // changes nothing
}

static choir_status scatter_in_merge(choir_cross *x, void *user)
{
	return bring(x->frame, user, 2);
}

static choir_status merge(choir_replica *r, void *user)
{
	return choir_replica_merge_call(r, scatter_in_merge, user);
}

static void scatter_across(void)
{
	static const choir_dtype dtypes[] = { CHOIR_F32, CHOIR_F64, CHOIR_I32, CHOIR_I64, CHOIR_U8 };
	choir_frame *f = choir_frame_new(NULL);
	for (int d = 0; d < 5; d++)
		for (int how = CHOIR_SCATTER_ADD; how <= CHOIR_SCATTER_UPDATE; how++) {
			char name[16];
			snprintf(name, sizeof name, "v%d/%d", d, how);
			// An aggregation is for replicas alone; in an update every way is possible.
			const bool sum = how == CHOIR_SCATTER_ADD;
			job j = { make(name, dtypes[d], sum ? CHOIR_AGGREGATION_SUM : CHOIR_AGGREGATION_NONE),
				(choir_scatter) how, CHOIR_I64 };
			set_to_eight(j.v);
			if (dtypes[d] != CHOIR_F32 &&
					(how == CHOIR_SCATTER_MUL || how == CHOIR_SCATTER_DIV ||
							how == CHOIR_SCATTER_SUB))
				continue; // they wrap, and are cut
			world_ok(bring(f, &j, 2));
			check_rows(&j, 2, 3, 1);
			set_to_eight(j.v);
			world_ok(choir_strategy_run(strategy, merge, &j, NULL, NULL));
			check_rows(&j, 2, 3, 1);
			set_to_eight(j.v);
			world_ok(choir_cross_update(
					choir_strategy_cross(strategy), j.v, NULL, scatter_copy, &j));
			check_rows(&j, 3, 4, 1);
			choir_frame_clear(f);
		}
	choir_frame_free(f);
}

// spec: A11, A14, D13, 2.5
TEST(rows_of_all_copies_and_of_one)
{
	world_on_every_deal(&strategy, &replicas, 1, scatter_across);
}

static void scatter_everything_else(void)
{
	choir_frame *f = choir_frame_new(NULL);
	choir_variable *flags = make("flags", CHOIR_BOOL, CHOIR_AGGREGATION_NONE);
	choir_tensor *two = choir_constant(f, CHOIR_I32, CHOIR_SHAPE(2), (int32_t[]){ 3, 0 });
	world_ok(choir_variable_scatter(flags, CHOIR_SCATTER_UPDATE, two, choir_number(f, 1)));
	double rows[ROWS];
	fetch(flags, rows);
	for (int i = 0; i < ROWS; i++)
		assert_true(rows[i] == (i == 3 || i == 0));
	choir_tensor *none = choir_constant(f, CHOIR_I32, CHOIR_SHAPE(0), NULL);
	world_ok(choir_variable_scatter(flags, CHOIR_SCATTER_UPDATE, none, choir_number(f, 0)));
	fetch(flags, rows);
	assert_true(rows[3] == 1);
	world_failed(choir_variable_scatter(flags, CHOIR_SCATTER_ADD, two, choir_number(f, 1)),
			CHOIR_UNSUPPORTED, "variable \"flags\"", "scatter_add");
	choir_frame_free(f);
}

// spec: D13
TEST(any_dtype_and_no_rows)
{
	world_on_every_deal(&strategy, &replicas, 1, scatter_everything_else);
}

typedef struct {
	choir_variable *v;
	int how;
} wrong;

static choir_status scatter_wrongly(choir_frame *f, const wrong *w, int bad)
{
	static const int32_t good[] = { 0, 4 }, beyond[] = { 0, 5 }, below[] = { -1, 0 };
	const int32_t *rows = bad == 1 ? beyond : bad == 2 ? below : good;
	choir_tensor *indices = choir_constant(f, CHOIR_I32, CHOIR_SHAPE(2), rows);
	choir_tensor *values = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(bad == 3 ? 3 : 2, WIDTH), 1);
	if (bad == 4)
		values = choir_cast(values, CHOIR_F64);
	if (bad == 5)
		indices = choir_cast(indices, CHOIR_F32);
	if (bad == 6)
		indices = choir_number(f, 1);
	return choir_variable_scatter(w->v, bad == 7 ? (choir_scatter) 99 : CHOIR_SCATTER_ADD,
			bad == 8 ? NULL : indices, bad == 9 ? NULL : values);
}

static const struct {
	const char *first, *second;
} complaints[] = {
	{ NULL, NULL },
	{ "variable \"v\": scatter_add: indices[1] is 5", "there are 5" },
	{ "variable \"v\": scatter_add: indices[0] is -1", "there are 5" },
	{ "scatter_add: *f32 [3, 2]*f32 [2, 2]", NULL },
	{ "scatter_add: *f64 [2, 2]*f32 [2, 2]", NULL },
	{ "scatter_add: *f32 [2]*vector of i32 or i64", NULL },
	{ "scatter_add: *f64 []*vector", NULL },
	{ "\"v\"*99", NULL },
	{ "scatter_add: NULL", NULL },
	{ "scatter_add: NULL", NULL },
};

static choir_status only_the_last_is_wrong(choir_replica *r, void *user)
{
	const wrong *w = user;
	const bool last = choir_replica_id(r) == choir_replica_count(r) - 1;
	return scatter_wrongly(r->frame, w, last ? w->how : 0);
}

static void misuse(void)
{
	choir_frame *f = choir_frame_new(NULL);
	wrong w = { make("v", CHOIR_F32, CHOIR_AGGREGATION_SUM), 0 };
	double rows[ROWS];
	char name[32];
	snprintf(name, sizeof name, "replica %d: ", replicas - 1);
	for (w.how = 1; w.how < 10; w.how++) {
		// A NULL is what failed before, if something has.
		world_failed(scatter_wrongly(f, &w, w.how), CHOIR_INVALID,
				w.how < 8 ? complaints[w.how].first : NULL, complaints[w.how].second);
		choir_frame_clear(f);
		world_failed(choir_strategy_run(strategy, only_the_last_is_wrong, &w, NULL, NULL),
				CHOIR_INVALID, complaints[w.how].first, w.how == 7 || replicas == 1 ? NULL : name);
	}
	fetch(w.v, rows);
	for (int i = 0; i < ROWS; i++)
		assert_true(rows[i] == 0); // nothing was written
	world_failed(choir_variable_scatter(
						 NULL, CHOIR_SCATTER_ADD, choir_number(f, 1), choir_number(f, 1)),
			CHOIR_INVALID, "the variable is NULL", NULL);
	choir_frame *other = choir_frame_new(NULL);
	choir_tensor *indices = choir_constant(other, CHOIR_I32, CHOIR_SHAPE(1), (int32_t[]){ 0 });
	world_failed(choir_variable_scatter(w.v, CHOIR_SCATTER_ADD, indices, choir_number(f, 1)),
			CHOIR_INVALID, "two frames", NULL);
	choir_frame_free(other);
	choir_frame_free(f);
}

// spec: D13, 2.19
TEST(what_does_not_fit_changes_nothing)
{
	world_on_every_deal(&strategy, &replicas, 1, misuse);
}

static choir_status scatter_number(choir_frame *f, choir_variable *v, choir_scatter how, double x)
{
	choir_tensor *row = choir_constant(f, CHOIR_I32, CHOIR_SHAPE(1), (int32_t[]){ 2 });
	return choir_variable_scatter(v, how, row, choir_number(f, x));
}

static choir_status scatter_in_replica(choir_replica *r, void *user)
{
	const wrong *w = user;
	return scatter_number(r->frame, w->v, (choir_scatter) (w->how % 10), w->how / 10);
}

static choir_status scatter_ids(choir_replica *r, void *user)
{
	return scatter_number(r->frame, user, CHOIR_SCATTER_ADD, 1 + choir_replica_id(r));
}

static choir_status scatter_in_update(choir_update *u, void *user)
{
	return scatter_number(u->frame, user, CHOIR_SCATTER_ADD, 1);
}

static void refuse(choir_variable *v, choir_scatter how, choir_status status, const char *text)
{
	choir_frame *f = choir_frame_new(NULL);
	wrong w = { v, (int) how + 10 };
	world_failed(choir_strategy_run(strategy, scatter_in_replica, &w, NULL, NULL), status, text,
			v->name);
	world_failed(scatter_number(f, v, how, 1), status, text, v->name);
	choir_frame_free(f);
}

static void scatter_by_aggregation(void)
{
	choir_variable *none = make("none", CHOIR_F32, CHOIR_AGGREGATION_NONE);
	choir_variable *sum = make("sum", CHOIR_F32, CHOIR_AGGREGATION_SUM);
	choir_variable *mean = make("mean", CHOIR_F32, CHOIR_AGGREGATION_MEAN);
	choir_variable *part = NULL, *scalar = NULL;
	CHOIR_SCOPE (strategy) {
		scalar = choir_variable_new("scalar", CHOIR_SCALAR, NULL);
		part = choir_variable_new("part", CHOIR_SHAPE(ROWS, WIDTH),
				CHOIR_OPTIONS(choir_variable_options,
						.synchronization = CHOIR_SYNCHRONIZATION_ON_READ,
						.aggregation = CHOIR_AGGREGATION_SUM));
	}
	for (int how = CHOIR_SCATTER_MIN; how <= CHOIR_SCATTER_UPDATE; how++) {
		refuse(sum, (choir_scatter) how, CHOIR_UNSUPPORTED, "SUM");
		refuse(mean, (choir_scatter) how, CHOIR_UNSUPPORTED, "MEAN");
	}
	for (int how = CHOIR_SCATTER_ADD; how <= CHOIR_SCATTER_UPDATE; how++)
		refuse(part, (choir_scatter) how, CHOIR_UNSUPPORTED, "it is ON_READ");
	choir_cross *x = choir_strategy_cross(strategy);
	world_failed(choir_cross_update(x, part, NULL, scatter_in_update, part), CHOIR_UNSUPPORTED,
			"it is ON_READ", NULL);
	choir_frame_clear(x->frame);
	world_failed(choir_cross_update(x, none, NULL, scatter_in_update, sum), CHOIR_INVALID,
			"\"sum\" is not colocated", NULL);
	choir_frame_clear(x->frame);
	refuse(scalar, CHOIR_SCATTER_ADD, CHOIR_INVALID, "\"scalar\"");
	wrong w = { none, 10 };
	world_failed(choir_strategy_run(strategy, scatter_in_replica, &w, NULL, NULL), CHOIR_INVALID,
			"\"none\"*aggregation", NULL); // V1
	w = (wrong){ sum, 10 };
	const choir_status literal = choir_strategy_run(strategy, scatter_in_replica, &w, NULL, NULL);
	if (replicas > 1)
		world_failed(literal, CHOIR_INVALID, "the number 1 is the same for all", NULL);
	double rows[ROWS];
	world_ok(choir_strategy_run(strategy, scatter_ids, sum, NULL, NULL)); // different numbers
	fetch(sum, rows);
	assert_true(rows[2] == replicas * (replicas + 1) / 2 + (replicas == 1));
	w = (wrong){ sum, CHOIR_SCATTER_MUL }; // times 0
	world_ok(choir_strategy_run(strategy, scatter_in_replica, &w, NULL, NULL));
	w = (wrong){ mean, 10 };
	world_ok(choir_strategy_run(strategy, scatter_in_replica, &w, NULL, NULL));
}

// spec: D13, E17, E21, E38, M10, V1, 2.5, 2.19
TEST(what_an_aggregation_allows)
{
	world_on_every_deal(&strategy, &replicas, 1, scatter_by_aggregation);
}

static choir_status foreign_in_replica(choir_replica *r, void *user)
{
	return scatter_number(r->frame, user, CHOIR_SCATTER_ADD, 1);
}

// spec: 2.2, 2.19
TEST(variables_of_another_strategy)
{
	choir_strategy *other = world_new(2, "cpu:0,far:0", 0);
	strategy = other;
	choir_variable *foreign = make("foreign", CHOIR_F32, CHOIR_AGGREGATION_MEAN);
	strategy = world_new(2, "cpu:0,cpu:1", 0);
	world_failed(choir_strategy_run(strategy, foreign_in_replica, foreign, NULL, NULL),
			CHOIR_STATE, "\"foreign\": mixing strategies", NULL);
	choir_frame *f = choir_frame_new(NULL);
	CHOIR_SCOPE (strategy)
		world_failed(scatter_number(f, foreign, CHOIR_SCATTER_ADD, 1), CHOIR_STATE,
				"mixing strategies", NULL);
	choir_frame_clear(f);
	world_ok(scatter_number(choir_replica_current()->frame, foreign, CHOIR_SCATTER_ADD, 1));
	choir_frame_clear(choir_replica_current()->frame);
	choir_frame_free(f);
	choir_strategy_free(strategy);
	choir_strategy_free(other);
}

// Whichever allocation fails: the failure is told, and the variable is whole or says that it is
// not.
TEST(allocations_may_fail)
{
	for (int i = 0; i < world_deal_count; i++) {
		strategy = world_new(world_deals[i].replicas, world_deals[i].devices, 10);
		job j = { make("v", CHOIR_F32, CHOIR_AGGREGATION_SUM), CHOIR_SCATTER_ADD, CHOIR_I64 };
		bool failed = true;
		for (uint64_t n = 1; failed; n += SERIAL_STRIDE) {
			set_to_eight(j.v);
			chi_alloc_fail(n, false);
			const choir_status status = choir_strategy_run(strategy, bring_own, &j, NULL, NULL);
			failed = chi_alloc_failed();
			chi_alloc_fail(0, false);
			if (status != CHOIR_OK)
				world_failed(status, CHOIR_NO_MEMORY, NULL, NULL);
			else
				check_rows(&j, 0, world_deals[i].replicas, 1);
		}
		world_works(strategy);
		choir_strategy_free(strategy);
	}
}

TEST_BEFORE(world_watch)
