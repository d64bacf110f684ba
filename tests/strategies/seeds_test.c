// The examples of the three documents that Choir began with (tests/seeds.md), as programs: what
// each shows in Python or Scala, on replicas that share memory and on replicas that do not.
#include "plain_kernels.h"
#include "test.h"

#include <choir/choir.h>

#include <stdlib.h>
#include <string.h>

#define NEED(condition) \
	do { \
		if (!(condition)) \
			return choir_fail( \
					CHOIR_INTERNAL, "line %d: %s; %s", __LINE__, #condition, choir_error()); \
	} while (0)

static void works(choir_status status)
{
	if (status != CHOIR_OK)
		fail_msg("%s: %s", choir_status_name(status), choir_error());
}

static const char *const places[] = { "cpu:0", "cpu:0,cpu:1", "far:0,far:1", "cpu:0,far:0" };
enum { PLACES = sizeof places / sizeof places[0] };

static choir_strategy *mirrored(int replicas, const char *devices)
{
	choir_strategy *s = choir_mirrored_strategy_new(CHOIR_OPTIONS(
			choir_strategy_options, .replicas = replicas, .devices = devices, .seed = 3));
	if (s == NULL)
		fail_msg("%s", choir_error());
	return s;
}

static choir_variable *variable(choir_strategy *s, const char *name, choir_variable_options o)
{
	choir_variable *v = NULL;
	o.size = sizeof o;
	CHOIR_SCOPE (s)
		v = choir_variable_new(name, CHOIR_SHAPE(2), &o);
	if (v == NULL)
		fail_msg("%s", choir_error());
	return v;
}

// The mean of t's elements.
static double number(choir_tensor *t)
{
	t = choir_mean(t, CHOIR_ALL_AXES);
	return t == NULL ? -1e9 : choir_tensor_number(t);
}

// ---- Seed A: "fn() returns a tuple with three components".

static choir_status three_components(choir_replica *r, void *user)
{
	choir_variable *v = user;
	choir_tensor *w = choir_replica_arg(r, "w"); // w0 on d0, w1 on d1
	NEED((int) number(w) == 5 + choir_replica_id(r));
	const choir_strategy *s = choir_replica_strategy(r);
	NEED(choir_replica_device_index(r) == choir_replica_id(r) % choir_strategy_worker_devices(s));
	NEED(choir_replica_device(r) ==
			choir_strategy_worker_device(s, choir_replica_device_index(r)));
	NEED(choir_tensor_frame(w) == r->frame);
	choir_replica_return(r, "x", choir_number(r->frame, 7));
	choir_replica_return(r, "a", choir_scale(w, 2));
	return choir_replica_return(r, "v", choir_variable_component(v, r->frame));
}

// spec: A1, A2, A3, A4, A5, A46, B23
TEST(unwrapping_and_merging)
{
	for (int i = 0; i < PLACES; i++) {
		choir_strategy *s = mirrored(2, places[i]);
		choir_variable *v = variable(s, "v",
				(choir_variable_options){ .initializer = CHOIR_INITIALIZER_GLOROT_UNIFORM });
		choir_values *args = choir_values_new(s), *results = NULL;
		choir_frame *f = choir_values_frame(args);
		for (int r = 0; r < 2; r++)
			works(choir_values_set_local(
					args, "w", r, choir_fill(f, CHOIR_F32, CHOIR_SHAPE(3), 5 + r)));
		works(choir_strategy_run(s, three_components, v, args, &results));
		choir_value *x = choir_values_find(results, "x"), *a = choir_values_find(results, "a"),
					*whole = choir_values_find(results, "v");
		assert_int_equal(choir_value_kind_of(x), CHOIR_VALUE_PLAIN);
		assert_int_equal((int) choir_tensor_number(choir_value_tensor(x)), 7);
		assert_int_equal(choir_value_kind_of(a), CHOIR_VALUE_PER_REPLICA);
		for (int r = 0; r < 2; r++)
			assert_int_equal((int) number(choir_value_local(a, r)), 10 + 2 * r);
		assert_ptr_equal(choir_value_variable(whole), v);
		// A value is among the local results of its container.
		choir_tensor *part = choir_variable_component(v, f);
		choir_value *container = choir_tensor_as_value(part);
		assert_ptr_equal(choir_value_variable(container), v);
		assert_int_equal(choir_value_local_count(container), choir_variable_copies(v));
		bool among = false;
		for (int k = 0; k < choir_value_local_count(container); k++) {
			choir_tensor *copy = choir_value_local(container, k);
			assert_true(number(copy) == number(part));
			among = among || choir_tensor_data(copy) == choir_tensor_data(part);
		}
		assert_true(among || places[i][0] == 'f'); // the same memory, where the host sees it
		choir_tensor *one = choir_number(f, 1); // belongs to no container
		assert_null(choir_tensor_variable(one));
		container = choir_tensor_as_value(one);
		assert_int_equal(choir_value_local_count(container), 1);
		assert_int_equal((int) choir_tensor_number(choir_value_local(container, 0)), 1);
		choir_values_free(args);
		choir_values_free(results);
		choir_strategy_free(s);
	}
}

// ---- Seed A: "so you can write code like v = 0.9*v + 0.1*update".

typedef struct {
	choir_variable *v;
	double expected; // of replica 0; replica r has it 1 + r times
} fading;

static choir_status fade(choir_replica *r, void *user)
{
	const fading *step = user;
	choir_variable *v = step->v;
	choir_tensor *update =
			choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), 10 * (1 + choir_replica_id(r)));
	choir_tensor *now = choir_variable_read(v, r->frame);
	CHOIR_TRY(
			choir_variable_assign(v, choir_add(choir_scale(now, 0.5), choir_scale(update, 0.5))));
	// Its own, not the others', nor what was read across replicas before.
	NEED(number(choir_variable_read(v, r->frame)) == step->expected * (1 + choir_replica_id(r)));
	return CHOIR_OK;
}

