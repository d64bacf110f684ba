// Exchange between workers beside the backward pass: it happens while replicas have gradients to
// give yet, the bits are those of one worker whatever is given in which order, and whoever fails,
// differs or is gone is named to all.
#include "process_group.h"
#include "plain_kernels.h"

#include "base/clock.h"
#include "base/thread.h"
#include "cluster/worker_threads.h"
#include "collective/process_group.h"
#include "strategy/run/run.h"
#include "strategy/gradients/pending_update.h"
#include "short.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { A, SMALL, B, TABLE, VARIABLES, STEPS = 4, MAX = 30000, WIDTH = 3, REPLICAS = 4 };
static const int64_t sizes[VARIABLES] = { 16384, 7, 20000, MAX };

typedef enum {
	PLAIN,
	CLIPPED, // by a norm
	TWO_OPTIMIZERS, // of which each has every other variable
	TWICE, // two updates in a run, and a read between them
	ANOTHER_ORDER, // in every step
	ONE_LEFT_OUT, // in every other step
	ROWS, // of the table, in some replicas, in all, in none
	WAITS, // for the first sum before the last gradient is given
	KINDS
} kind;

typedef enum { NOBODY, FAILS, DIFFERS, LACKS } trouble;

typedef struct {
	kind kind;
	trouble trouble; // of the replica or worker below, in the third step
	int odd;
	uint64_t hash; // of the weights of one worker
} job;

typedef struct {
	const job *of;
	int worker, step;
	choir_variable *v[VARIABLES];
	choir_optimizer *o[2];
} training;

static bool in_trouble(const training *t, trouble what, int who)
{
	return t->of->trouble == what && t->step == 2 && who == t->of->odd;
}

static choir_tensor *rows_of(choir_replica *r, choir_tensor *all, int step)
{
	int64_t row[5];
	float values[5 * WIDTH];
	const int id = choir_replica_id(r);
	if (step == 0 || step == 3 || (step == 1 && id % 2 == 0))
		return all;
	for (int i = 0; i < 5; i++)
		row[i] = (id * 31 + i * 7) % (MAX / WIDTH);
	for (int i = 0; i < 5 * WIDTH; i++)
		values[i] = 1.0f / (float) (1 + i + id);
	return choir_indexed_slices(choir_constant(r->frame, CHOIR_F32, CHOIR_SHAPE(5, WIDTH), values),
			choir_constant(r->frame, CHOIR_I64, CHOIR_SHAPE(5), row), MAX / WIDTH);
}

// Values whose sum depends on the order of replicas.
static choir_tensor *gradient(choir_replica *r, const training *t, int i)
{
	static const float of_replica[] = { 1e7f, 3.3f, -1e7f, 0.7f };
	const float one = of_replica[choir_replica_id(r) % 4];
	float *x = malloc((size_t) sizes[i] * sizeof *x);
	for (int64_t k = 0; k < sizes[i]; k++)
		x[k] = one + (float) ((k * 7 + i + t->step) % 13) / 8;
	choir_tensor *g = choir_constant(r->frame, CHOIR_F32,
			i == TABLE ? CHOIR_SHAPE(MAX / WIDTH, WIDTH) : CHOIR_SHAPE(sizes[i]), x);
	free(x);
	return t->of->kind == ROWS && i == TABLE ? rows_of(r, g, t->step) : g;
}

// Until the first sum of the run's first update has come from the other workers.
static choir_status wait_for_a_sum(choir_replica *r)
{
	chi_run *run = chi_replica_of(r)->run;
	chi_mutex_lock(&run->lock);
	chi_pending_update *in = run->open;
	chi_mutex_unlock(&run->lock);
	const double begun = chi_clock_now();
	while (in->overlap.n > 0 && chi_atomic32_load(&in->overlap.sum[0].done.word) == 0) {
		if (chi_clock_now() - begun > 20)
			return choir_fail(CHOIR_TIMEOUT, "no sum while the backward pass goes on");
		chi_thread_nap(1e-4);
	}
	return CHOIR_OK;
}

