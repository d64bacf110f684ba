// Variables in shards: how many there are and where, that the whole is read and written as a
// variable that is not cut, Python's slices, rows by number, and what is refused.
#include "choir/op.h"
#include "choir/tape.h"

#include "base/alloc.h"
#include "strategy/strategy.h"
#include "strategy/variable/create.h"
#include "strategy/world.h"
#include "short.h"
#include "test.h"

#include <string.h>

static choir_strategy *cut(int replicas, const char *devices, const char *parameters, int shards)
{
	choir_strategy *s = choir_parameter_server_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
			.replicas = replicas, .devices = devices, .parameter_devices = parameters, .seed = 7,
			.partition = CHOIR_PARTITION_FIXED, .max_shards = shards));
	if (s == NULL)
		fail_msg("%s", choir_error());
	return s;
}

static choir_variable *make(
		choir_strategy *s, const char *name, choir_shape shape, const choir_variable_options *o)
{
	choir_variable *v = NULL;
	CHOIR_SCOPE (s)
		v = choir_variable_new(name, shape, o);
	return v;
}

static void fetch(choir_variable *v, void *to, size_t bytes)
{
	choir_frame *f = choir_frame_new(NULL);
	world_ok(choir_tensor_to_host(choir_variable_read(v, f), to, bytes));
	choir_frame_free(f);
}

// ---- How many.

typedef struct {
	choir_partition partition;
	int64_t size;
	int max;
	choir_shape shape;
	int shards; // 0: it is whole
} count;

// spec: D16, 2.15, M23
TEST(test_how_many)
{
	static const count counts[] = {
		{ CHOIR_PARTITION_FIXED, 0, 3, { 1, { 10 } }, 3 },
		{ CHOIR_PARTITION_FIXED, 0, 12, { 2, { 10, 2 } }, 10 },
		{ CHOIR_PARTITION_FIXED, 0, 1, { 1, { 10 } }, 0 },
		{ CHOIR_PARTITION_FIXED, 0, 3, { 0, { 0 } }, 0 },
		{ CHOIR_PARTITION_FIXED, 0, 3, { 1, { 1 } }, 0 },
		{ CHOIR_PARTITION_FIXED, 0, 3, { 2, { 0, 4 } }, 0 },
		// 80 bytes: three shards of 32 would be 26 bytes each, which is less than the least.
		{ CHOIR_PARTITION_MIN_SIZE, 32, 9, { 2, { 10, 2 } }, 2 },
		{ CHOIR_PARTITION_MIN_SIZE, 8, 9, { 2, { 10, 2 } }, 9 },
		{ CHOIR_PARTITION_MIN_SIZE, 8, 90, { 2, { 10, 2 } }, 10 },
		{ CHOIR_PARTITION_MIN_SIZE, 81, 9, { 2, { 10, 2 } }, 0 },
		{ CHOIR_PARTITION_MIN_SIZE, 8, 0, { 2, { 10, 2 } }, 0 }, // one is the default
		{ CHOIR_PARTITION_MIN_SIZE, 0, 9, { 2, { 512, 256 } }, 2 }, // 256 KiB
		// 8 bytes a row: 3 rows fit into 31 bytes.
		{ CHOIR_PARTITION_MAX_SIZE, 31, 0, { 2, { 10, 2 } }, 4 },
		{ CHOIR_PARTITION_MAX_SIZE, 32, 0, { 2, { 10, 2 } }, 3 },
		{ CHOIR_PARTITION_MAX_SIZE, 1, 0, { 2, { 10, 2 } }, 10 },
		{ CHOIR_PARTITION_MAX_SIZE, 1, 4, { 2, { 10, 2 } }, 4 },
		{ CHOIR_PARTITION_MAX_SIZE, 80, 0, { 2, { 10, 2 } }, 0 },
		{ CHOIR_PARTITION_MAX_SIZE, 1, 0, { 2, { 10, 0 } }, 0 }, // rows of no bytes
	};
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
		const count *c = &counts[i];
		choir_strategy *s = choir_parameter_server_strategy_new(
				CHOIR_OPTIONS(choir_strategy_options, .partition = c->partition,
						.partition_size = c->size, .max_shards = c->max));
		choir_variable *v = make(s, "v", c->shape, NULL);
		assert_non_null(v);
		if (choir_variable_shards(v) != c->shards)
			fail_msg("case %zu: %d shards", i, choir_variable_shards(v));
		assert_int_equal(choir_variable_copies(v), c->shards == 0);
		choir_strategy_free(s);
	}
}

