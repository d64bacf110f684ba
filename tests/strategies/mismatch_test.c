// Workers that differ, at random: each must be told, and who. CHOIR_MISMATCHES=N runs programs 1
// to N instead of a few (make mismatches); CHOIR_MISMATCH=N that one alone.
#include "mismatch.h"
#include "process_group.h"
#include "plain_kernels.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct {
	uint64_t seed;
	int workers;
} mismatch;

static const char *differ(choir_strategy *s, int worker, void *user)
{
	const mismatch *m = user;
	return mismatch_run(s, worker, m->workers, m->seed);
}

static void run_one(uint64_t seed)
{
	static const peers_place places[] = { { 2, "cpu:0" }, { 2, "cpu:0,cpu:1" }, { 3, "cpu:0" },
		{ 4, "cpu:0" }, { 3, "cpu:0,cpu:1" }, { 2, "far:0,cpu:0" } };
	mismatch m = { seed, places[seed % 6].workers };
	peers_run(&(peers_job){ .replicas = 4 + (int) (seed / 6 % 2),
			.place = places[seed % 6],
			.seed = seed,
			.fn = differ,
			.user = &m });
}

typedef struct {
	choir_variable *w;
	choir_optimizer *sgd;
} training;

static choir_status learn(choir_replica *r, void *user)
{
	const training *t = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *losses =
			choir_multiply(choir_replica_arg(r, "x"), choir_variable_read(t->w, r->frame));
	return choir_optimizer_minimize(t->sgd, choir_replica_average_loss(r, losses), tape);
}

static const char *split_other_rows(choir_strategy *s, int worker, void *user)
{
	training t = { 0 };
	const float x[8] = { 0 };
	const int64_t *rows = user;
	CHOIR_SCOPE (s) {
		t.w = choir_variable_new("w", CHOIR_SHAPE(1), NULL);
		t.sgd = choir_optimizer_new(CHOIR_SGD, NULL);
	}
	choir_values *batch = choir_values_new(s);
	choir_tensor *part =
			choir_borrow(choir_values_frame(batch), CHOIR_F32, CHOIR_SHAPE(rows[worker]), x);
	choir_status status = choir_values_split(batch, "x", part);
	if (status == CHOIR_OK)
		status = choir_strategy_run(s, learn, &t, batch, NULL);
	choir_values_free(batch);
	if (rows[0] == rows[1])
		return status == CHOIR_OK ? NULL : choir_error();
	return status == CHOIR_OK ? "a step with two sizes of a batch"
							  : peers_last_or_heard(CHOIR_STATE, "8 examples", "7 examples");
}

TEST(workers_split_batches_of_other_sizes)
{
	int64_t rows[][2] = { { 8, 7 }, { 8, 8 } };
	for (int i = 0; i < 2; i++)
		peers_run(&(peers_job){
				.replicas = 2, .place = { 2, "cpu:0" }, .fn = split_other_rows, .user = rows[i] });
}

// spec: 2.17
TEST(test_random_mismatches)
{
	const char *one = getenv("CHOIR_MISMATCH"), *many = getenv("CHOIR_MISMATCHES");
	if (one != NULL) {
		run_one(strtoull(one, NULL, 10));
		return;
	}
	const uint64_t last = many != NULL ? strtoull(many, NULL, 10) : 60;
	for (uint64_t seed = 1; seed <= last; seed++)
		run_one(seed);
	print_message(
			"%llu programs in which a worker differs: all named\n", (unsigned long long) last);
}
