// Learning rates, step by step, against numbers worked out by hand.
#include "train/optimizer/optimizer.h"

#include "train/problem.h"
#include "test.h"

#include <math.h>

static choir_schedule resolved(choir_schedule given)
{
	given.size = sizeof given;
	choir_schedule s;
	choir_optimizer_options all;
	const chi_optimizer_kind kind = { .name = "sgd", .rate = 1 };
	const choir_optimizer_options o = { .size = sizeof o, .schedule = &given };
	if (chi_optimizer_resolve(&kind, &o, &all, &s) != CHOIR_OK)
		fail_msg("%s", choir_error());
	return s;
}

static void rates(choir_schedule given, size_t n, const double expected[])
{
	const choir_schedule s = resolved(given);
	for (size_t i = 0; i < n; i++) {
		double rate;
		assert_int_equal(chi_schedule_rate(&s, 2, i, &rate), CHOIR_OK);
		if (!(fabs(rate - 2 * expected[i]) < 1e-12))
			fail_msg("step %zu: %.17g, needed %.17g", i, rate, 2 * expected[i]);
	}
}

TEST(all_kinds)
{
	rates((choir_schedule){ .kind = CHOIR_SCHEDULE_CONSTANT }, 3, (double[]){ 1, 1, 1 });
	rates((choir_schedule){ .warmup = 4 }, 6, (double[]){ 0, 0.25, 0.5, 0.75, 1, 1 });
	rates((choir_schedule){ .kind = CHOIR_SCHEDULE_STEP, .steps = 2 }, 7,
			(double[]){ 1, 1, 0.1, 0.1, 0.01, 0.01, 0.001 });
	rates((choir_schedule){ .kind = CHOIR_SCHEDULE_STEP, .steps = 2, .factor = 0.5, .warmup = 1 },
			6, (double[]){ 0, 1, 1, 0.5, 0.5, 0.25 });
	const double half = sqrt(0.5);
	rates((choir_schedule){ .kind = CHOIR_SCHEDULE_COSINE, .steps = 4 }, 7,
			(double[]){ 1, 0.5 * (1 + half), 0.5, 0.5 * (1 - half), 0, 0, 0 });
	rates(
			(choir_schedule){
					.kind = CHOIR_SCHEDULE_COSINE, .steps = 4, .warmup = 2, .factor = 0.2 },
			6, (double[]){ 0, 0.5, 1, 0.6, 0.2, 0.2 });
	rates(
			(choir_schedule){
					.kind = CHOIR_SCHEDULE_EXPONENTIAL, .steps = 2, .factor = 0.25, .warmup = 1 },
			5, (double[]){ 0, 1, 0.5, 0.25, 0.125 });
	rates((choir_schedule){ .kind = CHOIR_SCHEDULE_POLYNOMIAL, .steps = 4 }, 6,
			(double[]){ 1, 0.75, 0.5, 0.25, 0, 0 });
	rates((choir_schedule){ .kind = CHOIR_SCHEDULE_POLYNOMIAL,
				  .steps = 5,
				  .warmup = 1,
				  .power = 2,
				  .factor = 0.2 },
			7, (double[]){ 0, 1, 0.2 + 0.8 * 0.5625, 0.4, 0.25, 0.2, 0.2 });
	// torch.optim.lr_scheduler.OneCycleLR(max_lr=1, total_steps=10)
	rates((choir_schedule){ .kind = CHOIR_SCHEDULE_ONE_CYCLE, .steps = 10 }, 11,
			(double[]){ 0.040000000000000036, 0.52, 1.0, 0.9504846320134737, 0.8117456539497631,
					0.6112620219362893, 0.38874197806371075, 0.18825834605023697,
					0.049519367986526286, 4e-06, 4e-06 });
}

static double far_away(int64_t step, void *user)
{
	return step == 3 ? *(double *) user : 0.125;
}

