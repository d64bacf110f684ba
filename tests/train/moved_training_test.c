// Trainings that move: saved on one strategy, they go on on another, whatever devices hold the
// variables and whether they are cut into shards; with as many replicas to the same bits.
#include "base/alloc.h"
#include "train/files.h"
#include "train/saved.h"
#include "short.h"
#include "test.h"

#include <string.h>

enum { STEPS = 8 };

typedef struct {
	const char *kind, *devices, *parameters;
	choir_partition partition;
	int64_t size;
	int shards;
} place;

static const place any_number[] = {
	{ "mirrored", "cpu:0,cpu:1", NULL, CHOIR_PARTITION_NONE, 0, 0 },
	{ "parameter_server", "cpu:0", "cpu:0,cpu:1", CHOIR_PARTITION_FIXED, 0, 2 },
	{ "central_storage", "cpu:0", "far:0", CHOIR_PARTITION_NONE, 0, 0 },
	{ "parameter_server", "cpu:0,cpu:1", "far:0,cpu:0", CHOIR_PARTITION_FIXED, 0, 5 },
	{ "parameter_server", "far:0,cpu:0", NULL, CHOIR_PARTITION_NONE, 0, 0 },
	{ "parameter_server", "cpu:0", "cpu:0", CHOIR_PARTITION_MAX_SIZE, 4, 0 },
};
static const place alone[] = {
	{ "default", "cpu:0", NULL, CHOIR_PARTITION_NONE, 0, 0 },
	{ "one_device", "far:0", NULL, CHOIR_PARTITION_NONE, 0, 0 },
	{ "parameter_server", "cpu:0", "far:0,far:1", CHOIR_PARTITION_FIXED, 0, 3 },
	{ "mirrored", "cpu:0", NULL, CHOIR_PARTITION_NONE, 0, 0 },
};
enum {
	ANY_NUMBER = sizeof any_number / sizeof any_number[0],
	ALONE = sizeof alone / sizeof alone[0]
};

static problem open_at(const place *at, int replicas, choir_optimizer_kind kind)
{
	static const choir_loss_scale scale = { .size = sizeof scale, .initial = 512, .period = 3 };
	problem p;
	choir_strategy *s = choir_strategy_new(at->kind,
			CHOIR_OPTIONS(choir_strategy_options, .devices = at->devices,
					.parameter_devices = at->parameters, .replicas = replicas,
					.partition = at->partition, .partition_size = at->size,
					.max_shards = at->shards, .seed = 7, .timeout = 20));
	const choir_status status = problem_open_in(
			&p, s, kind, CHOIR_OPTIONS(choir_optimizer_options, .loss_scale = &scale));
	if (status != CHOIR_OK)
		fail_msg("%s: %s", at->kind, choir_error());
	return p;
}

static void train(problem *p, choir_variable *own, int steps)
{
	for (int i = 0; i < steps; i++) {
		saved_train(p, 1);
		saved_must(choir_strategy_run(p->strategy, saved_count, own, NULL, NULL));
	}
}

typedef struct {
	uint64_t weights; // and the aggregate of own
	double loss, accuracy, scale;
} end;

static end finish(problem *p)
{
	const end e = { choir_strategy_hash(p->strategy), choir_metric_result(p->loss),
		choir_metric_result(p->accuracy), choir_optimizer_loss_scale(p->optimizer) };
	problem_close(p);
	return e;
}

static end move(const place *from, const place *to, int replicas, choir_optimizer_kind kind,
		choir_aggregation aggregation, int stop)
{
	const char *directory = saved_directory();
	problem p = open_at(from, replicas, kind);
	train(&p, saved_own(p.strategy, aggregation), stop);
	choir_checkpoint_manager *m = saved_manage(p.strategy, directory, NULL);
	saved_must(choir_checkpoint_manager_save(m, NULL));
	choir_checkpoint_manager_free(m);
	problem_close(&p);

	p = open_at(to, replicas, kind);
	choir_variable *own = saved_own(p.strategy, aggregation);
	train(&p, own, stop % 3); // slots may be there, with something else in them
	m = saved_manage(p.strategy, directory, NULL);
	saved_must(choir_checkpoint_manager_restore_latest(m));
	p.steps = stop;
	train(&p, own, STEPS - stop);
	choir_checkpoint_manager_free(m);
	return finish(&p);
}

static void move_all(size_t n, const place at[], int replicas)
{
	static const choir_optimizer_kind kinds[] = { CHOIR_ADAM, CHOIR_MOMENTUM, CHOIR_RMSPROP };
	static const choir_aggregation aggregations[] = { CHOIR_AGGREGATION_SUM,
		CHOIR_AGGREGATION_MEAN, CHOIR_AGGREGATION_ONLY_FIRST_REPLICA };
	for (size_t k = 0; k < 3; k++) {
		problem p = open_at(&at[0], replicas, kinds[k]);
		train(&p, saved_own(p.strategy, aggregations[k]), STEPS);
		const end whole = finish(&p);
		// Each pair once, with one of the optimizers; if short, from each place and to each.
		for (size_t i = k; i < n * n; i += 3) {
			if (SHORT && i % n != (i / n + 1) % n)
				continue;
			const place *from = &at[i / n], *to = &at[i % n];
			const int stop = (int) (i + k) % STEPS;
			const end e = move(from, to, replicas, kinds[k], aggregations[k], stop);
			if (e.weights != whole.weights || e.loss != whole.loss ||
					e.accuracy != whole.accuracy || e.scale != whole.scale)
				fail_msg("optimizer %zu, %s to %s (places %zu, %zu) at %d: other bits", k,
						from->kind, to->kind, i / n, i % n, stop);
		}
	}
}

