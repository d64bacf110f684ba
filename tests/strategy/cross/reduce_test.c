// Reductions in cross-replica context: with and without axes, with counts, partial and empty
// replicas, and to destinations.
#include "choir/op.h"

#include "base/alloc.h"
#include "collective/oracle.h"
#include "strategy/cross/reduce.h"
#include "short.h"
#include "strategy/world.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Replica i returns rows of its own: i of them, or none.
static choir_status return_rows(choir_replica *r, void *user)
{
	(void) user;
	const int id = choir_replica_id(r);
	choir_replica_return(r, "rows", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(id, 2), id));
	choir_replica_return(r, "none", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(0, 2), 0));
	choir_replica_return(r, "same", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), id));
	choir_replica_return(r, "whole", choir_fill(r->frame, CHOIR_I32, CHOIR_SHAPE(3), id));
	choir_replica_return(r, "small", choir_fill(r->frame, CHOIR_U8, CHOIR_SHAPE(1), 200));
	choir_replica_return(r, "counted",
			choir_with_count(choir_fill(r->frame, CHOIR_F32, CHOIR_SCALAR, 10 * id), id));
	choir_replica_return(r, "mixed",
			id == 0 ? choir_number(r->frame, 1)
					: choir_with_count(choir_fill(r->frame, CHOIR_F32, CHOIR_SCALAR, 1), 1));
	choir_replica_return(r, "zero", choir_number(r->frame, 0));
	choir_replica_return( // an addition would spread one over the other
			r, "thin", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(id == 0 ? 2 : 1), 1));
	choir_replica_return(
			r, "dtypes", choir_fill(r->frame, id == 0 ? CHOIR_F32 : CHOIR_I32, CHOIR_SHAPE(2), 1));
	return choir_replica_return(r, "plain", choir_number(r->frame, 4));
}

static choir_strategy *strategy;
static choir_values *results;
static int replicas;

static void on_every_deal(void (*test)(void))
{
	for (int i = 0; i < world_deal_count; i += 1 + (SERIAL_STRIDE > 1)) {
		replicas = world_deals[i].replicas;
		strategy = world_new(replicas, world_deals[i].devices, 0);
		results = NULL;
		world_ok(choir_strategy_run(strategy, return_rows, NULL, NULL, &results));
		test();
		world_works(strategy);
		choir_values_free(results);
		choir_strategy_free(strategy);
	}
}

static choir_tensor *reduced(choir_reduce_op op, const char *name, choir_axes axes)
{
	choir_tensor *t = choir_strategy_reduce(strategy, op, choir_values_find(results, name), axes);
	if (t != NULL)
		assert_ptr_equal(choir_tensor_frame(t), choir_values_frame(results));
	return t;
}

static double total(choir_reduce_op op, const char *name, choir_axes axes)
{
	return choir_tensor_number(choir_sum(reduced(op, name, axes), CHOIR_ALL_AXES));
}

static void reduce_without_axes(void)
{
	const int n = replicas, ids = n * (n - 1) / 2;
	assert_int_equal((int) total(CHOIR_SUM, "same", CHOIR_NO_AXIS), 2 * ids);
	assert_float_equal((float) total(CHOIR_MEAN, "same", CHOIR_NO_AXIS), (float) (n - 1), 1e-5f);
	assert_int_equal((int) total(CHOIR_SUM, "whole", CHOIR_NO_AXIS), 3 * ids);
	assert_int_equal(choir_tensor_dtype(reduced(CHOIR_SUM, "whole", CHOIR_NO_AXIS)), CHOIR_I32);
	assert_float_equal(
			(float) total(CHOIR_MEAN, "whole", CHOIR_NO_AXIS), 1.5f * (float) (n - 1), 1e-5f);
	assert_int_equal(choir_tensor_dtype(reduced(CHOIR_MEAN, "whole", CHOIR_NO_AXIS)), CHOIR_F64);
	assert_int_equal((int) total(CHOIR_MEAN, "small", CHOIR_NO_AXIS), 200);
	assert_int_equal(choir_tensor_dtype(reduced(CHOIR_MEAN, "small", CHOIR_NO_AXIS)), CHOIR_F32);
	const double counted = total(CHOIR_MEAN, "counted", CHOIR_NO_AXIS);
	if (ids == 0)
		assert_true(isnan(counted));
	else
		assert_float_equal((float) counted, 10, 1e-5f);
	assert_int_equal((int) total(CHOIR_SUM, "counted", CHOIR_NO_AXIS), 10 * ids);
	assert_int_equal((int) total(CHOIR_MEAN, "plain", CHOIR_NO_AXIS), 4);
	assert_int_equal((int) total(CHOIR_SUM, "zero", CHOIR_NO_AXIS), 0);
}

