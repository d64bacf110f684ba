// The other ways in which gradients come to an optimizer: a merge call, the program's own arrays,
// the default replica outside any run, several updates in one run, several optimizers on one
// variable.
#include "train/problem.h"

#include "choir/op.h"
#include "choir/tape.h"

#include "train/optimizer/optimizer.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
	choir_optimizer *optimizer, *second;
	choir_variable *v, *w;
	int mode;
	double seen;
} job;

static job open_job(choir_strategy *s, choir_optimizer_kind kind, const choir_optimizer_options *o)
{
	job j = { 0 };
	CHOIR_SCOPE (s) {
		j.v = choir_variable_new("v", CHOIR_SHAPE(2), NULL);
		j.w = choir_variable_new("w", CHOIR_SHAPE(3), NULL);
		j.optimizer = choir_optimizer_new(kind, o);
		j.second = choir_optimizer_new(kind, o);
	}
	if (j.second == NULL || j.w == NULL)
		fail_msg("%s", choir_error());
	return j;
}

static void assert_values(choir_variable *v, size_t n, double expected)
{
	float have[8];
	fetch_variable(v, have, n * sizeof(float));
	for (size_t i = 0; i < n; i++)
		if (fabs((double) have[i] - expected) > 1e-6)
			fail_msg("%s[%zu] is %g, needed %g", choir_variable_name(v), i, (double) have[i],
					expected);
}

static choir_status merged(choir_cross *x, void *user)
{
	const job *j = user;
	choir_variable *const variables[] = { j->v, j->mode == 1 ? j->v : j->w };
	choir_value *const gradients[] = { choir_cross_arg(x, "v"), choir_cross_arg(x, "w") };
	if (j->mode == 2) { // already reduced: taken as it is
		choir_value *w = choir_cross_reduce_to(x, CHOIR_SUM, gradients[1], gradients[1]);
		choir_value *const reduced[] = { gradients[0], w };
		return choir_optimizer_distributed_apply(j->optimizer, x, 2, variables, reduced);
	}
	return choir_optimizer_distributed_apply(j->optimizer, x, 2, variables, gradients);
}

static choir_status give_and_merge(choir_replica *r, void *user)
{
	const double own = choir_replica_id(r) + 1;
	choir_replica_set_arg(r, "v", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), own));
	choir_replica_set_arg(r, "w", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(3), 10 * own));
	return choir_replica_merge_call(r, merged, user);
}

static const char *const layouts[] = { "cpu:0", "cpu:0,cpu:1", "cpu:0,cpu:1,cpu:2",
	"far:0,far:1" };

// spec: A28, C26
TEST(in_a_merge_call)
{
	for (int i = 0; i < 4; i++) {
		choir_strategy *s = mirrored(layouts[i], 3);
		job j = open_job(
				s, CHOIR_SGD, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.5));
		if (choir_strategy_run(s, give_and_merge, &j, NULL, NULL) != CHOIR_OK)
			fail_msg("%s: %s", layouts[i], choir_error());
		assert_values(j.v, 2, -3);
		assert_values(j.w, 3, -30);
		j.mode = 2;
		if (choir_strategy_run(s, give_and_merge, &j, NULL, NULL) != CHOIR_OK)
			fail_msg("%s: %s", layouts[i], choir_error());
		assert_values(j.v, 2, -6);
		assert_values(j.w, 3, -60);
		j.mode = 1;
		assert_failed(
				choir_strategy_run(s, give_and_merge, &j, NULL, NULL), CHOIR_INVALID, "\"v\"");
		assert_values(j.v, 2, -6);
		choir_strategy_free(s);
	}
}

enum { WIDE = 20000 };

static choir_status apply_large_sum(choir_cross *x, void *user)
{
	const job *j = user;
	choir_value *sum = choir_cross_reduce_to(
			x, CHOIR_SUM, choir_cross_arg(x, "g"), choir_variable_as_value(j->v));
	return choir_optimizer_distributed_apply(j->optimizer, x, 1, &j->v, &sum);
}

