// A step that has been made a few times allocates nothing, whatever it calls: updates by functions
// of the program, what else merge functions call, collectives, reads and writes of variables.
#include "choir/op.h"
#include "strategy/world.h"
#include "test.h"

enum { ROWS = 600, COLUMNS = 41, BATCH = 12 };

static choir_strategy *strategy;
static choir_variable *table, *slot, *power, *summed, *counted;

static choir_variable *make(const char *name, choir_shape shape, choir_aggregation aggregation)
{
	return choir_variable_new(
			name, shape, CHOIR_OPTIONS(choir_variable_options, .aggregation = aggregation));
}

static void open_strategy(int replicas, const char *devices)
{
	strategy = world_new(replicas, devices, 20);
	choir_scope scope, beside;
	world_ok(choir_scope_enter(&scope, strategy));
	table = make("table", CHOIR_SHAPE(ROWS, COLUMNS), CHOIR_AGGREGATION_NONE);
	summed = make("summed", CHOIR_SHAPE(ROWS, COLUMNS), CHOIR_AGGREGATION_SUM);
	counted = choir_variable_new("counted", CHOIR_SHAPE(3),
			CHOIR_OPTIONS(choir_variable_options, .aggregation = CHOIR_AGGREGATION_SUM,
					.synchronization = CHOIR_SYNCHRONIZATION_ON_READ));
	world_ok(choir_scope_colocate(&beside, choir_variable_as_value(table)));
	slot = make("slot", CHOIR_SHAPE(ROWS, COLUMNS), CHOIR_AGGREGATION_NONE);
	world_ok(choir_scope_exit(&beside));
	choir_cross *x = choir_strategy_cross(strategy);
	world_ok(choir_scope_colocate(&beside, choir_cross_non_slot_devices(x, 1, &table)));
	power = make("power", CHOIR_SCALAR, CHOIR_AGGREGATION_NONE);
	world_ok(choir_scope_exit(&beside));
	world_ok(choir_scope_exit(&scope));
	assert_true(table && summed && counted && slot && power);
}

static choir_tensor *large(choir_frame *f)
{
	return choir_fill(f, CHOIR_F32, CHOIR_SHAPE(ROWS, COLUMNS), 0.5);
}

// ---- Updates by functions of the program.

static choir_status momentum(choir_update *u, void *user)
{
	(void) user;
	choir_tensor *m = choir_scale(choir_variable_read(slot, u->frame), 0.9);
	CHOIR_TRY(choir_variable_assign(slot, choir_add(m, choir_update_arg(u, "value"))));
	return choir_variable_assign_sub(table, choir_variable_read(slot, u->frame));
}

static choir_status give_sum(choir_cross *x)
{
	choir_value *sum = choir_cross_reduce_to(
			x, CHOIR_SUM, choir_cross_arg(x, "value"), choir_variable_as_value(table));
	return choir_cross_set_arg(x, "value", sum);
}

static choir_status update_whole(choir_cross *x, void *user)
{
	CHOIR_TRY(give_sum(x));
	return choir_cross_update(x, table, NULL, momentum, user);
}

static choir_status update_in_slices(choir_cross *x, void *user)
{
	CHOIR_TRY(give_sum(x));
	return choir_cross_update(x, table,
			CHOIR_OPTIONS(choir_update_options, .elementwise = CHOIR_ON), momentum, user);
}

static choir_status halve(choir_update *u, void *user)
{
	(void) user;
	choir_tensor *now = choir_variable_read(power, u->frame);
	CHOIR_TRY(choir_variable_assign(power, choir_scale(now, 0.5)));
	return choir_update_return(u, "now", choir_variable_read(power, u->frame));
}

static choir_status update_non_slot(choir_cross *x, void *user)
{
	choir_value *place = choir_cross_non_slot_devices(x, 1, &table);
	CHOIR_TRY(choir_cross_update_non_slot(x, place, halve, user));
	return choir_cross_return(x, "now", choir_cross_result(x, "now"));
}

static choir_status shrink(choir_update *u, void *user)
{
	(void) user;
	choir_tensor *now = choir_scale(choir_variable_read(table, u->frame), 0.5);
	CHOIR_TRY(choir_variable_assign(table, now));
	return choir_update_return(u, "now", choir_sum(now, CHOIR_ALL_AXES));
}