// spec: B29, M15, 2.8
TEST(reductions_without_axes)
{
	on_every_deal(reduce_without_axes);
}

static void reduce_with_axes(void)
{
	const int n = replicas;
	double sum = 0, rows = 0;
	for (int i = 0; i < n; i++) {
		sum += i * i;
		rows += i;
	}
	choir_tensor *t = reduced(CHOIR_SUM, "rows", CHOIR_AXIS(0));
	assert_int_equal(choir_tensor_shape(t)->rank, 1);
	assert_int_equal(choir_tensor_shape(t)->dim[0], 2);
	assert_int_equal((int) total(CHOIR_SUM, "rows", CHOIR_AXIS(-2)), (int) (2 * sum));
	assert_int_equal((int) total(CHOIR_SUM, "rows", CHOIR_ALL_AXES), (int) (2 * sum));
	assert_int_equal((int) total(CHOIR_SUM, "none", CHOIR_AXIS(0)), 0);
	assert_true(isnan(total(CHOIR_MEAN, "none", CHOIR_AXIS(0))));
	const double mean = total(CHOIR_MEAN, "rows", CHOIR_AXIS(0));
	const double whole = total(CHOIR_MEAN, "rows", CHOIR_ALL_AXES);
	const double from_end = total(CHOIR_MEAN, "rows", CHOIR_AXIS(-2));
	if (rows == 0) {
		assert_true(isnan(mean) && isnan(from_end));
	} else {
		assert_float_equal((float) from_end, (float) (2 * sum / rows), 1e-4f);
		assert_float_equal(
				(float) total(CHOIR_MEAN, "rows", CHOIR_AXES(0, -1)), (float) (sum / rows), 1e-4f);
		assert_float_equal((float) mean, (float) (2 * sum / rows), 1e-4f);
		assert_float_equal((float) whole, (float) (sum / rows), 1e-4f);
	}
	assert_int_equal(choir_tensor_dtype(reduced(CHOIR_MEAN, "whole", CHOIR_AXIS(0))), CHOIR_F64);
	assert_float_equal(
			(float) total(CHOIR_MEAN, "whole", CHOIR_AXIS(0)), (float) (n - 1) / 2, 1e-5f);
}

// spec: B29, B30, 2.8
TEST(reductions_with_axes)
{
	on_every_deal(reduce_with_axes);
}

// A sum of bytes wraps; in a debug build it is an error, wherever it is made. *user: what each
// replica has, of which the sum is 255 or more than that.
static choir_status sum_bytes(choir_replica *r, void *user)
{
	choir_tensor *t = choir_fill(r->frame, CHOIR_U8, CHOIR_SHAPE(3), *(int *) user);
	choir_tensor *sum = choir_replica_all_reduce(r, CHOIR_SUM, t);
	return sum == NULL ? choir_error_status() : choir_replica_return(r, "sum", sum);
}

static choir_status keep_bytes(choir_replica *r, void *user)
{
	return choir_replica_return(
			r, "bytes", choir_fill(r->frame, CHOIR_U8, CHOIR_SHAPE(3), *(int *) user));
}

static void bytes_are(choir_tensor *t, int expected)
{
	const bool debug = chi_needs_checked_sum(CHOIR_SUM,
			choir_fill(choir_strategy_cross(strategy)->frame, CHOIR_U8, CHOIR_SCALAR, 0));
	unsigned char bytes[3];
	if (expected > 255 && debug) {
		assert_null(t);
		return;
	}
	world_ok(choir_tensor_to_host(t, bytes, sizeof bytes));
	for (int i = 0; i < 3; i++)
		assert_int_equal(bytes[i], expected % 256);
}

