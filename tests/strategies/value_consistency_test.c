// Workers that do alike: one mistake of all leaves the cluster usable, and what looks alike but is
// not - the same tensors in another order - is found before anything is done with it.
#include "process_group.h"
#include "plain_kernels.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

static const peers_place places[] = { { 2, "cpu:0" }, { 4, "cpu:0" }, { 2, "cpu:0,cpu:1" },
	{ 2, "cpu:0;cpu:0,cpu:1" }, { 2, "far:0" } };
enum { PLACES = sizeof places / sizeof places[0] };

static void on_all_places(peers_fn *fn)
{
	for (int i = 0; i < PLACES; i++)
		peers_run(
				&(peers_job){ .replicas = 4, .place = places[i], .seed = (uint64_t) i, .fn = fn });
}

// ---- Failures.

typedef enum { IN_ALL_REDUCE, IN_MERGE, BY_ITSELF, AFTER_A_SUM } mistake;

typedef struct {
	mistake mistake;
	int only; // the worker that makes it; CHOIR_NONE: all
	int worker;
} erring;

static choir_status reduce_wrongly(choir_cross *x, void *user)
{
	(void) user;
	choir_value *v = choir_cross_arg(x, "x");
	return choir_cross_reduce(x, (choir_reduce_op) 7, v, CHOIR_NO_AXIS) == NULL
			? choir_error_status()
			: CHOIR_OK;
}

static choir_status err(choir_replica *r, void *user)
{
	const erring *w = user;
	choir_tensor *one = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(3), 1);
	if (w->only != CHOIR_NONE && w->only != w->worker)
		return choir_replica_all_reduce(r, CHOIR_SUM, one) == NULL ? choir_error_status()
																   : CHOIR_OK;
	if (w->mistake == BY_ITSELF)
		return choir_fail(CHOIR_IO, "the disk is full");
	if (w->mistake == AFTER_A_SUM && choir_replica_all_reduce(r, CHOIR_SUM, one) == NULL)
		return choir_error_status();
	if (w->mistake == IN_MERGE) {
		CHOIR_TRY(choir_replica_set_arg(r, "x", one));
		return choir_replica_merge_call(r, reduce_wrongly, NULL);
	}
	return choir_replica_all_reduce(r, (choir_reduce_op) 7, one) == NULL ? choir_error_status()
																		 : CHOIR_OK;
}

static choir_status add_ones(choir_replica *r, void *user)
{
	double *sum = user;
	choir_tensor *t = choir_replica_all_reduce(
			r, CHOIR_SUM, choir_fill(r->frame, CHOIR_F64, CHOIR_SCALAR, 1));
	if (t != NULL && choir_replica_id(r) % 2 == 0)
		*sum = choir_tensor_number(t);
	return t == NULL ? choir_error_status() : CHOIR_OK;
}

static bool is_usable(choir_strategy *s)
{
	double sum = 0;
	return choir_strategy_run(s, add_ones, &sum, NULL, NULL) == CHOIR_OK &&
			(sum == 4 || sum == 0) && choir_cluster_barrier(choir_strategy_cluster(s)) == CHOIR_OK;
}

static const char *all_fail_alike(choir_strategy *s, int worker, void *user)
{
	static const char *const words[] = { "all_reduce*operation*7", "operation*7",
		"the disk is full", "all_reduce*operation*7" };
	(void) user;
	for (int i = IN_ALL_REDUCE; s != NULL && i <= AFTER_A_SUM; i++) {
		erring w = { (mistake) i, CHOIR_NONE, worker };
		const choir_status status = choir_strategy_run(s, err, &w, NULL, NULL);
		if (status == CHOIR_OK || status == CHOIR_CANCELLED ||
				!text_holds(choir_error(), words[i]) || !is_usable(s))
			return choir_error();
	}
	return s == NULL ? choir_error() : NULL;
}

// A mistake that all make is one worker's mistake: the others know of it.
// spec: 2.17
TEST(the_same_mistake)
{
	on_all_places(all_fail_alike);
}

