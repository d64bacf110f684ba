// Elementwise updates: in slices by all threads, to the bits of one call for the whole copy.
#include "strategy/world.h"

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/status.h"
#include "choir/op.h"
#include "short.h"
#include "strategy/update/update.h"
#include "value/variable.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 1000, COLUMNS = 41, SIZE = ROWS * COLUMNS, SLICE = 8192 };

static choir_strategy *strategy;
static int replicas;
static choir_variable *target, *slot, *small;

static void make_variables(void)
{
	choir_scope scope, beside;
	world_ok(choir_scope_enter(&scope, strategy));
	target = choir_variable_new("target", CHOIR_SHAPE(ROWS, COLUMNS),
			CHOIR_OPTIONS(choir_variable_options, .initializer = CHOIR_INITIALIZER_ONES));
	world_ok(choir_scope_colocate(&beside, choir_variable_as_value(target)));
	slot = choir_variable_new("slot", CHOIR_SHAPE(ROWS, COLUMNS), NULL);
	small = choir_variable_new("small", CHOIR_SHAPE(3), NULL);
	world_ok(choir_scope_exit(&beside));
	world_ok(choir_scope_exit(&scope));
	assert_non_null(small);
}

typedef struct {
	bool by_data; // on memory, not by operations
	chi_atomic32 calls;
	chi_atomic64 elements;
	int how; // of misuse
} job;

// slot = 0.9 slot + g;  target -= rate slot, by operations or on memory.
static choir_status momentum(choir_update *u, void *user)
{
	job *j = user;
	const int64_t n = choir_update_elements(u);
	chi_atomic32_add(&j->calls, 1);
	chi_atomic64_add(&j->elements, (uint64_t) n);
	choir_tensor *g = choir_update_arg(u, "g"), *rate = choir_update_arg(u, "rate");
	WORLD_NEED(choir_in_cross_replica_context() && choir_update_variable(u) == target);
	WORLD_NEED(choir_shape_elements(choir_tensor_shape(g)) == n);
	float *m = j->by_data ? choir_update_data(u, slot) : NULL;
	float *w = j->by_data ? choir_update_data(u, target) : NULL;
	if (m == NULL) {
		choir_tensor *old = choir_variable_read(slot, u->frame);
		CHOIR_TRY(choir_variable_assign(slot, choir_add(choir_scale(old, 0.9), g)));
		choir_tensor *step = choir_variable_read(slot, u->frame);
		return choir_variable_assign_sub(target, choir_multiply(step, rate));
	}
	const float *gradient = choir_tensor_data(g);
	for (int64_t i = 0; i < n; i++) {
		m[i] = m[i] * 0.9f;
		m[i] = m[i] + gradient[i];
		w[i] -= m[i] * 0.5f;
	}
	return CHOIR_OK;
}

static choir_status update(choir_cross *x, choir_toggle elementwise, job *j)
{
	choir_value *g = choir_cross_arg(x, "g");
	CHOIR_TRY(choir_cross_set_arg(
			x, "g", choir_cross_reduce_to(x, CHOIR_SUM, g, choir_variable_as_value(target))));
	CHOIR_TRY(choir_cross_set_arg(x, "rate", choir_tensor_as_value(choir_number(x->frame, 0.5))));
	return choir_cross_update(x, target,
			CHOIR_OPTIONS(choir_update_options, .elementwise = elementwise), momentum, j);
}

static choir_status whole(choir_cross *x, void *user)
{
	return update(x, CHOIR_OFF, user);
}

static choir_status in_slices(choir_cross *x, void *user)
{
	return update(x, CHOIR_ON, user);
}

static choir_tensor *gradient_of(choir_replica *r)
{
	float *g = malloc(SIZE * sizeof *g);
	for (int i = 0; i < SIZE; i++)
		g[i] = (float) ((i * 7 + choir_replica_id(r) * 3) % 101) / 64;
	choir_tensor *t = choir_constant(r->frame, CHOIR_F32, CHOIR_SHAPE(ROWS, COLUMNS), g);
	free(g);
	return t;
}

static choir_status train_whole(choir_replica *r, void *user)
{
	choir_replica_set_arg(r, "g", gradient_of(r));
	return choir_replica_merge_call(r, whole, user);
}

