// Which variables an update changes: those of minimize_variables, and the patterns of groups.
#include "train/problem.h"

#include "base/status.h"
#include "test.h"

#include <string.h>

typedef struct {
	choir_layer *a, *b;
	choir_optimizer *optimizer;
	size_t n; // of a's variables; 0: minimizes all
	choir_variable *variables[2];
} nets;

static choir_strategy *open_nets(nets *m, const choir_parameter_group *groups, size_t n)
{
	choir_strategy *s = mirrored("cpu:0,cpu:1", 2);
	CHOIR_SCOPE (s) {
		m->a = choir_dense_new("a", 3, 3, CHOIR_TANH);
		m->b = choir_dense_new("b", 3, 2, CHOIR_LINEAR);
		m->optimizer = choir_optimizer_new(CHOIR_SGD,
				CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.5, .groups = groups,
						.n_groups = n));
	}
	for (int i = 0; i < 2; i++)
		m->variables[i] = choir_layer_variable(m->a, i);
	assert_non_null(m->optimizer);
	return s;
}

static choir_status step(choir_replica *r, void *user)
{
	const nets *m = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *x = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(4, 3), 1);
	choir_tensor *y = choir_layer_apply(m->b, choir_layer_apply(m->a, x));
	choir_tensor *loss = choir_replica_average_loss(r, choir_mean(choir_square(y), CHOIR_AXIS(1)));
	return m->n > 0
			? choir_optimizer_minimize_variables(m->optimizer, loss, tape, m->n, m->variables)
			: choir_optimizer_minimize(m->optimizer, loss, tape);
}

static void read(choir_strategy *s, choir_layer *l, float to[12])
{
	choir_frame *f = choir_frame_new(NULL);
	CHOIR_SCOPE (s)
		for (int i = 0; i < 2; i++) {
			choir_tensor *t = choir_variable_read(choir_layer_variable(l, i), f);
			const size_t bytes = (size_t) choir_shape_elements(choir_tensor_shape(t)) * 4;
			assert_int_equal(choir_tensor_to_host(t, to + i * 9, bytes), CHOIR_OK);
		}
	choir_frame_free(f);
}

TEST(only_the_chosen_variables_change)
{
	float before[12] = { 0 }, a[2][12] = { { 0 } }, b[2][12] = { { 0 } };
	for (int chosen = 0; chosen < 2; chosen++) {
		nets m = { .n = chosen ? 2 : 0 };
		choir_strategy *s = open_nets(&m, NULL, 0);
		read(s, m.b, before);
		assert_int_equal(choir_strategy_run(s, step, &m, NULL, NULL), CHOIR_OK);
		read(s, m.a, a[chosen]);
		read(s, m.b, b[chosen]);
		choir_strategy_free(s);
	}
	assert_memory_equal(a[0], a[1], sizeof a[0]);
	assert_memory_equal(b[1], before, sizeof before);
	assert_memory_not_equal(b[0], before, sizeof before);
}

TEST(chosen_variables_that_cannot_be)
{
	nets m = { .n = 1 };
	choir_strategy *s = open_nets(&m, NULL, 0);
	CHOIR_SCOPE (s)
		m.variables[0] = choir_variable_new("unread", CHOIR_SHAPE(2), NULL);
	assert_failed(choir_strategy_run(s, step, &m, NULL, NULL), CHOIR_INVALID,
			"minimize_variables: of 1 variables, no trainable one was read");
	m.variables[0] = NULL;
	assert_failed(choir_strategy_run(s, step, &m, NULL, NULL), CHOIR_INVALID,
			"minimize_variables*variable 0*NULL");
	choir_strategy_free(s);
}

// A typing error does not train what should be frozen.
TEST(groups_match_variables)
{
	static const struct {
		const char *names, *unknown; // facts; NULL: the update succeeds
		double multiplier;
	} cases[] = { { "a/bais,kernel", "group 0*\"a/bais\"", 2 }, { "a/bais,a/kernel", NULL, 2 },
		{ "a/bais,a/kernel", "group 0*\"a/bais\"", CHOIR_ZERO },
		{ "*/bias,b/*", NULL, CHOIR_ZERO } };
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const choir_parameter_group group = { .size = sizeof group,
			.names = cases[i].names,
			.learning_rate_multiplier = cases[i].multiplier };
		float before[12] = { 0 }, after[12] = { 0 };
		nets m = { .n = 0 };
		choir_strategy *s = open_nets(&m, &group, 1);
		read(s, m.a, before);
		const choir_status status = choir_strategy_run(s, step, &m, NULL, NULL);
		if (cases[i].unknown == NULL)
			assert_int_equal(status, CHOIR_OK);
		else
			assert_failed(status, CHOIR_NOT_FOUND, cases[i].unknown);
		read(s, m.a, after);
		assert_int_equal(memcmp(before, after, sizeof after) == 0, cases[i].unknown != NULL);
		choir_strategy_free(s);
	}
}