static choir_status give_one(choir_replica *r, training *t, int place)
{
	const job *j = t->of;
	const int turn = j->kind == ANOTHER_ORDER	? t->step
			: in_trouble(t, DIFFERS, t->worker) ? 2
												: 0;
	const int i = (place + turn) % VARIABLES;
	if (j->kind == ONE_LEFT_OUT && t->step % 2 == 1 && i == B)
		return CHOIR_OK;
	if (in_trouble(t, LACKS, t->worker) && i == B)
		return CHOIR_OK;
	if (in_trouble(t, FAILS, choir_replica_id(r)) && place == 2)
		return choir_fail(CHOIR_IO, "the disk is full");
	if (j->kind == WAITS && place == VARIABLES - 1)
		CHOIR_TRY(wait_for_a_sum(r));
	choir_optimizer *o = t->o[j->kind == TWO_OPTIMIZERS ? i % 2 : 0];
	choir_tensor *g = gradient(r, t, i);
	CHOIR_TRY(choir_optimizer_add_gradient(o, r, t->v[i], g));
	return CHOIR_OK;
}

static choir_status step(choir_replica *r, void *user)
{
	training *t = user;
	for (int pass = 0; pass < (t->of->kind == TWICE ? 2 : 1); pass++) {
		for (int place = 0; place < VARIABLES; place++)
			CHOIR_TRY(give_one(r, t, place));
		CHOIR_TRY(choir_optimizer_apply_gradients(t->o[0], r));
		if (t->of->kind == TWICE && choir_variable_read(t->v[B], r->frame) == NULL)
			return choir_error_status();
	}
	return t->of->kind == TWO_OPTIMIZERS ? choir_optimizer_apply_gradients(t->o[1], r) : CHOIR_OK;
}

static choir_status make(choir_strategy *s, training *t)
{
	static const char *const names[VARIABLES] = { "a", "small", "b", "table" };
	for (int i = 0; i < VARIABLES; i++)
		t->v[i] = choir_variable_new(names[i],
				i == TABLE ? CHOIR_SHAPE(MAX / WIDTH, WIDTH) : CHOIR_SHAPE(sizes[i]), NULL);
	const double clip = t->of->kind == CLIPPED ? 0.5 : 0;
	for (int i = 0; i < 2; i++)
		t->o[i] = choir_optimizer_new(i == 0 ? CHOIR_ADAM : CHOIR_SGD,
				CHOIR_OPTIONS(
						choir_optimizer_options, .learning_rate = 0.01, .global_clip_norm = clip));
	(void) s;
	return t->o[1] == NULL ? choir_error_status() : CHOIR_OK;
}

static choir_status train(choir_strategy *s, const job *j, int worker, uint64_t *hash)
{
	training t = { .of = j, .worker = worker };
	choir_status status = choir_error_status();
	if (s == NULL)
		return status;
	CHOIR_SCOPE (s)
		status = make(s, &t);
	for (; status == CHOIR_OK && t.step < STEPS; t.step++)
		status = choir_strategy_run(s, step, &t, NULL, NULL);
	*hash = status == CHOIR_OK ? choir_strategy_hash(s) : 0;
	return status;
}

static void with_overlap(choir_strategy_options *o, int worker, void *user)
{
	(void) worker, (void) user;
	o->overlap = CHOIR_ON;
}

static const char *train_here(choir_strategy *s, int worker, void *user)
{
	const job *j = user;
	uint64_t hash;
	if (train(s, j, worker, &hash) != CHOIR_OK)
		return choir_error();
	if (choir_strategy_overlap_latency(s) <= 0)
		return "there is no thread for it";
	return hash == j->hash ? NULL : "the weights are others";
}

