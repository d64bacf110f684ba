// Writes whose arguments lie in the memory that they write, or are out of date once its first copy
// is written: each call, in each context, with one memory and with several, must do what it does
// with copies of its arguments.
#include "choir/op.h"

#include "short.h"
#include "strategy/strategy.h"
#include "strategy/world.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 4, LARGE = 20000, MAX_COPIES = 8 };

static choir_strategy *strategy;
static int replicas;

// What is written at first: a permutation, so that it can be its own indices.
static const int64_t initial[N] = { 2, 3, 1, 0 };
static int64_t memory[N + 1]; // of the wrapped variable, and an element after it

enum { ASSIGN = -3, ASSIGN_ADD, ASSIGN_SUB };

static const struct {
	const char *name;
	int how; // a choir_scatter, or one of those above
	bool by_itself; // the argument is the indices, too
} calls[] = {
	{ "assign", ASSIGN, false },
	{ "assign_add", ASSIGN_ADD, false },
	{ "assign_sub", ASSIGN_SUB, false },
	{ "scatter_add", CHOIR_SCATTER_ADD, false },
	{ "scatter_sub", CHOIR_SCATTER_SUB, false },
	{ "scatter_mul", CHOIR_SCATTER_MUL, false },
	{ "scatter_min", CHOIR_SCATTER_MIN, false },
	{ "scatter_max", CHOIR_SCATTER_MAX, false },
	{ "scatter_update", CHOIR_SCATTER_UPDATE, false },
	{ "scatter_add by itself", CHOIR_SCATTER_ADD, true },
	{ "scatter_mul by itself", CHOIR_SCATTER_MUL, true },
	{ "scatter_update by itself", CHOIR_SCATTER_UPDATE, true },
};
enum { CALLS = sizeof calls / sizeof calls[0] };

// What the argument is. A number of the same value in the table of references, which share nothing
// with the variable.
typedef enum { READ, COMPONENT, VIEW, BORROWED, BEHIND, KINDS } kind;
static const char *const kinds[] = { "a read", "a component", "a view", "its memory",
	"memory that overlaps" };

typedef enum { OUTSIDE, MERGE, REPLICA, UPDATE, GIVEN, BROADCAST, CONTEXTS } context;
static const char *const contexts[] = { "outside", "in a merge call", "in a replica",
	"in an update", "given to an update", "broadcast to an update" };

typedef struct {
	choir_variable *v;
	int call;
	kind kind;
	bool copied; // the argument is a copy
	context context;
} job;

static choir_tensor *argument(const job *j, choir_frame *f)
{
	choir_tensor *t = NULL;
	switch (j->kind) {
	case READ:
		t = choir_variable_read(j->v, f);
		break;
	case COMPONENT:
		t = choir_variable_component(j->v, f);
		break;
	case VIEW:
		t = choir_reshape(
				choir_reshape(choir_variable_read(j->v, f), CHOIR_SHAPE(N, 1)), CHOIR_SHAPE(N));
		break;
	default:
		t = choir_borrow(f, CHOIR_I64, CHOIR_SHAPE(N), memory + (j->kind == BEHIND));
	}
	return j->copied ? choir_copy(t, f) : t;
}

static choir_status write_with(const job *j, choir_tensor *own)
{
	choir_frame *f = choir_tensor_frame(own);
	const int how = calls[j->call].how;
	if (how == ASSIGN)
		return choir_variable_assign(j->v, own);
	if (how == ASSIGN_ADD)
		return choir_variable_assign_add(j->v, own);
	if (how == ASSIGN_SUB)
		return choir_variable_assign_sub(j->v, own);
	choir_tensor *rows =
			choir_constant(f, CHOIR_I64, CHOIR_SHAPE(N), (const int64_t[]){ 3, 0, 0, 1 });
	return choir_variable_scatter(
			j->v, (choir_scatter) how, calls[j->call].by_itself ? own : rows, own);
}

static choir_status write_in(choir_frame *f, const job *j)
{
	choir_tensor *own = argument(j, f);
	return own == NULL ? choir_error_status() : write_with(j, own);
}

static choir_status in_merge(choir_cross *x, void *user)
{
	return write_in(x->frame, user);
}

static choir_status merge(choir_replica *r, void *user)
{
	return choir_replica_merge_call(r, in_merge, user);
}

static choir_status in_replica(choir_replica *r, void *user)
{
	return write_in(r->frame, user);
}

static choir_status in_update(choir_update *u, void *user)
{
	return write_in(u->frame, user);
}

static choir_status with_given(choir_update *u, void *user)
{
	return write_with(user, choir_update_arg(u, "a"));
}

