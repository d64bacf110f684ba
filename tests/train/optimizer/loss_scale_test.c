// Loss scaling: powers of two change no bits, a bad step is left out by all replicas alike and
// halves the scale, good ones double it again.
#include "train/problem.h"

#include "train/optimizer/optimizer.h"
#include "test.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { N = 3, REPLICAS = 3 };

static const char *const layouts[] = { "cpu:0", "cpu:0,cpu:1", "cpu:0,cpu:1,cpu:2",
	"far:0,far:1" };

typedef struct {
	choir_optimizer *optimizer;
	choir_variable *v;
	int bad_replica; // whose gradient is not finite; CHOIR_NONE
	int times; // updates in a run
	double seen[REPLICAS]; // the scale when each replica had its last loss
} job;

static job open_job(choir_strategy *s, choir_optimizer_kind kind, const choir_optimizer_options *o)
{
	job j = { .bad_replica = CHOIR_NONE, .times = 1 };
	CHOIR_SCOPE (s) {
		j.v = choir_variable_new("v", CHOIR_SHAPE(N), NULL);
		j.optimizer = choir_optimizer_new(kind, o);
	}
	if (j.v == NULL || j.optimizer == NULL)
		fail_msg("%s", choir_error());
	return j;
}

static choir_optimizer_options scaled(const choir_loss_scale *scale, double clip)
{
	return (choir_optimizer_options){ .size = sizeof(choir_optimizer_options),
		.learning_rate = 0.5,
		.global_clip_norm = clip,
		.loss_scale = scale };
}

// The gradient of v is replica id + 1 in each element, or infinite for the bad one, in the first
// update only.
static choir_status step(choir_replica *r, void *user)
{
	job *j = user;
	const int id = choir_replica_id(r);
	const size_t mark = choir_frame_mark(r->frame);
	for (int i = 0; i < j->times; i++) {
		choir_frame_rewind(r->frame, mark);
		const double factor = i == 0 && id == j->bad_replica ? HUGE_VAL : 1.0 + id;
		choir_tape *tape = choir_tape_begin(r->frame);
		choir_tensor *loss =
				choir_sum(choir_multiply(choir_variable_read(j->v, r->frame),
								  choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(N), factor)),
						CHOIR_ALL_AXES);
		if (choir_optimizer_scale_loss(j->optimizer, r, loss) == NULL)
			return choir_error_status();
		j->seen[id] = choir_optimizer_loss_scale(j->optimizer);
		CHOIR_TRY(choir_optimizer_minimize(j->optimizer, loss, tape));
	}
	return CHOIR_OK;
}

static void go(choir_strategy *s, job *j, int bad_replica)
{
	j->bad_replica = bad_replica;
	if (choir_strategy_run(s, step, j, NULL, NULL) != CHOIR_OK)
		fail_msg("%s", choir_error());
}

static void assert_all(const job *j, double expected)
{
	float have[N];
	fetch_variable(j->v, have, sizeof have);
	for (int i = 0; i < N; i++)
		assert_true((double) have[i] == expected);
}

// spec: D26, 2.13
TEST(the_scale_moves_by_the_rule)
{
	const choir_loss_scale scale = { .size = sizeof scale, .initial = 8, .period = 2 };
	for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
		choir_strategy *s = mirrored(layouts[i], REPLICAS);
		const choir_optimizer_options o = scaled(&scale, 0);
		job j = open_job(s, CHOIR_SGD, &o);
		assert_true(choir_optimizer_loss_scale(j.optimizer) == 8);
		go(s, &j, CHOIR_NONE); // 1 + 2 + 3, times 0.5
		assert_all(&j, -3);
		assert_true(choir_optimizer_loss_scale(j.optimizer) == 8);
		for (int bad = 0; bad < REPLICAS; bad++) { // whoever it is, nobody applies
			go(s, &j, bad);
			assert_all(&j, -3);
		}
		assert_true(choir_optimizer_loss_scale(j.optimizer) == 1);
		j.bad_replica = 1; // and not below
		assert_int_equal(choir_strategy_run(s, step, &j, NULL, NULL), CHOIR_INVALID);
		assert_text_holds(choir_error(), "sgd:*\"v\" is not finite in update 2*loss scale is 1");
		assert_true(choir_optimizer_loss_scale(j.optimizer) == 1);
		assert_int_equal(chi_atomic64_load(&j.optimizer->step), 1);
		go(s, &j, CHOIR_NONE);
		assert_true(choir_optimizer_loss_scale(j.optimizer) == 1);
		go(s, &j, CHOIR_NONE); // two in a row
		assert_true(choir_optimizer_loss_scale(j.optimizer) == 2);
		go(s, &j, CHOIR_NONE);
		go(s, &j, 0); // the row is broken
		assert_true(choir_optimizer_loss_scale(j.optimizer) == 1);
		go(s, &j, CHOIR_NONE);
		assert_true(choir_optimizer_loss_scale(j.optimizer) == 1);
		assert_all(&j, -15);
		choir_strategy_free(s);
	}
}