// spec: D16, 2.15
TEST(test_rows_names_and_places)
{
	static const char *const names[] = { "w/part_0", "w/part_1", "w/part_2" };
	static const char *const places[] = { "far:0", "cpu:1", "far:0" };
	static const int64_t rows[] = { 4, 3, 3 };
	choir_strategy *s = cut(2, "cpu:0", "cpu:1,far:0", 3);
	assert_string_equal(
			choir_device_name(choir_variable_device(make(s, "scalar", CHOIR_SCALAR, NULL), 0)),
			"cpu:1");
	choir_variable *w = make(s, "w", CHOIR_SHAPE(10, 2),
			CHOIR_OPTIONS(choir_variable_options, .dtype = CHOIR_F64, .trainable = CHOIR_OFF,
					.aggregation = CHOIR_AGGREGATION_MEAN));
	assert_int_equal(choir_variable_shards(w), 3);
	for (int i = 0; i < 3; i++) {
		choir_variable *shard = choir_variable_shard(w, i);
		choir_variable_options o = { .size = sizeof o };
		assert_string_equal(choir_variable_name(shard), names[i]);
		assert_int_equal(choir_variable_shape(shard)->dim[0], rows[i]);
		assert_int_equal(choir_variable_shape(shard)->dim[1], 2);
		assert_string_equal(choir_device_name(choir_variable_device(shard, 0)), places[i]);
		assert_ptr_equal(choir_variable_shard_parent(shard), w);
		assert_int_equal(choir_variable_shards(shard), 0);
		world_ok(choir_variable_describe(shard, &o));
		assert_true(o.dtype == CHOIR_F64 && o.trainable == CHOIR_OFF &&
				o.aggregation == CHOIR_AGGREGATION_MEAN);
	}
	assert_null(choir_variable_shard(w, 3));
	assert_null(choir_variable_shard(w, -1));
	assert_null(choir_variable_shard(NULL, 0));
	assert_null(choir_variable_shard_parent(w));
	assert_null(choir_variable_shard_parent(NULL));
	assert_int_equal(choir_variable_shards(NULL), 0);
	assert_null(choir_variable_device(w, 0));
	assert_true(choir_strategy_variable_created_in_scope(s, w));
	// What is read in replicas or lies with the non-slot variables stays whole.
	assert_int_equal(choir_variable_shards(make(s, "parts", CHOIR_SHAPE(10),
							 CHOIR_OPTIONS(choir_variable_options,
									 .synchronization = CHOIR_SYNCHRONIZATION_ON_READ))),
			0);
	choir_strategy_free(s);
}

// spec: 2.15
TEST(test_initial_values_are_rows_of_the_whole)
{
	static const choir_initializer initializers[] = { CHOIR_INITIALIZER_ZEROS,
		CHOIR_INITIALIZER_ONES, CHOIR_INITIALIZER_GLOROT_UNIFORM, CHOIR_INITIALIZER_HE_NORMAL,
		CHOIR_INITIALIZER_NORMAL };
	for (int i = 0; i < 5; i++) {
		float found[2][33];
		for (int shards = 1; shards <= 4; shards += 3) {
			choir_strategy *s = cut(1, "cpu:0", "far:0,cpu:0", shards);
			fetch(make(s, "w", CHOIR_SHAPE(11, 3),
						  CHOIR_OPTIONS(choir_variable_options, .initializer = initializers[i])),
					found[shards > 1], sizeof found[0]);
			choir_strategy_free(s);
		}
		assert_memory_equal(found[0], found[1], sizeof found[0]);
	}
}

// ---- Slices.