// spec: A12, A15, A16, A17, A18, 2.4
TEST(sync_on_read_variables)
{
	for (int i = 0; i < PLACES; i++) {
		choir_strategy *s = mirrored(2, places[i]);
		choir_variable_options o = { .synchronization = CHOIR_SYNCHRONIZATION_ON_READ };
		o.aggregation = CHOIR_AGGREGATION_SUM;
		choir_variable *sum = variable(s, "sum", o);
		o.aggregation = CHOIR_AGGREGATION_MEAN;
		choir_variable *mean = variable(s, "mean", o);
		o.aggregation = CHOIR_AGGREGATION_ONLY_FIRST_REPLICA;
		choir_variable *first = variable(s, "first", o);
		choir_variable *const all[] = { sum, mean, first };
		static const double expected[] = { 3, 1.5, 1 };
		choir_frame *f = choir_frame_new(NULL);
		for (int k = 0; k < 9; k++) { // 5, 7.5, 8.75: they accumulate
			fading step = { all[k % 3], 10 - 5 / (double) (1 << k / 3) };
			works(choir_strategy_run(s, fade, &step, NULL, NULL));
			assert_true(number(choir_variable_read(step.v, f)) == step.expected * expected[k % 3]);
			assert_int_equal(choir_variable_assign_add(step.v, choir_number(f, 1)), CHOIR_INVALID);
			choir_frame_clear(f);
		}
		choir_frame_free(f);
		choir_strategy_free(s);
	}
}

// ---- Seed A: var1, and beside it var2 and var3, which the update function gets.

typedef struct {
	choir_variable *var[3];
	choir_device *where[4];
	int calls;
} beside;

static choir_status look(choir_update *u, void *user)
{
	beside *b = user;
	choir_tensor *v1 = choir_variable_read(choir_update_variable(u), u->frame);
	choir_tensor *v2 = choir_update_arg(u, "v2"), *v3 = choir_update_arg(u, "v3");
	NEED(choir_update_variable(u) == b->var[0]);
	NEED(choir_tensor_variable(v2) == b->var[1] && choir_tensor_variable(v3) == b->var[2]);
	b->where[b->calls++] = choir_tensor_device(v1);
	CHOIR_TRY(choir_variable_assign_add(b->var[0], choir_add(v2, v3)));
	return choir_variable_assign_add(b->var[1], choir_number(u->frame, 1));
}