static choir_status train_in_slices(choir_replica *r, void *user)
{
	choir_tensor *before = choir_variable_read(target, r->frame);
	choir_replica_set_arg(r, "g", gradient_of(r));
	CHOIR_TRY(choir_replica_merge_call(r, in_slices, user));
	WORLD_NEED(choir_add(before, before) == NULL); // it has changed
	choir_frame_clear(r->frame);
	return choir_variable_read(target, r->frame) == NULL ? choir_error_status() : CHOIR_OK;
}

static void fetch(choir_variable *v, int copy, float have[SIZE])
{
	world_ok(chi_variable_to_host(v, copy, have));
}

static void compare_with_whole(void)
{
	static float expected[2][SIZE], have[SIZE];
	for (int way = 0; way < 3; way++) {
		choir_strategy *fresh = choir_strategy_copy_new(strategy), *old = strategy;
		strategy = fresh;
		make_variables();
		job j = { .by_data = way == 2 };
		for (int step = 0; step < 3; step++)
			world_ok(choir_strategy_run(
					fresh, way == 0 ? train_whole : train_in_slices, &j, NULL, NULL));
		int sliced = 0;
		for (int k = 0; k < choir_variable_copies(target); k++)
			sliced += strncmp(choir_device_name(choir_variable_device(target, k)), "cpu", 3) == 0;
		const int copies = choir_variable_copies(target);
		const int slices = (SIZE + SLICE - 1) / SLICE;
		assert_int_equal(chi_atomic32_load(&j.calls),
				way == 0 ? 3 * copies : 3 * (copies - sliced + sliced * slices));
		assert_int_equal(chi_atomic64_load(&j.elements), 3 * copies * SIZE);
		for (int k = 0; k < copies; k++)
			for (int v = 0; v < 2; v++) {
				fetch(v == 0 ? target : slot, k, have);
				if (way == 0 && k == 0)
					memcpy(expected[v], have, sizeof have);
				assert_memory_equal(have, expected[v], sizeof have);
			}
		strategy = old;
		choir_strategy_free(fresh);
	}
}

// spec: A41
TEST(the_bits_of_the_whole)
{
	world_on_every_deal(&strategy, &replicas, 1, compare_with_whole);
}

static choir_status misbehave(choir_update *u, void *user)
{
	job *j = user;
	choir_frame *f = u->frame;
	chi_atomic32_add(&j->calls, 1);
	switch (j->how) {
	case 0:
		return choir_variable_assign(small, choir_number(f, 1));
	case 1:
		return choir_variable_read(small, f) == NULL ? choir_error_status() : CHOIR_OK;
	case 2:
		return choir_update_return(u, "x", choir_number(f, 1));
	case 3:
		return choir_variable_assign(
				target, choir_fill(f, CHOIR_F32, CHOIR_SHAPE(ROWS, COLUMNS), 1));
	case 4:
		return choir_variable_scatter(target, CHOIR_SCATTER_ADD,
				choir_fill(f, CHOIR_I32, CHOIR_SHAPE(1), 0), choir_number(f, 1));
	case 5:
		return CHOIR_UNSUPPORTED;
	case 6:
		return choir_update_elements(u) < SLICE ? choir_fail(CHOIR_IO, "the last slice")
												: CHOIR_OK;
	case 7:
		return choir_update_arg(u, "nothing") == NULL ? CHOIR_OK : CHOIR_INTERNAL;
	default: // half of it is written
		CHOIR_TRY(choir_variable_assign(target, choir_number(f, 3)));
		return choir_update_elements(u) < SLICE ? choir_fail(CHOIR_IO, "half way") : CHOIR_OK;
	}
}

static choir_status update_wrongly(choir_cross *x, void *user)
{
	job *j = user;
	if (j->how == 9)
		choir_cross_set_arg(x, "g",
				choir_tensor_as_value(choir_fill(x->frame, CHOIR_F32, CHOIR_SHAPE(COLUMNS), 1)));
	if (j->how == 10)
		choir_cross_set_arg(x, "g", choir_cross_destination(x, "cpu:0"));
	return choir_cross_update(x, target,
			CHOIR_OPTIONS(choir_update_options, .elementwise = CHOIR_ON), misbehave, user);
}

static choir_status call_wrongly(choir_replica *r, void *user)
{
	return choir_replica_merge_call(r, update_wrongly, user);
}