static const char *one_fails(choir_strategy *s, int worker, void *user)
{
	erring w = { BY_ITSELF, *(const int *) user, worker };
	if (s != NULL && choir_strategy_run(s, err, &w, NULL, NULL) == CHOIR_OK)
		return "the failure was lost";
	if (s != NULL && is_usable(s))
		return "the cluster goes on";
	return peers_last_failure(
			CHOIR_CANCELLED, w.only == worker ? "failed before" : "stopped: ", "the disk is full");
}

static const char *two_fail_otherwise(choir_strategy *s, int worker, void *user)
{
	erring w = { worker == 0 ? BY_ITSELF : IN_ALL_REDUCE, CHOIR_NONE, worker };
	(void) user;
	if (s != NULL && choir_strategy_run(s, err, &w, NULL, NULL) == CHOIR_OK)
		return "the failure was lost";
	if (s == NULL || choir_error_status() == CHOIR_CANCELLED) // it heard before it came to its own
		return peers_last_failure(CHOIR_CANCELLED, "stopped: ", "worker");
	if (!text_holds(choir_error(), worker == 0 ? "the disk is full" : "operation*7"))
		return choir_error(); // each has its own
	return is_usable(s) ? "the cluster goes on" : NULL;
}

// spec: 2.17
TEST(other_mistakes)
{
	for (int i = 0; i < PLACES; i++)
		for (int only = 0; only < 2; only++)
			peers_run(&(peers_job){
					.replicas = 4, .place = places[i], .fn = one_fails, .user = &only });
	on_all_places(two_fail_otherwise);
}

static const char *reduces_wrongly(choir_strategy *s, int worker, void *user)
{
	(void) worker, (void) user;
	if (s == NULL)
		return choir_error();
	choir_values *set = choir_values_new(s);
	choir_frame *f = choir_values_frame(set);
	choir_status status = choir_values_set(set, "x", choir_tensor_as_value(choir_number(f, 1)));
	const bool made = status == CHOIR_OK &&
			choir_strategy_reduce(s, CHOIR_SUM, choir_values_find(set, "x"), CHOIR_NO_AXIS) !=
					NULL;
	const char *wrong = made || status != CHOIR_OK
			? "a plain 1 has a SUM"
			: peers_last_failure(CHOIR_INVALID, "reduce:*SUM", "4 replicas");
	choir_values_free(set);
	return wrong != NULL ? wrong : is_usable(s) ? NULL : choir_error();
}

// spec: 2.17
TEST(outside_of_runs)
{
	on_all_places(reduces_wrongly);
}

// ---- Orders.

typedef struct {
	bool crosses; // worker 1 gives b before a
	bool more; // worker 1 makes something before
	int worker;
	double a, b;
} sums;

static choir_status sum_two(choir_replica *r, void *user)
{
	sums *s = user;
	choir_frame *f = r->frame;
	const double id = choir_replica_id(r);
	if (s->worker == 1 && s->more)
		choir_fill(f, CHOIR_F64, CHOIR_SHAPE(20), 3);
	choir_tensor *t[2] = { choir_fill(f, CHOIR_F32, CHOIR_SCALAR, 2 * id + 1),
		choir_fill(f, CHOIR_F32, CHOIR_SCALAR, 4 * id + 2) };
	const int first = s->worker == 1 && s->crosses;
	choir_tensor *one = choir_replica_all_reduce(r, CHOIR_SUM, t[first]);
	choir_tensor *two = choir_replica_all_reduce(r, CHOIR_SUM, t[!first]);
	if (two == NULL)
		return choir_error_status();
	if (choir_replica_id(r) % 2 == 0) {
		s->a = choir_tensor_number(first == 0 ? one : two);
		s->b = choir_tensor_number(first == 0 ? two : one);
	}
	return CHOIR_OK;
}

static const char *order_is_compared(choir_strategy *s, int worker, void *user)
{
	sums two = *(const sums *) user;
	two.worker = worker;
	const choir_status status =
			s == NULL ? choir_error_status() : choir_strategy_run(s, sum_two, &two, NULL, NULL);
	if (!two.crosses && status != CHOIR_OK)
		return choir_error();
	if (!two.crosses)
		return (two.a == 16 && two.b == 32) || (two.a == 0 && two.b == 0) ? NULL : "another sum";
	return status == CHOIR_OK ? "sums of other tensors"
							  : peers_last_or_heard(CHOIR_STATE, "worker", "different orders");
}