// spec: 2.17
TEST(test_same_bits)
{
	static const peers_place places[] = { { 2, "cpu:0" }, { 3, "cpu:0,cpu:1" },
		{ 2, "cpu:0,cpu:1" }, { 4, "cpu:0" } };
	for (job j = { .kind = PLAIN }; j.kind < KINDS; j.kind++) {
		const job alone = { .kind = j.kind == WAITS ? PLAIN : j.kind };
		choir_strategy *s = choir_mirrored_strategy_new(CHOIR_OPTIONS(
				choir_strategy_options, .replicas = REPLICAS, .devices = "cpu:0", .seed = 11));
		assert_int_equal(train(s, &alone, 0, &j.hash), CHOIR_OK);
		choir_strategy_free(s);
		// Of two replicas on a device the second would begin when the first has waited.
		for (size_t i = j.kind == WAITS ? 2 : 0; i < sizeof places / sizeof places[0];
				i += 1 + SHORT)
			peers_run(&(peers_job){ .replicas = REPLICAS,
					.place = places[i],
					.seed = i,
					.fn = train_here,
					.options = with_overlap,
					.user = &j });
	}
}

// ---- Two exchanges beside one another.

enum { ROUNDS = 40 };

typedef struct {
	chi_process_group peers;
	const char *name;
	int64_t min; // elements
	const char *wrong;
} channel;

static void exchange_often(void *user)
{
	channel *c = user;
	float own[1100], sum[1100];
	for (int round = 0; round < ROUNDS && c->wrong == NULL; round++) {
		const choir_collective one = {
			.name = c->name, .dtype = CHOIR_F32, .elements = c->min + round % 5, .divisor = 1
		};
		const choir_partial_sum part = { c->peers.worker, c->peers.worker + 1, own };
		for (int64_t i = 0; i < one.elements; i++)
			own[i] = (float) (round + i) + (float) c->peers.worker;
		if (chi_process_group_all_reduce(&c->peers, 0, &one, &part, sum) != CHOIR_OK)
			c->wrong = "it failed";
		for (int64_t i = 0; i < one.elements && c->wrong == NULL; i++)
			if (sum[i] != 3 * (float) (round + i) + 3)
				c->wrong = "another sum";
	}
}

static const char *two_at_once(choir_cluster *c, int worker, void *user)
{
	// Of the rests of the first's messages, of 4, 8, .. bytes, none is taken for the second's.
	channel both[2] = { { .name = "one", .min = CHI_FRAME_DATA / 4 + 1 },
		{ .name = "other", .min = 20 } };
	chi_thread thread = { 0 };
	(void) worker, (void) user;
	if (c == NULL ||
			chi_process_group_open(&both[0].peers, c, CHI_TAG_COLLECTIVES, 1) != CHOIR_OK ||
			chi_process_group_open(&both[1].peers, c, CHI_TAG_OVERLAP, 1) != CHOIR_OK ||
			chi_thread_start(&thread, "beside", exchange_often, &both[1]) != CHOIR_OK)
		return choir_error();
	exchange_often(&both[0]);
	chi_thread_join(&thread);
	for (int i = 0; i < 2; i++)
		chi_process_group_close(&both[i].peers);
	return both[0].wrong != NULL ? both[0].wrong : both[1].wrong;
}

TEST(test_two_at_once)
{
	for (uint64_t seed = 0; seed < 6; seed += STRIDE) {
		sim *s = sim_new(&(sim_options){
				.workers = 3, .seed = seed, .slowest = 1e-3, .eager = 4096, .quiet = 5 });
		assert_non_null(s);
		worker_threads_run(s, 3, NULL, two_at_once, NULL);
		sim_free(s);
	}
}

// ---- What goes wrong.

static const char *find_trouble(choir_strategy *s, int worker, void *user)
{
	static _Thread_local char text[1000];
	const job *j = user;
	const char *words[] = { "", "replica 1: the disk is full", "worker", "worker" };
	uint64_t hash;
	const choir_status status = train(s, j, worker, &hash);
	snprintf(text, sizeof text, "trouble %d: %s: %.900s", (int) j->trouble,
			choir_status_name(status), choir_error());
	const bool good = status == CHOIR_CANCELLED || status == CHOIR_PEER_LOST ||
			status == (j->trouble == FAILS ? CHOIR_IO : CHOIR_STATE);
	return good && strstr(choir_error(), words[j->trouble]) != NULL ? NULL : text;
}

