// Cross-replica context: fetching variables to devices, and what a function makes of them there.
#include "choir/op.h"

#include "strategy/strategy.h"
#include "strategy/world.h"
#include "value/variable.h"
#include "test.h"

static choir_strategy *strategy;
static int replicas;

static choir_variable *make(
		const char *name, choir_synchronization synchronization, choir_aggregation aggregation)
{
	return world_variable(strategy, name, CHOIR_SHAPE(2, 3),
			CHOIR_OPTIONS(choir_variable_options, .synchronization = synchronization,
					.aggregation = aggregation, .initializer = CHOIR_INITIALIZER_ONES));
}

typedef struct {
	choir_device *expected; // where the function is to be called; NULL: anywhere
	int calls, how;
} fetching;

static choir_tensor *half_sum(choir_tensor *t, void *user)
{
	fetching *w = user;
	w->calls++;
	if (w->expected != NULL && !chi_device_shares(choir_tensor_device(t), w->expected))
		w->calls = 99;
	return choir_scale(choir_sum(t, CHOIR_ALL_AXES), 0.5);
}

// The copy nearest to d.
static choir_device *source_of(choir_variable *v, choir_device *d)
{
	for (int i = 0; i < choir_variable_copies(v); i++)
		if (chi_device_shares(choir_variable_device(v, i), d))
			return choir_variable_device(v, i);
	return choir_variable_device(v, 0);
}

static const char *const places[] = { "cpu:0", "far:0", "far:1", "far:7" };

static choir_status fetch_everywhere(choir_cross *x, void *user)
{
	choir_variable *v = user;
	for (int i = 0; i < 4; i++) {
		choir_device *d = choir_device_find(places[i]);
		choir_tensor *whole = choir_cross_fetch(x, v, d, NULL, NULL);
		WORLD_NEED(whole != NULL && chi_device_shares(choir_tensor_device(whole), d));
		if (i == 0 && chi_device_shares(choir_variable_device(v, 0), d)) // it is there already
			WORLD_NEED(choir_tensor_data(whole) == v->copy[0].buffer->memory);
		WORLD_NEED(choir_tensor_number(choir_sum(whole, CHOIR_ALL_AXES)) == 6);
		fetching w = { .expected = source_of(v, d) };
		choir_tensor *t = choir_cross_fetch(x, v, d, half_sum, &w);
		WORLD_NEED(t != NULL && w.calls == 1);
		WORLD_NEED(chi_device_shares(choir_tensor_device(t), d));
		WORLD_NEED(choir_tensor_number(t) == 3);
	}
	return CHOIR_OK;
}

static choir_status fetch_in_a_merge(choir_replica *r, void *user)
{
	return choir_replica_merge_call(r, fetch_everywhere, user);
}

static void fetch_mirrored(void)
{
	choir_variable *v = make("v", CHOIR_SYNCHRONIZATION_AUTO, CHOIR_AGGREGATION_NONE);
	choir_cross *x = choir_strategy_cross(strategy);
	for (int k = 0; k < 2; k++) {
		world_ok(fetch_everywhere(x, v));
		choir_frame_clear(x->frame);
		world_ok(choir_strategy_run(strategy, fetch_in_a_merge, v, NULL, NULL));
	}
}

// spec: C9
TEST(on_the_variables_device_then_copied)
{
	world_on_every_deal(&strategy, &replicas, 1, fetch_mirrored);
}

static choir_status write_parts(choir_replica *r, void *user)
{
	return choir_variable_assign(user, choir_number(r->frame, 1 + choir_replica_id(r)));
}