// spec: D16, 2.15, M24
TEST(test_slices_as_python)
{
	enum { N = 5 };
	static const int64_t ends[] = { INT64_MIN, -7, -6, -5, -4, -1, 0, 1, 3, 4, 5, 6, 9,
		INT64_MAX };
	static const int64_t steps[] = { 1, 2, 3, 5, 9, INT64_MAX, -1, -2, -4, -9, INT64_MIN };
	static const float initial[N] = { 0, 1, 2, 3, 4 };
	choir_frame *f = choir_frame_new(NULL);
	for (int shards = 1; shards <= N; shards++) {
		choir_strategy *s = cut(1, "cpu:0", NULL, shards);
		choir_variable *v = make(s, "v", CHOIR_SHAPE(N),
				CHOIR_OPTIONS(choir_variable_options, .initial_value = initial));
		for (size_t i = 0; i < 14 * 14 * 11; i++) {
			const int64_t start = ends[i % 14], stop = ends[i / 14 % 14], step = steps[i / 196];
			// Which ones these are, looked at one by one.
			const bool up = step > 0;
			const int64_t a = start < 0 ? start + N : start, b = stop < 0 ? stop + N : stop;
			float expected[N], found[N] = { 0 };
			int n = 0;
			int64_t at = up ? (a < 0 ? 0 : a) : (a > N - 1 ? N - 1 : a);
			while (at >= 0 && at < N && (up ? at < b : at > b)) {
				expected[n++] = (float) at;
				at = step > N || step < -N ? -1 : at + step;
			}
			choir_tensor *t = choir_variable_slice(v, f, start, stop, step);
			if (t == NULL)
				fail_msg("%s", choir_error());
			assert_int_equal(choir_tensor_shape(t)->dim[0], n);
			world_ok(choir_tensor_to_host(t, found, (size_t) n * sizeof found[0]));
			assert_memory_equal(found, expected, (size_t) n * sizeof found[0]);
			choir_frame_clear(f);
		}
		choir_strategy_free(s);
	}
	choir_frame_free(f);
}

// ---- Reading and writing.

typedef struct {
	choir_variable *v;
	double sum[4]; // of each replica
} session;

static choir_status write_in_replica(choir_replica *r, void *user)
{
	session *t = user;
	choir_frame *f = r->frame;
	const double id = choir_replica_id(r);
	double host[14];
	for (int i = 0; i < 14; i++)
		host[i] = i + id;
	choir_tensor *x = choir_constant(f, CHOIR_F64, CHOIR_SHAPE(7, 2), host);
	const int64_t rows[] = { 6, 0, 6 };
	choir_tensor *indices = choir_constant(f, CHOIR_I64, CHOIR_SHAPE(3), rows);
	CHOIR_TRY(choir_variable_assign(t->v, x));
	CHOIR_TRY(choir_variable_assign_add(t->v, choir_number(f, 1)));
	CHOIR_TRY(choir_variable_assign_sub(t->v, choir_multiply(x, x)));
	CHOIR_TRY(choir_variable_scatter(t->v, CHOIR_SCATTER_ADD, indices, choir_number(f, 100)));
	choir_tensor *all = choir_sum(choir_variable_read(t->v, f), CHOIR_ALL_AXES);
	return choir_tensor_to_host(all, &t->sum[choir_replica_id(r)], sizeof(double));
}

// spec: D16, 2.5, 2.15
TEST(test_written_as_if_whole)
{
	static const char *const devices[] = { "cpu:0", "cpu:0,cpu:1", "far:0,cpu:0" };
	for (int d = 0; d < 3; d++) {
		double found[2][14];
		session t[2] = { { 0 } };
		for (int whole = 0; whole < 2; whole++) {
			choir_strategy *s = cut(3, devices[d], "far:0,cpu:0", whole ? 1 : 3);
			t[whole].v = make(s, "v", CHOIR_SHAPE(7, 2),
					CHOIR_OPTIONS(choir_variable_options, .dtype = CHOIR_F64,
							.aggregation = CHOIR_AGGREGATION_MEAN));
			world_ok(choir_strategy_run(s, write_in_replica, &t[whole], NULL, NULL));
			fetch(t[whole].v, found[whole], sizeof found[0]);
			choir_strategy_free(s);
		}
		assert_memory_equal(found[0], found[1], sizeof found[0]);
		assert_memory_equal(t[0].sum, t[1].sum, 3 * sizeof(double));
		// Replicas bring i, i + 1, i + 2: the means of these, and of their squares.
		assert_true(found[0][2] == 3 + 1 - (4 + 9 + 16) / 3.0);
	}
}