// spec: 2.17
TEST(test_failures)
{
	static const peers_place places[] = { { 2, "cpu:0" }, { 2, "cpu:0,cpu:1" }, { 4, "cpu:0" } };
	for (job j = { .trouble = FAILS, .odd = 1 }; j.trouble <= LACKS; j.trouble++)
		for (uint64_t i = 0; i < (SHORT ? 3 : 6); i++)
			peers_run(&(peers_job){ .replicas = REPLICAS,
					.place = places[i % 3],
					.seed = i,
					.fn = find_trouble,
					.options = with_overlap,
					.user = &j });
}

typedef struct {
	int worker, step;
	choir_variable *v;
	choir_optimizer *o;
	chi_atomic32 left; // replicas whose merge call has failed
	uint32_t early; // of these, while its function was at work
} meeting;

// In the third step worker 1 fails here, and worker 0 stays while its exchange fails.
static choir_status stay_or_fail(choir_cross *x, void *user)
{
	meeting *m = user;
	(void) x;
	if (m->step == 2 && m->worker == 1)
		return choir_fail(CHOIR_IO, "the disk is full");
	for (int i = 0; m->step == 2 && i < 30 && chi_atomic32_load(&m->left) == 0; i++)
		chi_thread_nap(1e-3);
	m->early = chi_atomic32_load(&m->left);
	return CHOIR_OK;
}

static choir_status give_and_meet(choir_replica *r, void *user)
{
	meeting *m = user;
	const bool after = m->worker == 1 && m->step == 2;
	choir_tensor *g = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(16384), 1);
	if (!after)
		CHOIR_TRY(choir_optimizer_add_gradient(m->o, r, m->v, g));
	const choir_status status = choir_replica_merge_call(r, stay_or_fail, m);
	if (status != CHOIR_OK)
		chi_atomic32_add(&m->left, 1);
	CHOIR_TRY(status);
	if (after)
		CHOIR_TRY(choir_optimizer_add_gradient(m->o, r, m->v, g));
	return choir_optimizer_apply_gradients(m->o, r);
}

static const char *fail_in_a_merge_call(choir_strategy *s, int worker, void *user)
{
	static _Thread_local char text[1000];
	meeting m = { .worker = worker };
	(void) user;
	CHOIR_SCOPE (s) {
		m.v = choir_variable_new("v", CHOIR_SHAPE(16384), NULL);
		m.o = choir_optimizer_new(CHOIR_SGD, NULL);
	}
	choir_status status = CHOIR_OK;
	for (; status == CHOIR_OK && m.step < 3; m.step++)
		status = choir_strategy_run(s, give_and_meet, &m, NULL, NULL);
	snprintf(text, sizeof text, "%s: %.900s", choir_status_name(status), choir_error());
	if (m.early > 0)
		return "replicas have left a merge call that goes on";
	return m.step == 3 && strstr(text, "the disk is full") != NULL ? NULL : text;
}

// Nobody leaves a merge call whose function is at work because an exchange beside it has failed.
TEST(test_merge_calls_end_first)
{
	peers_run(&(peers_job){ .replicas = REPLICAS,
			.place = { 2, "cpu:0,cpu:1" },
			.fn = fail_in_a_merge_call,
			.options = with_overlap });
}

typedef struct {
	sim *s;
	int dies_at; // messages of worker 1
	bool cut; // in place of that
} loss;

