// Each optimizer against its formula in plain scalar C, over several steps, with gradients that
// the test makes; and everything that is refused.
#include "train/problem.h"

#include "base/status.h"
#include "train/optimizer/optimizer.h"
#include "test.h"

#include <math.h>
#include <string.h>

enum { N = 5, STEPS = 7 };

// The gradient of element i that replica r has at step t.
static double gradient_of(int r, int t, int i)
{
	return sin(1.0 + 3 * r + 5 * t + 7 * i) * (i == 2 ? 1e-3 : 1);
}

static double initial(int i)
{
	return 0.5 - 0.25 * i;
}

typedef struct {
	choir_optimizer *optimizer;
	choir_variable *variable;
	int t;
	int bad_replica; // whose gradient is NaN at step bad_step
	int bad_step;
	bool backwards; // asks for updates of two variables in unequal order
	choir_variable *second;
} job;

static choir_tensor *make_gradient(choir_replica *r, const job *j)
{
	double g[N];
	float single[N];
	choir_variable_options o = { .size = sizeof o };
	assert_int_equal(choir_variable_describe(j->variable, &o), CHOIR_OK);
	for (int i = 0; i < N; i++) {
		g[i] = gradient_of(choir_replica_id(r), j->t, i);
		if (choir_replica_id(r) == j->bad_replica && j->t == j->bad_step && i == 3)
			g[i] = (double) NAN;
		single[i] = (float) g[i];
	}
	const void *data = o.dtype == CHOIR_F64 ? (const void *) g : single;
	return choir_constant(r->frame, o.dtype, CHOIR_SHAPE(N), data);
}

static choir_status give_and_apply(choir_replica *r, void *user)
{
	const job *j = user;
	choir_tensor *g = make_gradient(r, j);
	CHOIR_TRY(choir_optimizer_add_gradient(j->optimizer, r, j->variable, g));
	return choir_optimizer_apply_gradients(j->optimizer, r);
}

static void open_job(job *j, choir_strategy *s, choir_dtype dtype, choir_optimizer_kind kind,
		const choir_optimizer_options *o)
{
	double start[N];
	float single[N];
	for (int i = 0; i < N; i++) {
		start[i] = initial(i);
		single[i] = (float) start[i];
	}
	*j = (job){ .bad_replica = -1 };
	CHOIR_SCOPE (s) {
		j->variable = choir_variable_new("w", CHOIR_SHAPE(N),
				CHOIR_OPTIONS(choir_variable_options, .dtype = dtype,
						.initial_value = dtype == CHOIR_F64 ? (const void *) start : single));
		j->optimizer = choir_optimizer_new(kind, o);
	}
	if (j->variable == NULL || j->optimizer == NULL)
		fail_msg("%s", choir_error());
}

// What the formulas of optimizer.h give, in double.
typedef struct {
	choir_optimizer_kind kind;
	double rate, momentum, beta1, beta2, epsilon, decay, clip, rho, accumulator;
	bool nesterov;
	double w[N], a[N], b[N];
	int t; // updates done
} reference;

static void reference_open(reference *f)
{
	f->t = 0;
	for (int i = 0; i < N; i++) {
		f->w[i] = initial(i);
		f->a[i] = f->b[i] = 0;
	}
}

