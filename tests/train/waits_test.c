// How often the host waits in a step on devices with memory of their own: not more often for many
// variables than for few.
#include "choir/op.h"
#include "device/far.h"
#include "train/optimizer.h"
#include "value/variable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { MOST_VARIABLES = 60, WARM = 3, STEPS = 5, MOST_WAITS = 4 };

typedef struct {
	int variables;
	choir_variable *variable[MOST_VARIABLES];
	choir_optimizer *optimizer;
} model;

static choir_status step(choir_replica *r, void *user)
{
	const model *m = user;
	for (int i = 0; i < m->variables; i++) {
		choir_tensor *w = choir_variable_read(m->variable[i], r->frame);
		choir_tensor *gradient = choir_multiply(w, choir_number(r->frame, 0.5));
		CHOIR_TRY(choir_optimizer_give(m->optimizer, r, m->variable[i], gradient));
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

static uint64_t waits_of_a_step(const char *devices, int replicas, int variables)
{
	model m;
	choir_strategy *s = choir_mirrored_strategy_new(CHOIR_OPTIONS(
			choir_strategy_options, .replicas = replicas, .devices = devices, .timeout = 20));
	open_model(&m, s, variables);
	uint64_t before = 0;
	for (int i = 0; i < WARM + STEPS; i++) {
		if (i == WARM)
			before = chi_far_waits();
		if (choir_strategy_run(s, step, &m, NULL, NULL) != CHOIR_OK)
			fail_msg("%s: %s", devices, choir_error());
	}
	const uint64_t waits = chi_far_waits() - before;
	choir_strategy_free(s);
	return waits / STEPS;
}

static void waits_do_not_grow_with_variables(void **state)
{
	static const char *const devices[] = { "far:0", "far:0,far:1" };
	(void) state;
	for (int i = 0; i < 2; i++) {
		const int n = i + 1;
		const uint64_t few = waits_of_a_step(devices[i], n, 6);
		const uint64_t many = waits_of_a_step(devices[i], n, MOST_VARIABLES);
		print_message("%s: %d waits a step for 6 variables, %d for %d\n", devices[i], (int) few,
				(int) many, MOST_VARIABLES);
		assert_int_equal(few, many);
		assert_in_range(many, 1, MOST_WAITS * n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(waits_do_not_grow_with_variables) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
