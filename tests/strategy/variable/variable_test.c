// Making, reading and writing variables, by context (sections 2.3 to 2.5 of the behaviour).
#include "choir/op.h"

#include "strategy/strategy.h"
#include "strategy/world.h"
#include "test.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static choir_strategy *strategy;
static int replicas;

static choir_variable *make(
		const char *name, choir_dtype dtype, bool on_read, choir_aggregation aggregation)
{
	return world_variable(strategy, name, CHOIR_SHAPE(2),
			CHOIR_OPTIONS(choir_variable_options, .dtype = dtype, .aggregation = aggregation,
					.synchronization =
							on_read ? CHOIR_SYNCHRONIZATION_ON_READ : CHOIR_SYNCHRONIZATION_AUTO));
}

// The sum of both elements as read from outside; NAN after a failure.
static double value_of(choir_variable *v)
{
	choir_frame *f = choir_frame_new(NULL);
	const double x = choir_tensor_number(choir_sum(choir_variable_read(v, f), CHOIR_ALL_AXES));
	choir_frame_free(f);
	return x;
}

static double part_of(choir_variable *v, int copy)
{
	double x[2] = { 0 };
	char host[16];
	world_ok(chi_variable_to_host(v, copy, host));
	for (int i = 0; i < 2; i++)
		x[i] = chi_dtype_load(v->dtype, host, i);
	assert_true(x[0] == x[1]);
	return x[0];
}

static atomic_int initialized;

static choir_status initialize(void *out, const choir_shape *shape, void *user)
{
	(void) user;
	initialized++;
	for (int64_t i = 0; i < choir_shape_elements(shape); i++)
		((float *) out)[i] = 3;
	return CHOIR_OK;
}

static choir_variable *made[8];

static choir_status make_in_replicas(choir_replica *r, void *user)
{
	(void) user;
	const int id = choir_replica_id(r);
	choir_variable *a = choir_variable_new("a", CHOIR_SHAPE(2),
			CHOIR_OPTIONS(choir_variable_options, .initializer_fn = initialize));
	choir_variable *b = choir_variable_new("b", CHOIR_SHAPE(2),
			CHOIR_OPTIONS(
					choir_variable_options, .synchronization = CHOIR_SYNCHRONIZATION_ON_READ));
	WORLD_NEED(a != NULL && b != NULL && a != b);
	made[id] = a;
	choir_tensor *t = choir_variable_read(a, r->frame);
	WORLD_NEED((int) choir_tensor_number(choir_sum(t, CHOIR_ALL_AXES)) == 6);
	CHOIR_TRY(choir_variable_assign(b, choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), id)));
	t = choir_variable_read(b, r->frame);
	WORLD_NEED((int) choir_tensor_number(choir_sum(t, CHOIR_ALL_AXES)) == 2 * id);
	return CHOIR_OK;
}

static void create_in_replicas(void)
{
	initialized = 0;
	for (int k = 0; k < 3; k++) { // the second run finds them
		world_ok(choir_strategy_run(strategy, make_in_replicas, NULL, NULL, NULL));
		for (int i = 1; i < replicas; i++)
			assert_ptr_equal(made[i], made[0]);
	}
	assert_int_equal(initialized, 1);
	assert_true(choir_strategy_variable_created_in_scope(strategy, made[0]));
	assert_false(choir_strategy_variable_created_in_scope(choir_default_strategy(), made[0]));
}

// spec: A47, C8, V8, 2.1, 2.3
TEST(made_by_the_first_replica)
{
	world_on_every_deal(&strategy, &replicas, 1, create_in_replicas);
}

static choir_status make_differently(choir_replica *r, void *user)
{
	const int how = *(int *) user, id = choir_replica_id(r);
	const bool differs = id == choir_replica_count(r) - 1;
	if (how == 3 && differs)
		return CHOIR_OK;
	choir_variable_new(how == 0 && differs ? "other" : "one",
			how == 1 && differs ? CHOIR_SHAPE(3) : CHOIR_SHAPE(2),
			CHOIR_OPTIONS(
					choir_variable_options, .dtype = how == 2 && differs ? CHOIR_F64 : CHOIR_F32));
	return CHOIR_OK;
}