static void reference_element(reference *f, int i, double g)
{
	const double c = sqrt(1 - pow(f->beta2, f->t)) / (1 - pow(f->beta1, f->t));
	switch (f->kind) {
	case CHOIR_SGD:
		f->w[i] -= f->rate * g;
		break;
	case CHOIR_MOMENTUM:
		f->a[i] = f->momentum * f->a[i] - f->rate * g;
		f->w[i] += f->nesterov ? f->momentum * f->a[i] - f->rate * g : f->a[i];
		break;
	case CHOIR_ADAMW:
		f->w[i] -= f->rate * f->decay * f->w[i];
		__attribute__((fallthrough));
	case CHOIR_ADAM:
		f->a[i] = f->beta1 * f->a[i] + (1 - f->beta1) * g;
		f->b[i] = f->beta2 * f->b[i] + (1 - f->beta2) * g * g;
		f->w[i] -= f->rate * c * f->a[i] / (sqrt(f->b[i]) + f->epsilon);
		break;
	case CHOIR_RMSPROP:
		f->b[i] = f->rho * f->b[i] + (1 - f->rho) * g * g;
		f->a[i] = f->momentum * f->a[i] + f->rate * g / sqrt(f->b[i] + f->epsilon);
		f->w[i] -= f->a[i];
		break;
	case CHOIR_ADAGRAD:
		f->a[i] += g * g;
		f->w[i] -= f->rate * g / sqrt(f->a[i] + f->accumulator + f->epsilon);
		break;
	case CHOIR_LION: {
		const double to = f->beta1 * f->a[i] + (1 - f->beta1) * g;
		f->w[i] -= f->rate * (f->decay * f->w[i] + (to > 0) - (to < 0));
		f->a[i] = f->beta2 * f->a[i] + (1 - f->beta2) * g;
		break;
	}
	case CHOIR_LAMB: // weight_averages_test.c, over whole variables
		break;
	case CHOIR_NADAM: {
		double now = 1, b = 0, next;
		for (int t = 1; t <= f->t; t++)
			now *= b = f->beta1 * (1 - 0.5 * pow(0.96, t));
		const double after = f->beta1 * (1 - 0.5 * pow(0.96, f->t + 1));
		next = now * after;
		f->a[i] = f->beta1 * f->a[i] + (1 - f->beta1) * g;
		f->b[i] = f->beta2 * f->b[i] + (1 - f->beta2) * g * g;
		f->w[i] -= f->rate * (after * f->a[i] / (1 - next) + (1 - b) * g / (1 - now)) /
				(sqrt(f->b[i] / (1 - pow(f->beta2, f->t))) + f->epsilon);
	}
	}
}

static void reference_step(reference *f, const double g[N])
{
	double norm = 0;
	for (int i = 0; i < N; i++)
		norm += g[i] * g[i];
	norm = sqrt(norm);
	const double by = f->clip > 0 && norm > f->clip ? f->clip / norm : 1;
	f->t++;
	for (int i = 0; i < N; i++)
		reference_element(f, i, by * g[i]);
}

static void sum_gradients(int replicas, int t, double g[N])
{
	for (int i = 0; i < N; i++) {
		g[i] = 0;
		for (int r = 0; r < replicas; r++)
			g[i] += gradient_of(r, t, i);
	}
}

static void compare(const job *j, const reference *f, double tolerance)
{
	double have[N];
	float single[N];
	choir_variable_options o = { .size = sizeof o };
	assert_int_equal(choir_variable_describe(j->variable, &o), CHOIR_OK);
	if (o.dtype == CHOIR_F64)
		fetch_variable(j->variable, have, sizeof have);
	else
		fetch_variable(j->variable, single, sizeof single);
	for (int i = 0; i < N; i++) {
		const double w = o.dtype == CHOIR_F64 ? have[i] : (double) single[i];
		if (!(fabs(w - f->w[i]) <= tolerance))
			fail_msg("%s at step %d: w[%d] is %.17g, needed %.17g", j->optimizer->kind->name, f->t,
					i, w, f->w[i]);
	}
}

static void follow(reference *f, const choir_optimizer_options *o, const char *devices,
		int replicas, choir_dtype dtype)
{
	choir_strategy *s = mirrored(devices, replicas);
	job j;
	open_job(&j, s, dtype, f->kind, o);
	reference_open(f);
	for (; j.t < STEPS; j.t++) {
		double g[N];
		sum_gradients(replicas, j.t, g);
		reference_step(f, g);
		if (choir_strategy_run(s, give_and_apply, &j, NULL, NULL) != CHOIR_OK)
			fail_msg("%s", choir_error());
		compare(&j, f, dtype == CHOIR_F64 ? 1e-13 : 2e-6);
	}
	choir_strategy_free(s);
}

static void everywhere(reference f, const choir_optimizer_options *o)
{
	follow(&f, o, "cpu:0", 1, CHOIR_F64);
	follow(&f, o, "cpu:0,cpu:1", 3, CHOIR_F64);
	follow(&f, o, "cpu:0", 2, CHOIR_F32);
	follow(&f, o, "far:0,far:1", 2, CHOIR_F64);
}

