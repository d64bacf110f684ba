// The public suite of strategies (choir/extend/suite.h) on every strategy that there is, and on
// one from outside.
#include "plain_kernels.h"
#include <choir/choir.h>
#include <choir/extend.h>
#include <choir/extend/suite.h>
#include "short.h"

#include <stdio.h>

// ---- A strategy of the table alone: every variable on the last device that carries replicas.

static choir_status open_last(
		void *self, const choir_strategy_options *options, int n, choir_device *const devices[])
{
	(void) options;
	*(choir_device **) self = devices[n - 1];
	return CHOIR_OK;
}

static int last_device(void *self, int capacity, choir_device *devices[])
{
	(void) capacity;
	devices[0] = *(choir_device **) self;
	return 1;
}

static int place_last(
		void *self, const choir_new_variable *v, int capacity, choir_device *devices[])
{
	(void) v;
	return last_device(self, capacity, devices);
}

static const choir_strategy_table last = { .size = sizeof last,
	.version = CHOIR_TABLE_VERSION,
	.name = "last",
	.self_size = sizeof(choir_device *),
	.open = open_last,
	.parameter_devices = last_device,
	.place_variable = place_last };

// A strategy from outside decides where variables lie.
static bool lies_where_it_is_placed(void)
{
	choir_variable *v = NULL;
	choir_strategy *s = choir_strategy_new(
			"last", CHOIR_OPTIONS(choir_strategy_options, .devices = "cpu:0,far:1"));
	if (s != NULL)
		CHOIR_SCOPE (s)
			v = choir_variable_new("v", CHOIR_SHAPE(2), NULL);
	const bool there = v != NULL && choir_variable_copies(v) == 1 &&
			choir_variable_device(v, 0) == choir_device_find("far:1");
	choir_strategy_free(s);
	return there;
}

typedef struct {
	const char *kind;
	int max_replicas;
	const choir_strategy_options *options;
} subject;

static void print(const char *check, choir_status result, const char *text, void *user)
{
	const subject *s = user;
	printf("%s %s: %s: %s\n", result == CHOIR_OK ? "ok    " : "FAILED", s->kind, check, text);
}

static bool passes(subject *s)
{
	static const char *const all[] = { "cpu:0", "cpu:0,cpu:1", "far:0", "far:0,far:1",
		"cpu:0,far:0", NULL };
	const choir_suite_options o = { .size = sizeof o,
		.strategy = s->kind,
		.strategy_options = s->options,
		.max_replicas = SHORT && s->max_replicas == 0 ? 3 : s->max_replicas,
		.devices = SHORT ? all + 3 : all };
	return choir_suite_run(&o, print, s) == CHOIR_OK;
}

// spec: A6, A34, A44, B12, C1, D1, D33, E25, M10, M18, 2.3, 2.4, 2.5, 2.8, 2.14
int main(void)
{
	const choir_strategy_options on_cpu = { .size = sizeof on_cpu, .parameter_devices = "cpu:0" };
	const choir_strategy_options on_far = { .size = sizeof on_far, .parameter_devices = "far:1" };
	const choir_strategy_options on_two = {
		.size = sizeof on_two, .workers = 1, .parameter_devices = "far:0,cpu:1"
	};
	const choir_strategy_options in_rows = { .size = sizeof in_rows,
		.parameter_devices = "far:0,cpu:1,far:1",
		.partition = CHOIR_PARTITION_MAX_SIZE,
		.partition_size = 1 };
	const choir_strategy_options in_two = {
		.size = sizeof in_two, .partition = CHOIR_PARTITION_FIXED, .max_shards = 2
	};
	const choir_strategy_options in_bf16 = {
		.size = sizeof in_bf16, .precision = CHOIR_PRECISION_MIXED_BF16, .wire = CHOIR_BF16
	};
	const choir_strategy_options in_f16 = { .size = sizeof in_f16,
		.precision = CHOIR_PRECISION_MIXED_F16,
		.wire = CHOIR_F16,
		.parameter_devices = "far:1" };
	subject subjects[] = {
		{ "default", 1, NULL },
		{ "one_device", 1, NULL },
		{ "mirrored", 0, NULL },
		{ "central_storage", 0, NULL },
		{ "central_storage", 0, &on_far },
		{ "parameter_server", 0, &on_two },
		{ "parameter_server", 0, &in_rows },
		{ "last", 0, NULL },
		{ "mirrored", 0, &in_bf16 },
		// These only if tests are not short.
		{ "parameter_server", 0, NULL },
		{ "parameter_server", 0, &on_far },
		{ "parameter_server", 0, &in_two },
		{ "central_storage", 0, &on_cpu },
		{ "central_storage", 0, &in_f16 },
	};
	const size_t n = sizeof subjects / sizeof subjects[0] - (SHORT ? 5 : 0);
	int failed = choir_register_strategy(&last) != CHOIR_OK || !lies_where_it_is_placed();
	for (size_t i = 0; i < n; i++)
		failed += !passes(&subjects[i]);
	return failed;
}