static choir_status give_large(choir_replica *r, void *user)
{
	const job *j = user;
	const int own = (choir_replica_id(r) + 1) * (j->mode + 1); // memory left over has another sum
	choir_replica_set_arg(r, "g", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(WIDE), own));
	return choir_replica_merge_call(r, apply_large_sum, user);
}

// Sums that wait (strategy/cross/lazy_reduce.h) are made before the optimizer looks at them.
// spec: A28, C26
TEST(large_sums)
{
	static float have[WIDE];
	for (size_t i = 0; i <= sizeof layouts / sizeof layouts[0]; i++) {
		choir_strategy *s = i == sizeof layouts / sizeof layouts[0]
				? choir_parameter_server_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
						  .replicas = 3, .partition = CHOIR_PARTITION_FIXED, .max_shards = 3))
				: choir_mirrored_strategy_new(CHOIR_OPTIONS(
						  choir_strategy_options, .devices = layouts[i], .replicas = 3));
		job j = { .mode = (int) i };
		CHOIR_SCOPE (s) {
			j.v = choir_variable_new("v", CHOIR_SHAPE(WIDE), NULL);
			j.optimizer = choir_optimizer_new(
					CHOIR_SGD, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 1));
		}
		assert_int_equal(choir_strategy_run(s, give_large, &j, NULL, NULL), CHOIR_OK);
		fetch_variable(j.v, have, sizeof have);
		for (int k = 0; k < WIDE; k++)
			assert_true(have[k] == (float) (-6 * (j.mode + 1)));
		choir_strategy_free(s);
	}
}

// spec: C26
TEST(in_the_programs_own_context)
{
	choir_strategy *s = mirrored("cpu:0,cpu:1", 2);
	job j = open_job(s, CHOIR_SGD, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.5));
	choir_cross *x = choir_strategy_cross(s);
	assert_non_null(x);
	choir_variable *const variables[] = { j.v };
	choir_value *const gradients[] = {
		choir_tensor_as_value(choir_fill(x->frame, CHOIR_F32, CHOIR_SHAPE(2), 1)),
	};
	if (choir_optimizer_distributed_apply(j.optimizer, x, 1, variables, gradients) != CHOIR_OK)
		fail_msg("%s", choir_error());
	assert_values(j.v, 2, -0.5);
	assert_int_equal(chi_atomic64_load(&j.optimizer->step), 1);
	choir_strategy_free(s);
}

// The gradients of examples/own_backward.c: plain C on the program's arrays, which are the
// variables.
enum { IN = 3, BATCH = 6 };
static float weights[IN];

static choir_status own_step(choir_replica *r, void *user)
{
	const job *j = user;
	const float *x = choir_tensor_data(choir_replica_arg(r, "x"));
	const float *y = choir_tensor_data(choir_replica_arg(r, "y"));
	float d[IN] = { 0 };
	for (int64_t n = 0; n < choir_replica_examples(r); n++) {
		float error = -y[n];
		for (int i = 0; i < IN; i++)
			error += weights[i] * x[n * IN + i];
		for (int i = 0; i < IN; i++)
			d[i] += 2 * error * x[n * IN + i] / (float) choir_replica_global_examples(r);
	}
	CHOIR_TRY(choir_optimizer_add_gradient(
			j->optimizer, r, j->v, choir_borrow(r->frame, CHOIR_F32, CHOIR_SHAPE(IN), d)));
	memset(d, 0x7f, sizeof d); // it was taken
	return choir_optimizer_apply_gradients(j->optimizer, r);
}