static choir_status make_badly(choir_replica *r, void *user)
{
	const int how = *(int *) user;
	choir_tensor *one = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(1), 1);
	if (how == 3)
		world_unseen(choir_variable_assign(NULL, one));
	else if (how == 4)
		world_unseen(choir_variable_scatter(NULL, CHOIR_SCATTER_ADD, one, one));
	if (how > 2)
		return CHOIR_OK; // the frame keeps what failed
	choir_variable_new(how == 0 ? "" : "bad", CHOIR_SHAPE(how == 1 ? -1 : 2),
			CHOIR_OPTIONS(choir_variable_options,
					.synchronization =
							how == 2 ? CHOIR_SYNCHRONIZATION_NONE : CHOIR_SYNCHRONIZATION_AUTO));
	return CHOIR_OK;
}

static void create_wrongly(void)
{
	char name[32];
	snprintf(name, sizeof name, "replica %d", replicas - 1);
	for (int how = 0; replicas > 1 && how < 4; how++)
		world_failed(choir_strategy_run(strategy, make_differently, &how, NULL, NULL), CHOIR_STATE,
				name, "variable \"one\"");
	static const char *const texts[] = { "a variable needs a name", "\"bad\": shape [-1]",
		"\"bad\": synchronization", "assign: the variable is NULL",
		"scatter: the variable is NULL" };
	for (int how = 0; how < 5; how++)
		world_failed(choir_strategy_run(strategy, make_badly, &how, NULL, NULL), CHOIR_INVALID,
				texts[how], NULL);
	make("mine", CHOIR_F32, false, CHOIR_AGGREGATION_NONE);
	CHOIR_SCOPE (strategy) {
		assert_null(choir_variable_new("mine", CHOIR_SCALAR, NULL));
		world_failed(choir_error_status(), CHOIR_INVALID, "\"mine\"*name", NULL);
		const choir_variable_options bad = { .size = 9999 };
		assert_null(choir_variable_new("size", CHOIR_SCALAR, &bad));
		world_failed(choir_error_status(), CHOIR_INVALID, "options' size is 9999", NULL);
		assert_null(choir_variable_new("mean", CHOIR_SCALAR,
				CHOIR_OPTIONS(choir_variable_options, .dtype = CHOIR_I32,
						.aggregation = CHOIR_AGGREGATION_MEAN)));
		world_failed(
				choir_error_status(), CHOIR_INVALID, "MEAN needs a floating-point dtype", NULL);
	}
}

// spec: E7, E20, E23, M2, M3, 2.3, 2.19
TEST(creation_that_differs_or_cannot_be)
{
	world_on_every_deal(&strategy, &replicas, 1, create_wrongly);
}

// What every context sees of a variable that each replica wrote 1 + id to.
typedef struct {
	choir_variable *v;
	double inside, across; // what replica 0 sees; what cross-replica context sees: NAN: an error
	double expected[8];
} view;

static choir_status look_across(choir_cross *x, void *user)
{
	view *w = user;
	w->across = (double) NAN;
	if (w->v->aggregation == CHOIR_AGGREGATION_NONE &&
			w->v->synchronization == CHOIR_SYNCHRONIZATION_ON_READ)
		return CHOIR_OK;
	w->across =
			choir_tensor_number(choir_mean(choir_variable_read(w->v, x->frame), CHOIR_ALL_AXES));
	return CHOIR_OK;
}

static choir_status write_own_and_look(choir_replica *r, void *user)
{
	view *w = user;
	const int id = choir_replica_id(r);
	CHOIR_TRY(
			choir_variable_assign(w->v, choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), 1 + id)));
	choir_tensor *own = choir_variable_read(w->v, r->frame);
	WORLD_NEED(choir_tensor_number(choir_mean(own, CHOIR_ALL_AXES)) == w->expected[id]);
	CHOIR_TRY(choir_variable_assign_add(w->v, choir_number(r->frame, 0)));
	return choir_replica_merge_call(r, look_across, w);
}

