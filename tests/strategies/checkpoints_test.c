// Checkpoints of trainings over several workers: the chief alone has to do with the disk, all go
// on from the same step, and however many workers and devices there are before and after a stop,
// the bits are those of a training that never stopped. Workers are threads, in a played cluster.
#include "base/alloc.h"
#include "base/fs.h"
#include "base/status.h"
#include "process_group.h"
#include "short.h"
#include "train/files.h"
#include "train/saved.h"
#include "value/variable.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 7, REPLICAS = 4 };

static const peers_place places[] = { { 2, "cpu:0" }, { 1, "cpu:0,cpu:1" }, { 3, "cpu:0" },
	{ 4, "far:0" }, { 2, "cpu:0,far:0" } };
enum { PLACES = sizeof places / sizeof places[0] };

// A training of one worker, whose strategy is not its own.
typedef struct {
	problem p;
	choir_variable *own; // a part for each replica
} training;

static choir_status open_training(training *t, choir_strategy *s, choir_optimizer_kind kind)
{
	CHOIR_TRY(problem_open_in(&t->p, s, kind, NULL));
	CHOIR_SCOPE (s)
		t->own = choir_variable_new("own", CHOIR_SHAPE(2),
				CHOIR_OPTIONS(choir_variable_options,
						.synchronization = CHOIR_SYNCHRONIZATION_ON_READ,
						.aggregation = CHOIR_AGGREGATION_SUM));
	return t->own == NULL ? choir_error_status() : CHOIR_OK;
}

static void close_training(training *t)
{
	choir_values_free(t->p.batch);
}

static choir_status count(choir_replica *r, void *user)
{
	const double x = 0.1 * (choir_replica_id(r) + 1);
	return choir_variable_assign_add(user, choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), x));
}

static choir_status train(training *t, int steps)
{
	for (int i = 0; i < steps; i++) {
		CHOIR_TRY(problem_step(&t->p));
		CHOIR_TRY(choir_strategy_run(t->p.strategy, count, t->own, NULL, NULL));
	}
	return CHOIR_OK;
}

typedef struct {
	uint64_t weights;
	double loss, accuracy;
} end;

static end finish(training *t)
{
	return (end){ choir_strategy_hash(t->p.strategy), choir_metric_result(t->p.loss),
		choir_metric_result(t->p.accuracy) };
}

// What the workers of a test are told.
typedef struct {
	const char *directory;
	choir_optimizer_kind kind;
	int stop;
	bool asynchronous;
	end whole;
} moving;

static _Thread_local bool is_no_chief;
static int others_on_the_disk;

static void watch_disk(const chi_fs_operation *o, void *user)
{
	(void) o;
	(void) user;
	others_on_the_disk += is_no_chief;
}

static choir_status save_there(training *t, const moving *m)
{
	const choir_checkpoint_options o = { .size = sizeof o, .asynchronous = m->asynchronous };
	CHOIR_TRY(train(t, m->stop));
	choir_checkpoint_manager *manager =
			choir_checkpoint_manager_new(t->p.strategy, m->directory, &o);
	if (manager == NULL)
		return choir_error_status();
	choir_status status = choir_checkpoint_manager_save(manager, "a=1");
	if (status == CHOIR_OK)
		status = train(t, 1); // what is saved is the state of before
	if (status == CHOIR_OK)
		status = choir_checkpoint_manager_wait(manager);
	const char *path = choir_checkpoint_manager_latest(manager);
	if (status == CHOIR_OK && (path == NULL || strstr(path, "/step-") == NULL))
		status = choir_fail(CHOIR_INTERNAL, "this worker does not know the path");
	choir_checkpoint_manager_free(manager);
	return status;
}

static const char *save_fn(choir_strategy *s, int worker, void *user)
{
	training t = { .own = NULL };
	is_no_chief = worker != 0;
	choir_status status =
			s == NULL ? choir_error_status() : open_training(&t, s, ((moving *) user)->kind);
	if (status == CHOIR_OK)
		status = save_there(&t, user);
	close_training(&t);
	return status == CHOIR_OK ? NULL : choir_error();
}