// spec: 2.7, 2.15
TEST(any_number_of_replicas)
{
	move_all(ANY_NUMBER, any_number, 3);
}

// spec: 2.7, 2.15
TEST(one_replica)
{
	move_all(ALONE, alone, 1);
}

// What is in a checkpoint says nothing of shards.
TEST(wholes_are_saved)
{
	size_t n = 0;
	for (int i = 0; i < ANY_NUMBER; i++) {
		const char *directory = saved_directory();
		problem p = open_at(&any_number[i], 3, CHOIR_ADAM);
		saved_train(&p, 1);
		choir_checkpoint_manager *m = saved_manage(p.strategy, directory, NULL);
		saved_must(choir_checkpoint_manager_save(m, NULL));
		choir_checkpoint_list *l = choir_checkpoint_list_new(directory);
		saved_must(choir_checkpoint_list_check(l, 0));
		const choir_checkpoint_tensor *found = NULL;
		for (size_t k = 0; k < choir_checkpoint_list_tensors(l) && found == NULL; k++) {
			found = choir_checkpoint_list_tensor(l, k);
			if (strcmp(found->name, "adam/hidden/kernel/m") != 0)
				found = NULL;
		}
		assert_non_null(found);
		assert_true(found->shape.rank == 2 && found->shape.dim[0] == 12);
		if (i == 0)
			n = choir_checkpoint_list_tensors(l);
		assert_int_equal(choir_checkpoint_list_tensors(l), n);
		choir_checkpoint_list_free(l);
		choir_checkpoint_manager_free(m);
		problem_close(&p);
	}
}

// The value of own, in a program's reading, and what each replica has of it.
static float parts[8];

static choir_status see(choir_replica *r, void *user)
{
	float both[2];
	CHOIR_TRY(choir_tensor_to_host(choir_variable_read(user, r->frame), both, sizeof both));
	parts[choir_replica_id(r)] = both[0];
	return CHOIR_OK;
}

static bool near(double x, double y)
{
	return x - y < 1e-6 && y - x < 1e-6;
}

// With 3 parts of 0.1, 0.2 and 0.3; with other numbers of replicas SUM is shared out, MEAN and the
// first replica's value are everybody's.
// spec: 2.7
TEST(other_numbers_of_replicas)
{
	const struct {
		choir_aggregation aggregation;
		double whole;
	} cases[] = { { CHOIR_AGGREGATION_SUM, 0.6 }, { CHOIR_AGGREGATION_MEAN, 0.2 },
		{ CHOIR_AGGREGATION_ONLY_FIRST_REPLICA, 0.1 } };
	for (size_t c = 0; c < 3; c++) {
		const char *directory = saved_directory();
		problem p = open_at(&any_number[1], 3, CHOIR_ADAM);
		train(&p, saved_own(p.strategy, cases[c].aggregation), 1);
		choir_checkpoint_manager *m = saved_manage(p.strategy, directory, NULL);
		saved_must(choir_checkpoint_manager_save(m, NULL));
		choir_checkpoint_manager_free(m);
		problem_close(&p);
		for (int replicas = 1; replicas <= 5; replicas += 2) {
			p = open_at(&any_number[replicas], replicas, CHOIR_ADAM);
			choir_variable *own = saved_own(p.strategy, cases[c].aggregation);
			m = saved_manage(p.strategy, directory, NULL);
			saved_must(choir_checkpoint_manager_restore_latest(m));
			float value[2];
			fetch_variable(own, value, sizeof value);
			assert_true(near(value[0], cases[c].whole));
			saved_must(choir_strategy_run(p.strategy, see, own, NULL, NULL));
			for (int i = 0; i < replicas; i++)
				assert_true(near(parts[i],
						replicas == 3	 ? 0.1 * (i + 1)
								: c == 0 ? 0.6 / replicas
										 : cases[c].whole));
			choir_checkpoint_manager_free(m);
			problem_close(&p);
		}
	}
}

TEST(memory_runs_out)
{
	const char *directory = saved_directory();
	const choir_checkpoint_options one = { .size = sizeof one, .max_to_keep = 1 };
	problem p = open_at(&any_number[1], 2, CHOIR_ADAM);
	saved_train(&p, 2);
	choir_checkpoint_manager *m = saved_manage(p.strategy, directory, &one);
	bool failed = true;
	for (uint64_t n = 1; failed; n += STRIDE) {
		chi_alloc_fail(n, false);
		const choir_status status = choir_checkpoint_manager_save(m, NULL);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		if (status != CHOIR_OK)
			assert_failed(status, CHOIR_NO_MEMORY, "memory");
		saved_must(choir_checkpoint_manager_save(m, NULL)); // also removes what could not be
	}
	const uint64_t weights = choir_strategy_hash(p.strategy);
	choir_checkpoint_manager_free(m);
	problem_close(&p);
	failed = true;
	for (uint64_t n = 1; failed; n += STRIDE) { // into one without slots
		problem q = open_at(&any_number[3], 2, CHOIR_ADAM);
		m = saved_manage(q.strategy, directory, NULL);
		chi_alloc_fail(n, false);
		const choir_status status = choir_checkpoint_manager_restore_latest(m);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		if (status != CHOIR_OK)
			assert_failed(status, CHOIR_NO_MEMORY, "memory");
		saved_must(choir_checkpoint_manager_restore_latest(m));
		assert_int_equal(choir_strategy_hash(q.strategy), weights);
		choir_checkpoint_manager_free(m);
		problem_close(&q);
	}
}

TEST_GROUP(NULL, files_teardown)