TEST(on_own_memory)
{
	static const float x[BATCH][IN] = { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 }, { 1, 1, 0 },
		{ 0, 1, 1 }, { 1, 0, 1 } };
	float y[BATCH];
	for (int n = 0; n < BATCH; n++)
		y[n] = 2 * x[n][0] - 1 * x[n][1] + 0.5f * x[n][2];
	for (int i = 0; i < 3; i++) {
		memset(weights, 0, sizeof weights);
		choir_strategy *s = mirrored(layouts[i], 4);
		job j = { 0 };
		CHOIR_SCOPE (s) {
			j.v = choir_variable_wrap("w", CHOIR_F32, CHOIR_SHAPE(IN), weights);
			j.optimizer = choir_optimizer_new(
					CHOIR_ADAM, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.05));
		}
		choir_values *batch = choir_values_new(s);
		choir_frame *f = choir_values_frame(batch);
		assert_int_equal(choir_values_split(batch, "x",
								 choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(BATCH, IN), x)),
				CHOIR_OK);
		assert_int_equal(
				choir_values_split(batch, "y", choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(BATCH), y)),
				CHOIR_OK);
		for (int k = 0; k < 600; k++)
			if (choir_strategy_run(s, own_step, &j, batch, NULL) != CHOIR_OK)
				fail_msg("%s", choir_error());
		choir_values_free(batch);
		choir_strategy_free(s);
		assert_true(fabsf(weights[0] - 2) < 0.01f && fabsf(weights[1] + 1) < 0.01f);
		assert_true(fabsf(weights[2] - 0.5f) < 0.01f);
	}
}

// The gradient of v is 2 v - 2, through two reads of one variable on the tape.
static choir_status descend(choir_replica *r, job *j)
{
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *a = choir_variable_read(j->v, r->frame);
	choir_tensor *b = choir_variable_read(j->v, r->frame);
	choir_tensor *loss =
			choir_sum(choir_subtract(choir_multiply(a, b), choir_scale(b, 2)), CHOIR_ALL_AXES);
	return choir_optimizer_minimize(
			j->optimizer, choir_scale(loss, 1.0 / choir_replica_count(r)), tape);
}

static choir_status descend_and_look(choir_replica *r, void *user)
{
	job *j = user;
	CHOIR_TRY(descend(r, j));
	if (j->mode == 0)
		return CHOIR_OK;
	// A read after the update waits for it.
	choir_tensor *v = choir_sum(choir_variable_read(j->v, r->frame), CHOIR_ALL_AXES);
	const double seen = choir_tensor_number(v);
	if (choir_replica_id(r) == 0)
		j->seen = seen;
	return CHOIR_OK;
}

TEST(reading_after_asking)
{
	for (int i = 0; i < 4; i++) {
		choir_strategy *s = mirrored(layouts[i], 3);
		job j = open_job(
				s, CHOIR_SGD, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.25));
		double v = 0;
		for (int k = 0; k < 6; k++) {
			j.mode = k % 2;
			if (choir_strategy_run(s, descend_and_look, &j, NULL, NULL) != CHOIR_OK)
				fail_msg("%s: %s", layouts[i], choir_error());
			v -= 0.25 * (2 * v - 2);
			assert_values(j.v, 2, v);
			if (j.mode == 1)
				assert_true(fabs(j.seen - 2 * v) < 1e-5);
		}
		choir_strategy_free(s);
	}
}

static choir_status use_old(choir_replica *r, void *user)
{
	job *j = user;
	choir_tensor *old = choir_variable_read(j->v, r->frame);
	CHOIR_TRY(descend(r, j));
	return choir_replica_return(r, "old", choir_scale(old, 1));
}

TEST(using_what_was_read_before)
{
	choir_strategy *s = mirrored("cpu:0,cpu:1", 2);
	job j = open_job(s, CHOIR_SGD, NULL);
	assert_failed(choir_strategy_run(s, use_old, &j, NULL, NULL), CHOIR_STATE, "v:*update");
	choir_strategy_free(s);
}

static choir_status twice(choir_replica *r, void *user)
{
	const job *j = user;
	for (int k = 0; k < 2; k++) {
		choir_tensor *g = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), 1 + k);
		CHOIR_TRY(choir_optimizer_add_gradient(j->optimizer, r, j->v, g));
		CHOIR_TRY(choir_optimizer_apply_gradients(j->optimizer, r));
	}
	CHOIR_TRY(choir_optimizer_add_gradient(
			j->second, r, j->v, choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), 10)));
	return choir_optimizer_apply_gradients(j->second, r);
}