static void sum_bytes_everywhere(void)
{
	choir_cross *x = choir_strategy_cross(strategy);
	for (int over = 0; over < 2; over++) {
		int own = over == 0 ? 255 / replicas : 255;
		choir_values *sums = NULL;
		const choir_status status = choir_strategy_run(strategy, sum_bytes, &own, NULL, &sums);
		if (status == CHOIR_OK)
			bytes_are(choir_value_local(choir_values_find(sums, "sum"), 0), own * replicas);
		else
			world_failed(status, CHOIR_INVALID, "all_reduce: *SUM of u8*255", NULL);
		choir_values_free(sums);
		sums = NULL;
		world_ok(choir_strategy_run(strategy, keep_bytes, &own, NULL, &sums));
		choir_value *v = choir_values_find(sums, "bytes");
		bytes_are(choir_strategy_reduce(strategy, CHOIR_SUM, v, CHOIR_NO_AXIS), own * replicas);
		choir_value *to =
				choir_cross_reduce_to(x, CHOIR_SUM, v, choir_cross_destination(x, "cpu:0"));
		bytes_are(choir_value_tensor(to), own * replicas);
		choir_frame_clear(x->frame);
		choir_values_free(sums);
	}
}

static choir_status return_losses(choir_replica *r, void *user)
{
	(void) user;
	choir_tensor *x = choir_replica_arg(r, "x");
	choir_replica_return(r, "mean", choir_mean(x, CHOIR_AXIS(0)));
	return choir_replica_return(r, "x", x);
}

// The documentation's example: a batch of 8, and one of 6, on two replicas.
// spec: B29, B30
TEST(losses_of_full_and_partial_batches)
{
	static const float numbers[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	for (int whole = 0; whole < 2; whole++) {
		choir_strategy *s = world_new(2, "cpu:0,cpu:1", 0);
		choir_values *batch = choir_values_new(s), *losses = NULL;
		choir_frame *f = choir_values_frame(batch);
		const int first = 4, second = whole ? 4 : 2;
		world_ok(choir_values_set_local(
				batch, "x", 0, choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(first), numbers)));
		world_ok(choir_values_set_local(
				batch, "x", 1, choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(second), numbers + first)));
		world_ok(choir_strategy_run(s, return_losses, NULL, batch, &losses));
		choir_value *x = choir_values_find(losses, "x"), *mean = choir_values_find(losses, "mean");
		const int last = first + second;
		assert_true(choir_tensor_number(choir_strategy_reduce(s, CHOIR_SUM, x, CHOIR_AXIS(0))) ==
				last * (last - 1) / 2);
		assert_true(choir_tensor_number(choir_strategy_reduce(s, CHOIR_MEAN, x, CHOIR_AXIS(0))) ==
				(last - 1) / 2.0);
		// The mean of means weighs some by 1/8 and others by 1/4.
		assert_true(choir_tensor_number(choir_strategy_reduce(
							s, CHOIR_MEAN, mean, CHOIR_NO_AXIS)) == (whole ? 3.5 : 3));
		choir_tensor *sum = choir_strategy_reduce(s, CHOIR_SUM, x, CHOIR_NO_AXIS);
		float each[4];
		if (whole) {
			world_ok(choir_tensor_to_host(sum, each, sizeof each));
			for (int i = 0; i < 4; i++)
				assert_true(each[i] == (float) (4 + 2 * i));
		} else {
			assert_null(sum);
			world_failed(
					choir_frame_status(choir_values_frame(losses)), CHOIR_INVALID, "[4]", "[2]");
		}
		choir_values_free(batch);
		choir_values_free(losses);
		choir_strategy_free(s);
	}
}

static void broadcast_to_all(void)
{
	choir_cross *x = choir_strategy_cross(strategy);
	choir_value *v = choir_tensor_as_value(choir_fill(x->frame, CHOIR_F32, CHOIR_SHAPE(2), 6));
	choir_value *all = choir_cross_broadcast_to(x, v, choir_cross_destination(x, NULL));
	assert_int_equal(choir_value_kind_of(all), CHOIR_VALUE_MIRRORED);
	assert_int_equal(choir_value_local_count(all), choir_strategy_worker_devices(strategy));
	choir_value *two = choir_cross_broadcast_to(x, v, choir_cross_destination(x, "far:1,cpu:0"));
	assert_int_equal(choir_value_local_count(two), 2);
	assert_string_equal(choir_device_name(two->device[0]), "far:1");
	assert_string_equal(choir_device_name(two->device[1]), "cpu:0");
	for (int i = 0; i < 2; i++)
		assert_true(
				choir_tensor_number(choir_sum(choir_value_local(two, i), CHOIR_ALL_AXES)) == 12);
	for (int i = 0; i < choir_value_local_count(all); i++) {
		choir_tensor *t = choir_value_local(all, i);
		assert_ptr_equal(all->device[i], choir_strategy_worker_device(strategy, i));
		assert_true(choir_tensor_number(choir_sum(t, CHOIR_ALL_AXES)) == 12);
	}
	choir_frame_clear(x->frame);
}