TEST(formulas)
{
	const reference adam = {
		.kind = CHOIR_ADAM, .rate = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-7
	};
	everywhere((reference){ .kind = CHOIR_SGD, .rate = 1e-2 }, NULL);
	everywhere((reference){ .kind = CHOIR_MOMENTUM, .rate = 1e-2, .momentum = 0.9 }, NULL);
	everywhere(adam, NULL);
	reference adamw = adam;
	adamw.kind = CHOIR_ADAMW;
	adamw.decay = 1e-2;
	everywhere(adamw, NULL);
	everywhere(
			(reference){ .kind = CHOIR_RMSPROP, .rate = 1e-3, .rho = 0.9, .epsilon = 1e-7 }, NULL);
	reference nadam = adam;
	nadam.kind = CHOIR_NADAM;
	everywhere(nadam, NULL);
	everywhere(
			(reference){
					.kind = CHOIR_ADAGRAD, .rate = 1e-3, .accumulator = 0.1, .epsilon = 1e-7 },
			NULL);
	everywhere((reference){ .kind = CHOIR_LION, .rate = 1e-3, .beta1 = 0.9, .beta2 = 0.99 }, NULL);
}

TEST(formulas_with_options)
{
	everywhere((reference){ .kind = CHOIR_RMSPROP,
					   .rate = 0.01,
					   .rho = 0.5,
					   .momentum = 0.8,
					   .epsilon = 0.01 },
			CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.01, .rho = 0.5,
					.momentum = 0.8, .epsilon = 0.01));
	everywhere((reference){ .kind = CHOIR_ADAGRAD, .rate = 0.2, .epsilon = 0.01 },
			CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.2, .epsilon = 0.01,
					.initial_accumulator = CHOIR_ZERO));
	everywhere(
			(reference){
					.kind = CHOIR_LION, .rate = 0.01, .beta1 = 0.5, .beta2 = 0.8, .decay = 0.1 },
			CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.01, .beta1 = 0.5,
					.beta2 = 0.8, .weight_decay = 0.1));
	everywhere((reference){ .kind = CHOIR_SGD, .rate = 0.3 },
			CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.3, .momentum = CHOIR_ZERO,
					.weight_decay = CHOIR_ZERO)); // which SGD lacks
	everywhere(
			(reference){ .kind = CHOIR_MOMENTUM, .rate = 0.1, .momentum = 0.5, .nesterov = true },
			CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.1, .momentum = 0.5,
					.nesterov = CHOIR_ON));
	everywhere((reference){ .kind = CHOIR_MOMENTUM, .rate = 0.1 },
			CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.1, .momentum = CHOIR_ZERO));
	everywhere((reference){ .kind = CHOIR_ADAM, .rate = 0.05, .beta2 = 0.9, .epsilon = 0.1 },
			CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.05, .beta1 = CHOIR_ZERO,
					.beta2 = 0.9, .epsilon = 0.1));
	everywhere((reference){ .kind = CHOIR_ADAMW,
					   .rate = 0.05,
					   .beta1 = 0.9,
					   .beta2 = 0.999,
					   .epsilon = 1e-7,
					   .decay = 0.5 },
			CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.05, .weight_decay = 0.5));
}

// The variable is "w": the first group that matches decides.
TEST(groups)
{
	const choir_parameter_group all[] = {
		{ .size = sizeof *all,
				.names = "*/gamma,w",
				.learning_rate_multiplier = 0.5,
				.weight_decay = CHOIR_ZERO },
		{ .size = sizeof *all, .names = "*", .learning_rate_multiplier = 70 },
	};
	const reference adamw = {
		.kind = CHOIR_ADAMW, .rate = 0.02, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-7
	};
	everywhere(adamw,
			CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.04, .weight_decay = 0.5,
					.groups = all, .n_groups = 2));
	reference decayed = adamw;
	const choir_parameter_group own[] = {
		{ .size = sizeof *own, .names = "w", .weight_decay = 0.25 },
		{ .size = sizeof *own, .names = "w", .learning_rate_multiplier = CHOIR_ZERO }
	};
	decayed.decay = 0.25;
	everywhere(decayed,
			CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.02, .weight_decay = 0.5,
					.groups = own, .n_groups = 2));
	everywhere((reference){ .kind = CHOIR_SGD, .rate = 0 },
			CHOIR_OPTIONS(choir_optimizer_options, .groups = &own[1], .n_groups = 1)); // frozen
}

