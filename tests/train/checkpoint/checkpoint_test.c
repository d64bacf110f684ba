// Checkpoints: what is restored goes on to the same bits, on other devices as well; what is kept;
// who may have a directory.
#include "base/alloc.h"
#include "base/fs.h"
#include "base/status.h"
#include "choir/library.h"
#include "train/files.h"
#include "train/optimizer/optimizer.h"
#include "train/saved.h"
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEPS = 12, REPLICAS = 4 };

// Everything that a training is: its weights, and how it stands.
typedef struct {
	uint64_t weights;
	double loss, accuracy;
} end;

static end finish(problem *p)
{
	const end e = { choir_strategy_hash(p->strategy), choir_metric_result(p->loss),
		choir_metric_result(p->accuracy) };
	problem_close(p);
	return e;
}

// Trained to the end with a stop behind so many steps, on other devices before and after.
static end with_a_stop(int before, int after, int stop, bool asynchronous,
		choir_optimizer_kind kind, const choir_optimizer_options *o)
{
	const char *directory = saved_directory();
	const choir_checkpoint_options options = { .size = sizeof options,
		.asynchronous = asynchronous };
	problem p = saved_open(before, REPLICAS, kind, o);
	saved_train(&p, stop);
	choir_checkpoint_manager *m = saved_manage(p.strategy, directory, &options);
	saved_must(choir_checkpoint_manager_save(m, NULL));
	saved_train(&p, 1); // what is saved is the state of before, also if it is written behind
	saved_must(choir_checkpoint_manager_wait(m));
	choir_checkpoint_manager_free(m);
	problem_close(&p);

	p = saved_open(after, REPLICAS, kind, o);
	saved_train(&p, stop % 3); // a training that has gone elsewhere comes back
	m = saved_manage(p.strategy, directory, NULL);
	saved_must(choir_checkpoint_manager_restore_latest(m));
	p.steps = stop;
	saved_train(&p, STEPS - stop);
	choir_checkpoint_manager_free(m);
	return finish(&p);
}

// spec: 2.7
TEST(the_same_bits)
{
	static const choir_loss_scale scale = { .size = sizeof scale, .initial = 1024, .period = 3 };
	const choir_optimizer_options dynamic = { .size = sizeof dynamic, .loss_scale = &scale };
	const struct {
		choir_optimizer_kind kind;
		const choir_optimizer_options *o;
	} cases[] = { { CHOIR_ADAM, NULL }, { CHOIR_MOMENTUM, NULL }, { CHOIR_SGD, NULL },
		{ CHOIR_RMSPROP, NULL }, { CHOIR_ADAM, &dynamic } };
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		problem p = saved_open(0, REPLICAS, cases[i].kind, cases[i].o);
		saved_train(&p, STEPS);
		const end whole = finish(&p);
		for (int k = 0; k < SAVED_CARRIERS; k++) {
			const int stop = (int) (i * SAVED_CARRIERS + (size_t) k) % STEPS;
			const end e = with_a_stop(
					k, (k + 1) % SAVED_CARRIERS, stop, k % 2 == 1, cases[i].kind, cases[i].o);
			if (e.weights != whole.weights || e.loss != whole.loss || e.accuracy != whole.accuracy)
				fail_msg("optimizer %zu, %s to %s at %d: %016llx, needed %016llx", i,
						saved_devices[k], saved_devices[(k + 1) % SAVED_CARRIERS], stop,
						(unsigned long long) e.weights, (unsigned long long) whole.weights);
		}
	}
}

// ---- Parts of ON_READ variables.

static void part(choir_replica *r, void *user, float parts[])
{
	choir_tensor *t = choir_variable_read(user, r->frame);
	float both[2];
	assert_int_equal(choir_tensor_to_host(t, both, sizeof both), CHOIR_OK);
	parts[choir_replica_id(r)] = both[0];
}

static float seen[8];

static choir_status see(choir_replica *r, void *user)
{
	part(r, user, seen);
	return CHOIR_OK;
}