// To the devices that are named, and to all worker devices if none is.
// spec: C7
TEST(broadcasts_to_all_devices)
{
	world_on_every_deal(&strategy, &replicas, 1, broadcast_to_all);
}

// spec: M15, 2.8
TEST(sums_of_bytes_that_overflow)
{
	world_on_every_deal(&strategy, &replicas, 2, sum_bytes_everywhere);
}

static void reduce_wrongly(void)
{
	struct {
		const char *name;
		choir_reduce_op op;
		choir_axes axes;
		const char *text;
	} const wrong[] = {
		{ "rows", CHOIR_SUM, CHOIR_NO_AXIS, "replica 0 has f32 [0, 2], replica 1 f32 [1, 2]" },
		{ "thin", CHOIR_SUM, CHOIR_NO_AXIS, "replica 0 has f32 [2], replica 1 f32 [1]" },
		{ "dtypes", CHOIR_MEAN, CHOIR_NO_AXIS, "replica 0 has f32 [2], replica 1 i32 [2]" },
		{ "same", CHOIR_SUM, CHOIR_AXIS(1), "[2] has no axis 1" },
		{ "same", (choir_reduce_op) 9, CHOIR_NO_AXIS, "operation*9" },
		{ "mixed", CHOIR_MEAN, CHOIR_NO_AXIS, "mean*all or none" },
		{ "plain", CHOIR_SUM, CHOIR_NO_AXIS, "has no SUM" },
	};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		if (replicas < 3 && i != 3 && i != 4)
			continue;
		choir_tensor *t = reduced(wrong[i].op, wrong[i].name, wrong[i].axes);
		assert_null(t);
		world_failed(choir_frame_status(choir_values_frame(results)), CHOIR_INVALID, wrong[i].text,
				NULL);
		world_ok(
				choir_strategy_run(strategy, return_rows, NULL, NULL, &results)); // clears the set
	}
	assert_null(choir_strategy_reduce(strategy, CHOIR_SUM, NULL, CHOIR_NO_AXIS));
}

// spec: A48, B29, E11, E13, E16, E21, E40, 2.8, 2.19
TEST(what_cannot_be_reduced)
{
	on_every_deal(reduce_wrongly);
}

// What a merge function is to reduce, and the sums that should come out.
typedef struct {
	choir_dtype dtype;
	int64_t elements;
	const void *all, *sum, *mean;
	const char *to; // a place; NULL: the value itself; "": a variable
	choir_variable *variable;
} reduction;

static choir_status check_local(choir_value *v, const void *expected, const reduction *t)
{
	const size_t bytes = (size_t) t->elements * oracle_size(t->dtype);
	char *got = malloc(bytes + 1);
	choir_status status = CHOIR_OK;
	for (int i = 0; status == CHOIR_OK && i < choir_value_local_count(v); i++) {
		status = choir_tensor_to_host(choir_value_local(v, i), got, bytes);
		if (status == CHOIR_OK && memcmp(got, expected, bytes) != 0)
			status = choir_fail(CHOIR_INTERNAL, "component %d differs", i);
	}
	free(got);
	return status;
}

// The result lies on the devices of a variable, or on those of a destination.
static choir_status check_places(const choir_value *v, choir_value *to)
{
	choir_variable *like = choir_value_variable(to);
	if (like == NULL && choir_value_kind_of(to) != CHOIR_VALUE_DESTINATION)
		return CHOIR_OK;
	WORLD_NEED(v->count == (like != NULL ? choir_variable_copies(like) : to->count));
	for (int i = 0; i < v->count; i++)
		WORLD_NEED(
				v->device[i] == (like != NULL ? choir_variable_device(like, i) : to->device[i]));
	return CHOIR_OK;
}

