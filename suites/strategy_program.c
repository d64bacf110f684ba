// The programs. Each is what a user would write, with numbers small enough that a difference is
// one of rules and not of chance.
#include "strategy_program.h"

#include <stdio.h>
#include <string.h>

void chi_record_number(chi_record *to, double number)
{
	if (to->n < MAX_RECORD)
		to->number[to->n++] = number;
}

choir_status chi_record_tensor(chi_record *to, choir_tensor *t)
{
	float host[256];
	if (t == NULL)
		return choir_error_status() == CHOIR_OK ? choir_fail(CHOIR_INTERNAL, "no tensor")
												: choir_error_status();
	choir_tensor *all = choir_cast(t, CHOIR_F32);
	const int64_t n = all == NULL ? 0 : choir_shape_elements(choir_tensor_shape(all));
	NEED(all != NULL && n <= 256);
	const choir_status status = choir_tensor_to_host(all, host, (size_t) n * sizeof host[0]);
	for (int64_t i = 0; status == CHOIR_OK && i < n; i++)
		chi_record_number(to, (double) host[i]);
	return status;
}

choir_status chi_record_variable(chi_record *to, choir_variable *v)
{
	choir_frame *f = choir_frame_new(NULL);
	NEED(f != NULL);
	const choir_status status = chi_record_tensor(to, choir_variable_read(v, f));
	choir_frame_free(f);
	return status;
}

// What other workers recorded of their replicas goes before and behind what is at first and on.
static choir_status gather_record(chi_record *to, int first)
{
	enum { MAX = 256, WORKERS = 16 };
	double own[MAX] = { 0 }, all[WORKERS * MAX];
	const int n = to->n - first, workers = choir_cluster_workers(to->cluster);
	NEED(n < MAX && workers <= WORKERS);
	own[0] = n;
	memcpy(own + 1, to->number + first, (size_t) n * sizeof own[0]);
	if (choir_cluster_all_gather(to->cluster, own, sizeof own, all) != CHOIR_OK)
		return choir_error_status();
	to->n = first;
	for (int w = 0; w < workers; w++)
		for (int i = 0; i < (int) all[w * MAX]; i++)
			chi_record_number(to, all[w * MAX + 1 + i]);
	return CHOIR_OK;
}

choir_status chi_record_leaf(chi_record *to, choir_values *set, const char *name)
{
	choir_value *v = choir_values_find(set, name);
	NEED(v != NULL);
	chi_record_number(to, choir_value_kind_of(v));
	const int first = to->n;
	for (int i = 0; i < choir_value_local_count(v); i++)
		if (chi_record_tensor(to, choir_value_local(v, i)) != CHOIR_OK)
			return choir_error_status();
	return to->cluster == NULL || choir_value_kind_of(v) != CHOIR_VALUE_PER_REPLICA
			? CHOIR_OK
			: gather_record(to, first);
}

// Whether a text has all parts, which stars separate.
static bool holds(const char *text, const char *parts)
{
	char part[128];
	for (;; parts++) {
		const size_t length = strcspn(parts, "*");
		snprintf(part, sizeof part, "%.*s", (int) length, parts);
		if (strstr(text, part) == NULL)
			return false;
		parts += length;
		if (*parts == '\0')
			return true;
	}
}

choir_status chi_record_failure(
		chi_record *to, choir_status found, choir_status expected, const char *part)
{
	if (found != expected && !(to->cluster != NULL && found == CHOIR_CANCELLED))
		return choir_fail(CHOIR_INTERNAL, "%s where %s was expected: %.300s",
				choir_status_name(found), choir_status_name(expected), choir_error());
	if (!holds(choir_error(), part))
		return choir_fail(CHOIR_INTERNAL, "no \"%s\" in: %.300s", part, choir_error());
	chi_record_number(to, expected);
	return to->stops ? CHOIR_END : CHOIR_OK;
}

// ---- Training.

typedef struct {
	choir_layer *hidden, *scores;
	choir_optimizer *optimizer;
	choir_metric *loss;
	int step;
} training;

enum { IN = 6, HIDDEN = 5, CLASSES = 3, ROWS = 10 };

static choir_tensor *forward(const training *t, choir_tensor *x)
{
	return choir_layer_apply(t->scores, choir_layer_apply(t->hidden, x));
}