static void read_by_context(void)
{
	static const choir_aggregation all[] = { CHOIR_AGGREGATION_NONE, CHOIR_AGGREGATION_SUM,
		CHOIR_AGGREGATION_MEAN, CHOIR_AGGREGATION_ONLY_FIRST_REPLICA };
	const double sum = replicas * (replicas + 1) / 2.0;
	const double across[] = { (double) NAN, sum, sum / replicas, 1 };
	for (int on_read = 0; on_read < 2; on_read++)
		for (int a = 0; a < 4; a++) {
			if (!on_read && a == 0)
				continue;
			char name[8] = { (char) ('a' + on_read), (char) ('0' + a), '\0' };
			view w = { .v = make(name, CHOIR_F32, on_read, all[a]) };
			for (int i = 0; i < replicas; i++)
				w.expected[i] = on_read ? i + 1 : across[a];
			world_ok(choir_strategy_run(strategy, write_own_and_look, &w, NULL, NULL));
			assert_true(isnan(across[a]) ? isnan(w.across) : fabs(w.across - across[a]) < 1e-6);
			const double outside = value_of(w.v); // and outside the scope, the same
			assert_true(isnan(across[a]) ? isnan(outside) : fabs(outside - 2 * across[a]) < 1e-5);
			if (a == 0)
				world_failed(choir_error_status(), CHOIR_INVALID, "ON_READ without an aggregation",
						NULL);
		}
}

// spec: A12, A14, A15, A16, A17, A21, E18, M5, M6, 2.4
TEST(reads_by_context)
{
	world_on_every_deal(&strategy, &replicas, 1, read_by_context);
}

typedef struct {
	choir_variable *v;
	int how;
} writing;

static choir_status write_inside(choir_replica *r, void *user)
{
	const writing *w = user;
	choir_frame *f = r->frame;
	const int id = choir_replica_id(r);
	switch (w->how) {
	case 0:
		return choir_variable_assign(w->v, choir_number(f, 7)); // the same for all
	case 1:
		return choir_variable_assign_add(w->v, choir_number(f, 2));
	case 2:
		return choir_variable_assign_sub(w->v, choir_fill(f, CHOIR_F32, CHOIR_SHAPE(2), id));
	case 3:
		return choir_variable_assign(w->v, choir_number(f, 0));
	case 4:
		return choir_variable_assign(w->v, choir_number(f, id)); // numbers, and yet not the same
	default:
		return choir_variable_assign(w->v, choir_variable_read(w->v, f));
	}
}

static double after(choir_variable *v, int how)
{
	writing w = { v, how };
	world_ok(choir_variable_assign(
			v, choir_fill(choir_strategy_cross(strategy)->frame, CHOIR_F32, CHOIR_SHAPE(2), 100)));
	choir_frame_clear(choir_strategy_cross(strategy)->frame);
	const choir_status status = choir_strategy_run(strategy, write_inside, &w, NULL, NULL);
	if (status == CHOIR_OK)
		return value_of(v) / 2;
	for (int i = 0; i < choir_variable_copies(v); i++)
		assert_true(part_of(v, i) == 100); // refused before anything was changed
	return (double) NAN;
}

static void write_by_aggregation(void)
{
	choir_variable *none = make("none", CHOIR_F32, false, CHOIR_AGGREGATION_NONE);
	choir_variable *sum = make("sum", CHOIR_F32, false, CHOIR_AGGREGATION_SUM);
	choir_variable *mean = make("mean", CHOIR_F32, false, CHOIR_AGGREGATION_MEAN);
	choir_variable *first = make("first", CHOIR_F32, false, CHOIR_AGGREGATION_ONLY_FIRST_REPLICA);
	const int ids = replicas * (replicas - 1) / 2;
	assert_true(isnan(after(none, 0))); // V1
	world_failed(choir_error_status(), CHOIR_INVALID, "\"none\"*aggregation", NULL);
	if (replicas > 1) {
		assert_true(isnan(after(sum, 0)));
		world_failed(
				choir_error_status(), CHOIR_INVALID, "the number 7 is the same for all", NULL);
		assert_true(isnan(after(sum, 1)));
	}
	assert_true(after(sum, 2) == 100 - ids);
	assert_true(after(sum, 4) == ids);
	assert_true(after(sum, 3) == 0);
	assert_true(after(sum, 5) == 100 * replicas);
	assert_true(after(mean, 0) == 7);
	assert_true(after(mean, 1) == 102);
	assert_true(fabs(after(mean, 2) - (100 - (double) ids / replicas)) < 1e-5);
	assert_true(fabs(after(mean, 4) - (double) ids / replicas) < 1e-6);
	assert_true(after(mean, 5) == 100);
	assert_true(after(first, 0) == 7);
	assert_true(after(first, 2) == 100);
	assert_true(after(first, 4) == 0);
}