TEST(functions)
{
	double given = 0.5, rate;
	const choir_schedule s = resolved(
			(choir_schedule){ .kind = CHOIR_SCHEDULE_FUNCTION, .fn = far_away, .user = &given });
	assert_int_equal(chi_schedule_rate(&s, 2, 0, &rate), CHOIR_OK);
	assert_true(rate == 0.125); // the rate itself
	assert_int_equal(chi_schedule_rate(&s, 2, 3, &rate), CHOIR_OK);
	assert_true(rate == 0.5);
	given = -0.1;
	assert_failed(chi_schedule_rate(&s, 2, 3, &rate), CHOIR_INVALID, "-0.1*step 3");
	given = HUGE_VAL;
	assert_failed(chi_schedule_rate(&s, 2, 3, &rate), CHOIR_INVALID, "step 3");
	given = 0;
	assert_int_equal(chi_schedule_rate(&s, 2, 3, &rate), CHOIR_OK);
}

TEST(refused)
{
	static const struct {
		choir_schedule schedule;
		const char *text;
	} cases[] = {
		{ { .size = 4 }, "the schedule's size is 4" },
		{ { .size = sizeof(choir_schedule), .warmup = -1 }, "warm-up*-1 steps" },
		{ { .size = sizeof(choir_schedule), .kind = CHOIR_SCHEDULE_STEP },
				"a STEP schedule*0.1 every 0" },
		{ { .size = sizeof(choir_schedule),
				  .kind = CHOIR_SCHEDULE_STEP,
				  .steps = 3,
				  .factor = -1 },
				"factor -1" },
		{ { .size = sizeof(choir_schedule),
				  .kind = CHOIR_SCHEDULE_STEP,
				  .steps = 3,
				  .factor = (double) NAN },
				"factor nan" },
		{ { .size = sizeof(choir_schedule), .kind = CHOIR_SCHEDULE_COSINE },
				"a COSINE schedule*0 steps" },
		{ { .size = sizeof(choir_schedule),
				  .kind = CHOIR_SCHEDULE_COSINE,
				  .steps = 9,
				  .factor = 1.5 },
				"COSINE*1.5" },
		{ { .size = sizeof(choir_schedule), .kind = CHOIR_SCHEDULE_EXPONENTIAL },
				"an EXPONENTIAL schedule*every 0" },
		{ { .size = sizeof(choir_schedule),
				  .kind = CHOIR_SCHEDULE_POLYNOMIAL,
				  .steps = 9,
				  .power = -2 },
				"POLYNOMIAL*-2" },
		{ { .size = sizeof(choir_schedule),
				  .kind = CHOIR_SCHEDULE_ONE_CYCLE,
				  .steps = 5,
				  .warmup = 4 },
				"ONE_CYCLE*5 steps*4" },
		{ { .size = sizeof(choir_schedule), .kind = CHOIR_SCHEDULE_FUNCTION },
				"FUNCTION*no function" },
		{ { .size = sizeof(choir_schedule),
				  .kind = CHOIR_SCHEDULE_FUNCTION,
				  .fn = far_away,
				  .warmup = 2 },
				"FUNCTION*warm-up" },
		{ { .size = sizeof(choir_schedule), .kind = (choir_schedule_kind) 8 }, "schedule 8" },
	};
	const chi_optimizer_kind kind = { .name = "sgd", .rate = 1 };
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		choir_schedule s;
		choir_optimizer_options all;
		const choir_optimizer_options o = { .size = sizeof o, .schedule = &cases[i].schedule };
		assert_failed(chi_optimizer_resolve(&kind, &o, &all, &s), CHOIR_INVALID, cases[i].text);
	}
}

// The rate of the next update, which is what moves it.
TEST(the_next_rate)
{
	const choir_schedule wave = { .size = sizeof wave, .kind = CHOIR_SCHEDULE_COSINE, .steps = 8 };
	const choir_optimizer_options o = {
		.size = sizeof o, .learning_rate = 0.5, .schedule = &wave
	};
	problem p;
	assert_int_equal(problem_open(&p, "cpu:0,cpu:1", 2, CHOIR_SGD, &o), CHOIR_OK);
	for (int i = 0; i < 10; i++) {
		const double expected = 0.25 * (1 + cos(3.14159265358979324 * (i < 8 ? i / 8.0 : 1)));
		assert_true(fabs(choir_optimizer_learning_rate(p.optimizer) - expected) < 1e-12);
		assert_int_equal(problem_step(&p), CHOIR_OK);
	}
	problem_close(&p);
	assert_true(isnan(choir_optimizer_learning_rate(NULL)));
}