// The scale stays where another doubling would leave f32.
// spec: 2.13
TEST(a_scale_that_would_not_be_finite_stays)
{
	const choir_loss_scale scale = {
		.size = sizeof scale, .initial = ldexp(1, 127), .period = 1, .multiplier = 4
	};
	choir_strategy *s = mirrored("cpu:0", 1);
	const choir_optimizer_options o = scaled(&scale, 0);
	job j = open_job(s, CHOIR_SGD, &o);
	go(s, &j, CHOIR_NONE);
	assert_true(choir_optimizer_loss_scale(j.optimizer) == ldexp(1, 127));
	choir_strategy_free(s);
}

// Replicas that ask for several updates in a run multiply by the same scale each time, though the
// first update moves it.
// spec: D26
TEST(all_replicas_see_the_same_scale)
{
	const choir_loss_scale scale = { .size = sizeof scale, .initial = 1024 };
	for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
		choir_strategy *s = mirrored(layouts[i], REPLICAS);
		const choir_optimizer_options o = scaled(&scale, 0);
		job j = open_job(s, CHOIR_SGD, &o);
		j.times = 3;
		go(s, &j, 2);
		assert_all(&j, -6);
		for (int r = 0; r < REPLICAS; r++)
			assert_true(j.seen[r] == 512);
		choir_strategy_free(s);
	}
}

static void one_replica_with_nan_and_a_fixed_scale(choir_strategy *s, job *j)
{
	j->bad_replica = 1;
	assert_failed(choir_strategy_run(s, step, j, NULL, NULL), CHOIR_INVALID, "sgd:*\"v\"");
	assert_all(j, -3);
}

// spec: D26, 2.13
TEST(a_fixed_scale_stays)
{
	const choir_loss_scale scale = {
		.size = sizeof scale, .kind = CHOIR_LOSS_SCALE_FIXED, .initial = 64
	};
	for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
		choir_strategy *s = mirrored(layouts[i], REPLICAS);
		const choir_optimizer_options o = scaled(&scale, 0);
		job j = open_job(s, CHOIR_SGD, &o);
		go(s, &j, CHOIR_NONE);
		assert_all(&j, -3);
		one_replica_with_nan_and_a_fixed_scale(s, &j);
		assert_true(choir_optimizer_loss_scale(j.optimizer) == 64);
		choir_strategy_free(s);
	}
}

// The norm that is clipped is that of the gradients, not of the scaled ones.
TEST(clipping_sees_what_is_not_scaled)
{
	const choir_loss_scale scale = { .size = sizeof scale, .initial = 256 };
	const choir_loss_scale *both[] = { NULL, &scale };
	float have[2][N];
	for (int i = 0; i < 2; i++) {
		choir_strategy *s = mirrored("cpu:0,cpu:1", REPLICAS);
		const choir_optimizer_options o = scaled(both[i], 0.25);
		job j = open_job(s, CHOIR_ADAM, &o);
		go(s, &j, CHOIR_NONE);
		go(s, &j, CHOIR_NONE);
		fetch_variable(j.v, have[i], sizeof have[i]);
		choir_strategy_free(s);
	}
	for (int i = 0; i < N; i++)
		assert_true(fabs((double) have[0][i] - (double) have[1][i]) < 1e-6);
}