// spec: A13, A30, E17, E21, M7, M16, V1, 2.5, 2.19
TEST(writes_in_replicas)
{
	world_on_every_deal(&strategy, &replicas, 1, write_by_aggregation);
}

static void write_across(void)
{
	choir_frame *f = choir_frame_new(NULL);
	choir_variable *v = make("v", CHOIR_F32, false, CHOIR_AGGREGATION_NONE);
	choir_variable *sum = make("sum", CHOIR_F32, true, CHOIR_AGGREGATION_SUM);
	choir_variable *mean = make("mean", CHOIR_F32, true, CHOIR_AGGREGATION_MEAN);
	choir_variable *first = make("first", CHOIR_F32, true, CHOIR_AGGREGATION_ONLY_FIRST_REPLICA);
	choir_variable *none = make("none", CHOIR_F32, true, CHOIR_AGGREGATION_NONE);
	choir_tensor *ten = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(2), 10);
	world_ok(choir_variable_assign(v, ten));
	world_ok(choir_variable_assign_add(v, choir_number(f, 5)));
	world_ok(choir_variable_assign_sub(v, choir_fill(f, CHOIR_F32, CHOIR_SHAPE(2), 1)));
	for (int i = 0; i < choir_variable_copies(v); i++)
		assert_true(part_of(v, i) == 14);
	world_ok(choir_variable_assign(sum, ten));
	world_ok(choir_variable_assign(mean, ten));
	world_ok(choir_variable_assign(first, ten));
	choir_variable *const on_read[] = { sum, mean, first, none };
	for (int i = 0; i < 8; i++) { // V2
		const choir_status status = i % 2 == 0 ? choir_variable_assign_add(on_read[i / 2], ten)
											   : choir_variable_assign_sub(on_read[i / 2], ten);
		world_failed(
				status, CHOIR_INVALID, "ON_READ*replica", choir_variable_name(on_read[i / 2]));
		choir_frame_clear(f);
		ten = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(2), 10);
	}
	world_failed(choir_variable_assign(none, ten), CHOIR_INVALID,
			"\"none\": it is ON_READ without an aggregation", NULL);
	for (int i = 0; i < replicas; i++) { // as they were assigned, or made
		assert_true(fabs(part_of(sum, i) - 10.0 / replicas) < 1e-5);
		assert_true(part_of(mean, i) == 10 && part_of(first, i) == 10 && part_of(none, i) == 0);
	}
	assert_true(fabs(value_of(sum) - 20) < 1e-4 && value_of(first) == 20);
	choir_frame_clear(f);
	world_failed(choir_variable_assign(v, choir_fill(f, CHOIR_F64, CHOIR_SHAPE(2), 1)),
			CHOIR_INVALID, "the value is f64, the variable f32", NULL);
	choir_frame_clear(f);
	world_failed(choir_variable_assign(NULL, choir_number(f, 1)), CHOIR_INVALID, "NULL", NULL);
	assert_int_not_equal(choir_variable_assign(v, NULL), CHOIR_OK);
	assert_true(value_of(v) == 28);
	choir_frame_free(f);
}

// spec: A14, A18, E19, V2, 2.5, 2.19
TEST(writes_across_replicas)
{
	world_on_every_deal(&strategy, &replicas, 1, write_across);
}