static choir_status train_step(choir_replica *r, void *user)
{
	const training *t = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *scores = forward(t, choir_replica_arg(r, "x"));
	choir_tensor *losses =
			choir_sparse_softmax_cross_entropy(choir_replica_arg(r, "label"), scores);
	CHOIR_TRY(choir_metric_update(t->loss, losses, NULL));
	choir_tensor *loss = choir_replica_average_loss(r, losses);
	CHOIR_TRY(choir_optimizer_minimize(t->optimizer, loss, tape));
	return choir_replica_return(r, "loss", loss);
}

static choir_status fill_batch(choir_values *batch, int step)
{
	float x[ROWS * IN];
	int32_t label[ROWS];
	for (int i = 0; i < ROWS * IN; i++)
		x[i] = (float) ((i * 7 + step * 5) % 13) / 6 - 1;
	for (int i = 0; i < ROWS; i++)
		label[i] = (i * 2 + step) % CLASSES;
	choir_values_clear(batch);
	choir_frame *f = choir_values_frame(batch);
	CHOIR_TRY(choir_values_split(
			batch, "x", choir_constant(f, CHOIR_F32, CHOIR_SHAPE(ROWS, IN), x)));
	return choir_values_split(
			batch, "label", choir_constant(f, CHOIR_I32, CHOIR_SHAPE(ROWS), label));
}

static choir_status train(choir_strategy *s, chi_record *to, choir_optimizer_kind kind,
		const choir_optimizer_options *o)
{
	training t = { .step = 0 };
	CHOIR_SCOPE (s) {
		t.hidden = choir_dense_new("hidden", IN, HIDDEN, CHOIR_TANH);
		t.scores = choir_dense_new("scores", HIDDEN, CLASSES, CHOIR_LINEAR);
		t.optimizer = choir_optimizer_new(kind, o);
		t.loss = choir_metric_new("loss", CHOIR_METRIC_MEAN);
	}
	NEED(t.loss != NULL && t.optimizer != NULL && t.scores != NULL && t.hidden != NULL);
	choir_values *batch = choir_values_new(s), *results = NULL;
	choir_status status = batch == NULL ? choir_error_status() : CHOIR_OK;
	for (t.step = 0; status == CHOIR_OK && t.step < 3; t.step++) {
		status = fill_batch(batch, t.step);
		if (status == CHOIR_OK)
			status = choir_strategy_run(s, train_step, &t, batch, &results);
		if (status == CHOIR_OK)
			status = chi_record_leaf(to, results, "loss");
	}
	choir_values_free(results);
	choir_values_free(batch);
	chi_record_number(to, choir_metric_result(t.loss));
	for (int i = 0; status == CHOIR_OK && i < choir_layer_variables(t.hidden); i++)
		status = chi_record_variable(to, choir_layer_variable(t.hidden, i));
	const uint64_t hash = choir_strategy_hash(s);
	chi_record_number(to, (double) (hash >> 32));
	chi_record_number(to, (double) (hash & UINT32_MAX));
	return status;
}

static choir_status train_adam(choir_strategy *s, chi_record *to)
{
	return train(s, to, CHOIR_ADAM, NULL);
}

static choir_status train_clipped(choir_strategy *s, chi_record *to)
{
	return train(s, to, CHOIR_MOMENTUM,
			CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.5, .global_clip_norm = 0.1,
					.nonfinite = CHOIR_NONFINITE_SKIP));
}

// ---- Reductions.

static choir_tensor *own_rows(choir_frame *f, int replica, int count, void *user)
{
	(void) count, (void) user;
	float x[12];
	for (int i = 0; i < 12; i++)
		x[i] = (float) (i + 1) / (float) (replica + 3);
	return choir_constant(f, CHOIR_F32, CHOIR_SHAPE(replica + 1, 3), x);
}

static choir_status reduce_values(choir_strategy *s, choir_values *set, chi_record *to)
{
	static const choir_reduce_op ops[] = { CHOIR_SUM, CHOIR_MEAN };
	CHOIR_TRY(choir_values_set_from_function(set, "vector", chi_program_vector, NULL));
	CHOIR_TRY(choir_values_set_from_function(set, "rows", own_rows, NULL));
	for (int i = 0; i < 2; i++) {
		CHOIR_TRY(chi_record_tensor(to,
				choir_strategy_reduce(
						s, ops[i], choir_values_find(set, "vector"), CHOIR_NO_AXIS)));
		CHOIR_TRY(chi_record_tensor(to,
				choir_strategy_reduce(s, ops[i], choir_values_find(set, "rows"), CHOIR_AXIS(0))));
		CHOIR_TRY(chi_record_tensor(to,
				choir_strategy_reduce(s, ops[i], choir_values_find(set, "rows"), CHOIR_ALL_AXES)));
	}
	return CHOIR_OK;
}