static choir_status give(job *j)
{
	choir_cross *x = choir_strategy_cross(strategy);
	choir_value *a = choir_tensor_as_value(argument(j, x->frame));
	if (j->context == BROADCAST)
		a = choir_cross_broadcast_to(x, a, choir_variable_as_value(j->v));
	CHOIR_TRY(choir_cross_set_arg(x, "a", a));
	const choir_status status = choir_cross_update(x, j->v, NULL, with_given, j);
	choir_frame_clear(x->frame);
	return status;
}

static choir_status perform(job *j)
{
	choir_status status = CHOIR_OK;
	choir_frame *f = choir_frame_new(NULL);
	switch (j->context) {
	case OUTSIDE:
		status = write_in(f, j);
		break;
	case MERGE:
		status = choir_strategy_run(strategy, merge, j, NULL, NULL);
		break;
	case REPLICA:
		status = choir_strategy_run(strategy, in_replica, j, NULL, NULL);
		break;
	case UPDATE:
		status = choir_cross_update(choir_strategy_cross(strategy), j->v, NULL, in_update, j);
		break;
	default:
		status = give(j);
	}
	choir_frame_free(f);
	return status;
}

// What all copies have after the call.
static void result_of(job *j, int64_t got[MAX_COPIES][N])
{
	world_ok(chi_variable_from_host(j->v, initial));
	memcpy(memory, initial, sizeof initial);
	memory[N] = 1;
	const choir_status status = perform(j);
	if (status != CHOIR_OK)
		fail_msg("%s of %s %s, of \"%s\" on %s: %s", calls[j->call].name, kinds[j->kind],
				contexts[j->context], choir_variable_name(j->v),
				choir_device_name(strategy->device[0]), choir_error());
	memset(got, 0, MAX_COPIES * sizeof *got);
	if (j->v->shards > 0)
		world_ok(chi_variable_to_host(j->v, 0, got[0]));
	for (int i = 0; i < j->v->copies; i++)
		world_ok(chi_variable_to_host(j->v, i, got[i]));
}

static void compare(job j)
{
	int64_t expected[MAX_COPIES][N], got[MAX_COPIES][N];
	j.copied = true;
	result_of(&j, expected);
	j.copied = false;
	result_of(&j, got);
	if (memcmp(got, expected, sizeof got) != 0)
		fail_msg("%s of %s %s, of \"%s\" on %s: %d %d %d %d, not %d %d %d %d", calls[j.call].name,
				kinds[j.kind], contexts[j.context], choir_variable_name(j.v),
				choir_device_name(strategy->device[0]), (int) got[0][0], (int) got[0][1],
				(int) got[0][2], (int) got[0][3], (int) expected[0][0], (int) expected[0][1],
				(int) expected[0][2], (int) expected[0][3]);
}

// Whether there is such a call at all.
static bool may(const job *j)
{
	const choir_variable *v = j->v;
	const int how = calls[j->call].how;
	const bool in_update = j->context >= UPDATE;
	if (j->context == GIVEN || j->context == BROADCAST) // a component is given as the variable
		if (j->kind == COMPONENT || (j->context == BROADCAST && j->kind == BORROWED))
			return false;
	const bool borrows = j->kind == BORROWED || j->kind == BEHIND;
	if (borrows && strcmp(choir_variable_name(v), "wrapped") != 0)
		return false;
	if (borrows && j->context == UPDATE && v->copies > 1) // the first call changes it
		return false;
	if (j->kind == BEHIND && calls[j->call].by_itself)
		return false;
	if (v->shards > 0 && in_update && (how >= 0 || j->context == UPDATE)) // of a shard's rows
		return false;
	if (v->synchronization == CHOIR_SYNCHRONIZATION_ON_READ)
		return how == ASSIGN || (how < 0 && j->context == REPLICA);
	if (j->context == REPLICA && v->aggregation == CHOIR_AGGREGATION_NONE)
		return false;
	return how < CHOIR_SCATTER_MIN || in_update ||
			(v->aggregation != CHOIR_AGGREGATION_SUM && v->aggregation != CHOIR_AGGREGATION_MEAN);
}

static void write_all_ways(choir_variable *v)
{
	static int n;
	for (int call = 0; call < CALLS; call++)
		for (int k = READ; k < KINDS; k++)
			for (int c = OUTSIDE; c < CONTEXTS; c++) {
				const job j = { v, call, (kind) k, false, (context) c };
				if (may(&j) && n++ % STRIDE == 0)
					compare(j);
			}
}

static choir_variable *make(
		const char *name, choir_synchronization synchronization, choir_aggregation aggregation)
{
	return world_variable(strategy, name, CHOIR_SHAPE(N),
			CHOIR_OPTIONS(choir_variable_options, .dtype = CHOIR_I64,
					.synchronization = synchronization, .aggregation = aggregation));
}