TEST(clipping)
{
	everywhere((reference){ .kind = CHOIR_SGD, .rate = 0.5, .clip = 0.7 },
			CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.5, .global_clip_norm = 0.7));
	everywhere((reference){ .kind = CHOIR_ADAM,
					   .rate = 1e-3,
					   .beta1 = 0.9,
					   .beta2 = 0.999,
					   .epsilon = 1e-7,
					   .clip = 0.01 },
			CHOIR_OPTIONS(choir_optimizer_options, .global_clip_norm = 0.01));
	everywhere((reference){ .kind = CHOIR_SGD, .rate = 0.5 },
			CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.5, .global_clip_norm = 1e3));
}

static double halves(int64_t step, void *user)
{
	int64_t *asked = user;
	assert_int_equal(step, *asked);
	++*asked;
	return step == 5 ? (double) NAN : 1 / (double) (1 + step);
}

TEST(schedule_in_use)
{
	int64_t asked = 0;
	const choir_schedule schedule = {
		.size = sizeof schedule, .kind = CHOIR_SCHEDULE_FUNCTION, .fn = halves, .user = &asked
	};
	choir_strategy *s = mirrored("cpu:0,cpu:1", 2);
	job j;
	open_job(&j, s, CHOIR_F64, CHOIR_SGD,
			CHOIR_OPTIONS(choir_optimizer_options, .schedule = &schedule));
	reference f = { .kind = CHOIR_SGD };
	reference_open(&f);
	for (; j.t < 5; j.t++) {
		double g[N];
		sum_gradients(2, j.t, g);
		f.rate = 1 / (1.0 + j.t);
		reference_step(&f, g);
		assert_int_equal(choir_strategy_run(s, give_and_apply, &j, NULL, NULL), CHOIR_OK);
		compare(&j, &f, 1e-14);
	}
	assert_failed(choir_strategy_run(s, give_and_apply, &j, NULL, NULL), CHOIR_INVALID, "step 5");
	compare(&j, &f, 1e-14);
	choir_strategy_free(s);
}

static choir_status find_slot(choir_replica *r, void *user)
{
	choir_variable *slot = choir_variable_new("w/momentum", CHOIR_SHAPE(N),
			CHOIR_OPTIONS(choir_variable_options, .dtype = CHOIR_F64));
	if (slot == NULL)
		return choir_error_status();
	if (choir_replica_id(r) == 0) // the replicas are there at the same time
		*(choir_variable **) user = slot;
	return CHOIR_OK;
}

// What was read of a slot is out of date after an update, as what was read of its variable is.
TEST(slots_change)
{
	choir_strategy *s = mirrored("cpu:0,far:0", 2);
	choir_variable *slot = NULL;
	double x[N];
	job j;
	open_job(&j, s, CHOIR_F64, CHOIR_MOMENTUM, NULL);
	assert_int_equal(choir_strategy_run(s, give_and_apply, &j, NULL, NULL), CHOIR_OK);
	assert_int_equal(choir_strategy_run(s, find_slot, &slot, NULL, NULL), CHOIR_OK);
	choir_tensor *read = choir_variable_read(slot, choir_strategy_cross(s)->frame);
	assert_int_equal(choir_tensor_to_host(read, x, sizeof x), CHOIR_OK);
	assert_int_equal(choir_strategy_run(s, give_and_apply, &j, NULL, NULL), CHOIR_OK);
	assert_failed(choir_tensor_to_host(read, x, sizeof x), CHOIR_STATE, "changed");
	choir_strategy_free(s);
}

typedef struct {
	const char *text;
	choir_optimizer_kind kind;
	choir_optimizer_options options;
} refusal;

static const choir_loss_scale dynamic = { .size = sizeof(choir_loss_scale) };
#define OPTIONS(...) \
	{ \
		.size = sizeof(choir_optimizer_options), __VA_ARGS__ \
	}