// spec: 2.15
TEST(test_written_outside)
{
	static const float host[5] = { 1, 2, 3, 4, 5 };
	static const int32_t rows[] = { 4, 1, 4, 0 };
	static const float values[] = { 10, 20, 30, 40 };
	static const float expected[] = { 2 * 1 - 3 - 40, 2 * 2 - 3 - 20, 3, 5, 2 * 5 - 3 - 40 };
	float found[5];
	choir_strategy *s = cut(1, "cpu:0", "cpu:0,far:0", 2);
	choir_variable *v = make(s, "v", CHOIR_SHAPE(5), NULL);
	choir_frame *f = choir_frame_new(NULL);
	choir_tensor *x = choir_constant(f, CHOIR_F32, CHOIR_SHAPE(5), host);
	world_ok(choir_variable_assign(v, x));
	world_ok(choir_variable_assign_add(v, x));
	world_ok(choir_variable_assign_sub(v, choir_number(f, 3)));
	world_ok(choir_variable_scatter(v, CHOIR_SCATTER_SUB,
			choir_constant(f, CHOIR_I32, CHOIR_SHAPE(4), rows),
			choir_constant(f, CHOIR_F32, CHOIR_SHAPE(4), values)));
	fetch(v, found, sizeof found);
	assert_memory_equal(found, expected, sizeof found);
	world_ok(choir_tensor_to_host(choir_variable_read(choir_variable_shard(v, 1), f), found, 8));
	assert_memory_equal(found, expected + 3, 8);
	// The same in a frame on another device, and as a leaf.
	choir_cross *cross = choir_strategy_cross(s);
	choir_tensor *there = choir_cross_fetch(cross, v, choir_device_find("far:0"), NULL, NULL);
	world_ok(choir_tensor_to_host(there, found, sizeof found));
	assert_memory_equal(found, expected, sizeof found);
	choir_tensor *component = choir_variable_component(v, f);
	assert_ptr_equal(choir_tensor_variable(component), v);
	assert_ptr_equal(choir_value_variable(choir_tensor_as_value(component)), v);
	assert_int_equal(choir_value_local_count(choir_tensor_as_value(component)), 1);
	world_ok(choir_tensor_to_host(
			choir_value_local(choir_tensor_as_value(component), 0), found, sizeof found));
	assert_memory_equal(found, expected, sizeof found);
	// A wrong shape or index is found before anything is written.
	world_failed(choir_variable_assign(v, choir_fill(f, CHOIR_F32, CHOIR_SHAPE(3), 0)),
			CHOIR_INVALID, "variable \"v\"", "[3]");
	choir_frame_clear(f);
	world_failed(choir_variable_scatter(v, CHOIR_SCATTER_ADD,
						 choir_constant(f, CHOIR_I32, CHOIR_SHAPE(2), (int32_t[]){ 0, 5 }),
						 choir_number(f, 1)),
			CHOIR_INVALID, "variable \"v\"", "there are 5");
	fetch(v, found, sizeof found);
	assert_memory_equal(found, expected, sizeof found);
	choir_frame_free(f);
	choir_strategy_free(s);
}

// ---- Rows by number.

static choir_status gather_and_differ(choir_replica *r, void *user)
{
	static const int32_t rows[] = { 6, 1, 1, 4, 6, 0 };
	session *t = user;
	choir_frame *f = r->frame;
	choir_tape *tape = choir_tape_begin(f);
	choir_tensor *indices = choir_constant(f, CHOIR_I32, CHOIR_SHAPE(3, 2), rows);
	choir_tensor *x = choir_variable_gather(t->v, indices);
	WORLD_NEED(x != NULL && choir_tensor_shape(x)->rank == 3);
	WORLD_NEED(choir_variable_read(t->v, f) == choir_variable_read(t->v, f));
	CHOIR_TRY(choir_replica_return(r, "x", x));
	choir_tensor *y = choir_variable_slice(t->v, f, INT64_MAX, INT64_MIN, -2);
	choir_tensor *loss = choir_add(choir_sum(choir_square(x), CHOIR_ALL_AXES),
			choir_sum(choir_square(y), CHOIR_ALL_AXES));
	const int n = choir_variable_shards(t->v);
	choir_tensor *read[4], *gradient[4];
	for (int i = 0; i < (n > 0 ? n : 1); i++)
		read[i] = choir_variable_read(n > 0 ? choir_variable_shard(t->v, i) : t->v, f);
	CHOIR_TRY(choir_tape_gradient(tape, loss, (size_t) (n > 0 ? n : 1), read, gradient));
	choir_tensor *g = choir_concat((size_t) (n > 0 ? n : 1), gradient, 0);
	return choir_replica_return(r, "g", g);
}