// spec: 2.7
TEST(parts_of_replicas)
{
	const char *directory = saved_directory();
	choir_strategy *s = mirrored("cpu:0,cpu:1", 3);
	choir_variable *v = saved_own(s, CHOIR_AGGREGATION_SUM);
	saved_must(choir_strategy_run(s, saved_count, v, NULL, NULL));
	choir_checkpoint_manager *m = saved_manage(s, directory, NULL);
	saved_must(choir_checkpoint_manager_save(m, NULL));
	choir_checkpoint_manager_free(m);
	choir_strategy_free(s);
	// As many replicas: each has its own. Others: equal shares of the sum, 0.1 + 0.2 + 0.3.
	for (int replicas = 2; replicas <= 4; replicas++) {
		s = mirrored("cpu:0", replicas);
		v = saved_own(s, CHOIR_AGGREGATION_SUM);
		m = saved_manage(s, directory, NULL);
		saved_must(choir_checkpoint_manager_restore_latest(m));
		saved_must(choir_strategy_run(s, see, v, NULL, NULL));
		for (int i = 0; i < replicas; i++)
			assert_true(replicas == 3 ? seen[i] == (float) (0.1 * (i + 1))
									  : seen[i] > 0.59f / (float) replicas &&
									seen[i] < 0.61f / (float) replicas && seen[i] == seen[0]);
		choir_checkpoint_manager_free(m);
		choir_strategy_free(s);
	}
}

// ---- What is kept.

static void assert_steps(const char *directory, size_t n, const int64_t steps[])
{
	choir_checkpoint_list *l = choir_checkpoint_list_new(directory);
	assert_non_null(l);
	assert_int_equal(choir_checkpoint_list_steps(l), n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(choir_checkpoint_list_step(l, i), steps[i]);
		saved_must(choir_checkpoint_list_check(l, i));
	}
	choir_checkpoint_list_free(l);
}

TEST(the_last_and_the_best)
{
	static const double accuracy[] = { 0.1, 0.9, 0.3, 0.9, 0.4, 0.2, 0.5 };
	for (int min = 0; min < 2; min++) {
		const char *directory = saved_directory();
		const choir_checkpoint_options o = { .size = sizeof o,
			.max_to_keep = 2,
			.best_metric = "accuracy",
			.max_best_to_keep = 2,
			.best_is_lowest = min == 1,
			.asynchronous = min == 1 };
		problem p = saved_open(0, 2, CHOIR_SGD, NULL);
		choir_checkpoint_manager *m = saved_manage(p.strategy, directory, &o);
		for (int i = 0; i < 7; i++) {
			char text[64];
			saved_train(&p, 1);
			snprintf(text, sizeof text, "accuracy=%g\nepoch=%d", accuracy[i], i);
			saved_must(choir_checkpoint_manager_save(m, text));
		}
		saved_must(choir_checkpoint_manager_wait(m));
		static const int64_t largest[] = { 2, 4, 6, 7 }, smallest[] = { 1, 6, 7 };
		if (min == 0)
			assert_steps(directory, 4, largest);
		else
			assert_steps(directory, 3, smallest);
		assert_failed(choir_checkpoint_manager_save(m, "epoch=9"), CHOIR_INVALID, "\"accuracy\"");
		assert_failed(choir_checkpoint_manager_save(m, "accuracy=x"), CHOIR_INVALID, "accuracy");
		saved_must(choir_checkpoint_manager_save(m, "accuracy=nan")); // not among the best
		saved_must(choir_checkpoint_manager_wait(m));
		static const int64_t then[2][4] = { { 2, 4, 7, 7 }, { 1, 6, 7, 7 } };
		assert_steps(directory, 4, then[min]);
		choir_checkpoint_manager_free(m);
		problem_close(&p);
	}
}

TEST(a_step_that_is_there_already)
{
	const char *directory = saved_directory();
	problem p = saved_open(0, 2, CHOIR_ADAM, NULL);
	choir_checkpoint_manager *m = saved_manage(
			p.strategy, directory, CHOIR_OPTIONS(choir_checkpoint_options, .max_to_keep = 1));
	saved_train(&p, 3);
	saved_must(choir_checkpoint_manager_save(m, "n=1"));
	assert_string_equal(strrchr(choir_checkpoint_manager_latest(m), '/'), "/step-3");
	saved_must(choir_checkpoint_manager_save(m, "n=2"));
	assert_string_equal(strrchr(choir_checkpoint_manager_latest(m), '/'), "/step-3.2");
	saved_must(choir_checkpoint_manager_save(m, "n=3"));
	assert_string_equal(strrchr(choir_checkpoint_manager_latest(m), '/'), "/step-3");
	choir_checkpoint_list *l = choir_checkpoint_list_new(directory);
	assert_int_equal(choir_checkpoint_list_steps(l), 1);
	assert_string_equal(choir_checkpoint_list_metadata(l, 0, "n"), "3");
	assert_null(choir_checkpoint_list_metadata(l, 0, "m"));
	assert_int_equal(choir_checkpoint_list_replicas(l, 0), 2);
	const choir_checkpoint_list *const none[] = { NULL, l };
	for (int k = 0; k < 2; k++) {
		const size_t i = choir_checkpoint_list_steps(none[k]);
		assert_int_equal(choir_checkpoint_list_step(none[k], i), CHOIR_NONE);
		assert_null(choir_checkpoint_list_path(none[k], i));
		assert_int_equal(choir_checkpoint_list_replicas(none[k], i), 0);
		assert_null(choir_checkpoint_list_metadata(none[k], i, "key"));
	}
	choir_checkpoint_list_free(l);
	choir_checkpoint_manager_free(m);
	problem_close(&p);
}