// Two tensors of one shape would be added up crosswise, if nothing but shapes were compared.
// spec: 2.17
TEST(the_same_tensors_in_another_order)
{
	for (int i = 0; i < PLACES; i++)
		for (int k = 0; k < 4; k++) {
			sums two = { .crosses = k % 2 == 1, .more = k / 2 == 1 };
			if (two.more && two.crosses)
				continue; // what all make in one order is all that can be told
			peers_run(&(peers_job){ .replicas = 4,
					.place = places[i],
					.seed = (uint64_t) k,
					.fn = order_is_compared,
					.user = &two });
		}
}

static choir_status sum_by_id(choir_replica *r, void *user)
{
	sums s = *(const sums *) user;
	s.worker = choir_replica_id(r);
	return sum_two(r, &s);
}

// spec: 2.17
TEST(replicas_of_one_process)
{
	static const char *const devices[] = { "cpu:0,cpu:1", "cpu:0", "far:0,cpu:0" };
	for (int i = 0; i < 3; i++) {
		choir_strategy *s = choir_mirrored_strategy_new(CHOIR_OPTIONS(
				choir_strategy_options, .devices = devices[i], .replicas = 2, .timeout = 20));
		sums two = { .crosses = false, .more = true };
		assert_int_equal(choir_strategy_run(s, sum_by_id, &two, NULL, NULL), CHOIR_OK);
		two.crosses = true, two.more = false;
		assert_int_equal(choir_strategy_run(s, sum_by_id, &two, NULL, NULL), CHOIR_STATE);
		assert_text_holds(choir_error(), "order");
		choir_strategy_free(s);
	}
}

// ---- Values.

typedef struct {
	choir_variable *v;
	choir_optimizer *sgd;
} model;

static choir_status train(choir_replica *r, void *user)
{
	const model *m = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *x = choir_variable_read(m->v, r->frame);
	return choir_optimizer_minimize(m->sgd, choir_sum(choir_square(x), CHOIR_ALL_AXES), tape);
}

static double rate_of(int64_t step, void *user)
{
	return 0.1 + 0.01 * (double) step * *(const int *) user;
}

static choir_status make_model(choir_strategy *s, int *worker, bool by_function, model *m)
{
	const choir_schedule own = {
		.size = sizeof own, .kind = CHOIR_SCHEDULE_FUNCTION, .fn = rate_of, .user = worker
	};
	CHOIR_SCOPE (s) {
		m->v = choir_variable_new("w", CHOIR_SHAPE(3), NULL);
		m->sgd = choir_optimizer_new(CHOIR_SGD,
				CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.1,
						.schedule = by_function ? &own : NULL));
	}
	return m->v == NULL || m->sgd == NULL ? choir_error_status() : CHOIR_OK;
}

static choir_status assign_outside(choir_variable *v, double x)
{
	choir_frame *f = choir_frame_new(NULL);
	const choir_status status =
			choir_variable_assign(v, choir_fill(f, CHOIR_F32, CHOIR_SHAPE(3), x));
	choir_frame_free(f);
	return status;
}

// Up to a run that fails, at most 12: how many went well.
static int train_on(choir_strategy *s, model *m)
{
	int n = 0;
	while (n < 12 && choir_strategy_run(s, train, m, NULL, NULL) == CHOIR_OK)
		n++;
	return n;
}

static const char *other_values(choir_strategy *s, int worker, void *user)
{
	const bool never = *(const bool *) user;
	model m;
	if (s == NULL || make_model(s, &worker, false, &m) != CHOIR_OK ||
			assign_outside(m.v, worker == 1 ? 2 : 1) != CHOIR_OK)
		return choir_error();
	const int n = train_on(s, &m);
	if (never)
		return n == 12 ? NULL : choir_error();
	if (n > 0)
		return "updates of other values";
	const char *wrong =
			peers_last_failure(CHOIR_STATE, "after update 1:*\"w\"*worker 1", "worker 0");
	if (wrong != NULL)
		return wrong;
	// All know it, and can mend it.
	if (assign_outside(m.v, 1) != CHOIR_OK || train_on(s, &m) != 12)
		return choir_error();
	if (assign_outside(m.v, worker == 1 ? 2 : 1) != CHOIR_OK)
		return choir_error();
	return choir_strategy_save(s, "/nowhere/at/all", NULL) == CHOIR_STATE
			? peers_last_failure(CHOIR_STATE, "\"w\"*worker 1", "worker 0")
			: "other values were saved";
}