static choir_status update_in_replicas(choir_replica *r)
{
	CHOIR_TRY(choir_replica_update(r, table, shrink, NULL));
	return choir_replica_result(r, "now") == NULL ? choir_error_status() : CHOIR_OK;
}

// ---- What else merge functions call.

static choir_status reduce_in_packs(choir_cross *x, void *user)
{
	(void) user;
	choir_value *v = choir_cross_arg(x, "value");
	choir_reduction items[2] = { { .v = v, .to = v },
		{ .v = v, .to = choir_variable_as_value(table) } };
	CHOIR_TRY(choir_cross_batch_reduce_to(x, CHOIR_MEAN, 2, items, NULL));
	return choir_cross_return(x, "sum", items[0].result);
}

static choir_status gather_and_reduce(choir_cross *x, void *user)
{
	(void) user;
	choir_value *v = choir_cross_arg(x, "value");
	choir_cross_return(x, "all", choir_tensor_as_value(choir_cross_gather(x, v, 0)));
	choir_tensor *sum = choir_cross_reduce(x, CHOIR_SUM, v, CHOIR_ALL_AXES);
	return choir_cross_return(x, "sum", choir_tensor_as_value(sum));
}

static choir_status copy_values(choir_cross *x, void *user)
{
	(void) user;
	choir_value *one = choir_tensor_as_value(choir_fill(x->frame, CHOIR_F32, CHOIR_SHAPE(3), 1));
	choir_value *all = choir_cross_broadcast_to(x, one, choir_cross_destination(x, NULL));
	choir_tensor *t = choir_cross_fetch(x, table, choir_device_find("cpu:0"), NULL, NULL);
	return t == NULL ? choir_error_status() : choir_cross_return(x, "all", all);
}

static choir_status return_argument(choir_replica *r, void *user)
{
	(void) user;
	return choir_replica_return(r, "value", choir_square(choir_replica_arg(r, "value")));
}

static choir_status run_again(choir_cross *x, void *user)
{
	CHOIR_TRY(choir_cross_set_arg(x, "value", choir_cross_arg(x, "value")));
	CHOIR_TRY(choir_cross_run(x, return_argument, user));
	return choir_cross_return(x, "value", choir_cross_result(x, "value"));
}

static choir_status write_across(choir_cross *x, void *user)
{
	(void) user;
	static const int32_t rows[3] = { 5, 0, 5 };
	choir_frame *f = x->frame;
	choir_tensor *indices = choir_constant(f, CHOIR_I32, CHOIR_SHAPE(3), rows);
	CHOIR_TRY(choir_variable_scatter(table, CHOIR_SCATTER_ADD, indices, choir_number(f, 1)));
	return choir_variable_assign(slot, large(f));
}

// ---- What replicas call.

static choir_status reduce_all(choir_replica *r)
{
	choir_tensor *some = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(3), 1);
	choir_tensor *in[2] = { some, large(r->frame) }, *out[2];
	choir_tensor *small = choir_replica_all_reduce(r, CHOIR_SUM, some);
	choir_tensor *sum = choir_replica_all_reduce(r, CHOIR_MEAN, in[1]);
	CHOIR_TRY(choir_replica_batch_all_reduce(r, CHOIR_SUM, 2, in, out));
	return small == NULL || sum == NULL ? choir_error_status() : CHOIR_OK;
}

static choir_status gather_all(choir_replica *r)
{
	choir_tensor *t = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(BATCH, 7), 1);
	choir_tensor *all = choir_replica_all_gather(r, t, 0);
	choir_tensor *first = choir_replica_broadcast(r, t, 0);
	return all == NULL || first == NULL ? choir_error_status() : CHOIR_OK;
}

static choir_tensor *row_numbers(choir_replica *r)
{
	int32_t rows[BATCH];
	for (int i = 0; i < BATCH; i++)
		rows[i] = (i * 7 + choir_replica_id(r)) % ROWS;
	return choir_constant(r->frame, CHOIR_I32, CHOIR_SHAPE(BATCH), rows);
}

