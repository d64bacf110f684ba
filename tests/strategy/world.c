// Helpers of the tests of strategies.
#include "strategy/world.h"

#include "base/alloc.h"
#include "choir/op.h"
#include "short.h"
#include "test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

const world_deal world_deals[] = {
	{ 1, "cpu:0" },
	{ 2, "cpu:0,cpu:1" },
	{ 3, "cpu:0" },
	{ 4, "cpu:0,cpu:1" },
	{ 5, "cpu:0,cpu:1,cpu:2" },
	{ 3, "cpu:0,cpu:1,cpu:2,cpu:3" },
	{ 2, "far:0,far:1" },
	{ 5, "far:0,far:1" },
	{ 3, "far:0" },
	{ 2, "cpu:0,far:0" },
	{ 5, "far:0,cpu:0,cpu:1" },
};
const int world_deal_count = sizeof world_deals / sizeof world_deals[0];

choir_strategy *world_new(int replicas, const char *devices, double timeout)
{
	choir_strategy *s = choir_mirrored_strategy_new(CHOIR_OPTIONS(
			choir_strategy_options, .replicas = replicas, .devices = devices, .timeout = timeout));
	if (s == NULL)
		fail_msg("no strategy: %s", choir_error());
	return s;
}

choir_variable *world_variable(
		choir_strategy *s, const char *name, choir_shape shape, const choir_variable_options *o)
{
	choir_variable *v = NULL;
	CHOIR_SCOPE (s)
		v = choir_variable_new(name, shape, o);
	if (v == NULL)
		fail_msg("no variable: %s", choir_error());
	return v;
}

const char *world_cpus(int devices, char text[256])
{
	int length = 0;
	for (int i = 0; i < devices; i++)
		length +=
				snprintf(text + length, (size_t) (256 - length), "%scpu:%d", i == 0 ? "" : ",", i);
	return text;
}

static choir_status add_up(choir_cross *x, void *user)
{
	(void) user;
	choir_value *v = choir_cross_arg(x, "v");
	choir_tensor *sum = choir_value_local(v, 0);
	for (int i = 1; i < choir_value_local_count(v); i++)
		sum = choir_add(sum, choir_value_local(v, i));
	return choir_cross_return(x, "sum", choir_tensor_as_value(sum));
}

static choir_status three_plus_id(choir_replica *r, void *user)
{
	(void) user;
	const int id = choir_replica_id(r);
	choir_tensor *v = choir_fill(r->frame, CHOIR_I32, CHOIR_SCALAR, 3 + id);
	choir_replica_set_arg(r, "v", v);
	CHOIR_TRY(choir_replica_merge_call(r, add_up, NULL));
	CHOIR_TRY(choir_replica_return(r, "result", choir_add(choir_replica_result(r, "sum"), v)));
	choir_tensor *x = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), 1 + id);
	return choir_replica_return(
			r, "mean", choir_sum(choir_replica_all_reduce(r, CHOIR_MEAN, x), CHOIR_ALL_AXES));
}

void world_works(choir_strategy *s)
{
	const int n = choir_strategy_replicas(s);
	const int sum = 3 * n + n * (n - 1) / 2;
	choir_values *results = NULL;
	if (choir_strategy_run(s, three_plus_id, NULL, NULL, &results) != CHOIR_OK)
		fail_msg("does not work: %s", choir_error());
	for (int i = 0; i < n; i++) {
		assert_int_equal((int) world_number_of(results, "result", i), sum + 3 + i);
		assert_int_equal((int) world_number_of(results, "mean", i), n + 1);
	}
	choir_values_free(results);
}

void world_check_failed(int status, int expected, const char *first, const char *second,
		const char *file, int line)
{
	const char *text = choir_error();
	if (status == expected && (int) choir_error_status() == expected && text[0] != '\0' &&
			(first == NULL || text_holds(text, first)) &&
			(second == NULL || text_holds(text, second)))
		return;
	print_error("%s:%d: %s, expected %s with \"%s\" and \"%s\"; the last failure is %s: %s\n",
			file, line, choir_status_name((choir_status) status),
			choir_status_name((choir_status) expected), first == NULL ? "" : first,
			second == NULL ? "" : second, choir_status_name(choir_error_status()), text);
	_fail(file, line);
}

void world_check_ok(int status, const char *file, int line)
{
	if (status == CHOIR_OK)
		return;
	print_error("%s:%d: %s: %s\n", file, line, choir_status_name((choir_status) status),
			choir_error());
	_fail(file, line);
}

double world_number(choir_values *set, const char *name)
{
	return choir_tensor_number(choir_value_tensor(choir_values_find(set, name)));
}

double world_number_of(choir_values *set, const char *name, int replica)
{
	choir_value *v = choir_values_find(set, name);
	assert_non_null(v);
	return choir_tensor_number(
			choir_value_local(v, choir_value_local_count(v) == 1 ? 0 : replica));
}

void world_steady(choir_strategy *s, choir_replica_fn *fn, void *user)
{
	int quiet = 0;
	for (int step = 0; quiet < 20; step++) {
		const uint64_t before = chi_alloc_count();
		world_ok(choir_strategy_run(s, fn, user, NULL, NULL));
		quiet = chi_alloc_count() == before ? quiet + 1 : 0;
		assert_in_range(step, 0, 500);
	}
}

void world_watch(void)
{
	alarm(110);
}

void world_on_every_deal(choir_strategy **strategy, int *replicas, int min, void (*test)(void))
{
	for (int i = 0; i < world_deal_count; i++) {
		const bool threads = strchr(world_deals[i].devices, ',') != NULL;
		if (world_deals[i].replicas < min || (SERIAL_STRIDE > 1 && !threads))
			continue;
		*replicas = world_deals[i].replicas;
		*strategy = world_new(*replicas, world_deals[i].devices, 10);
		test();
		world_works(*strategy);
		choir_strategy_free(*strategy);
	}
}