TEST(several_updates_in_a_run)
{
	for (int i = 0; i < 4; i++) {
		choir_strategy *s = mirrored(layouts[i], 2);
		job j = open_job(s, CHOIR_MOMENTUM,
				CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.5, .momentum = 0.5));
		if (choir_strategy_run(s, twice, &j, NULL, NULL) != CHOIR_OK)
			fail_msg("%s: %s", layouts[i], choir_error());
		// Sums of gradients 2, 4 and, with a slot of its own, 20.
		assert_values(j.v, 2, -1 + (-0.5 - 2) - 10);
		assert_int_equal(chi_atomic64_load(&j.optimizer->step), 2);
		assert_int_equal(chi_atomic64_load(&j.second->step), 1);
		choir_strategy_free(s);
	}
}

// More variables than a group keeps under way, one of many slices, one of no elements.
enum { MANY = 150, LARGE = 3 * 8192 + 5 };
typedef struct {
	choir_optimizer *optimizer;
	choir_variable *v[MANY];
} crowd;

static choir_status give_crowd(choir_replica *r, void *user)
{
	const crowd *c = user;
	for (int i = 0; i < MANY; i++) {
		choir_tensor *g = choir_fill(r->frame, CHOIR_F32, *choir_variable_shape(c->v[i]),
				0.001 * i * (1 + choir_replica_id(r)));
		CHOIR_TRY(choir_optimizer_add_gradient(c->optimizer, r, c->v[i], g));
	}
	return choir_optimizer_apply_gradients(c->optimizer, r);
}

static void check_crowd(const char *devices, double clip)
{
	static float have[LARGE];
	double squares = 0, factor = 1;
	choir_strategy *s = mirrored(devices, 3);
	crowd c = { 0 };
	CHOIR_SCOPE (s) {
		c.optimizer = choir_optimizer_new(CHOIR_SGD,
				CHOIR_OPTIONS(
						choir_optimizer_options, .learning_rate = 1, .global_clip_norm = clip));
		for (int i = 0; i < MANY; i++) {
			char name[16];
			snprintf(name, sizeof name, "v%d", i);
			const choir_shape shape = CHOIR_SHAPE(i == 70 ? LARGE : i == 80 ? 0 : 3);
			c.v[i] = choir_variable_new(name, shape, NULL);
			squares += (double) shape.dim[0] * (0.006 * i) * (0.006 * i);
		}
	}
	if (clip > 0)
		factor = clip / sqrt(squares);
	for (int step = 1; step <= 2; step++) {
		if (choir_strategy_run(s, give_crowd, &c, NULL, NULL) != CHOIR_OK)
			fail_msg("%s: %s", devices, choir_error());
		for (int i = 0; i < MANY; i++) {
			const int64_t n = choir_variable_shape(c.v[i])->dim[0];
			fetch_variable(c.v[i], have, (size_t) n * sizeof(float));
			for (int64_t k = 0; k < n; k++)
				if (fabs((double) have[k] + step * factor * 0.006 * i) > 1e-5)
					fail_msg("%s: v%d[%d] is %g", devices, i, (int) k, (double) have[k]);
		}
	}
	choir_strategy_free(s);
}

TEST(many_and_large)
{
	for (int i = 0; i < 4; i++) {
		check_crowd(layouts[i], 0);
		check_crowd(layouts[i], 0.5);
	}
}