static choir_status go_on(training *t, const moving *m, end *e)
{
	CHOIR_TRY(train(t, m->stop % 3)); // it has gone elsewhere
	choir_checkpoint_manager *manager =
			choir_checkpoint_manager_new(t->p.strategy, m->directory, NULL);
	choir_status status = manager == NULL ? choir_error_status()
										  : choir_checkpoint_manager_restore_latest(manager);
	t->p.steps = m->stop;
	if (status == CHOIR_OK)
		status = train(t, STEPS - m->stop);
	if (status == CHOIR_OK)
		*e = finish(t);
	choir_checkpoint_manager_free(manager);
	return status;
}

static const char *go_on_fn(choir_strategy *s, int worker, void *user)
{
	const moving *m = user;
	training t = { .own = NULL };
	end e = { 0, 0, 0 };
	is_no_chief = worker != 0;
	choir_status status = s == NULL ? choir_error_status() : open_training(&t, s, m->kind);
	if (status == CHOIR_OK)
		status = go_on(&t, m, &e);
	close_training(&t);
	if (status != CHOIR_OK)
		return choir_error();
	return e.weights == m->whole.weights && e.loss == m->whole.loss &&
					e.accuracy == m->whole.accuracy
			? NULL
			: "other bits than without a stop";
}

static void on_place(const peers_place *place, peers_fn *fn, void *user)
{
	static uint64_t seed;
	peers_run(&(peers_job){
			.replicas = REPLICAS, .place = *place, .seed = ++seed, .fn = fn, .user = user });
}

// As on workers, with the same seed.
static choir_strategy *alone(const char *devices)
{
	choir_strategy *s = choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
			.devices = devices, .replicas = REPLICAS, .seed = 11, .timeout = 20));
	assert_non_null(s);
	return s;
}

static end train_whole(choir_optimizer_kind kind)
{
	training t;
	choir_strategy *s = alone("cpu:0");
	saved_must(open_training(&t, s, kind));
	saved_must(train(&t, STEPS));
	const end e = finish(&t);
	close_training(&t);
	choir_strategy_free(s);
	return e;
}

// spec: 2.7, 2.17
TEST(any_workers_before_and_after)
{
	static const choir_optimizer_kind kinds[] = { CHOIR_ADAM, CHOIR_MOMENTUM };
	for (int k = 0; k < 2; k++) {
		moving m = { .kind = kinds[k], .whole = train_whole(kinds[k]) };
		for (int i = 0; i < PLACES * PLACES; i += 1 + 2 * k + SHORT) {
			char directory[512];
			snprintf(directory, sizeof directory, "%s", saved_directory());
			m.directory = directory;
			m.stop = (i + k) % STEPS;
			m.asynchronous = i % 2 == 0;
			chi_fs_record(watch_disk, NULL);
			on_place(&places[i / PLACES], save_fn, &m);
			on_place(&places[i % PLACES], go_on_fn, &m);
			chi_fs_record(NULL, NULL);
			assert_int_equal(others_on_the_disk, 0);
		}
	}
}

// Between one process and several.
TEST(from_and_to_one_process)
{
	char directory[512];
	snprintf(directory, sizeof directory, "%s", saved_directory());
	moving m = {
		.kind = CHOIR_ADAM, .whole = train_whole(CHOIR_ADAM), .stop = 4, .directory = directory
	};
	choir_strategy *s = alone("cpu:0,cpu:1");
	assert_null(save_fn(s, 0, &m));
	choir_strategy_free(s);
	on_place(&places[2], go_on_fn, &m);
	m.stop = 5;
	on_place(&places[4], save_fn, &m);
	s = alone("far:0,cpu:0");
	assert_null(go_on_fn(s, 0, &m));
	choir_strategy_free(s);
}

// ---- What goes wrong is the same for all.

typedef struct {
	const char *directory, *text;
	choir_status status;
	bool restores;
} failing;