// A value of several replicas is no tensor, so it cannot be written: which part was meant is not
// known. And a copy of a variable is a new one with the same value, made and assigned.
static void assign_values(void)
{
	choir_frame *f = choir_frame_new(NULL);
	choir_variable *v = make("v", CHOIR_F32, false, CHOIR_AGGREGATION_SUM);
	choir_variable *part = make("part", CHOIR_F32, true, CHOIR_AGGREGATION_SUM);
	world_ok(choir_variable_assign(v, choir_number(f, 5)));
	world_ok(choir_variable_assign(part, choir_number(f, 6)));
	choir_variable *copy = make("v copy", CHOIR_F32, false, CHOIR_AGGREGATION_SUM);
	choir_variable *parts = make("part copy", CHOIR_F32, true, CHOIR_AGGREGATION_SUM);
	world_ok(choir_variable_assign(copy, choir_variable_read(v, f)));
	world_ok(choir_variable_assign(parts, choir_variable_read(part, f)));
	world_ok(choir_variable_assign(v, choir_number(f, 7)));
	assert_true(value_of(copy) == 10 && value_of(v) == 14);
	assert_true(fabs(value_of(parts) - 12) < 1e-5);
	choir_values *set = choir_values_new(strategy);
	for (int i = 0; i < replicas; i++)
		world_ok(choir_values_set_local(
				set, "x", i, choir_fill(choir_values_frame(set), CHOIR_F32, CHOIR_SHAPE(2), i)));
	if (replicas > 1)
		world_failed(choir_variable_assign(v, choir_value_tensor(choir_values_find(set, "x"))),
				CHOIR_INVALID, "per-replica, of ", "reduce it");
	assert_true(value_of(v) == 14);
	choir_values_free(set);
	choir_frame_free(f);
}

// spec: D32, M8, 2.5
TEST(copies_and_parts)
{
	world_on_every_deal(&strategy, &replicas, 1, assign_values);
}

// Whole numbers are dealt so that their sum is what was assigned, whatever its sign (M9).
static void deal_integers(void)
{
	static const choir_dtype dtypes[] = { CHOIR_I32, CHOIR_I64, CHOIR_U8 };
	static const int values[] = { 0, 1, 7, 200, -1, -7, -20 };
	choir_frame *f = choir_frame_new(NULL);
	for (int d = 0; d < 3; d++) {
		char name[8] = { 'i', (char) ('0' + d), '\0' };
		choir_variable *v = make(name, dtypes[d], true, CHOIR_AGGREGATION_SUM);
		for (int k = 0; k < (d == 2 ? 4 : 7); k++)
			for (int plain = 0; plain < 2; plain++) {
				choir_tensor *x = plain ? choir_number(f, values[k])
										: choir_fill(f, dtypes[d], CHOIR_SHAPE(2), values[k]);
				world_ok(choir_variable_assign(v, x));
				assert_int_equal((int) value_of(v),
						dtypes[d] == CHOIR_U8 ? (2 * values[k]) % 256 : 2 * values[k]);
				double sum = 0, max = -1e9, min = 1e9;
				for (int i = 0; i < replicas; i++) {
					const double part = part_of(v, i);
					assert_true(i == 0 || part <= part_of(v, i - 1));
					sum += part;
					max = fmax(max, part);
					min = fmin(min, part);
				}
				assert_int_equal((int) sum, values[k]);
				assert_true(max - min <= 1);
			}
		choir_frame_clear(f);
		world_failed(choir_variable_assign(v, choir_fill(f, CHOIR_F32, CHOIR_SHAPE(2), 1)),
				CHOIR_INVALID, "the value is f32", NULL);
		choir_frame_clear(f);
		world_failed(choir_variable_assign(v, choir_number(f, 0.5)), CHOIR_INVALID, "0.5", NULL);
		choir_frame_clear(f);
	}
	choir_frame_free(f);
}

// spec: M9, 2.5, 2.7
TEST(integers_are_dealt)
{
	world_on_every_deal(&strategy, &replicas, 1, deal_integers);
}