static void write_everything(void)
{
	choir_variable *wrapped = NULL;
	CHOIR_SCOPE (strategy)
		wrapped = choir_variable_wrap("wrapped", CHOIR_I64, CHOIR_SHAPE(N), memory);
	write_all_ways(wrapped);
	write_all_ways(make("sum", CHOIR_SYNCHRONIZATION_AUTO, CHOIR_AGGREGATION_SUM));
	write_all_ways(
			make("first", CHOIR_SYNCHRONIZATION_AUTO, CHOIR_AGGREGATION_ONLY_FIRST_REPLICA));
	write_all_ways(
			make("part", CHOIR_SYNCHRONIZATION_ON_READ, CHOIR_AGGREGATION_ONLY_FIRST_REPLICA));
}

// spec: D13, 2.5
TEST(arguments_in_the_memory_that_is_written)
{
	world_on_every_deal(&strategy, &replicas, 1, write_everything);
}

// spec: D13, D16, 2.5
TEST(of_shards)
{
	static const char *const places[] = { "cpu:0", "far:0,far:1" };
	for (int i = 0; i < 2; i++) {
		strategy = choir_parameter_server_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
				.replicas = 2, .devices = "cpu:0", .parameter_devices = places[i],
				.partition = CHOIR_PARTITION_FIXED, .max_shards = 3));
		choir_variable *v =
				make("first", CHOIR_SYNCHRONIZATION_AUTO, CHOIR_AGGREGATION_ONLY_FIRST_REPLICA);
		assert_int_equal(choir_variable_shards(v), 3);
		write_all_ways(v);
		choir_strategy_free(strategy);
	}
}

// ---- Slices: what is given stays, whatever the function has written before it looks.

static choir_status write_then_look(choir_update *u, void *user)
{
	const bool *early = user;
	choir_variable *v = choir_update_variable(u);
	choir_tensor *a = *early ? choir_update_arg(u, "a") : NULL;
	CHOIR_TRY(choir_variable_assign(v, choir_number(u->frame, 5)));
	if (!*early)
		a = choir_update_arg(u, "a");
	return choir_variable_assign_add(v, a);
}

static void check_all(choir_variable *v, float expected)
{
	static float got[LARGE];
	for (int copy = 0; copy < v->copies; copy++) {
		world_ok(chi_variable_to_host(v, copy, got));
		for (int64_t i = 0; i < v->elements; i++)
			assert_float_equal(got[i], expected, 0);
	}
}

static void update_slices(void)
{
	choir_cross *x = choir_strategy_cross(strategy);
	choir_variable *v = world_variable(strategy, "large", CHOIR_SHAPE(LARGE), NULL);
	for (int way = 0; way < 3; way++) {
		bool early = way > 0, sliced = true;
		for (int i = 0; i < v->copies; i++)
			sliced = sliced && v->copy[i].device->host_memory;
		if (way == 2 && !sliced)
			continue; // of a whole copy the component is the copy itself
		world_ok(choir_variable_assign(v, choir_number(x->frame, 2)));
		choir_value *read = choir_tensor_as_value(choir_variable_read(v, x->frame));
		world_ok(choir_cross_set_arg(x, "a", way < 2 ? read : choir_variable_as_value(v)));
		world_ok(choir_cross_update(x, v,
				CHOIR_OPTIONS(choir_update_options, .elementwise = CHOIR_ON), write_then_look,
				&early));
		check_all(v, 7);
		choir_frame_clear(x->frame);
	}
}

// spec: 2.5
TEST(slices_of_what_is_given)
{
	world_on_every_deal(&strategy, &replicas, 1, update_slices);
}

// ---- What a merge call returns of a part, which its replica writes before the others take it.

static choir_status return_part(choir_cross *x, void *user)
{
	choir_value *first = choir_tensor_as_value(choir_variable_read(user, x->frame));
	CHOIR_TRY(choir_cross_return(x, "plain", first));
	return choir_cross_return(
			x, "mirrored", choir_cross_broadcast_to(x, first, choir_cross_destination(x, NULL)));
}

static choir_status take_late(choir_replica *r, void *user)
{
	choir_variable *v = user;
	CHOIR_TRY(choir_variable_assign(v, choir_number(r->frame, 3 + choir_replica_id(r))));
	CHOIR_TRY(choir_replica_merge_call(r, return_part, v));
	CHOIR_TRY(choir_variable_assign(v, choir_number(r->frame, 50)));
	choir_tensor *all = choir_replica_all_reduce(
			r, CHOIR_SUM, choir_fill(r->frame, CHOIR_F32, CHOIR_SCALAR, 1));
	WORLD_NEED(choir_tensor_number(all) == choir_replica_count(r)); // all have written
	WORLD_NEED(choir_tensor_number(choir_replica_result(r, "plain")) == 3);
	WORLD_NEED(choir_tensor_number(choir_replica_result(r, "mirrored")) == 3);
	return CHOIR_OK;
}