static const char *fail_fn(choir_strategy *s, int worker, void *user)
{
	const failing *f = user;
	training t = { .own = NULL };
	choir_status status = open_training(&t, s, CHOIR_ADAM);
	choir_checkpoint_manager *m = NULL;
	if (status == CHOIR_OK) {
		m = choir_checkpoint_manager_new(s, f->directory, NULL);
		status = m == NULL ? choir_error_status() : CHOIR_OK;
	}
	if (m != NULL)
		status = f->restores ? choir_checkpoint_manager_restore_latest(m)
							 : choir_checkpoint_manager_save(m, NULL);
	static _Thread_local char wrong[800];
	snprintf(wrong, sizeof wrong, "worker %d: %s: %s", worker, choir_status_name(status),
			choir_error());
	bool right = status == f->status && strstr(choir_error(), f->text) != NULL;
	// The job goes on: nothing is over.
	right = right && train(&t, 1) == CHOIR_OK;
	choir_checkpoint_manager_free(m);
	close_training(&t);
	return right ? NULL : wrong;
}

TEST(two_jobs)
{
	char directory[512];
	snprintf(directory, sizeof directory, "%s", saved_directory());
	problem p = saved_open(0, 2, CHOIR_ADAM, NULL);
	choir_checkpoint_manager *m = saved_manage(p.strategy, directory, NULL);
	failing f = { directory, "is in use by process", CHOIR_STATE, false };
	on_place(&places[0], fail_fn, &f);
	choir_checkpoint_manager_free(m);
	problem_close(&p);
}

TEST(nothing_to_restore)
{
	char directory[512];
	snprintf(directory, sizeof directory, "%s", saved_directory());
	failing f = { directory, "there is no checkpoint yet", CHOIR_NOT_FOUND, true };
	on_place(&places[2], fail_fn, &f);
	f = (failing){ "/nowhere at all/x", "/nowhere at all/x", CHOIR_IO, true };
	on_place(&places[2], fail_fn, &f);
}

TEST(another_program)
{
	char directory[512];
	snprintf(directory, sizeof directory, "%s", saved_directory());
	problem p = saved_open(0, 2, CHOIR_MOMENTUM, NULL);
	saved_train(&p, 1);
	choir_checkpoint_manager *m = saved_manage(p.strategy, directory, NULL);
	saved_must(choir_checkpoint_manager_save(m, NULL));
	choir_checkpoint_manager_free(m);
	problem_close(&p);
	failing f = { directory, "weights differ from this strategy's; missing \"own\"", CHOIR_INVALID,
		true };
	on_place(&places[0], fail_fn, &f);
}

// The chief's disk fails: all are told, the old checkpoint stays, and the next save is as any.
static const char *full_fn(choir_strategy *s, int worker, void *user)
{
	training t = { .own = NULL };
	static _Thread_local char wrong[800];
	choir_status status = open_training(&t, s, CHOIR_ADAM);
	choir_checkpoint_manager *m = choir_checkpoint_manager_new(s, user, NULL);
	const char *path = NULL;
	wrong[0] = '\0';
	for (int i = 1; i <= 3 && wrong[0] == '\0'; i++) {
		if (status == CHOIR_OK)
			status = train(&t, 1);
		if (worker == 0 && i == 2)
			chi_fs_fail(9, ENOSPC);
		status = status == CHOIR_OK ? choir_checkpoint_manager_save(m, NULL) : status;
		if (worker == 0)
			chi_fs_fail(0, 0);
		const bool failed = status == CHOIR_IO && text_holds(choir_error(), "step 2");
		if (i == 2 ? !failed : status != CHOIR_OK)
			snprintf(wrong, sizeof wrong, "save %d: %s", i, choir_error());
		status = CHOIR_OK;
		path = choir_checkpoint_manager_latest(m);
	}
	if (wrong[0] == '\0' && (path == NULL || strstr(path, "/step-3") == NULL))
		snprintf(wrong, sizeof wrong, "the last path is %s", path == NULL ? "none" : path);
	choir_checkpoint_manager_free(m);
	close_training(&t);
	return wrong[0] == '\0' ? NULL : wrong;
}

TEST(a_full_disk)
{
	char directory[512];
	snprintf(directory, sizeof directory, "%s", saved_directory());
	on_place(&places[2], full_fn, directory);
	choir_checkpoint_list *l = choir_checkpoint_list_new(directory);
	assert_int_equal(choir_checkpoint_list_steps(l), 2);
	for (size_t i = 0; i < 2; i++)
		saved_must(choir_checkpoint_list_check(l, i));
	choir_checkpoint_list_free(l);
}

