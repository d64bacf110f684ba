// How often the host waits in a step on devices with memory of their own: not more often for many
// variables than for few. What the waits report.
#include "choir/op.h"
#include "choir/replica.h"
#include "choir/weights.h"
#include "base/alloc.h"
#include "far/far.h"
#include "train/optimizer/optimizer.h"
#include "device/device.h"
#include "value/variable.h"
#include "short.h"
#include "test.h"

#include <stdio.h>

enum { MAX_VARIABLES = 60, WARM = 3, STEPS = SHORT ? 2 : 5 };

typedef struct {
	int variables;
	bool reads; // what lies elsewhere is copied for each read, and waited for
	bool breaks; // on the last device, work before the update fails
	choir_variable *variable[MAX_VARIABLES];
	choir_optimizer *optimizer;
} model;

static choir_status break_down(void *argument)
{
	(void) argument;
	return choir_fail(CHOIR_CORRUPT, "queued work fails");
}

static choir_status step(choir_replica *r, void *user)
{
	const model *m = user;
	if (m->breaks && choir_replica_id(r) == choir_replica_count(r) - 1)
		CHOIR_TRY(far_submit(r->frame->stream->state, break_down, NULL, 0));
	for (int i = 0; i < m->variables; i++) {
		choir_tensor *gradient = m->reads
				? choir_multiply(choir_variable_read(m->variable[i], r->frame),
						  choir_number(r->frame, 0.5))
				: choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(7 + 1000 * (i % 11)), 0.5);
		CHOIR_TRY(choir_optimizer_add_gradient(m->optimizer, r, m->variable[i], gradient));
	}
	return choir_optimizer_apply_gradients(m->optimizer, r);
}

static void open_model(model *m, choir_strategy *s, int variables)
{
	assert_non_null(s);
	m->variables = variables;
	CHOIR_SCOPE (s) {
		for (int i = 0; i < variables; i++) {
			char name[16];
			snprintf(name, sizeof name, "v%d", i);
			m->variable[i] = choir_variable_new(name, CHOIR_SHAPE(7 + 1000 * (i % 11)), NULL);
			assert_non_null(m->variable[i]);
		}
		m->optimizer = choir_optimizer_new(CHOIR_ADAM, NULL);
		assert_non_null(m->optimizer);
	}
}

// parameters: where all variables lie, once; NULL: mirrored.
static uint64_t waits_of_a_step(
		const char *devices, const char *parameters, int replicas, int variables)
{
	model m = { .reads = parameters == NULL };
	choir_strategy *s = choir_strategy_new(parameters == NULL ? "mirrored" : "central_storage",
			CHOIR_OPTIONS(choir_strategy_options, .replicas = replicas, .devices = devices,
					.parameter_devices = parameters, .timeout = 20));
	open_model(&m, s, variables);
	uint64_t before = 0;
	for (int i = 0; i < WARM + STEPS; i++) {
		if (i == WARM)
			before = far_waits();
		if (choir_strategy_run(s, step, &m, NULL, NULL) != CHOIR_OK)
			fail_msg("%s: %s", devices, choir_error());
	}
	const uint64_t waits = far_waits() - before;
	choir_strategy_free(s);
	return waits / STEPS;
}

// max: waits of a step of all devices together.
static void compare(const char *devices, const char *parameters, int replicas, int max)
{
	const uint64_t few = waits_of_a_step(devices, parameters, replicas, 6);
	const uint64_t many = waits_of_a_step(devices, parameters, replicas, MAX_VARIABLES);
	print_message("%s, variables on %s: %d waits a step for 6, %d for %d\n", devices,
			parameters == NULL ? "them" : parameters, (int) few, (int) many, MAX_VARIABLES);
	assert_in_range(many, few, few + 1); // the host carries at most a MiB at once
	assert_in_range(many, 1, max);
}

TEST(waits_do_not_grow_with_variables)
{
	compare("far:0", NULL, 1, 2);
	compare("far:0,far:1", NULL, 2, 4);
}

TEST(nor_where_variables_lie_elsewhere)
{
	compare("far:0", "far:1", 1, 5);
	compare("far:0,far:1", "far:2", 2, 8);
	compare("cpu:0,cpu:1", "far:0", 2, 1);
	compare("far:0", "cpu:0", 1, 6);
	compare("far:0,far:1", "cpu:0", 2, 9);
}

// The update is queued when the failure becomes known. It has not written.
TEST(queued_work_may_fail_before_an_update)
{
	static const char *const devices[] = { "far:0", "far:0,far:1" };
	for (int d = 0; d < 2; d++) {
		model m = { .reads = true };
		choir_strategy *s = choir_strategy_new("mirrored",
				CHOIR_OPTIONS(choir_strategy_options, .replicas = d + 1, .devices = devices[d],
						.timeout = 20));
		open_model(&m, s, 6);
		for (int i = 0; i < 3; i++) {
			m.breaks = false;
			assert_int_equal(choir_strategy_run(s, step, &m, NULL, NULL), CHOIR_OK);
			const uint64_t hash = choir_strategy_hash(s);
			m.breaks = true;
			assert_int_equal(choir_strategy_run(s, step, &m, NULL, NULL), CHOIR_CORRUPT);
			assert_text_holds(choir_error(),
					d == 0 ? "queued work fails" : "replica 1*far:1*queued work fails");
			assert_int_equal(choir_strategy_hash(s), hash);
		}
		choir_strategy_free(s);
	}
}

// Of the first step, which makes what the later steps use again.
TEST(every_allocation_of_a_step_may_fail)
{
	static const char *const devices[] = { "far:0", "far:0,far:1" };
	for (int d = 0; d < 2; d++) {
		bool failed = true;
		for (uint64_t n = 1; failed; n += n < 4 ? 1 : 11) {
			model m = { .reads = true };
			choir_strategy *s = choir_strategy_new("mirrored",
					CHOIR_OPTIONS(choir_strategy_options, .replicas = d + 1, .devices = devices[d],
							.timeout = 20));
			open_model(&m, s, 3);
			chi_alloc_fail(n, false);
			const choir_status status = choir_strategy_run(s, step, &m, NULL, NULL);
			failed = chi_alloc_failed();
			chi_alloc_fail(0, false);
			assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
			choir_strategy_free(s);
		}
	}
	choir_device *far = choir_device_find("far:0");
	assert_int_equal(chi_buffer_in_use(far), 0);
}
