// Strategies by name, their tables, and where they put variables.
#include "base/alloc.h"
#include "choir/extend/strategy_table.h"
#include "strategy/world.h"
#include "tensor/buffer_pool.h"
#include "test.h"

#include <string.h>

static choir_variable *make(choir_strategy *s, const char *name)
{
	choir_variable *v = NULL;
	CHOIR_SCOPE (s)
		v = choir_variable_new(name, CHOIR_SHAPE(4), NULL);
	return v;
}

static choir_strategy *make_central(int replicas, const char *devices, const char *parameters)
{
	choir_strategy *s = choir_central_storage_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
			.replicas = replicas, .devices = devices, .parameter_devices = parameters));
	assert_non_null(s);
	return s;
}

// spec: A6, A34, C13, D1
TEST(test_names)
{
	static const char *const names[] = { "default", "one_device", "mirrored", "central_storage",
		"parameter_server" };
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		choir_strategy *s = choir_strategy_new(names[i], NULL);
		assert_string_equal(choir_strategy_name(s), names[i]);
		assert_int_equal(choir_strategy_parameter_devices(s), 1);
		assert_ptr_equal(
				choir_strategy_parameter_device(s, 0), choir_strategy_worker_device(s, 0));
		assert_null(choir_strategy_parameter_device(s, 1));
		choir_strategy *copy = choir_strategy_copy_new(s);
		assert_string_equal(choir_strategy_name(copy), names[i]);
		choir_strategy_free(copy);
		choir_strategy_free(s);
	}
	assert_string_equal(choir_strategy_name(choir_default_strategy()), "default");
	assert_string_equal(choir_strategy_name(NULL), "");
	assert_int_equal(choir_strategy_parameter_devices(NULL), 0);
	assert_null(choir_strategy_parameter_device(NULL, 0));
}

static void check_refused(const char *kind, const choir_strategy_options *o, choir_status status,
		const char *first, const char *second)
{
	assert_null(choir_strategy_new(kind, o));
	world_failed(choir_error_status(), status, first, second);
}

TEST(test_refused)
{
	check_refused("centrel", NULL, CHOIR_NOT_FOUND,
			"strategy \"centrel\":", "mirrored, central_storage");
	check_refused(NULL, NULL, CHOIR_NOT_FOUND, "strategy \"\"", "one_device");
	check_refused("mirrored", CHOIR_OPTIONS(choir_strategy_options, .parameter_devices = "cpu:0"),
			CHOIR_INVALID, "\"mirrored\" has no parameter devices", "cpu:0");
	check_refused("central_storage",
			CHOIR_OPTIONS(choir_strategy_options, .parameter_devices = "cpu:0,cpu:1"),
			CHOIR_INVALID, "one parameter device*\"cpu:0,cpu:1\"", NULL);
	check_refused("central_storage",
			CHOIR_OPTIONS(choir_strategy_options, .parameter_devices = "moon:0"), CHOIR_NOT_FOUND,
			"moon", NULL);
	check_refused("one_device", CHOIR_OPTIONS(choir_strategy_options, .replicas = 2),
			CHOIR_INVALID, "\"one_device\"*1 replica*2", NULL);
}

static choir_status count_update(choir_update *u, void *user)
{
	++*(int *) user;
	WORLD_NEED(choir_update_copy(u) == 0);
	return choir_variable_assign(choir_update_variable(u), choir_number(u->frame, 5));
}