static choir_status reduce(choir_strategy *s, chi_record *to)
{
	choir_values *set = choir_values_new(s);
	NEED(set != NULL);
	const choir_status status = reduce_values(s, set, to);
	choir_values_free(set);
	return status;
}

static choir_status collect(choir_replica *r, void *user)
{
	(void) user;
	const int id = choir_replica_id(r);
	choir_tensor *x = chi_program_vector(r->frame, id, 0, NULL);
	choir_replica_return(r, "sum", choir_replica_all_reduce(r, CHOIR_SUM, x));
	choir_replica_return(r, "mean", choir_replica_all_reduce(r, CHOIR_MEAN, x));
	choir_replica_return(
			r, "all", choir_replica_all_gather(r, own_rows(r->frame, id, 0, NULL), 0));
	choir_replica_return(r, "first", choir_replica_broadcast(r, x, 0));
	return choir_replica_return(r, "id", choir_number(r->frame, id));
}

static choir_status collectives(choir_strategy *s, chi_record *to)
{
	static const char *const names[] = { "sum", "mean", "all", "first", "id" };
	choir_values *results = NULL;
	choir_status status = choir_strategy_run(s, collect, NULL, NULL, &results);
	for (int i = 0; status == CHOIR_OK && i < 5; i++)
		status = chi_record_leaf(to, results, names[i]);
	choir_values_free(results);
	return status;
}

// ---- Merge calls and updates.

static choir_status nested(choir_replica *r, void *user)
{
	(void) user;
	choir_tensor *x = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(3), choir_replica_id(r) + 1);
	return choir_replica_return(r, "twice", choir_replica_all_reduce(r, CHOIR_SUM, x));
}

// A batch gives what the single call gave, also of what is mirrored already.
static choir_status reduce_as_a_batch(
		choir_cross *x, choir_value *all, choir_value *to, choir_value *sum)
{
	choir_reduction items[] = { { all, to, NULL }, { all, all, NULL } }, again = { sum, to, NULL };
	CHOIR_TRY(choir_cross_batch_reduce_to(x, CHOIR_SUM, 2, items, NULL));
	CHOIR_TRY(choir_cross_batch_reduce_to(x, CHOIR_MEAN, 1, &again, NULL));
	choir_value *const batch[] = { items[0].result, items[1].result, again.result };
	for (int i = 0; i < 3; i++) {
		float one[3], other[3];
		CHOIR_TRY(choir_tensor_to_host(choir_value_local(sum, 0), one, sizeof one));
		CHOIR_TRY(choir_tensor_to_host(choir_value_local(batch[i], 0), other, sizeof other));
		NEED(memcmp(one, other, sizeof one) == 0);
	}
	return CHOIR_OK;
}

static choir_status merge(choir_cross *x, void *user)
{
	choir_variable *v = user;
	choir_value *all = choir_cross_arg(x, "x"), *to = choir_variable_as_value(v);
	choir_value *sum = choir_cross_reduce_to(x, CHOIR_SUM, all, to);
	CHOIR_TRY(reduce_as_a_batch(x, all, to, sum));
	CHOIR_TRY(choir_cross_run(x, nested, NULL));
	choir_tensor *more =
			choir_cross_reduce(x, CHOIR_MEAN, choir_cross_result(x, "twice"), CHOIR_NO_AXIS);
	CHOIR_TRY(choir_cross_return(x, "sum", sum));
	CHOIR_TRY(choir_cross_return(x, "more", choir_tensor_as_value(more)));
	return choir_cross_return(x, "v", choir_variable_as_value(v));
}

static choir_status call_merge(choir_replica *r, void *user)
{
	for (int i = 0; i < 2; i++) {
		choir_replica_set_arg(
				r, "x", chi_program_vector(r->frame, choir_replica_id(r) + i, 0, NULL));
		CHOIR_TRY(choir_replica_merge_call(r, merge, user));
	}
	CHOIR_TRY(choir_replica_return(r, "sum", choir_replica_result(r, "sum")));
	CHOIR_TRY(choir_replica_return(r, "more", choir_replica_result(r, "more")));
	return choir_replica_return(r, "v", choir_replica_result(r, "v"));
}