// spec: A25, A37, A41, C16, C21
TEST(variables_beside_a_variable)
{
	for (int i = 0; i < PLACES; i++) {
		choir_strategy *s = mirrored(2, places[i]);
		beside b = { .calls = 0 };
		CHOIR_SCOPE (s) {
			choir_scope colocate;
			choir_variable_options o = { .size = sizeof o, .initializer = CHOIR_INITIALIZER_ONES };
			b.var[0] = choir_variable_new("var1", CHOIR_SHAPE(2), &o);
			works(choir_scope_colocate(&colocate, choir_variable_as_value(b.var[0])));
			b.var[1] = choir_variable_new("var2", CHOIR_SHAPE(2), &o);
			b.var[2] = choir_variable_new("var3", CHOIR_SHAPE(2), &o);
			works(choir_scope_exit(&colocate));
		}
		const int copies = choir_variable_copies(b.var[0]);
		choir_cross *x = choir_strategy_cross(s);
		choir_cross_set_arg(x, "v2", choir_variable_as_value(b.var[1]));
		choir_cross_set_arg(x, "v3", choir_variable_as_value(b.var[2]));
		works(choir_cross_update(x, b.var[0], NULL, look, &b));
		assert_int_equal(b.calls, copies); // on every device var1 is on
		for (int k = 0; k < copies; k++)
			for (int v = 0; v < 3; v++)
				assert_ptr_equal(choir_variable_device(b.var[v], k), b.where[k]);
		assert_int_equal((int) number(choir_variable_read(b.var[0], x->frame)), 3);
		assert_int_equal((int) number(choir_variable_read(b.var[1], x->frame)), 2);
		choir_frame_clear(x->frame);
		choir_strategy_free(s);
	}
}

// ---- Seed A: the standard pattern, with a list of (update, variable) pairs and batch_reduce_to.

static choir_status subtract(choir_update *u, void *user)
{
	(void) user;
	return choir_variable_assign_sub(choir_update_variable(u), choir_update_arg(u, "t"));
}

static choir_status reduce_and_update(choir_cross *x, void *user)
{
	choir_variable *const *v = user;
	choir_reduction pair[2] = {
		{ choir_cross_arg(x, "a"), choir_variable_as_value(v[0]), NULL },
		{ choir_cross_arg(x, "b"), choir_variable_as_value(v[1]), NULL },
	};
	CHOIR_TRY(choir_cross_batch_reduce_to(x, CHOIR_SUM, 2, pair, NULL));
	for (int i = 0; i < 2; i++) {
		NEED(choir_value_kind_of(pair[i].result) == CHOIR_VALUE_MIRRORED);
		NEED(choir_value_local_count(pair[i].result) == choir_variable_copies(v[i]));
		CHOIR_TRY(choir_cross_set_arg(x, "t", pair[i].result));
		CHOIR_TRY(choir_cross_update(x, v[i], NULL, subtract, NULL));
	}
	return CHOIR_OK;
}

static choir_status four_steps(choir_replica *r, void *user)
{
	const int id = choir_replica_id(r);
	choir_replica_set_arg(r, "a", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), 1 + id));
	choir_replica_set_arg(r, "b", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), 10 + id));
	return choir_replica_merge_call(r, reduce_and_update, user);
}

// spec: A26, A28, A36, C20
TEST(the_standard_pattern)
{
	for (int i = 0; i < PLACES; i++) {
		choir_strategy *s = mirrored(3, places[i]);
		choir_variable *v[2] = { variable(s, "a", (choir_variable_options){ 0 }),
			variable(s, "b", (choir_variable_options){ 0 }) };
		works(choir_strategy_run(s, four_steps, v, NULL, NULL));
		choir_cross *x = choir_strategy_cross(s);
		assert_int_equal((int) number(choir_variable_read(v[0], x->frame)), -6);
		assert_int_equal((int) number(choir_variable_read(v[1], x->frame)), -33);
		choir_frame_clear(x->frame);
		choir_strategy_free(s);
	}
}