// Going back to an earlier step makes what is saved from there the newest, not the larger number.
TEST(the_newest_is_the_one_saved_last)
{
	const char *directory = saved_directory();
	problem p = saved_open(0, 2, CHOIR_ADAM, NULL);
	choir_checkpoint_manager *m = saved_manage(p.strategy, directory, NULL);
	for (int i = 0; i < 3; i++) {
		saved_train(&p, 2);
		saved_must(choir_checkpoint_manager_save(m, NULL));
	}
	assert_failed(choir_checkpoint_manager_restore(m, 3), CHOIR_NOT_FOUND,
			"no step 3*\"step-2\"*\"step-4\"*\"step-6\"");
	assert_failed(choir_checkpoint_manager_restore(m, CHOIR_NONE), CHOIR_NOT_FOUND, "has no step");
	saved_must(choir_checkpoint_manager_restore(m, 2));
	p.steps = 2;
	saved_train(&p, 1);
	saved_must(choir_checkpoint_manager_save(m, NULL));
	const uint64_t weights = choir_strategy_hash(p.strategy);
	saved_train(&p, 3);
	saved_must(choir_checkpoint_manager_restore_latest(m));
	assert_int_equal(choir_strategy_hash(p.strategy), weights);
	assert_string_equal(strrchr(choir_checkpoint_manager_latest(m), '/'), "/step-3");
	choir_checkpoint_manager_free(m);
	problem_close(&p);
}

// ---- Wrong use.

TEST(wrong_use)
{
	problem p = saved_open(0, 2, CHOIR_ADAM, NULL);
	const char *directory = saved_directory();
	assert_null(choir_checkpoint_manager_new(p.strategy, NULL, NULL));
	assert_failed(choir_error_status(), CHOIR_INVALID, "no name");
	assert_null(choir_checkpoint_manager_new(p.strategy, "/nowhere at all/x", NULL));
	assert_failed(choir_error_status(), CHOIR_IO, "/nowhere*all/x");
	assert_null(choir_checkpoint_manager_new(
			p.strategy, directory, CHOIR_OPTIONS(choir_checkpoint_options, .max_to_keep = -2)));
	assert_failed(choir_error_status(), CHOIR_INVALID, "max_to_keep*-2");
	assert_null(choir_checkpoint_manager_new(p.strategy, directory,
			CHOIR_OPTIONS(choir_checkpoint_options, .max_best_to_keep = -1)));
	assert_failed(choir_error_status(), CHOIR_INVALID, "max_best_to_keep*-1");
	choir_checkpoint_manager *m = saved_manage(p.strategy, directory, NULL);
	assert_null(choir_checkpoint_manager_latest(m));
	assert_failed(choir_checkpoint_manager_restore_latest(m), CHOIR_NOT_FOUND, "checkpoint");
	assert_failed(choir_checkpoint_manager_save(m, "no line"), CHOIR_INVALID, "is not key=value");
	assert_failed(choir_checkpoint_manager_save(NULL, NULL), CHOIR_INVALID, "NULL");
	assert_failed(choir_checkpoint_manager_wait(NULL), CHOIR_INVALID, "NULL");
	assert_failed(choir_checkpoint_manager_check(NULL), CHOIR_INVALID, "NULL");
	assert_failed(choir_checkpoint_manager_restore_latest(NULL), CHOIR_INVALID, "NULL");
	assert_null(choir_checkpoint_list_new(files_path("nowhere")));
	assert_failed(choir_error_status(), CHOIR_NOT_FOUND, "nowhere");
	choir_checkpoint_manager_free(m);
	choir_checkpoint_manager_free(NULL);
	choir_checkpoint_list_free(NULL);
	problem_close(&p);
}