// spec: 2.14, D33
TEST(test_central_device)
{
	static const struct {
		int replicas;
		const char *devices, *asked, *expected;
	} cases[] = {
		{ 1, "far:1", NULL, "far:1" }, // the only compute device
		{ 4, "far:1", NULL, "far:1" },
		{ 2, "far:0,far:1", NULL, "cpu:0" },
		{ 2, "far:0,far:1", "far:1", "far:1" },
		{ 2, "cpu:0,cpu:1", "far:0", "far:0" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		choir_strategy *s = make_central(cases[i].replicas, cases[i].devices, cases[i].asked);
		choir_device *d = choir_device_find(cases[i].expected);
		assert_int_equal(choir_strategy_parameter_devices(s), 1);
		assert_ptr_equal(choir_strategy_parameter_device(s, 0), d);
		choir_variable *v = make(s, "v");
		assert_int_equal(choir_variable_copies(v), 1);
		assert_ptr_equal(choir_variable_device(v, 0), d);
		int updates = 0; // one, where it lies
		world_ok(choir_cross_update(choir_strategy_cross(s), v, NULL, count_update, &updates));
		assert_int_equal(updates, 1);
		world_works(s);
		choir_strategy_free(s);
	}
}

// spec: A38, A45
TEST(test_non_slot_devices)
{
	choir_strategy *s = make_central(2, "cpu:0,cpu:1", "far:1");
	choir_cross *x = choir_strategy_cross(s);
	choir_value *place = choir_cross_non_slot_devices(x, 0, NULL);
	assert_int_equal(choir_value_local_count(place), 1);
	choir_scope scope, inside;
	world_ok(choir_scope_enter(&scope, s));
	world_ok(choir_scope_colocate(&inside, place));
	choir_variable *v = choir_variable_new("power", CHOIR_SCALAR, NULL);
	world_ok(choir_scope_exit(&inside));
	world_ok(choir_scope_exit(&scope));
	assert_ptr_equal(choir_variable_device(v, 0), choir_device_find("far:1"));
	assert_ptr_equal(choir_variable_device(v, 0), choir_strategy_parameter_device(s, 0));
	choir_strategy_free(s);
}

// ---- Tables of others.

static int one_too_many(void *self, int capacity, choir_device *devices[])
{
	(void) self, (void) capacity;
	devices[0] = choir_device_find("cpu:0");
	return 1;
}

static int place_elsewhere(
		void *self, const choir_new_variable *v, int capacity, choir_device *devices[])
{
	(void) self, (void) capacity;
	if (strcmp(v->name, "no") == 0) {
		choir_fail(CHOIR_UNSUPPORTED, "\"%s\" of %lld elements is not to my liking", v->name,
				(long long) choir_shape_elements(v->shape));
		return CHOIR_NONE;
	}
	devices[0] = choir_device_find(v->dtype == CHOIR_F32 ? "cpu:1" : "cpu:0");
	return strcmp(v->name, "none") == 0 ? 0 : 1;
}

static int closed;

static void count_close(void *self)
{
	(void) self;
	closed++;
}

static choir_status fail_open(
		void *self, const choir_strategy_options *options, int n, choir_device *const devices[])
{
	(void) self, (void) options, (void) devices;
	return choir_fail(CHOIR_UNSUPPORTED, "not with %d devices", n);
}

static const choir_strategy_table empty = {
	.size = sizeof empty, .version = CHOIR_TABLE_VERSION, .name = "empty"
};

static void check_bad_table(choir_strategy_table t, const char *text)
{
	world_failed(choir_register_strategy(&t), CHOIR_INVALID, text, NULL);
}

TEST(test_bad_tables)
{
	choir_strategy_table t = empty;
	world_failed(choir_register_strategy(NULL), CHOIR_INVALID, "the table is NULL", NULL);
	t.size--;
	check_bad_table(t, "the table's size is");
	t = empty;
	t.version++;
	check_bad_table(t, "version is 2; 1 is needed");
	t = empty;
	t.name = NULL;
	check_bad_table(t, "no name");
	t.name = "mirrored";
	check_bad_table(t, "\"mirrored\": is registered already");
}

TEST(test_tables_of_another_size)
{
	struct {
		choir_strategy_table table;
		void *more[2];
	} newer = { .table = empty };
	newer.table.size = sizeof newer;
	newer.table.name = "newer";
	memset(newer.more, 0xff, sizeof newer.more);
	world_ok(choir_register_strategy(&newer.table));
	check_refused("newer", NULL, CHOIR_UNSUPPORTED, "parameter_devices", NULL);
	choir_strategy_table older = empty;
	older.size = offsetof(choir_strategy_table, place_variable);
	older.name = "older";
	older.parameter_devices = one_too_many;
	world_ok(choir_register_strategy(&older));
	choir_strategy *s = choir_strategy_new("older", NULL);
	assert_null(make(s, "v"));
	world_failed(choir_error_status(), CHOIR_UNSUPPORTED, "place_variable", NULL);
	choir_strategy_free(s);
	older.size = offsetof(choir_strategy_table, name);
	check_bad_table(older, "the table's size is 16");
}

TEST(test_empty_slots_fail)
{
	choir_strategy_table t = empty;
	world_ok(choir_register_strategy(&t));
	check_refused("empty", NULL, CHOIR_UNSUPPORTED, "parameter_devices", NULL);
	t.name = "no place";
	t.parameter_devices = one_too_many;
	world_ok(choir_register_strategy(&t));
	choir_strategy *s = choir_strategy_new("no place", NULL);
	assert_null(make(s, "v"));
	world_failed(choir_error_status(), CHOIR_UNSUPPORTED, "variable \"v\"", "place_variable");
	world_works(s);
	choir_strategy_free(s);
}

TEST(test_table_that_fails)
{
	choir_strategy_table t = empty;
	t.name = "closed";
	t.open = fail_open;
	t.close = count_close;
	world_ok(choir_register_strategy(&t));
	check_refused("closed", CHOIR_OPTIONS(choir_strategy_options, .devices = "cpu:0,cpu:1"),
			CHOIR_UNSUPPORTED, "not with 2 devices", NULL);
	assert_int_equal(closed, 1);
	t = empty;
	t.name = "elsewhere";
	t.parameter_devices = one_too_many;
	t.place_variable = place_elsewhere;
	world_ok(choir_register_strategy(&t));
	choir_strategy *s = choir_strategy_new("elsewhere", NULL);
	assert_null(make(s, "v"));
	world_failed(choir_error_status(), CHOIR_INVALID, "variable \"v\"",
			"none of its 1 parameter devices");
	assert_null(make(s, "none"));
	world_failed(choir_error_status(), CHOIR_INVALID, "variable \"none\"", NULL);
	assert_null(make(s, "no"));
	world_failed(choir_error_status(), CHOIR_UNSUPPORTED, "\"no\" of 4 elements", NULL);
	choir_strategy_free(s);
}

static choir_strategy *make_server(void)
{
	return choir_parameter_server_strategy_new(CHOIR_OPTIONS(choir_strategy_options, .workers = 2,
			.devices = "cpu:0,cpu:1", .parameter_devices = "far:0"));
}

static choir_strategy *make_far_central(void)
{
	return choir_central_storage_strategy_new(CHOIR_OPTIONS(
			choir_strategy_options, .devices = "cpu:0,cpu:1", .parameter_devices = "far:0"));
}

static choir_status do_nothing(choir_replica *r, void *user)
{
	(void) r;
	(void) user;
	return CHOIR_OK;
}

static choir_status run_once(choir_strategy *group, int worker, void *user)
{
	(void) worker;
	return choir_strategy_run(group, do_nothing, user, NULL, NULL);
}

static void check_every_allocation(choir_strategy *(*constructor)(void) )
{
	bool failed = true;
	for (uint64_t n = 1; failed; n++) {
		chi_buffer_trim();
		chi_alloc_fail(n, false);
		choir_strategy *s = constructor();
		choir_status status = s == NULL || make(s, "v") == NULL
				? choir_error_status()
				: choir_strategy_run_workers(s, run_once, NULL);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		if (failed)
			world_failed(status, CHOIR_NO_MEMORY, NULL, NULL);
		else
			world_ok(status);
		if (s != NULL)
			world_ok(choir_strategy_run_workers(s, run_once, NULL));
		choir_strategy_free(s);
	}
}

TEST(test_no_memory)
{
	check_every_allocation(make_far_central);
	check_every_allocation(make_server);
}

TEST_BEFORE(world_watch)