// spec: D16, 2.15
TEST(test_rows_and_their_gradients)
{
	float found[2][2][14] = { { { 0 } } };
	for (int whole = 0; whole < 2; whole++) {
		choir_strategy *s = cut(1, "cpu:0", "cpu:0,far:0", whole ? 1 : 4);
		session t = {
			.v = make(s, "v", CHOIR_SHAPE(7, 2),
					CHOIR_OPTIONS(choir_variable_options, .initializer = CHOIR_INITIALIZER_NORMAL))
		};
		choir_values *results = NULL;
		world_ok(choir_strategy_run(s, gather_and_differ, &t, NULL, &results));
		static const char *const names[] = { "x", "g" };
		for (int i = 0; i < 2; i++)
			world_ok(choir_tensor_to_host(
					choir_value_local(choir_values_find(results, names[i]), 0), found[whole][i],
					i == 0 ? 12 * sizeof(float) : sizeof found[0][0]));
		choir_values_free(results);
		choir_strategy_free(s);
	}
	assert_memory_equal(found[0], found[1], sizeof found[0]);
}

TEST(test_rows_outside)
{
	choir_strategy *s = cut(1, "cpu:0", NULL, 3);
	choir_variable *v = make(s, "v", CHOIR_SHAPE(6),
			CHOIR_OPTIONS(choir_variable_options, .initial_value = (float[]){ 0, 1, 2, 3, 4, 5 }));
	choir_frame *f = choir_frame_new(NULL);
	float found[3];
	choir_tensor *t = choir_variable_gather(
			v, choir_constant(f, CHOIR_U8, CHOIR_SHAPE(3), (uint8_t[]){ 5, 0, 5 }));
	world_ok(choir_tensor_to_host(t, found, sizeof found));
	assert_true(found[0] == 5 && found[1] == 0 && found[2] == 5);
	t = choir_variable_gather(v, choir_fill(f, CHOIR_I64, CHOIR_SHAPE(2, 0), 0));
	assert_true(choir_tensor_shape(t)->rank == 2 && choir_tensor_shape(t)->dim[1] == 0);
	assert_null(choir_variable_gather(
			v, choir_constant(f, CHOIR_I64, CHOIR_SHAPE(1), (int64_t[]){ 6 })));
	world_failed(choir_error_status(), CHOIR_INVALID, "variable \"v\"", "6 rows");
	choir_frame_clear(f);
	assert_null(choir_variable_gather(v, choir_fill(f, CHOIR_F32, CHOIR_SHAPE(1), 0)));
	world_failed(choir_error_status(), CHOIR_INVALID, "indices are f32", NULL);
	choir_frame_clear(f);
	assert_null(choir_variable_slice(v, f, 0, 6, 0));
	world_failed(choir_error_status(), CHOIR_INVALID, "variable \"v\"", "step*0");
	choir_frame_clear(f);
	assert_null(choir_variable_slice(make(s, "scalar", CHOIR_SCALAR, NULL), f, 0, 1, 1));
	world_failed(choir_error_status(), CHOIR_INVALID, "scalar", "no rows");
	choir_frame_clear(f);
	assert_null(choir_variable_slice(NULL, f, 0, 1, 1));
	assert_null(choir_variable_gather(NULL, choir_number(f, 1)));
	choir_frame_free(f);
	choir_strategy_free(s);
}

// ---- Updates.

typedef struct {
	choir_variable *v, *slot;
	int calls;
	bool short_result, fail_late;
} updating;