// In a replica nothing can be saved, whoever asks, and nothing happens to the manager.
static choir_status save_inside(choir_replica *r, void *user)
{
	choir_checkpoint_manager *m = user;
	const choir_status each[] = { choir_checkpoint_manager_save(m, NULL),
		choir_checkpoint_manager_wait(m), choir_checkpoint_manager_check(m),
		choir_checkpoint_manager_restore_latest(m) };
	for (size_t i = 0; i < sizeof each / sizeof each[0]; i++)
		if (each[i] != CHOIR_STATE)
			return choir_fail(CHOIR_INTERNAL, "call %zu: %s", i, choir_status_name(each[i]));
	if (choir_checkpoint_manager_new(choir_replica_strategy(r), "/nowhere", NULL) != NULL)
		return choir_fail(CHOIR_INTERNAL, "a manager was made");
	return choir_error_status();
}

TEST(wrong_context)
{
	choir_strategy *s = mirrored("cpu:0,cpu:1", 2);
	choir_checkpoint_manager *m = saved_manage(s, saved_directory(), NULL);
	assert_failed(choir_strategy_run(s, save_inside, m, NULL, NULL), CHOIR_STATE, "manager");
	assert_null(choir_checkpoint_manager_latest(m));
	saved_must(choir_checkpoint_manager_save(m, NULL));
	choir_checkpoint_manager_free(m);
	choir_strategy_free(s);
}

// A fixed loss scale is the program's, whatever the checkpoint was saved with.
TEST(a_fixed_scale_stays)
{
	char directory[512];
	snprintf(directory, sizeof directory, "%s", saved_directory());
	const choir_loss_scale fixed = {
		.size = sizeof fixed, .kind = CHOIR_LOSS_SCALE_FIXED, .initial = 1024
	};
	const choir_loss_scale moving = { .size = sizeof moving, .initial = 8 };
	const choir_loss_scale *const scales[] = { NULL, &fixed, &moving };
	problem p = saved_open(
			0, 2, CHOIR_SGD, CHOIR_OPTIONS(choir_optimizer_options, .loss_scale = &moving));
	choir_checkpoint_manager *m = saved_manage(p.strategy, directory, NULL);
	saved_train(&p, 1);
	p.optimizer->scale = 4;
	saved_must(choir_checkpoint_manager_save(m, NULL));
	choir_checkpoint_manager_free(m);
	problem_close(&p);
	for (int i = 0; i < 3; i++) {
		p = saved_open(
				0, 2, CHOIR_SGD, CHOIR_OPTIONS(choir_optimizer_options, .loss_scale = scales[i]));
		m = saved_manage(p.strategy, directory, NULL);
		saved_must(choir_checkpoint_manager_restore_latest(m));
		assert_true(choir_optimizer_loss_scale(p.optimizer) == (i == 0 ? 1 : i == 1 ? 1024 : 4));
		if (i == 2) {
			p.optimizer->scale = 0.5;
			saved_must(choir_checkpoint_manager_save(m, NULL));
			assert_failed(choir_checkpoint_manager_restore_latest(m), CHOIR_INVALID,
					"/loss_scale\" is 0.5*1");
		}
		choir_checkpoint_manager_free(m);
		problem_close(&p);
	}
}

TEST(two_jobs)
{
	const char *directory = saved_directory();
	problem p = saved_open(0, 2, CHOIR_ADAM, NULL);
	choir_checkpoint_manager *m = saved_manage(p.strategy, directory, NULL);
	char who[64];
	snprintf(who, sizeof who, "is in use by process %ld on ", (long) getpid());
	assert_null(choir_checkpoint_manager_new(p.strategy, directory, NULL));
	assert_failed(choir_error_status(), CHOIR_STATE, who);
	choir_checkpoint_manager_free(m);
	// A job that dies keeps nobody out.
	int ready[2];
	assert_int_equal(pipe(ready), 0);
	const pid_t child = fork();
	if (child == 0) {
		choir_strategy *s = choir_mirrored_strategy_new(NULL);
		const bool held = choir_checkpoint_manager_new(s, directory, NULL) != NULL;
		if (write(ready[1], held ? "y" : "n", 1) == 1)
			pause();
		_exit(1);
	}
	char held = 'n';
	assert_int_equal(read(ready[0], &held, 1), 1);
	assert_int_equal(held, 'y');
	snprintf(who, sizeof who, "is in use by process %ld on ", (long) child);
	assert_null(choir_checkpoint_manager_new(p.strategy, directory, NULL));
	assert_failed(choir_error_status(), CHOIR_STATE, who);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	choir_checkpoint_manager_free(saved_manage(p.strategy, directory, NULL));
	problem_close(&p);
}

TEST_GROUP(NULL, files_teardown)