static const choir_parameter_group bad_groups[] = {
	{ .size = sizeof(choir_parameter_group), .names = "w", .learning_rate_multiplier = -3 },
	{ .size = sizeof(choir_parameter_group), .names = "" },
	{ .size = sizeof(choir_parameter_group), .names = "w", .weight_decay = 0.1 },
	{ .size = 3, .names = "w" },
};
static const refusal refusals[] = {
	{ "optimizer sgd: group 0: learning_rate_multiplier*-3", CHOIR_SGD,
			OPTIONS(.groups = bad_groups, .n_groups = 1) },
	{ "group 0:*names", CHOIR_ADAM, OPTIONS(.groups = &bad_groups[1], .n_groups = 1) },
	{ "group 0: weight_decay*0.1*this kind", CHOIR_ADAM,
			OPTIONS(.groups = &bad_groups[2], .n_groups = 1) },
	{ "group 0: its size is 3", CHOIR_ADAM, OPTIONS(.groups = &bad_groups[3], .n_groups = 1) },
	{ "2 groups*NULL", CHOIR_ADAM, OPTIONS(.n_groups = 2) },
	{ "optimizer rmsprop: rho*1;", CHOIR_RMSPROP, OPTIONS(.rho = 1) },
	{ "optimizer adam: rho*0.5*this kind", CHOIR_ADAM, OPTIONS(.rho = 0.5) },
	{ "optimizer lion: epsilon*1e-07*this kind", CHOIR_LION, OPTIONS(.epsilon = 1e-7) },
	{ "optimizer adagrad: beta1*0.9*this kind", CHOIR_ADAGRAD, OPTIONS(.beta1 = 0.9) },
	{ "optimizer adam: initial_accumulator*0.1*this kind", CHOIR_ADAM,
			OPTIONS(.initial_accumulator = 0.1) },
	{ "optimizer adagrad: initial_accumulator*-2", CHOIR_ADAGRAD,
			OPTIONS(.initial_accumulator = -2) },
	{ "optimizer rmsprop: nesterov", CHOIR_RMSPROP, OPTIONS(.nesterov = CHOIR_ON) },
	{ "optimizer sgd: learning_rate*nan", CHOIR_SGD, OPTIONS(.learning_rate = (double) NAN) },
	{ "optimizer adam: learning_rate*-0.1", CHOIR_ADAM, OPTIONS(.learning_rate = -0.1) },
	{ "optimizer adam: learning_rate*inf", CHOIR_ADAM, OPTIONS(.learning_rate = HUGE_VAL) },
	{ "optimizer adam: beta1*1;", CHOIR_ADAM, OPTIONS(.beta1 = 1) },
	{ "optimizer adam: beta2*-0.5", CHOIR_ADAM, OPTIONS(.beta2 = -0.5) },
	{ "optimizer adamw: beta2*nan", CHOIR_ADAMW, OPTIONS(.beta2 = (double) NAN) },
	{ "optimizer adamw: epsilon*-1e-09", CHOIR_ADAMW, OPTIONS(.epsilon = -1e-9) },
	{ "optimizer adamw: weight_decay*-2", CHOIR_ADAMW, OPTIONS(.weight_decay = -2) },
	{ "optimizer momentum: momentum*1.5", CHOIR_MOMENTUM, OPTIONS(.momentum = 1.5) },
	{ "optimizer sgd: global_clip_norm*-1", CHOIR_SGD, OPTIONS(.global_clip_norm = -1) },
	{ "optimizer sgd: global_clip_norm*nan", CHOIR_SGD,
			OPTIONS(.global_clip_norm = (double) NAN) },
	{ "optimizer adam: weight_decay*0.1*this kind", CHOIR_ADAM, OPTIONS(.weight_decay = 0.1) },
	{ "optimizer sgd: momentum*0.9*this kind", CHOIR_SGD, OPTIONS(.momentum = 0.9) },
	{ "optimizer adam: nesterov*1*this kind", CHOIR_ADAM, OPTIONS(.nesterov = CHOIR_ON) },
	{ "optimizer sgd: beta1*0.9*this kind", CHOIR_SGD, OPTIONS(.beta1 = 0.9) },
	{ "nonfinite*7*CHOIR_NONFINITE_ERROR", CHOIR_SGD, OPTIONS(.nonfinite = (choir_nonfinite) 7) },
	{ "CHOIR_NONFINITE_IGNORE*dynamic", CHOIR_SGD,
			OPTIONS(.nonfinite = CHOIR_NONFINITE_IGNORE, .loss_scale = &dynamic) },
	{ "kind 9*CHOIR_SGD", (choir_optimizer_kind) 9, OPTIONS(.learning_rate = 1) },
	{ "the options' size is 3", CHOIR_SGD, { .size = 3 } },
	{ "the options' size is 9999", CHOIR_SGD, { .size = 9999 } },
};