static choir_status update_one(choir_update *u, void *user)
{
	updating *t = user;
	choir_frame *f = u->frame;
	const choir_variable *shard = choir_variable_shard(t->v, t->calls++);
	WORLD_NEED(choir_update_variable(u) == shard);
	choir_tensor *g = choir_update_arg(u, "g"), *row = choir_update_arg(u, "row");
	WORLD_NEED(choir_tensor_shape(g)->dim[0] == choir_variable_shape(shard)->dim[0]);
	WORLD_NEED(choir_tensor_shape(row)->dim[0] == 2);
	CHOIR_TRY(choir_variable_assign_add(t->slot, g));
	CHOIR_TRY(
			choir_variable_assign_sub(t->v, choir_multiply(choir_variable_read(t->slot, f), row)));
	if (t->fail_late && t->calls == 2)
		return choir_fail(CHOIR_IO, "late");
	choir_tensor *x = choir_variable_read(t->v, f);
	return choir_update_return(u, "new", t->short_result ? choir_sum(x, CHOIR_ALL_AXES) : x);
}

static choir_status update_once(updating *t, choir_strategy *s)
{
	choir_cross *x = choir_strategy_cross(s);
	choir_tensor *g = choir_constant(
			x->frame, CHOIR_F32, CHOIR_SHAPE(5, 2), (float[]){ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 });
	choir_tensor *row = choir_constant(x->frame, CHOIR_F32, CHOIR_SHAPE(2), (float[]){ 1, 2 });
	t->calls = 0;
	CHOIR_TRY(choir_cross_set_arg(x, "g", choir_tensor_as_value(g)));
	CHOIR_TRY(choir_cross_set_arg(x, "row", choir_tensor_as_value(row)));
	return choir_cross_update(x, t->v, NULL, update_one, t);
}

// spec: D16, E36
TEST(test_an_update_is_one_of_each_shard)
{
	static const float expected[] = { 0, -2, -2, -6, -4, -10, -6, -14, -8, -18 };
	float found[10];
	choir_scope scope, beside;
	choir_strategy *s = cut(1, "cpu:0", "cpu:0,far:0", 3);
	updating t = { .v = make(s, "v", CHOIR_SHAPE(5, 2), NULL) };
	world_ok(choir_scope_enter(&scope, s));
	world_ok(choir_scope_colocate(&beside, choir_variable_as_value(t.v)));
	t.slot = choir_variable_new("v/sum", CHOIR_SHAPE(5, 2), NULL);
	assert_int_equal(choir_variable_shards(t.slot), 3);
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(choir_variable_device(choir_variable_shard(t.slot, i), 0),
				choir_variable_device(choir_variable_shard(t.v, i), 0));
	assert_null(choir_variable_new("v/other", CHOIR_SHAPE(4, 2), NULL));
	world_failed(choir_error_status(), CHOIR_INVALID, "v/other", "5 rows");
	world_ok(choir_scope_exit(&beside));
	world_ok(choir_scope_exit(&scope));
	world_ok(update_once(&t, s));
	assert_int_equal(t.calls, 3);
	fetch(t.v, found, sizeof found);
	assert_memory_equal(found, expected, sizeof found);
	choir_value *made = choir_cross_result(choir_strategy_cross(s), "new");
	world_ok(choir_tensor_to_host(choir_value_tensor(made), found, sizeof found));
	assert_memory_equal(found, expected, sizeof found);
	t.short_result = true;
	world_failed(update_once(&t, s), CHOIR_INVALID, "v/part_0", "2 rows");
	choir_frame *f = choir_frame_new(NULL);
	choir_frame_clear(choir_strategy_cross(s)->frame);
	world_ok(choir_variable_assign(t.v, choir_number(f, 1)));
	t.short_result = false;
	t.fail_late = true;
	world_ok(choir_variable_assign(t.slot, choir_number(f, 1)));
	world_failed(update_once(&t, s), CHOIR_IO, "late", NULL);
	// Also the first shard, which was whole.
	assert_null(choir_variable_read(choir_variable_shard(t.v, 0), f));
	world_failed(choir_error_status(), CHOIR_STATE, "variable \"v\"", "undefined");
	choir_frame_clear(f);
	world_failed(
			choir_variable_assign_add(t.v, choir_number(f, 1)), CHOIR_STATE, "\"v\"", "undefined");
	choir_frame_free(f);
	choir_strategy_free(s);
}

// ---- What is refused.