static void never_compare(choir_strategy_options *o, int worker, void *user)
{
	(void) worker;
	o->compare_steps = *(const bool *) user ? CHOIR_NONE : 0;
}

static const char *other_rates(choir_strategy *s, int worker, void *user)
{
	model m;
	(void) user;
	if (s == NULL || make_model(s, &worker, true, &m) != CHOIR_OK)
		return choir_error();
	return train_on(s, &m) != 9 // which compared the first, and are equal but for the last eight
			? choir_error()
			: peers_last_failure(CHOIR_STATE, "after update 10:*optimizer", "worker 1");
}

// spec: 2.17
TEST(values_that_differ)
{
	for (int i = 0; i < PLACES; i++)
		for (int never = 0; never < 2; never++) {
			bool is_never = never != 0;
			peers_run(&(peers_job){ .replicas = 4,
					.place = places[i],
					.fn = other_values,
					.user = &is_never,
					.options = never_compare });
		}
	on_all_places(other_rates);
}

// ---- Layers.

typedef enum { DENSE, DROPOUT, RESIDUAL, LAYER_KINDS } layer_kind;

static choir_layer *make_layer(layer_kind kind, bool other)
{
	choir_layer *inside[2] = { choir_dense_new("hidden", 3, 2,
									   kind == DENSE && other ? CHOIR_TANH : CHOIR_RELU),
		choir_dropout_new("drop", kind == DROPOUT && other ? 0.5 : 0.25) };
	if (kind == RESIDUAL)
		inside[1] = choir_residual_new(
				choir_activation_new(CHOIR_TANH), NULL, other ? CHOIR_RELU : CHOIR_LINEAR);
	return choir_sequential_new(2, inside);
}

static const char *other_layers(choir_strategy *s, int worker, void *user)
{
	static const char *const words[] = { "layer \"hidden\", dense with activation ",
		"layer \"drop\", dropout with rate 0.", "residual with activation " };
	const layer_kind kind = *(const layer_kind *) user;
	model m;
	if (s == NULL)
		return choir_error();
	choir_layer *made = NULL;
	CHOIR_SCOPE (s)
		made = make_layer(kind, worker == 1);
	if (made == NULL || make_model(s, &worker, false, &m) != CHOIR_OK)
		return choir_error();
	return train_on(s, &m) > 0 ? "updates with other layers"
							   : peers_last_or_heard(CHOIR_STATE, "worker 1 ", words[kind]);
}

// Layers that have no variables of their own: at any time without those of others, and around
// others after the first update.
static const char *layers_of_one_worker(choir_strategy *s, int worker, void *user)
{
	model m;
	choir_layer *made = NULL, *around = NULL;
	(void) user;
	if (s == NULL)
		return choir_error();
	CHOIR_SCOPE (s) {
		made = make_layer(DENSE, false);
		if (worker == 1)
			choir_sequential_new(1, (choir_layer *const[]){ choir_dropout_new("alone", 0.5) });
	}
	if (made == NULL || make_model(s, &worker, false, &m) != CHOIR_OK ||
			choir_strategy_run(s, train, &m, NULL, NULL) != CHOIR_OK)
		return choir_error();
	CHOIR_SCOPE (s)
		around = worker == 1 ? choir_sequential_new(1, &made) : made;
	return around != NULL && train_on(s, &m) == 12 ? NULL : choir_error();
}

// spec: 2.17
TEST(layers_that_differ)
{
	for (layer_kind kind = DENSE; kind < LAYER_KINDS; kind++)
		for (int i = 0; i < PLACES; i++)
			peers_run(&(peers_job){
					.replicas = 4, .place = places[i], .fn = other_layers, .user = &kind });
	on_all_places(layers_of_one_worker);
}