static choir_status read_foreign(choir_replica *r, void *user)
{
	const writing *w = user;
	choir_frame *own = choir_frame_new(NULL);
	choir_frame *f = w->how == 2 ? own : r->frame;
	choir_status status = CHOIR_OK;
	switch (w->how) {
	case 0:
	case 2:
		status = choir_variable_read(w->v, f) == NULL ? choir_error_status() : CHOIR_OK;
		break;
	case 1:
		status = choir_variable_assign(w->v, choir_number(f, 1));
		break;
	default:
		choir_variable_component(w->v, f);
	}
	choir_frame_free(own);
	return status;
}

// A variable of another strategy; and one's own in a frame that is not the replica's.
// spec: E3, M5, 2.2, 2.4, 2.19
TEST(other_strategies_variables)
{
	strategy = world_new(4, "cpu:0,far:0", 0);
	choir_variable *foreign = make("foreign", CHOIR_F32, true, CHOIR_AGGREGATION_SUM);
	choir_strategy *s = world_new(2, "cpu:0,cpu:1", 0);
	for (int how = 0; how < 4; how++) {
		writing w = { foreign, how };
		world_failed(choir_strategy_run(s, read_foreign, &w, NULL, NULL), CHOIR_STATE,
				how == 2 ? "reading it in this frame" : "mixing strategies",
				"variable \"foreign\"");
	}
	assert_true(value_of(foreign) == 0); // nothing was written
	writing own = { foreign, 2 };
	world_failed(choir_strategy_run(strategy, read_foreign, &own, NULL, NULL), CHOIR_STATE,
			"variable \"foreign\": reading it in this frame", "cross-replica context");
	// The default replica, outside, sees it from outside.
	choir_replica *r = choir_replica_current();
	world_ok(choir_variable_assign(foreign, choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), 8)));
	choir_tensor *t = choir_variable_read(foreign, r->frame);
	assert_int_equal((int) choir_tensor_number(choir_sum(t, CHOIR_ALL_AXES)), 16);
	assert_non_null(choir_variable_component(foreign, r->frame));
	choir_frame_clear(r->frame);
	CHOIR_SCOPE (s) {
		choir_frame *f = choir_frame_new(NULL);
		assert_null(choir_variable_read(foreign, f));
		world_failed(choir_error_status(), CHOIR_STATE, "mixing strategies", "\"foreign\"");
		choir_frame_clear(f);
		world_failed(choir_variable_assign(foreign, choir_number(f, 1)), CHOIR_STATE,
				"variable \"foreign\": assign: mixing strategies", NULL);
		choir_frame_free(f);
	}
	assert_true(value_of(foreign) == 16);
	choir_strategy_free(s);
	choir_strategy_free(strategy);
}

// The default replica has the only component of its strategy's variables.
// spec: A10, A16, 2.4, 2.5
TEST(the_default_replica_writes_its_component)
{
	choir_frame *f = choir_replica_current()->frame;
	for (int i = CHOIR_AGGREGATION_NONE; i <= CHOIR_AGGREGATION_ONLY_FIRST_REPLICA; i++) {
		char name[32];
		snprintf(name, sizeof name, "default/on_read_%d", i);
		choir_variable *v = choir_variable_new(name, CHOIR_SCALAR,
				CHOIR_OPTIONS(choir_variable_options, .aggregation = (choir_aggregation) i,
						.synchronization = CHOIR_SYNCHRONIZATION_ON_READ));
		world_ok(choir_variable_assign(v, choir_fill(f, CHOIR_F32, CHOIR_SCALAR, 6)));
		world_ok(choir_variable_assign_add(v, choir_number(f, 3)));
		world_ok(choir_variable_assign_sub(v, choir_number(f, 2)));
		assert_true(choir_tensor_number(choir_variable_read(v, f)) == 7);
		choir_frame_clear(f);
	}
}

static choir_status add_one(choir_replica *r, void *user)
{
	return choir_variable_assign_add(user, choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), 1));
}

static choir_status do_nothing(choir_update *u, void *user)
{
	return choir_variable_assign_add(user, choir_number(u->frame, 1));
}