static choir_status reduce_slices(choir_replica *r)
{
	choir_tensor *values = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(BATCH, COLUMNS), 1);
	choir_tensor *slices = choir_indexed_slices(values, row_numbers(r), ROWS);
	return choir_replica_all_reduce(r, CHOIR_SUM, slices) == NULL ? choir_error_status()
																  : CHOIR_OK;
}

static choir_status read_rows(choir_replica *r)
{
	choir_tensor *rows = choir_variable_gather(table, row_numbers(r));
	choir_tensor *some = choir_variable_slice(table, r->frame, 3, 40, 2);
	return rows == NULL || some == NULL ? choir_error_status() : CHOIR_OK;
}

static choir_status write_in_replicas(choir_replica *r)
{
	return choir_variable_assign_add(summed, large(r->frame));
}

static choir_status write_rows_in_replicas(choir_replica *r)
{
	choir_tensor *values = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(BATCH, COLUMNS), 1);
	return choir_variable_scatter(summed, CHOIR_SCATTER_ADD, row_numbers(r), values);
}

static choir_status count(choir_replica *r)
{
	return choir_variable_assign_add(counted, choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(3), 1));
}

// ---- Steps of them.

typedef struct {
	choir_merge_fn *merge; // called with "value", of the table's shape; or
	choir_status (*call)(choir_replica *r);
} program;

static choir_status step(choir_replica *r, void *user)
{
	const program *p = user;
	if (p->call != NULL)
		return p->call(r);
	CHOIR_TRY(choir_replica_set_arg(r, "value", large(r->frame)));
	return choir_replica_merge_call(r, p->merge, NULL);
}

static void are_steady(int replicas, const char *devices, int n, program programs[])
{
	open_strategy(replicas, devices);
	for (int i = 0; i < n; i++)
		world_steady(strategy, step, &programs[i]);
	choir_strategy_free(strategy);
}

TEST(updates)
{
	program all[] = { { update_whole, NULL }, { update_in_slices, NULL },
		{ update_non_slot, NULL }, { NULL, update_in_replicas } };
	are_steady(1, "cpu:0", 4, all);
	are_steady(2, "cpu:0,cpu:1", 4, all);
	are_steady(5, "cpu:0,cpu:1", 4, all);
	are_steady(1, "far:0", 4, all);
	are_steady(2, "far:0,far:1", 4, all);
}

TEST(what_merge_functions_call)
{
	program all[] = { { reduce_in_packs, NULL }, { gather_and_reduce, NULL },
		{ copy_values, NULL }, { run_again, NULL }, { write_across, NULL } };
	are_steady(1, "cpu:0", 5, all);
	are_steady(2, "cpu:0,cpu:1", 5, all);
}

TEST(what_replicas_call)
{
	program all[] = { { NULL, reduce_all }, { NULL, gather_all }, { NULL, reduce_slices },
		{ NULL, read_rows }, { NULL, write_in_replicas }, { NULL, write_rows_in_replicas },
		{ NULL, count } };
	are_steady(1, "cpu:0", 7, all);
	are_steady(2, "cpu:0,cpu:1", 7, all);
}

// ---- A function finds its frame as if it were a new one.

static choir_status draw(choir_update *u, void *user)
{
	float *first = user;
	choir_tensor *t = choir_random_normal(u->frame, CHOIR_F32, CHOIR_SHAPE(3), 7);
	WORLD_NEED(t != NULL && choir_frame_status(u->frame) == CHOIR_OK);
	*first = *(const float *) choir_tensor_data(t);
	return choir_variable_assign(power, choir_number(u->frame, *first));
}

TEST(frames_are_as_new)
{
	float first[3];
	open_strategy(1, "cpu:0");
	choir_cross *x = choir_strategy_cross(strategy);
	for (int i = 0; i < 3; i++) {
		choir_value *place = choir_cross_non_slot_devices(x, 1, &table);
		world_ok(choir_cross_update_non_slot(x, place, draw, &first[i]));
		choir_frame_clear(x->frame);
	}
	assert_true(first[1] == first[0] && first[2] == first[0]);
	choir_strategy_free(strategy);
}

TEST_BEFORE(world_watch)