// spec: 2.15, 2.19
TEST(test_options_that_cannot_be)
{
	static const struct {
		choir_partition partition;
		int64_t size;
		int max;
		const char *text;
	} wrong[] = {
		{ CHOIR_PARTITION_FIXED, 0, 0, ".max_shards is 0" },
		{ CHOIR_PARTITION_FIXED, 0, -1, ".max_shards is -1" },
		{ CHOIR_PARTITION_FIXED, 8, 2, ".partition_size is 8" },
		{ CHOIR_PARTITION_MIN_SIZE, -1, 2, ".partition_size is -1" },
		{ CHOIR_PARTITION_MAX_SIZE, 0, 2, ".partition_size is 0" },
		{ CHOIR_PARTITION_NONE, 0, 2, ".max_shards is 2" },
		{ CHOIR_PARTITION_NONE, 8, 0, ".partition_size is 8" },
		{ (choir_partition) 4, 8, 2, "partition*4" },
	};
	static const char *const others[] = { "default", "one_device", "mirrored", "central_storage" };
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		assert_null(choir_parameter_server_strategy_new(
				CHOIR_OPTIONS(choir_strategy_options, .partition = wrong[i].partition,
						.partition_size = wrong[i].size, .max_shards = wrong[i].max)));
		world_failed(choir_error_status(), CHOIR_INVALID, wrong[i].text, NULL);
	}
	for (int i = 0; i < 4; i++) {
		assert_null(choir_strategy_new(others[i],
				CHOIR_OPTIONS(choir_strategy_options, .partition = CHOIR_PARTITION_FIXED,
						.max_shards = 2)));
		world_failed(choir_error_status(), CHOIR_INVALID, others[i], "no shards");
	}
}

// spec: E36
TEST(test_making_that_fails_leaves_nothing)
{
	choir_strategy *s = cut(1, "cpu:0", NULL, 5000);
	assert_non_null(make(s, "w/part_1", CHOIR_SHAPE(1), NULL));
	assert_null(make(s, "w", CHOIR_SHAPE(3), NULL));
	world_failed(choir_error_status(), CHOIR_INVALID, "\"w/part_1\"", "of that name");
	assert_null(chi_strategy_find_variable(s, "w"));
	assert_null(chi_strategy_find_variable(s, "w/part_0"));
	assert_non_null(make(s, "v", CHOIR_SHAPE(3), NULL));
	assert_null(make(s, "v", CHOIR_SHAPE(3), NULL));
	assert_null(make(s, "v/part_2", CHOIR_SHAPE(1), NULL));
	world_failed(choir_error_status(), CHOIR_INVALID, "\"v/part_2\"", "of that name");
	assert_null(make(s, "long", CHOIR_SHAPE(4097), NULL));
	world_failed(choir_error_status(), CHOIR_INVALID, "\"long\"", "at most 4096");
	choir_strategy_free(s);
}

static choir_status use_everything(choir_strategy *s, choir_frame *f)
{
	choir_variable *v = make(s, "v", CHOIR_SHAPE(5, 2), NULL);
	if (v == NULL)
		return choir_error_status();
	CHOIR_TRY(choir_variable_assign(v, choir_fill(f, CHOIR_F32, CHOIR_SHAPE(5, 2), 0)));
	choir_tensor *rows = choir_constant(f, CHOIR_I64, CHOIR_SHAPE(3), (int64_t[]){ 4, 0, 2 });
	CHOIR_TRY(choir_variable_scatter(v, CHOIR_SCATTER_ADD, rows, choir_number(f, 2)));
	choir_tensor *t = choir_variable_gather(v, rows);
	t = choir_add(t, choir_variable_slice(v, f, 4, 1, -1));
	float host[6];
	CHOIR_TRY(choir_tensor_to_host(t, host, sizeof host));
	WORLD_NEED(host[0] == 4 && host[2] == 2 && host[4] == 4);
	return CHOIR_OK;
}

TEST(test_every_allocation_fails)
{
	for (uint64_t n = 1;; n += SERIAL_STRIDE) {
		choir_strategy *s = cut(1, "cpu:0", "cpu:0,far:0", 3);
		choir_frame *f = choir_frame_new(NULL);
		chi_alloc_fail(n, false);
		const choir_status status = use_everything(s, f);
		const bool failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		if (failed)
			world_failed(status, CHOIR_NO_MEMORY, "memory", NULL);
		else
			world_ok(status);
		choir_frame_free(f);
		choir_strategy_free(s);
		if (!failed)
			break;
	}
}

TEST_BEFORE(world_watch)