TEST(powers_of_two_change_no_bits)
{
	const choir_loss_scale scale = { .size = sizeof scale };
	const choir_optimizer_options plain = scaled(NULL, 0), with = scaled(&scale, 0);
	for (int kind = CHOIR_SGD; kind <= CHOIR_LION; kind++) {
		const uint64_t hash = problem_train("cpu:0", 3, (choir_optimizer_kind) kind, &plain, 6);
		for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
			assert_true(
					problem_train(layouts[i], 3, (choir_optimizer_kind) kind, &with, 6) == hash);
	}
}

// The four steps by hand: the program scales, the optimizer takes the scale out again.
static choir_status apply_merged(choir_cross *x, void *user)
{
	const job *j = user;
	choir_value *g = choir_cross_arg(x, "g");
	choir_value *sum = choir_cross_reduce_to(x, CHOIR_SUM, g, choir_variable_as_value(j->v));
	return choir_optimizer_distributed_apply(j->optimizer, x, 1, &j->v, &sum);
}

static choir_status four_steps(choir_replica *r, void *user)
{
	const job *j = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *v = choir_variable_read(j->v, r->frame), *g = NULL;
	choir_tensor *loss = choir_sum(choir_scale(v, 1.0 + choir_replica_id(r)), CHOIR_ALL_AXES);
	loss = choir_optimizer_scale_loss(j->optimizer, r, loss);
	CHOIR_TRY(choir_tape_gradient(tape, loss, 1, &v, &g));
	choir_replica_set_arg(r, "g", g);
	return choir_replica_merge_call(r, apply_merged, user);
}

// spec: A28, C26, D26
TEST(four_steps_by_hand)
{
	const choir_loss_scale scale = { .size = sizeof scale, .initial = 16, .period = 1 };
	for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
		choir_strategy *s = mirrored(layouts[i], REPLICAS);
		const choir_optimizer_options o = scaled(&scale, 0);
		job j = open_job(s, CHOIR_SGD, &o);
		for (int k = 1; k <= 3; k++) {
			if (choir_strategy_run(s, four_steps, &j, NULL, NULL) != CHOIR_OK)
				fail_msg("%s: %s", layouts[i], choir_error());
			assert_all(&j, -3 * k);
		}
		assert_true(choir_optimizer_loss_scale(j.optimizer) == 128);
		choir_strategy_free(s);
	}
}

typedef struct {
	const char *text;
	choir_loss_scale scale;
} refusal;

#define SCALE(...) \
	{ \
		.size = sizeof(choir_loss_scale), __VA_ARGS__ \
	}
static const refusal refusals[] = {
	{ "kind*7", SCALE(.kind = (choir_loss_scale_kind) 7) },
	{ "initial*0.5", SCALE(.initial = 0.5) },
	{ "initial*nan", SCALE(.initial = (double) NAN) },
	{ "initial*inf", SCALE(.initial = HUGE_VAL) },
	{ "initial*0;", SCALE(.kind = CHOIR_LOSS_SCALE_FIXED) },
	{ "period*-1", SCALE(.period = -1) },
	{ "multiplier*1;", SCALE(.multiplier = 1) },
	{ "multiplier*nan", SCALE(.multiplier = (double) NAN) },
	{ "period*5*FIXED", SCALE(.kind = CHOIR_LOSS_SCALE_FIXED, .initial = 2, .period = 5) },
	{ "multiplier*2*FIXED", SCALE(.kind = CHOIR_LOSS_SCALE_FIXED, .initial = 2, .multiplier = 2) },
	{ "the loss scale's size is 3", { .size = 3 } },
	{ "the loss scale's size is 9999", { .size = 9999 } },
};

TEST(bad_options)
{
	for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
		const choir_optimizer_options o = scaled(&refusals[i].scale, 0);
		assert_null(choir_optimizer_new(CHOIR_SGD, &o));
		assert_failed(choir_error_status(), CHOIR_INVALID, refusals[i].text);
	}
	assert_true(choir_optimizer_loss_scale(NULL) == 1);
	assert_null(choir_optimizer_scale_loss(NULL, NULL, NULL));
	assert_failed(choir_error_status(), CHOIR_INVALID, "optimizer:*NULL");
}