static choir_status merge_calls(choir_strategy *s, chi_record *to)
{
	choir_variable *v =
			chi_program_counted(s, "v", 3, CHOIR_SYNCHRONIZATION_AUTO, CHOIR_AGGREGATION_NONE);
	choir_values *results = NULL;
	NEED(v != NULL);
	choir_status status = choir_strategy_run(s, call_merge, v, NULL, &results);
	if (status == CHOIR_OK)
		status = chi_record_leaf(to, results, "sum");
	if (status == CHOIR_OK)
		status = chi_record_leaf(to, results, "more");
	if (status == CHOIR_OK && choir_value_variable(choir_values_find(results, "v")) != v)
		status = choir_fail(CHOIR_INTERNAL, "the variable did not come back as itself");
	choir_values_free(results);
	return status;
}

typedef struct {
	choir_variable *v, *slot;
} pair;

// v -= 0.5 * (slot = 0.9 slot + gradient)
static choir_status momentum(choir_update *u, void *user)
{
	const pair *p = user;
	choir_tensor *g = choir_update_arg(u, "gradient");
	choir_tensor *m = choir_scale(choir_variable_read(p->slot, u->frame), 0.9);
	CHOIR_TRY(choir_variable_assign(p->slot, choir_add(m, g)));
	return choir_variable_assign_sub(
			p->v, choir_scale(choir_variable_read(p->slot, u->frame), 0.5));
}

static choir_status reduce_and_update(choir_cross *x, void *user)
{
	const pair *p = user;
	choir_value *g = choir_cross_reduce_to(
			x, CHOIR_SUM, choir_cross_arg(x, "gradient"), choir_variable_as_value(p->v));
	CHOIR_TRY(choir_cross_set_arg(x, "gradient", g));
	return choir_cross_update(x, p->v, NULL, momentum, user);
}

static choir_status four_steps(choir_replica *r, void *user)
{
	choir_replica_set_arg(
			r, "gradient", chi_program_vector(r->frame, choir_replica_id(r), 0, NULL));
	return choir_replica_merge_call(r, reduce_and_update, user);
}

static choir_status update_by_hand(choir_strategy *s, chi_record *to)
{
	pair p = { chi_program_counted(s, "v", 3, CHOIR_SYNCHRONIZATION_AUTO, CHOIR_AGGREGATION_NONE),
		NULL };
	choir_scope scope, beside;
	NEED(p.v != NULL && choir_scope_enter(&scope, s) == CHOIR_OK);
	NEED(choir_scope_colocate(&beside, choir_variable_as_value(p.v)) == CHOIR_OK);
	p.slot = choir_variable_new("v/momentum", CHOIR_SHAPE(3), NULL);
	NEED(choir_scope_exit(&beside) == CHOIR_OK && choir_scope_exit(&scope) == CHOIR_OK);
	NEED(p.slot != NULL && choir_variable_copies(p.slot) == choir_variable_copies(p.v));
	for (int i = 0; i < choir_variable_copies(p.v); i++)
		NEED(choir_variable_device(p.v, i) == choir_variable_device(p.slot, i));
	for (int i = 0; i < 3; i++)
		CHOIR_TRY(choir_strategy_run(s, four_steps, &p, NULL, NULL));
	CHOIR_TRY(chi_record_variable(to, p.v));
	return chi_record_variable(to, p.slot);
}

static choir_status update_with_parts(choir_replica *r, void *user)
{
	choir_replica_set_arg(
			r, "gradient", chi_program_vector(r->frame, choir_replica_id(r), 0, NULL));
	return choir_replica_update(r, ((const pair *) user)->v, momentum, user);
}

// Where variables lie in one place too: an update has one copy to run for, and which replica's
// part it should get cannot be known.
static choir_status refuse_updates(choir_strategy *s, chi_record *to)
{
	pair p = { .v = chi_program_counted(
					   s, "v", 3, CHOIR_SYNCHRONIZATION_AUTO, CHOIR_AGGREGATION_NONE) };
	NEED(p.v != NULL);
	if (choir_strategy_replicas(s) > 1)
		CHOIR_TRY(chi_record_failure(to, choir_strategy_run(s, update_with_parts, &p, NULL, NULL),
				CHOIR_INVALID, "update of \"v\":*\"gradient\""));
	return chi_record_variable(to, p.v); // nothing has changed
}