TEST(in_the_default_replica)
{
	job j = open_job(choir_default_strategy(), CHOIR_SGD,
			CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.25));
	choir_replica *r = choir_replica_current();
	assert_non_null(r);
	double v = 0;
	for (int k = 0; k < 5; k++) {
		if (descend(r, &j) != CHOIR_OK)
			fail_msg("%s", choir_error());
		choir_frame_clear(r->frame);
		v -= 0.25 * (2 * v - 2);
		assert_values(j.v, 2, v);
		choir_tensor *nan = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), (double) NAN);
		assert_failed(
				choir_optimizer_add_gradient(j.optimizer, r, j.v, nan), CHOIR_INVALID, "[0]");
		choir_frame_clear(r->frame);
	}
	assert_int_equal(chi_atomic64_load(&j.optimizer->step), 5);
}

// A chain of products that begins with the first variable and in which one comes twice, with a
// look in front of each at how many gradients this replica has handed over so far.
enum { LINKS = 3, CHAINED = 3, CHAINS = 3 };
static const int links[LINKS] = { 1, 2, 1 };
typedef struct {
	choir_optimizer *optimizer;
	choir_variable *v[CHAINED];
	struct {
		int given, seen[LINKS];
	} of[CHAINS]; // replicas
} chain;

typedef struct {
	const int *given;
	int *seen;
} look;

static choir_status pass(size_t n, const choir_buffer in[], choir_buffer *out, void *user)
{
	(void) n;
	(void) user;
	memcpy(out->data, in[0].data, 2 * sizeof(float));
	return CHOIR_OK;
}

static choir_status look_on_the_way_back(size_t n, const choir_buffer in[],
		const choir_buffer *out, const choir_buffer *dy, choir_buffer gradient[], void *user)
{
	const look *l = user;
	(void) n;
	(void) in;
	(void) out;
	*l->seen = *l->given;
	memcpy(gradient[0].data, dy->data, 2 * sizeof(float));
	return CHOIR_OK;
}

static void count_given(choir_replica *r, choir_variable *v, choir_tensor *gradient, void *user)
{
	chain *c = user;
	(void) v;
	(void) gradient;
	c->of[choir_replica_id(r)].given++;
}

static choir_status go_down_the_chain(choir_replica *r, void *user)
{
	static const choir_custom_op op = {
		.size = sizeof op, .forward = pass, .backward = look_on_the_way_back
	};
	chain *c = user;
	const int id = choir_replica_id(r);
	look looks[LINKS];
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *read[CHAINED];

	for (int i = 0; i < CHAINED; i++)
		read[i] = choir_variable_read(c->v[i], r->frame);
	choir_tensor *h = choir_scale(read[0], id + 1);
	for (int i = 0; i < LINKS; i++) {
		looks[i] = (look){ &c->of[id].given, &c->of[id].seen[i] };
		h = choir_multiply(choir_custom_op_apply(&op, &looks[i], 1, &h), read[links[i]]);
	}
	return choir_optimizer_minimize(c->optimizer, choir_mean(h, CHOIR_ALL_AXES), tape);
}

// Each gradient is handed over as soon as it is final, not at the end of the way back.
TEST(handed_over_when_final)
{
	static const int expected[LINKS] = { 2, 1, 0 };
	for (int i = 0; i < 3; i++) {
		choir_strategy *s = mirrored(layouts[i], CHAINS);
		chain c = { 0 };
		CHOIR_SCOPE (s) {
			for (int k = 0; k < CHAINED; k++)
				c.v[k] = choir_variable_new((const char *[]){ "a", "b", "c" }[k], CHOIR_SHAPE(2),
						CHOIR_OPTIONS(
								choir_variable_options, .initializer = CHOIR_INITIALIZER_ONES));
			c.optimizer = choir_optimizer_new(CHOIR_SGD, NULL);
		}
		assert_int_equal(choir_strategy_set_gradient_hook(s, count_given, &c), CHOIR_OK);
		if (choir_strategy_run(s, go_down_the_chain, &c, NULL, NULL) != CHOIR_OK)
			fail_msg("%s", choir_error());
		for (int id = 0; id < CHAINS; id++) {
			assert_int_equal(c.of[id].given, CHAINED);
			assert_memory_equal(c.of[id].seen, expected, sizeof expected);
		}
		choir_strategy_free(s);
	}
}