TEST(wrong_functions)
{
	static const struct {
		choir_status status;
		const char *text;
	} expected[] = {
		{ CHOIR_INVALID, "\"small\" has 3 elements, not 41000" },
		{ CHOIR_INVALID, "\"small\" has 3 elements, not 41000" },
		{ CHOIR_INVALID, "elementwise function" },
		{ CHOIR_INVALID, "8192 elements of f32" },
		{ CHOIR_UNSUPPORTED, "rows of \"target\"" },
		{ CHOIR_UNSUPPORTED, "update of \"target\": the function returned" },
		{ CHOIR_IO, "the last slice" },
		{ CHOIR_NOT_FOUND, "update of \"target\"" },
		{ CHOIR_IO, "half way" },
		{ CHOIR_INVALID, "\"g\"*[41]*elementwise" },
		{ CHOIR_INVALID, "\"g\": a destination has no value" },
	};
	static const char *const devices[] = { "cpu:0", "cpu:0,cpu:1,cpu:2" };
	for (int d = 0; d < 2; d++) {
		strategy = world_new(3, devices[d], 0);
		make_variables();
		for (int how = 0; how < 11; how++) {
			job j = { .how = how };
			world_failed(choir_strategy_run(strategy, call_wrongly, &j, NULL, NULL),
					expected[how].status, expected[how].text, NULL);
			choir_frame *f = choir_frame_new(NULL);
			assert_int_equal(choir_variable_read(target, f) == NULL, how == 8);
			choir_frame_clear(f);
			if (how == 8) // undefined until it is assigned
				world_ok(choir_variable_assign(target, choir_number(f, 1)));
			choir_frame_free(f);
			if (how > 8)
				assert_int_equal(chi_atomic32_load(&j.calls), 0);
		}
		world_works(strategy);
		choir_strategy_free(strategy);
	}
}

static choir_status add_noise(choir_update *u, void *user)
{
	(void) user;
	choir_tensor *noise =
			choir_random_normal(u->frame, CHOIR_F32, CHOIR_SHAPE(choir_update_elements(u)), 1);
	return noise == NULL ? choir_error_status() : choir_variable_assign(target, noise);
}

static choir_status draw_whole(choir_update *u, void *user)
{
	(void) user;
	choir_tensor *noise = choir_random_normal(u->frame, CHOIR_F32, CHOIR_SHAPE(ROWS, COLUMNS), 1);
	return noise == NULL ? choir_error_status() : choir_variable_assign(target, noise);
}

// Which numbers a slice gets would depend on the thread that takes it. A function that is called
// for whole copies, right after, may draw.
TEST(random_numbers_are_refused)
{
	strategy = world_new(2, "cpu:0,cpu:1", 0);
	make_variables();
	for (int elementwise = 1; elementwise >= 0; elementwise--) {
		choir_cross *x = choir_strategy_cross(strategy);
		choir_frame_clear(x->frame);
		const choir_status status = choir_cross_update(x, target,
				CHOIR_OPTIONS(
						choir_update_options, .elementwise = elementwise ? CHOIR_ON : CHOIR_OFF),
				elementwise ? add_noise : draw_whole, NULL);
		if (elementwise)
			world_failed(status, CHOIR_UNSUPPORTED, "random_normal:*random numbers", NULL);
		else
			world_ok(status);
	}
	choir_strategy_free(strategy);
}

typedef struct {
	choir_variable *other;
	bool given;
} source;

static choir_status copy_other(choir_update *u, void *user)
{
	const source *from = user;
	choir_tensor *t =
			from->given ? choir_update_arg(u, "x") : choir_variable_read(from->other, u->frame);
	return t == NULL ? choir_error_status() : choir_variable_assign(target, t);
}

static choir_status update_from(choir_strategy *s, source *from)
{
	choir_cross *x = choir_strategy_cross(s);
	choir_frame_clear(x->frame);
	if (from->given)
		CHOIR_TRY(choir_cross_set_arg(x, "x", choir_variable_as_value(from->other)));
	return choir_cross_update(x, target,
			CHOIR_OPTIONS(choir_update_options, .elementwise = CHOIR_ON), copy_other, from);
}

static void check_copied(choir_strategy *s, choir_variable *other)
{
	static float number[SIZE], have[SIZE];
	choir_frame *f = choir_frame_new(NULL);
	for (int i = 0; i < SIZE; i++)
		number[i] = (float) i;
	world_ok(choir_variable_assign(
			other, choir_constant(f, CHOIR_F32, CHOIR_SHAPE(ROWS, COLUMNS), number)));
	for (int given = 0; given < 2; given++) {
		world_ok(choir_variable_assign(target, choir_number(f, 0)));
		world_ok(update_from(s, &(source){ other, given != 0 }));
		world_ok(choir_tensor_to_host(choir_variable_read(target, f), have, sizeof have));
		assert_memory_equal(have, number, sizeof have);
	}
	choir_frame_free(f);
}