// ---- Failures.

static choir_status fail_in_last(choir_replica *r, void *user)
{
	(void) user;
	if (choir_replica_id(r) == choir_replica_count(r) - 1)
		return choir_fail(CHOIR_INVALID, "the last one does not like this");
	return choir_replica_all_reduce(
				   r, CHOIR_SUM, choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(3), 1)) == NULL
			? choir_error_status()
			: CHOIR_OK;
}

static choir_status fail_in_update(choir_update *u, void *user)
{
	choir_variable *v = user;
	CHOIR_TRY(choir_variable_assign(v, choir_fill(u->frame, CHOIR_F32, CHOIR_SHAPE(3), 1)));
	return choir_fail(CHOIR_IO, "the update's own");
}

static choir_status update_that_fails(choir_replica *r, void *user)
{
	return choir_replica_update(r, user, fail_in_update, user);
}

static choir_status failures(choir_strategy *s, chi_record *to)
{
	choir_variable *v =
			chi_program_counted(s, "v", 3, CHOIR_SYNCHRONIZATION_AUTO, CHOIR_AGGREGATION_NONE);
	NEED(v != NULL);
	CHOIR_TRY(chi_record_failure(to, choir_strategy_run(s, fail_in_last, NULL, NULL, NULL),
			CHOIR_INVALID, "the last one does not like this"));
	CHOIR_TRY(collectives(s, to));
	CHOIR_TRY(chi_record_failure(to, choir_strategy_run(s, update_that_fails, v, NULL, NULL),
			CHOIR_IO, "the update's own"));
	choir_frame *f = choir_frame_new(NULL);
	NEED(f != NULL && choir_variable_read(v, f) == NULL);
	CHOIR_TRY(chi_record_failure(to, choir_error_status(), CHOIR_STATE, "\"v\""));
	choir_frame_free(f);
	NEED((f = choir_frame_new(NULL)) != NULL);
	CHOIR_TRY(choir_variable_assign(v, chi_program_vector(f, 3, 0, NULL)));
	choir_frame_free(f);
	return chi_record_variable(to, v);
}

static choir_status read_then_assign(choir_replica *r, void *user)
{
	choir_variable *v = user;
	choir_tensor *before = choir_variable_read(v, r->frame);
	CHOIR_TRY(choir_variable_assign_add(
			v, chi_program_vector(r->frame, choir_replica_id(r), 0, NULL)));
	return choir_add(before, before) == NULL ? choir_error_status() : CHOIR_OK;
}

static choir_status stale_read(choir_strategy *s, chi_record *to)
{
	choir_variable *v =
			chi_program_counted(s, "v", 3, CHOIR_SYNCHRONIZATION_AUTO, CHOIR_AGGREGATION_SUM);
	NEED(v != NULL);
	CHOIR_TRY(chi_record_failure(to, choir_strategy_run(s, read_then_assign, v, NULL, NULL),
			CHOIR_STATE, "v:*changed"));
	return chi_record_variable(to, v);
}

const chi_program chi_strategy_programs[] = {
	{ "train with adam", train_adam, false },
	{ "train with a norm", train_clipped, false },
	{ "reduce", reduce, false },
	{ "all_reduce, all_gather, broadcast", collectives, false },
	{ "assign mirrored variables in replicas", chi_program_assign_mirrored, false },
	{ "assign what cannot be assigned", chi_program_refuse_assigns, true },
	{ "assign parts", chi_program_assign_parts, false },
	{ "assign outside replicas", chi_program_assign_outside, false },
	{ "make variables in replicas", chi_program_make_in_replicas, false },
	{ "make what can never be", chi_program_refuse_variables, true },
	{ "rows in replicas", chi_program_scatter, false },
	{ "merge calls with nested runs", merge_calls, false },
	{ "update by hand", update_by_hand, false },
	{ "update with parts", refuse_updates, true },
	{ "failures", failures, true },
	{ "a read that is out of date", stale_read, true },
};
const int chi_strategy_program_count =
		sizeof chi_strategy_programs / sizeof chi_strategy_programs[0];