// The n-th allocation of either worker fails while they save and restore: a failure is a text and
// no half of a step, and who succeeds has the weights that were saved.
typedef struct {
	const char *directory;
	uint64_t n;
} lacking;

static choir_status save_and_restore(training *t, choir_checkpoint_manager *m)
{
	CHOIR_TRY(choir_checkpoint_manager_save(m, "a=1"));
	const uint64_t saved = choir_strategy_hash(t->p.strategy);
	CHOIR_TRY(saved == 0 ? choir_error_status() : train(t, 1));
	CHOIR_TRY(choir_checkpoint_manager_restore_latest(m));
	const uint64_t restored = choir_strategy_hash(t->p.strategy);
	if (restored == 0)
		return choir_error_status();
	return restored == saved ? CHOIR_OK : choir_fail(CHOIR_INTERNAL, "other weights");
}

static const char *lacking_fn(choir_strategy *s, int worker, void *user)
{
	const lacking *l = user;
	training t = { .own = NULL };
	choir_status status = open_training(&t, s, CHOIR_MOMENTUM);
	if (status == CHOIR_OK)
		status = train(&t, 1);
	if (status != CHOIR_OK)
		return choir_error();
	choir_checkpoint_manager *m = choir_checkpoint_manager_new(s, l->directory, NULL);
	if (worker == 0) // the other one may still be on its way out of there
		chi_alloc_fail(l->n, false);
	status = m == NULL ? choir_error_status() : save_and_restore(&t, m);
	choir_checkpoint_manager_free(m);
	close_training(&t);
	return status != CHOIR_INTERNAL && (status == CHOIR_OK || choir_error()[0] != '\0')
			? NULL
			: choir_error();
}

TEST(each_allocation_fails)
{
	char directory[512];
	lacking l = { directory, 1 };
	uint64_t step = STRIDE;
	for (bool failed = true; failed; l.n += step, step += l.n > 100) {
		snprintf(directory, sizeof directory, "%s", saved_directory());
		on_place(&places[0], lacking_fn, &l);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		choir_checkpoint_list *list = choir_checkpoint_list_new(directory);
		for (size_t i = 0; i < choir_checkpoint_list_steps(list); i++)
			saved_must(choir_checkpoint_list_check(list, i));
		choir_checkpoint_list_free(list);
	}
	assert_true(l.n > 100);
}

// ---- Weights alone.

static const char *weights_fn(choir_strategy *s, int worker, void *user)
{
	training t = { .own = NULL };
	is_no_chief = worker != 0;
	choir_status status = open_training(&t, s, CHOIR_ADAM);
	if (status == CHOIR_OK)
		status = train(&t, 2);
	if (status == CHOIR_OK)
		status = choir_strategy_save(s, user, NULL);
	const choir_status saved = status;
	if (status == CHOIR_OK)
		status = choir_strategy_save(s, "/nowhere at all/x", NULL);
	bool told = status == CHOIR_IO && text_holds(choir_error(), "/nowhere*all/x");
	// What is wrong on one alone ends nothing.
	for (int what = 0; told && what < 2; what++) {
		status = choir_strategy_save(
				s, what == worker ? NULL : user, what == 0 && worker == 1 ? "no line" : NULL);
		told = status == CHOIR_INVALID && text_holds(choir_error(), "NULL") &&
				choir_strategy_hash(s) != 0;
	}
	if (told)
		told = choir_strategy_save(s, user, worker == 1 ? "no line" : NULL) == CHOIR_INVALID &&
				text_holds(choir_error(), "no line") && choir_strategy_hash(s) != 0;
	close_training(&t);
	return saved != CHOIR_OK ? choir_error() : told ? NULL : "nobody was told of the failure";
}