static void take_parts(void)
{
	choir_variable *v = world_variable(strategy, "part", CHOIR_SCALAR,
			CHOIR_OPTIONS(choir_variable_options, .synchronization = CHOIR_SYNCHRONIZATION_ON_READ,
					.aggregation = CHOIR_AGGREGATION_ONLY_FIRST_REPLICA));
	world_ok(choir_strategy_run(strategy, take_late, v, NULL, NULL));
}

// spec: A12, 2.4
TEST(parts_that_are_returned)
{
	world_on_every_deal(&strategy, &replicas, 1, take_parts);
}

// ---- A component that is written in a replica is what that replica has of it.

typedef struct {
	choir_variable *v, *from;
	int how; // ASSIGN, ASSIGN_ADD or ASSIGN_SUB
	bool read;
} written;

static choir_status number_part(choir_replica *r, void *user)
{
	return choir_variable_assign(user, choir_number(r->frame, 1 + 2 * choir_replica_id(r)));
}

static choir_status write_component(choir_replica *r, void *user)
{
	const written *w = user;
	choir_tensor *t =
			w->read ? choir_variable_read(w->from, r->frame) : choir_replica_arg(r, "from");
	return w->how == ASSIGN		   ? choir_variable_assign(w->v, t)
			: w->how == ASSIGN_ADD ? choir_variable_assign_add(w->v, t)
								   : choir_variable_assign_sub(w->v, t);
}

static double after_writing(written w)
{
	choir_cross *x = choir_strategy_cross(strategy);
	choir_values *args = choir_values_new(strategy);
	world_ok(choir_values_set(args, "from", choir_variable_as_value(w.from)));
	world_ok(choir_variable_assign(w.v, choir_number(x->frame, 100)));
	world_ok(choir_strategy_run(strategy, write_component, &w, args, NULL));
	const double number = choir_tensor_number(choir_variable_read(w.v, x->frame));
	choir_values_free(args);
	choir_frame_clear(x->frame);
	return number;
}

static choir_variable *scalar(
		const char *name, choir_synchronization synchronization, choir_aggregation aggregation)
{
	return world_variable(strategy, name, CHOIR_SCALAR,
			CHOIR_OPTIONS(choir_variable_options, .synchronization = synchronization,
					.aggregation = aggregation));
}

static void write_components(void)
{
	choir_variable *const to[] = {
		scalar("sum", CHOIR_SYNCHRONIZATION_AUTO, CHOIR_AGGREGATION_SUM),
		scalar("mean", CHOIR_SYNCHRONIZATION_AUTO, CHOIR_AGGREGATION_MEAN),
		scalar("first", CHOIR_SYNCHRONIZATION_AUTO, CHOIR_AGGREGATION_ONLY_FIRST_REPLICA),
	};
	choir_variable *const from[] = {
		scalar("three", CHOIR_SYNCHRONIZATION_AUTO, CHOIR_AGGREGATION_NONE),
		scalar("parts", CHOIR_SYNCHRONIZATION_ON_READ, CHOIR_AGGREGATION_SUM),
		scalar("own parts", CHOIR_SYNCHRONIZATION_ON_READ, CHOIR_AGGREGATION_NONE),
	};
	world_ok(choir_strategy_run(strategy, number_part, from[1], NULL, NULL));
	world_ok(choir_strategy_run(strategy, number_part, from[2], NULL, NULL));
	choir_frame *f = choir_strategy_cross(strategy)->frame;
	world_ok(choir_variable_assign(from[0], choir_number(f, 3)));
	const double expected[3][3] = {
		{ 3.0 * replicas, 3, 3 }, // of each target
		{ (double) replicas * replicas, replicas, 1 }, // of 1, 3, 5, ...
		{ (double) replicas * replicas, replicas, 1 },
	};
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++)
			for (int how = ASSIGN; how <= ASSIGN_SUB; how++)
				for (int read = 0; read < 2; read++) {
					const double x = expected[i][k];
					const double got = after_writing((written){ to[k], from[i], how, read == 1 });
					const double now = how == ASSIGN ? x : how == ASSIGN_ADD ? 100 + x : 100 - x;
					assert_true(fabs(got - now) < 1e-5);
				}
}

// spec: A13, 2.5
TEST(components_that_are_written)
{
	world_on_every_deal(&strategy, &replicas, 1, write_components);
}

TEST_BEFORE(world_watch)