// ---- Seed B: examples 0 to 7 on two replicas, and a last batch of six.

static void reduce_a_batch(choir_strategy *s, int examples)
{
	static const float all[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	choir_values *set = choir_values_new(s);
	choir_frame *f = choir_values_frame(set);
	for (int r = 0; r < 2; r++)
		works(choir_values_set_local(set, "x", r,
				choir_constant(
						f, CHOIR_F32, CHOIR_SHAPE(r == 0 ? 4 : examples - 4), all + 4 * r)));
	choir_value *x = choir_values_find(set, "x");
	const int sum = examples * (examples - 1) / 2;
	choir_tensor *each = choir_strategy_reduce(s, CHOIR_SUM, x, CHOIR_NO_AXIS);
	if (examples == 8) {
		float have[4];
		works(choir_tensor_to_host(each, have, sizeof have)); // [0+4, 1+5, 2+6, 3+7]
		for (int i = 0; i < 4; i++)
			assert_true(have[i] == (float) (4 + 2 * i));
	} else {
		assert_null(each); // a shape mismatch
		assert_int_equal(choir_error_status(), CHOIR_INVALID);
		assert_text_holds(choir_error(), "replica 0*[4]*replica 1*[2]");
	}
	choir_values *again = choir_values_new(s); // a frame without a failure
	works(choir_values_set_local(again, "x", 0,
			choir_constant(choir_values_frame(again), CHOIR_F32, CHOIR_SHAPE(4), all)));
	works(choir_values_set_local(again, "x", 1,
			choir_constant(
					choir_values_frame(again), CHOIR_F32, CHOIR_SHAPE(examples - 4), all + 4)));
	x = choir_values_find(again, "x");
	assert_int_equal(
			(int) choir_tensor_number(choir_strategy_reduce(s, CHOIR_SUM, x, CHOIR_AXIS(0))), sum);
	assert_true((float) choir_tensor_number(choir_strategy_reduce(
						s, CHOIR_MEAN, x, CHOIR_AXIS(0))) == (float) sum / (float) examples);
	choir_values_free(again);
	choir_values_free(set);
}

// spec: B29, B30, 2.8
TEST(batches_are_reduced)
{
	for (int i = 0; i < PLACES; i++) {
		choir_strategy *s = mirrored(2, places[i]);
		reduce_a_batch(s, 8);
		reduce_a_batch(s, 6);
		choir_strategy_free(s);
	}
}

// ---- Seed B: a dataset function, whose dataset is repeated, batched and sharded.

static choir_dataset *make_dataset(const choir_input_context *context, void *user)
{
	int64_t batch;
	const float one = 1;
	if (choir_input_context_per_replica_batch(context, *(const int64_t *) user, &batch) !=
			CHOIR_OK)
		return NULL;
	const choir_column column = {
		.name = "x", .dtype = CHOIR_F32, .shape = CHOIR_SHAPE(1), .data = &one
	};
	choir_dataset *d = choir_constant_dataset_new(1, 1, &column);
	d = choir_dataset_batch(choir_dataset_repeat(d, CHOIR_FOREVER), batch);
	return choir_dataset_shard(d, context->input_pipelines, context->input_pipeline);
}

static choir_status count_rows(choir_replica *r, void *user)
{
	(void) user;
	choir_tensor *x = choir_replica_arg(r, "x");
	return choir_replica_return(r, "rows", choir_sum(x, CHOIR_ALL_AXES));
}

// spec: B20, B21, B22
TEST(datasets_of_a_function)
{
	for (int i = 0; i < PLACES; i++) {
		choir_strategy *s = mirrored(2, places[i]);
		int64_t global = 6;
		choir_distributed_dataset *inputs =
				choir_strategy_distribute_datasets_from_function(s, make_dataset, &global, NULL);
		assert_non_null(inputs);
		choir_values *batch = NULL, *results = NULL;
		for (int step = 0; step < 3; step++) {
			works(choir_distributed_dataset_next(inputs, &batch));
			works(choir_strategy_run(s, count_rows, NULL, batch, &results));
			assert_int_equal(
					choir_value_kind_of(choir_values_find(batch, "x")), CHOIR_VALUE_PER_REPLICA);
			choir_value *rows = choir_values_find(results, "rows");
			for (int r = 0; r < 2; r++)
				assert_int_equal((int) choir_tensor_number(choir_value_local(rows, r)), 3);
		}
		choir_values_free(batch);
		choir_values_free(results);
		choir_strategy_free(s);
	}
}

// ---- Seed B: "If you have two workers and each worker has 4 GPUs, it will create 8 copies".

static choir_status read_here(choir_replica *r, void *user)
{
	NEED(choir_tensor_device(choir_variable_read(user, r->frame)) == choir_replica_device(r));
	return CHOIR_OK;
}

// spec: B4, B5
TEST(a_copy_on_each_device)
{
	choir_strategy *s = mirrored(0, "far:0,far:1,far:2,far:3,far:4,far:5,far:6,far:7");
	assert_int_equal(choir_strategy_replicas(s), 8);
	choir_variable *v = variable(s, "v", (choir_variable_options){ 0 });
	assert_int_equal(choir_variable_copies(v), 8);
	for (int i = 0; i < 8; i++)
		assert_ptr_equal(choir_variable_device(v, i), choir_strategy_worker_device(s, i));
	works(choir_strategy_run(s, read_here, v, NULL, NULL));
	choir_strategy_free(s);
}

// ---- Seed C: variables of a tower-local scope.

static choir_status add_own(choir_replica *r, void *user)
{
	choir_tensor *t = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), 1 + choir_replica_id(r));
	return choir_variable_assign_add(user, t);
}