TEST(bad_options)
{
	for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
		assert_null(choir_optimizer_new(refusals[i].kind, &refusals[i].options));
		assert_failed(choir_error_status(), CHOIR_INVALID, refusals[i].text);
	}
	assert_null(choir_optimizer_new(CHOIR_SGD,
			CHOIR_OPTIONS(choir_optimizer_options,
					.schedule = CHOIR_OPTIONS(choir_schedule, .kind = CHOIR_SCHEDULE_COSINE,
							.warmup = 5, .steps = 5))));
	assert_failed(choir_error_status(), CHOIR_INVALID, "COSINE*5 steps");
}

typedef struct {
	choir_strategy *strategy;
	choir_optimizer *optimizer, *others;
	choir_variable *v, *w, *counts, *halves, *foreign;
	int which;
} misuse;

static choir_status misuse_step(choir_replica *r, void *user)
{
	const misuse *m = user;
	choir_frame *f = r->frame;
	choir_tensor *g = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(2), 1);
	choir_tensor *i = choir_fill(f, CHOIR_I32, CHOIR_SHAPE(2), 1);
	switch (m->which) {
	case 0:
		return choir_optimizer_add_gradient(
				m->optimizer, r, m->v, choir_fill(f, CHOIR_F32, CHOIR_SHAPE(3), 1));
	case 1:
		return choir_optimizer_add_gradient(
				m->optimizer, r, m->v, choir_fill(f, CHOIR_F64, CHOIR_SHAPE(2), 1));
	case 2:
		return choir_optimizer_add_gradient(m->optimizer, r, m->counts, i);
	case 3:
		return choir_optimizer_add_gradient(m->optimizer, r, m->foreign, g);
	case 4:
		return choir_optimizer_add_gradient(m->optimizer, r, NULL, g);
	case 5:
		CHOIR_TRY(choir_optimizer_add_gradient(m->optimizer, r, m->v, g));
		return choir_optimizer_add_gradient(m->optimizer, r, m->v, g);
	case 6:
		return choir_optimizer_apply_gradients(m->optimizer, r);
	case 7: // each replica another order
		CHOIR_TRY(choir_optimizer_add_gradient(
				m->optimizer, r, choir_replica_id(r) == 0 ? m->v : m->w, g));
		CHOIR_TRY(choir_optimizer_add_gradient(
				m->optimizer, r, choir_replica_id(r) == 0 ? m->w : m->v, g));
		return choir_optimizer_apply_gradients(m->optimizer, r);
	case 8: // one replica lacks a gradient
		CHOIR_TRY(choir_optimizer_add_gradient(m->optimizer, r, m->v, g));
		if (choir_replica_id(r) == 1)
			CHOIR_TRY(choir_optimizer_add_gradient(m->optimizer, r, m->w, g));
		return choir_optimizer_apply_gradients(m->optimizer, r);
	case 9: // one replica does not apply at all
		CHOIR_TRY(choir_optimizer_add_gradient(m->optimizer, r, m->v, g));
		return choir_replica_id(r) == 1 ? CHOIR_OK
										: choir_optimizer_apply_gradients(m->optimizer, r);
	case 10:
		return choir_optimizer_minimize(m->optimizer, g, choir_tape_begin(f));
	case 11:
		return choir_optimizer_minimize(
				m->optimizer, choir_sum(g, CHOIR_ALL_AXES), choir_tape_begin(f));
	case 12:
		return choir_optimizer_new(CHOIR_SGD, NULL) == NULL ? choir_error_status() : CHOIR_OK;
	case 13:
		return choir_optimizer_add_gradient(m->optimizer, r, m->halves,
				choir_indexed_slices(
						choir_cast(choir_fill(f, CHOIR_F32, CHOIR_SHAPE(2, 1), 1), CHOIR_F16),
						choir_fill(f, CHOIR_I64, CHOIR_SHAPE(2), 1), 8));
	case 14:
		return choir_optimizer_add_gradient(m->others, r, m->v, g);
	default:
		return choir_optimizer_add_gradient(NULL, r, m->v, g);
	}
}