static choir_status reduce_to(choir_cross *x, void *user)
{
	const reduction *t = user;
	choir_value *v = choir_cross_arg(x, "v"), *to = v;
	if (t->to != NULL)
		to = t->to[0] == '\0' ? choir_variable_as_value(t->variable)
							  : choir_cross_destination(x, t->to);
	choir_value *sum = choir_cross_reduce_to(x, CHOIR_SUM, v, to);
	WORLD_NEED(choir_value_kind_of(sum) == CHOIR_VALUE_MIRRORED);
	CHOIR_TRY(check_places(sum, to));
	CHOIR_TRY(check_local(sum, t->sum, t));
	if (t->dtype <= CHOIR_F64) {
		choir_reduction batch[2] = { { v, to, NULL }, { v, v, NULL } };
		CHOIR_TRY(choir_cross_batch_reduce_to(x, CHOIR_MEAN, 2, batch, NULL));
		CHOIR_TRY(check_places(batch[0].result, to));
		CHOIR_TRY(check_local(batch[0].result, t->mean, t));
		CHOIR_TRY(check_local(batch[1].result, t->mean, t));
		// Mirrored already: the mean is the value, the sum is none.
		choir_value *again = choir_cross_reduce_to(x, CHOIR_MEAN, sum, to);
		CHOIR_TRY(check_local(again, t->sum, t));
	}
	choir_tensor *one = choir_value_tensor(sum); // for formulas, on the context's own device
	WORLD_NEED(choir_tensor_frame(one) == x->frame);
	WORLD_NEED(choir_sum(one, CHOIR_ALL_AXES) != NULL || t->elements == 0);
	return choir_cross_return(x, "sum", sum);
}

static choir_status give_own(choir_replica *r, void *user)
{
	const reduction *t = user;
	const size_t bytes = (size_t) t->elements * oracle_size(t->dtype);
	choir_replica_set_arg(r, "v",
			choir_constant(r->frame, t->dtype, CHOIR_SHAPE(t->elements),
					(const char *) t->all + (size_t) choir_replica_id(r) * bytes));
	CHOIR_TRY(choir_replica_merge_call(r, reduce_to, user));
	return choir_replica_return(r, "sum", choir_replica_result(r, "sum"));
}

static void reduce_everywhere(reduction *t)
{
	static const char *const places[] = { NULL, "", "cpu:0", "far:0", "cpu:0,far:0", "far:1,cpu:3",
		"far:7", "cpu:0,cpu:1,cpu:2" };
	CHOIR_SCOPE (strategy)
		t->variable = choir_variable_new("like", CHOIR_SHAPE(1), NULL);
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		t->to = places[i];
		world_ok(choir_strategy_run(strategy, give_own, t, NULL, &results));
		for (int r = 0; r < replicas; r++) {
			choir_tensor *got = choir_value_local(choir_values_find(results, "sum"), r);
			char *host = malloc((size_t) t->elements * oracle_size(t->dtype) + 1);
			world_ok(
					choir_tensor_to_host(got, host, (size_t) t->elements * oracle_size(t->dtype)));
			assert_memory_equal(host, t->sum, (size_t) t->elements * oracle_size(t->dtype));
			free(host);
		}
	}
	float like = 1; // only named the devices
	world_ok(chi_variable_to_host(t->variable, 0, &like));
	assert_true(like == 0);
}

static void reduce_to_places(void)
{
	static const choir_dtype dtypes[] = { CHOIR_F32, CHOIR_I64 };
	static const int64_t sizes[] = { 3, 20000 };
	for (int d = 0; d < 2; d++) {
		const int64_t n = sizes[d];
		const size_t bytes = (size_t) n * oracle_size(dtypes[d]);
		void *all = malloc(bytes * (size_t) replicas), *sum = malloc(bytes), *mean = malloc(bytes);
		oracle_fill(dtypes[d], all, replicas, n, 5);
		oracle_sum(dtypes[d], all, 0, replicas, n, sum);
		memcpy(mean, sum, bytes);
		if (dtypes[d] <= CHOIR_F64)
			oracle_divide(dtypes[d], mean, replicas, n);
		reduction t = { .dtype = dtypes[d], .elements = n, .all = all, .sum = sum, .mean = mean };
		choir_strategy *whole = strategy;
		strategy = choir_strategy_copy_new(whole); // of no variables
		choir_values *before = results;
		results = NULL;
		reduce_everywhere(&t);
		choir_values_free(results);
		results = before;
		choir_strategy_free(strategy);
		strategy = whole;
		free(all);
		free(sum);
		free(mean);
	}
}

// spec: A23, A26, C7, C25, A22, A39, A40, C14
TEST(reductions_to_destinations)
{
	on_every_deal(reduce_to_places);
}