TEST(weights_are_written_by_the_chief)
{
	char path[512];
	snprintf(path, sizeof path, "%s", files_path("weights"));
	chi_fs_record(watch_disk, NULL);
	on_place(&places[0], weights_fn, path);
	chi_fs_record(NULL, NULL);
	assert_int_equal(others_on_the_disk, 0);
	training t;
	choir_strategy *s = alone("cpu:0");
	saved_must(open_training(&t, s, CHOIR_ADAM));
	saved_must(train(&t, 2));
	const uint64_t hash = choir_strategy_hash(s);
	saved_must(train(&t, 1));
	saved_must(choir_strategy_restore(s, path));
	assert_int_equal(choir_strategy_hash(s), hash);
	close_training(&t);
	choir_strategy_free(s);
}

// Each worker has a path of its own, and the chief's counts.
static const char *restore_fn(choir_strategy *s, int worker, void *user)
{
	const char *path = worker == 0 ? user : "/nowhere at all/x";
	const char *other = worker == 0 ? "/nowhere at all/x" : user;
	training t = { .own = NULL };
	choir_status status = s == NULL ? choir_error_status() : open_training(&t, s, CHOIR_SGD);
	if (status == CHOIR_OK)
		status = choir_strategy_save(s, user, NULL);
	const uint64_t saved = status == CHOIR_OK ? choir_strategy_hash(s) : 0;
	bool same = true;
	for (int part = 0; status == CHOIR_OK && part < 2; part++) {
		status = train(&t, 1);
		if (status == CHOIR_OK)
			status = part ? choir_strategy_restore_partial(s, path, NULL)
						  : choir_strategy_restore(s, path);
		same = same && choir_strategy_hash(s) == saved;
	}
	bool told = status == CHOIR_OK;
	if (told)
		told = choir_strategy_restore(s, other) == CHOIR_NOT_FOUND &&
				choir_strategy_restore_partial(s, other, NULL) == CHOIR_NOT_FOUND &&
				choir_strategy_hash(s) == saved;
	close_training(&t);
	return status != CHOIR_OK ? choir_error()
			: !same			  ? "other weights than were saved"
			: told			  ? NULL
							  : "what only others have was restored";
}

TEST(weights_are_read_by_the_chief)
{
	char path[512];
	snprintf(path, sizeof path, "%s", files_path("weights to read"));
	on_place(&places[0], restore_fn, path);
	on_place(&places[4], restore_fn, path);
}

// One worker runs out of memory in a restore: all have the weights of before or of the file, or
// none has any.
typedef struct {
	const char *path;
	uint64_t n; // this allocation of all workers fails
} scarce;

static int count_defined(const problem *p)
{
	int n = 0;
	for (int i = 0; i < choir_layer_variables(p->model); i++)
		n += chi_atomic32_load(&choir_layer_variable(p->model, i)->copy[0].undefined) == 0;
	return n;
}

static const char *scarce_fn(choir_strategy *s, int worker, void *user)
{
	const scarce *l = user;
	training t = { .own = NULL };
	choir_cluster *c = choir_strategy_cluster(s);
	int defined = 0, all[8] = { 0 };
	choir_status status = open_training(&t, s, CHOIR_SGD);
	if (status == CHOIR_OK)
		status = choir_strategy_save(s, l->path, NULL);
	const bool ready = status == CHOIR_OK && choir_cluster_barrier(c) == CHOIR_OK;
	if (ready && worker == 0)
		chi_alloc_fail(l->n, false);
	if (ready) {
		(void) !choir_strategy_restore_partial(s, l->path, NULL); // a failure may leave a part
		defined = count_defined(&t.p);
	}
	close_training(&t);
	if (status != CHOIR_OK)
		return choir_error();
	if (!ready || choir_cluster_all_gather(c, &defined, sizeof defined, all) != CHOIR_OK)
		return NULL; // it is over for all
	for (int i = 0; i < choir_cluster_workers(c); i++)
		if (all[i] != defined)
			return "some have weights";
	return NULL;
}

TEST(all_have_weights_or_none)
{
	char path[512];
	snprintf(path, sizeof path, "%s", files_path("weights of all"));
	scarce l = { path, 45 }; // reading comes before
	for (bool failed = true; failed; l.n++) {
		on_place(&places[0], scarce_fn, &l);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
	}
}

TEST_GROUP(NULL, files_teardown)