static void fetch_parts(void)
{
	static const choir_aggregation all[] = { CHOIR_AGGREGATION_SUM, CHOIR_AGGREGATION_MEAN,
		CHOIR_AGGREGATION_ONLY_FIRST_REPLICA };
	static const char *const names[] = { "sum", "mean", "first" };
	const double sum = replicas * (replicas + 1) / 2.0;
	const double expected[] = { sum, sum / replicas, 1 };
	choir_cross *x = choir_strategy_cross(strategy);
	for (int i = 0; i < 3; i++) {
		choir_variable *v = make(names[i], CHOIR_SYNCHRONIZATION_ON_READ, all[i]);
		world_ok(choir_strategy_run(strategy, write_parts, v, NULL, NULL));
		for (int k = 0; k < 4; k++) {
			choir_device *d = choir_device_find(places[k]);
			fetching w = { 0 };
			choir_tensor *t = choir_cross_fetch(x, v, d, half_sum, &w);
			assert_non_null(t);
			assert_true(chi_device_shares(choir_tensor_device(t), d));
			assert_float_equal((float) choir_tensor_number(t), (float) (3 * expected[i]), 1e-5);
		}
		choir_frame_clear(x->frame);
	}
	choir_variable *none = make("none", CHOIR_SYNCHRONIZATION_ON_READ, CHOIR_AGGREGATION_NONE);
	assert_null(choir_cross_fetch(x, none, choir_device_find("cpu:0"), NULL, NULL));
	world_failed(choir_error_status(), CHOIR_INVALID, "\"none\": it is ON_READ without", NULL);
	choir_frame_clear(x->frame);
}

// spec: C9, C24
TEST(of_parts_what_they_make_together)
{
	world_on_every_deal(&strategy, &replicas, 1, fetch_parts);
}

static choir_frame *elsewhere;

static choir_tensor *fail_somehow(choir_tensor *t, void *user)
{
	const fetching *w = user;
	switch (w->how) {
	case 0:
		return NULL;
	case 1:
		choir_fail(CHOIR_IO, "the function's own");
		return NULL;
	case 2:
		choir_matmul(t, t, CHOIR_TRANSPOSED_NONE); // [2, 3] times [2, 3]
		return t;
	default:
		return choir_number(elsewhere, 1);
	}
}

static void fetch_wrongly(void)
{
	static const char *const texts[] = { "fetch of \"v\": the function returned NULL",
		"the function's own", "matmul: [2, 3]", "belongs to another frame" };
	static const choir_status expected[] = { CHOIR_INVALID, CHOIR_IO, CHOIR_INVALID,
		CHOIR_INVALID };
	choir_variable *v = make("v", CHOIR_SYNCHRONIZATION_AUTO, CHOIR_AGGREGATION_NONE);
	choir_cross *x = choir_strategy_cross(strategy);
	elsewhere = choir_frame_new(NULL);
	for (int i = 0; i < 4; i++)
		for (int how = 0; how < 4; how++) {
			fetching w = { .how = how };
			choir_device *d = choir_device_find(places[i]);
			assert_null(choir_cross_fetch(x, v, d, fail_somehow, &w));
			world_failed(choir_frame_status(x->frame), expected[how], texts[how], NULL);
			assert_null(choir_cross_fetch(x, v, d, NULL, NULL)); // the frame has failed
			choir_frame_clear(x->frame); // on all devices
			assert_non_null(choir_cross_fetch(x, v, d, NULL, NULL));
		}
	choir_frame_free(elsewhere);
	assert_null(choir_cross_fetch(x, NULL, choir_device_find("cpu:0"), NULL, NULL));
	world_failed(choir_error_status(), CHOIR_INVALID, "fetch: the variable is NULL", NULL);
	choir_frame_clear(x->frame);
	assert_null(choir_cross_fetch(x, v, NULL, NULL, NULL));
	world_failed(choir_error_status(), CHOIR_INVALID, "fetch: the device is NULL", NULL);
	choir_frame_clear(x->frame);
	choir_strategy *mine = strategy;
	strategy = world_new(1, "cpu:0", 0);
	choir_variable *foreign = make("foreign", CHOIR_SYNCHRONIZATION_AUTO, CHOIR_AGGREGATION_NONE);
	assert_null(choir_cross_fetch(x, foreign, choir_device_find("cpu:0"), NULL, NULL));
	world_failed(
			choir_error_status(), CHOIR_STATE, "mixing strategies: variable \"foreign\"", NULL);
	choir_frame_clear(x->frame);
	choir_strategy_free(strategy);
	strategy = mine;
}

// spec: C9, E18, 2.19
TEST(what_cannot_be_fetched)
{
	world_on_every_deal(&strategy, &replicas, 1, fetch_wrongly);
}

TEST_BEFORE(world_watch)