static choir_status broadcast_and_misuse(choir_cross *x, void *user)
{
	const int how = *(int *) user;
	choir_value *v = choir_cross_arg(x, "v"), *place = choir_cross_destination(x, "cpu:0,far:2");
	choir_value *sum = choir_cross_reduce_to(x, CHOIR_SUM, v, v);
	choir_value *there = choir_cross_broadcast_to(x, sum, place);
	WORLD_NEED(choir_value_local_count(there) == 2);
	for (int i = 0; i < 2; i++)
		WORLD_NEED(choir_tensor_number(choir_sum(choir_value_local(there, i), CHOIR_ALL_AXES)) ==
				choir_tensor_number(choir_sum(choir_value_tensor(sum), CHOIR_ALL_AXES)));
	choir_value *one = choir_tensor_as_value(choir_number(x->frame, 1));
	choir_value *zero = choir_tensor_as_value(choir_number(x->frame, 0));
	WORLD_NEED(choir_value_kind_of(choir_cross_reduce_to(x, CHOIR_MEAN, one, v)) ==
			CHOIR_VALUE_PLAIN);
	WORLD_NEED((int) choir_tensor_number(
					   choir_value_tensor(choir_cross_reduce_to(x, CHOIR_SUM, zero, v))) == 0);
	switch (how) {
	case 0:
		choir_cross_reduce_to(x, CHOIR_SUM, one, v);
		break;
	case 1:
		choir_cross_reduce_to(x, CHOIR_SUM, sum, v);
		break;
	case 2:
		choir_cross_destination(x, "gpu:0");
		break;
	case 3:
		choir_cross_destination(x, "");
		break;
	case 4:
		choir_cross_reduce_to(x, CHOIR_SUM, place, v);
		break;
	case 5:
		choir_value_tensor(place);
		break;
	case 6:
		choir_cross_broadcast_to(x, v, place);
		break;
	case 7:
		choir_cross_reduce_to(x, (choir_reduce_op) 5, v, v);
		break;
	default:
		choir_value_tensor(v);
	}
	return CHOIR_OK;
}

static choir_status give_and_misuse(choir_replica *r, void *user)
{
	choir_replica_set_arg(
			r, "v", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), choir_replica_id(r)));
	return choir_replica_merge_call(r, broadcast_and_misuse, user);
}

static void misuse_destinations(void)
{
	static const char *const texts[] = { "has no SUM", "has no SUM", "gpu:0", "destination",
		"a destination has no value", "a destination has no tensor", "reduce it, or take one",
		"operation*5", "reduce it, or take one" };
	if (replicas == 1)
		return;
	for (int how = 0; how < 9; how++)
		world_failed(choir_strategy_run(strategy, give_and_misuse, &how, NULL, NULL),
				how == 2 ? CHOIR_NOT_FOUND : CHOIR_INVALID, texts[how], NULL);
}

// spec: A39, A40, C7, E11, E22, 2.8, 2.19
TEST(destinations_that_are_none)
{
	on_every_deal(misuse_destinations);
}

// A failing allocation in the program's own context leaves no half collective behind.
TEST(allocations_may_fail)
{
	static const world_deal deals[] = { { 5, "cpu:0,cpu:1" }, { 3, "far:0,far:1" } };
	for (int i = 0; i < 2; i++) {
		strategy = world_new(deals[i].replicas, deals[i].devices, 0);
		results = NULL;
		world_ok(choir_strategy_run(strategy, return_rows, NULL, NULL, &results));
		choir_cross *x = choir_strategy_cross(strategy);
		choir_value *v = choir_values_find(results, "same");
		for (uint64_t n = 1;; n++) {
			chi_alloc_fail(n, false);
			choir_value *sum =
					choir_cross_reduce_to(x, CHOIR_SUM, v, choir_cross_destination(x, "far:5"));
			choir_value *all = choir_cross_reduce_to(x, CHOIR_SUM, v, v);
			const bool failed = chi_alloc_failed();
			chi_alloc_fail(0, false);
			assert_int_equal(sum == NULL || all == NULL, failed);
			if (failed)
				world_failed(choir_error_status(), CHOIR_NO_MEMORY, NULL, NULL);
			choir_frame_clear(x->frame);
			sum = choir_cross_reduce_to(x, CHOIR_SUM, v, v);
			assert_non_null(sum);
			choir_frame_clear(x->frame);
			if (!failed)
				break;
		}
		world_works(strategy);
		choir_values_free(results);
		choir_strategy_free(strategy);
	}
}

TEST_BEFORE(world_watch)