static choir_status update_wrapped(choir_replica *r, void *user)
{
	return choir_replica_update(r, user, do_nothing, user);
}

static void wrap_memory(void)
{
	float memory[2] = { 5, 6 };
	choir_variable *v = NULL;
	CHOIR_SCOPE (strategy)
		v = choir_variable_wrap("wrapped", CHOIR_F32, CHOIR_SHAPE(2), memory);
	assert_non_null(v);
	assert_int_equal((int) value_of(v), 11);
	for (int k = 1; k < 3; k++) {
		world_ok(choir_strategy_run(strategy, update_wrapped, v, NULL, NULL));
		assert_float_equal(memory[0], (float) (5 + k), 0); // up to date when run has returned
		assert_float_equal(memory[1], (float) (6 + k), 0);
	}
	world_failed(choir_strategy_run(strategy, add_one, v, NULL, NULL), CHOIR_INVALID,
			"aggregation", NULL);
	CHOIR_SCOPE (strategy) {
		assert_null(choir_variable_wrap("nothing", CHOIR_F32, CHOIR_SHAPE(2), NULL));
		world_failed(choir_error_status(), CHOIR_INVALID, "\"nothing\": the memory to wrap", NULL);
	}
}

TEST(wrapped_memory)
{
	world_on_every_deal(&strategy, &replicas, 1, wrap_memory);
}

static choir_status take_component(choir_replica *r, void *user)
{
	choir_tensor *c = choir_replica_arg(r, "v");
	WORLD_NEED(choir_tensor_variable(c) == user);
	choir_tensor *sum = choir_replica_all_gather(r, c, 0); // the value, not the variable
	WORLD_NEED(choir_tensor_shape(sum)->dim[0] == 2 * choir_replica_count(r));
	WORLD_NEED((int) choir_tensor_number(choir_sum(choir_add(c, c), CHOIR_ALL_AXES)) == 20);
	choir_replica_return(r, "copy", choir_add(c, choir_number(r->frame, 1)));
	return choir_replica_return(r, "v", c);
}

// As argument and result a variable stays whole; in an operation it is read.
static void pass_variables(void)
{
	choir_variable *v = make("v", CHOIR_F32, false, CHOIR_AGGREGATION_NONE);
	choir_frame *f = choir_frame_new(NULL);
	world_ok(choir_variable_assign(v, choir_number(f, 5)));
	choir_values *args = choir_values_new(strategy), *results = NULL;
	world_ok(choir_values_set(args, "v", choir_variable_as_value(v)));
	world_ok(choir_strategy_run(strategy, take_component, v, args, &results));
	choir_value *back = choir_values_find(results, "v");
	assert_int_equal(choir_value_kind_of(back), CHOIR_VALUE_VARIABLE);
	assert_ptr_equal(choir_value_variable(back), v);
	world_ok(choir_variable_assign(v, choir_number(f, 9)));
	assert_int_equal(
			(int) choir_tensor_number(choir_sum(choir_value_local(back, 0), CHOIR_ALL_AXES)), 18);
	choir_tensor *copy = choir_value_local(choir_values_find(results, "copy"), 0);
	assert_int_equal((int) choir_tensor_number(choir_sum(copy, CHOIR_ALL_AXES)), 12); // as it was
	assert_int_equal(
			(int) choir_tensor_number(choir_sum(choir_strategy_reduce(strategy, CHOIR_MEAN,
														choir_variable_as_value(v), CHOIR_NO_AXIS),
					CHOIR_ALL_AXES)),
			18);
	choir_tensor *sum =
			choir_strategy_reduce(strategy, CHOIR_SUM, choir_variable_as_value(v), CHOIR_NO_AXIS);
	assert_int_equal(sum == NULL, replicas > 1);
	choir_frame_clear(choir_strategy_cross(strategy)->frame);
	choir_frame_free(f);
	choir_values_free(args);
	choir_values_free(results);
}

// spec: A1, A2, A5, A46, B23, 2.6
TEST(variables_as_arguments)
{
	world_on_every_deal(&strategy, &replicas, 1, pass_variables);
}

TEST_BEFORE(world_watch)