static const struct {
	choir_status status;
	const char *text;
} misuses[] = {
	{ CHOIR_INVALID, "the gradient of \"v\"*f32 [3]*f32 [2]" },
	{ CHOIR_INVALID, "the gradient of \"v\"*f64 [2]*f32 [2]" },
	{ CHOIR_INVALID, "variable \"counts\" is i32*only f32 and f64 can be updated" },
	{ CHOIR_INVALID, "variable \"foreign\"*another strategy" },
	{ CHOIR_INVALID, "the variable is NULL" },
	{ CHOIR_INVALID, "the gradient of \"v\"*twice" },
	{ CHOIR_INVALID, "momentum: no gradient was given" },
	{ CHOIR_STATE, " is in momentum of " },
	{ CHOIR_STATE, "momentum of v, w" },
	{ CHOIR_STATE, "replica 1: *momentum of v*choir_optimizer_apply_gradients" },
	{ CHOIR_INVALID, "the loss is [2]*a scalar is needed" },
	{ CHOIR_INVALID, "no trainable variable was read since the tape began" },
	{ CHOIR_STATE, "making an optimizer is not possible in replica" },
	{ CHOIR_INVALID, "variable \"halves\" is f16*only f32 and f64 can be updated" },
	{ CHOIR_STATE, "momentum: mixing strategies*\"mirrored\" #*\"mirrored\" #" },
	{ CHOIR_INVALID, "optimizer: *is NULL" },
};

static void check_misuse(misuse *m)
{
	for (m->which = 0; m->which < (int) (sizeof misuses / sizeof misuses[0]); m->which++) {
		const choir_status status = choir_strategy_run(m->strategy, misuse_step, m, NULL, NULL);
		assert_failed(status, misuses[m->which].status, misuses[m->which].text);
		float v[2];
		fetch_variable(m->v, v, sizeof v);
		assert_true(v[0] == 0 && v[1] == 0); // nothing was written
	}
}

TEST(wrong_use)
{
	const char *const devices[] = { "cpu:0", "cpu:0,cpu:1" };
	for (int i = 0; i < 2; i++) {
		choir_strategy *other = mirrored("cpu:0", 1);
		misuse m = { .strategy = mirrored(devices[i], 2) };
		CHOIR_SCOPE (other) {
			m.foreign = choir_variable_new("foreign", CHOIR_SHAPE(2), NULL);
			m.others = choir_optimizer_new(CHOIR_MOMENTUM, NULL);
		}
		CHOIR_SCOPE (m.strategy) {
			m.v = choir_variable_new("v", CHOIR_SHAPE(2), NULL);
			m.w = choir_variable_new("w", CHOIR_SHAPE(2), NULL);
			m.counts = choir_variable_new("counts", CHOIR_SHAPE(2),
					CHOIR_OPTIONS(choir_variable_options, .dtype = CHOIR_I32));
			m.halves = choir_variable_new("halves", CHOIR_SHAPE(8, 1),
					CHOIR_OPTIONS(choir_variable_options, .dtype = CHOIR_F16));
			m.optimizer = choir_optimizer_new(CHOIR_MOMENTUM, NULL);
		}
		check_misuse(&m);
		assert_failed(choir_optimizer_distributed_apply(
							  m.others, choir_strategy_cross(m.strategy), 0, NULL, NULL),
				CHOIR_STATE, misuses[14].text);
		choir_strategy_free(m.strategy);
		choir_strategy_free(other);
	}
}