// The slice of a variable that is not beside the target: on a device with other memory, in shards,
// or both, as is the target.
TEST(what_lies_elsewhere)
{
	for (int i = 0; i < 4; i++) {
		choir_strategy *s = choir_parameter_server_strategy_new(
				CHOIR_OPTIONS(choir_strategy_options, .replicas = 1, .devices = "cpu:0,cpu:1",
						.parameter_devices = i % 2 == 0 ? "cpu:0,far:0" : "cpu:0",
						.partition = i < 2 ? CHOIR_PARTITION_NONE : CHOIR_PARTITION_FIXED,
						.max_shards = i < 2 ? 0 : 3));
		target = world_variable(s, "target", CHOIR_SHAPE(ROWS, COLUMNS), NULL);
		check_copied(s, world_variable(s, "other", CHOIR_SHAPE(ROWS, COLUMNS), NULL));
		choir_strategy_free(s);
	}
}

TEST(what_cannot_be_read)
{
	for (int workers = 1; workers < 3; workers++) {
		choir_strategy *s = choir_parameter_server_strategy_new(CHOIR_OPTIONS(
				choir_strategy_options, .workers = workers, .replicas = 2, .devices = "cpu:0"));
		choir_strategy *foreign = world_new(1, "cpu:0", 0);
		target = world_variable(s, "target", CHOIR_SHAPE(ROWS, COLUMNS), NULL);
		source from = { world_variable(workers == 1 ? foreign : s, "other",
								CHOIR_SHAPE(ROWS, COLUMNS), NULL),
			false };
		for (int given = 0; given < 2; given++) {
			from.given = given != 0;
			world_failed(update_from(s, &from), CHOIR_STATE, "variable \"other\"",
					workers == 1 ? "mixing strategies" : "is not colocated");
		}
		choir_strategy_free(s);
		choir_strategy_free(foreign);
	}
}

static choir_status double_it(choir_update *u, void *user)
{
	(void) user;
	choir_tensor *own = choir_variable_component(target, u->frame); // the slice, as a read gives
	if (own != NULL)
		WORLD_NEED(choir_tensor_shape(own)->dim[0] == choir_update_elements(u));
	return choir_variable_assign_add(target, choir_variable_read(target, u->frame));
}

TEST(allocations_may_fail)
{
	bool failed = true;
	for (uint64_t n = 1; failed; n += SERIAL_STRIDE) {
		strategy = world_new(2, "cpu:0", 0);
		make_variables();
		choir_cross *x = choir_strategy_cross(strategy);
		choir_cross_set_arg(x, "two", choir_tensor_as_value(choir_number(x->frame, 2)));
		chi_alloc_fail(n, false);
		const choir_status status = choir_cross_update(x, target,
				CHOIR_OPTIONS(choir_update_options, .elementwise = CHOIR_ON), double_it, NULL);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
		choir_strategy_free(strategy);
	}
}

// The first two slices meet, for a while, and fail.
static choir_status fail_both(choir_update *u, void *user)
{
	job *j = user;
	const int64_t slice = ((const chi_update *) u)->first / SLICE;
	if (slice > 1)
		return CHOIR_OK;
	chi_atomic32_add(&j->calls, 1);
	for (int i = 0; i < 10000 && chi_atomic32_load(&j->calls) < 2; i++)
		chi_spin_pause();
	return choir_fail(CHOIR_INVALID, "slice %d", (int) slice);
}

// Which of two that fail at once is reported does not depend on who is first.
TEST(the_lowest_failure)
{
	strategy = world_new(2, "cpu:0,cpu:1", 0);
	make_variables();
	choir_cross *x = choir_strategy_cross(strategy);
	for (int i = 0; i < 20000 / STRIDE; i++) {
		job j = { .how = 0 };
		world_failed(choir_cross_update(x, target,
							 CHOIR_OPTIONS(choir_update_options, .elementwise = CHOIR_ON),
							 fail_both, &j),
				CHOIR_INVALID, "slice 0", NULL);
		choir_frame_clear(x->frame);
	}
	choir_strategy_free(strategy);
}

TEST_BEFORE(world_watch)