static choir_tensor *plus_one(choir_tensor *t, void *user)
{
	(void) user;
	return choir_add(t, choir_number(choir_tensor_frame(t), 1));
}

// spec: C9, C24
TEST(replica_local_variables)
{
	for (int i = 0; i < PLACES; i++) {
		choir_strategy *s = mirrored(2, places[i]);
		choir_variable *v = NULL;
		CHOIR_SCOPE (s) {
			choir_scope local;
			works(choir_scope_replica_local(&local, CHOIR_AGGREGATION_SUM));
			v = choir_variable_new("v", CHOIR_SHAPE(2),
					CHOIR_OPTIONS(choir_variable_options,
							.initializer = CHOIR_INITIALIZER_GLOROT_UNIFORM));
			works(choir_scope_exit(&local));
		}
		assert_non_null(v);
		choir_variable_options made = { .size = sizeof made };
		assert_int_equal(choir_variable_describe(v, &made), CHOIR_OK);
		assert_int_equal(made.trainable, CHOIR_OFF);
		assert_int_equal(made.synchronization, CHOIR_SYNCHRONIZATION_ON_READ);
		// Random, and the same for all.
		choir_cross *x = choir_strategy_cross(s);
		choir_value *parts = choir_tensor_as_value(choir_variable_component(v, x->frame));
		float part[2][2];
		for (int k = 0; k < 2; k++)
			works(choir_tensor_to_host(choir_value_local(parts, k), part[k], sizeof part[k]));
		assert_true(part[0][0] != 0 && part[0][0] != part[0][1]);
		assert_memory_equal(part[0], part[1], sizeof part[0]);
		works(choir_variable_assign(v, choir_number(x->frame, 0)));
		works(choir_strategy_run(s, add_own, v, NULL, NULL));
		choir_device *cpu = choir_device_find("cpu:0");
		choir_tensor *fetched = choir_cross_fetch(x, v, cpu, plus_one, NULL);
		assert_ptr_equal(choir_tensor_device(fetched), cpu);
		assert_int_equal((int) number(fetched), 4); // 1 + 2, and what the function adds
		choir_frame_clear(x->frame);
		choir_strategy_free(s);
	}
}