// It ends, with a failure that names somebody or says that this one was killed. Where this machine
// is slow, time has moved on before there was anything to lose.
static const char *lose_one(choir_cluster *c, int worker, void *user)
{
	static _Thread_local char text[1000];
	const loss *l = user;
	const job j = { .kind = PLAIN };
	uint64_t hash;
	choir_strategy *s = c == NULL
			? NULL
			: choir_multi_worker_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
					  .replicas = 2, .devices = "cpu:0", .cluster = c, .overlap = CHOIR_ON));
	if (s == NULL)
		return NULL;
	if (worker == 1 && l->cut)
		sim_cut(l->s, 1);
	else if (worker == 1)
		sim_kill(l->s, 1, l->dies_at, true);
	const choir_status status = train(s, &j, worker, &hash);
	snprintf(text, sizeof text, "%s", choir_error());
	choir_strategy_free(s);
	return status != CHOIR_OK && strstr(text, "worker") != NULL ? NULL : text;
}

TEST(test_losses)
{
	for (int i = 0; i < 4; i++) {
		loss l = { .dies_at = 20 + 7 * i, .cut = i == 0 };
		l.s = sim_new(&(sim_options){
				.workers = 2, .seed = (uint64_t) i, .eager = 4096, .quiet = 0.05 });
		assert_non_null(l.s);
		worker_threads_run(l.s, 2, NULL, lose_one, &l);
		sim_free(l.s);
	}
}

static void another_choice(choir_strategy_options *o, int worker, void *user)
{
	(void) user;
	o->overlap = worker == 1 ? CHOIR_OFF : CHOIR_ON;
}

static const char *choices_differ(choir_strategy *s, int worker, void *user)
{
	(void) worker, (void) user;
	return s == NULL && text_holds(choir_error(), "worker 1") &&
					text_holds(choir_error(), "overlap")
			? NULL
			: "not refused";
}

static const char *there_is_none(choir_strategy *s, int worker, void *user)
{
	(void) worker, (void) user;
	return s == NULL								 ? choir_error()
			: choir_strategy_overlap_latency(s) == 0 ? NULL
													 : "there is one";
}

static const char *an_unknown_word(choir_strategy *s, int worker, void *user)
{
	(void) worker, (void) user;
	return s == NULL && text_holds(choir_error(), "CHOIR_OVERLAP:*unknown") ? NULL : "not refused";
}

// spec: 2.17
TEST(test_options)
{
	peers_job one = { .replicas = 2, .place = { 2, "cpu:0" }, .fn = choices_differ };
	one.options = another_choice;
	peers_run(&one);
	one.options = with_overlap; // memory that the host does not see
	one.place.devices = "far:0";
	one.fn = there_is_none;
	peers_run(&one);
	one.options = NULL;
	one.place.devices = "cpu:0";
	char *kept = getenv("CHOIR_OVERLAP");
	kept = kept == NULL ? NULL : strdup(kept);
	setenv("CHOIR_OVERLAP", "off", 1);
	peers_run(&one);
	setenv("CHOIR_OVERLAP", "maybe", 1);
	one.fn = an_unknown_word;
	peers_run(&one);
	kept == NULL ? unsetenv("CHOIR_OVERLAP") : setenv("CHOIR_OVERLAP", kept, 1);
	free(kept);
	assert_null(choir_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .overlap = (choir_toggle) 3)));
	assert_int_equal(choir_error_status(), CHOIR_INVALID);
	assert_text_holds(choir_error(), ".overlap*3");
	assert_true(choir_strategy_overlap_latency(NULL) == 0);
}

static const char *train_somehow(choir_strategy *s, int worker, void *user)
{
	const job j = { .kind = PLAIN };
	uint64_t hash;
	(void) user;
	return train(s, &j, worker, &hash) == CHOIR_OK || choir_error()[0] != '\0'
			? NULL
			: "a failure without a text";
}

// The n-th allocation of either worker fails: both end.
TEST(test_memory)
{
	const peers_job one = {
		.replicas = 2, .place = { 2, "cpu:0" }, .fn = train_somehow, .options = with_overlap
	};
	peers_every_allocation(one, 20);
}
