// The problem of problem.h.
#include "train/problem.h"
#include "plain_kernels.h"

#include "base/status.h"
#include "test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

enum { IN = 12, HIDDEN = 9, CLASSES = 4, MAX = 21 };

static choir_layer *make_model(void)
{
	choir_layer *layers[] = {
		choir_dense_new("hidden", IN, HIDDEN, CHOIR_GELU),
		choir_dropout_new("drop", 0.25),
		choir_dense_new("scores", HIDDEN, CLASSES, CHOIR_LINEAR),
	};
	for (size_t i = 0; i < 3; i++)
		if (layers[i] == NULL)
			return NULL;
	return choir_sequential_new(3, layers);
}

choir_status problem_open(problem *p, const char *devices, int replicas, choir_optimizer_kind kind,
		const choir_optimizer_options *o)
{
	return problem_open_in(p,
			choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options, .devices = devices,
					.replicas = replicas, .seed = 7, .timeout = 20)),
			kind, o);
}

choir_status problem_open_in(
		problem *p, choir_strategy *s, choir_optimizer_kind kind, const choir_optimizer_options *o)
{
	memset(p, 0, sizeof *p);
	p->strategy = s;
	if (p->strategy == NULL)
		return choir_error_status();
	choir_scope scope;
	CHOIR_TRY(choir_scope_enter(&scope, p->strategy));
	p->model = make_model();
	p->optimizer = p->model == NULL ? NULL : choir_optimizer_new(kind, o);
	p->loss = p->optimizer == NULL ? NULL : choir_metric_new("loss", CHOIR_METRIC_MEAN);
	p->accuracy = p->loss == NULL ? NULL : choir_metric_new("accuracy", CHOIR_METRIC_ACCURACY);
	const choir_status status = p->accuracy == NULL ? choir_error_status() : CHOIR_OK;
	CHOIR_TRY(choir_scope_exit(&scope));
	CHOIR_TRY(status);
	p->batch = choir_values_new(p->strategy);
	return p->batch == NULL ? choir_error_status() : CHOIR_OK;
}

void problem_close(problem *p)
{
	choir_values_free(p->batch);
	choir_strategy_free(p->strategy);
	memset(p, 0, sizeof *p);
}

static choir_status step(choir_replica *r, void *user)
{
	const problem *p = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *labels = choir_replica_arg(r, "label");
	choir_tensor *scores = choir_layer_apply(p->model, choir_replica_arg(r, "x"));
	choir_tensor *losses = choir_sparse_softmax_cross_entropy(labels, scores);
	CHOIR_TRY(choir_metric_update(p->loss, losses, NULL));
	CHOIR_TRY(choir_metric_update(p->accuracy, labels, scores));
	return choir_optimizer_minimize(p->optimizer, choir_replica_average_loss(r, losses), tape);
}

// Example i of step: the label is which of the first elements is the largest.
static void make_example(int64_t step_number, int64_t i, float x[IN], int32_t *label)
{
	uint32_t state = (uint32_t) (step_number * 1000 + i) * 2654435761u + 1;
	*label = 0;
	for (int k = 0; k < IN; k++) {
		state = state * 1664525u + 1013904223u;
		x[k] = (float) (state >> 8) / (float) (1 << 24) - 0.5f;
		if (k < CLASSES && x[k] > x[*label])
			*label = k;
	}
}

// The next step's batch, in p->batch.
static choir_status make_batch(problem *p)
{
	static const int64_t sizes[] = { MAX, 16, 3, 20, 1 };
	const int64_t n = sizes[p->steps % 5];
	static _Thread_local float x[MAX][IN]; // workers are threads in some tests
	static _Thread_local int32_t label[MAX];
	for (int64_t i = 0; i < n; i++)
		make_example(p->steps, i, x[i], &label[i]);
	choir_values_clear(p->batch);
	choir_frame *f = choir_values_frame(p->batch);
	CHOIR_TRY(
			choir_values_split(p->batch, "x", choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(n, IN), x)));
	return choir_values_split(
			p->batch, "label", choir_borrow(f, CHOIR_I32, CHOIR_SHAPE(n), label));
}

choir_status problem_step(problem *p)
{
	CHOIR_TRY(make_batch(p));
	CHOIR_TRY(choir_strategy_run(p->strategy, step, p, p->batch, NULL));
	p->steps++;
	return CHOIR_OK;
}

choir_status problem_replica(problem *p, int replica)
{
	CHOIR_TRY(make_batch(p));
	return choir_strategy_run_replica(p->strategy, replica, step, p, p->batch);
}

uint64_t problem_train(const char *devices, int replicas, choir_optimizer_kind kind,
		const choir_optimizer_options *o, int steps)
{
	problem p;
	choir_status status = problem_open(&p, devices, replicas, kind, o);
	for (int i = 0; status == CHOIR_OK && i < steps; i++)
		status = problem_step(&p);
	if (status != CHOIR_OK)
		fail_msg("%s with %d replicas: %s", devices, replicas, choir_error());
	const uint64_t hash = choir_strategy_hash(p.strategy);
	assert_int_not_equal(hash, 0);
	problem_close(&p);
	return hash;
}

choir_strategy *mirrored(const char *devices, int replicas)
{
	choir_strategy *s = choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
			.devices = devices, .replicas = replicas, .seed = 7, .timeout = 20));
	if (s == NULL)
		fail_msg("%s", choir_error());
	return s;
}

void fetch_variable(choir_variable *v, void *to, size_t bytes)
{
	choir_frame *f = choir_frame_new(NULL);
	if (choir_tensor_to_host(choir_variable_read(v, f), to, bytes) != CHOIR_OK)
		fail_msg("%s", choir_error());
	choir_frame_free(f);
}

void assert_failed(choir_status status, choir_status expected, const char *text)
{
	if (status != expected)
		fail_msg("%s (\"%s\"), needed %s", choir_status_name(status), choir_error(),
				choir_status_name(expected));
	assert_string_equal(choir_status_name(choir_error_status()), choir_status_name(expected));
	if (!text_holds(choir_error(), text))
		fail_msg("\"%s\" does not say \"%s\"", choir_error(), text);
	chi_error_clear();
}

int scoped_open(void **state)
{
	static scoped g;
	g.strategy = mirrored("cpu:0", 1);
	g.frame = choir_frame_new(NULL);
	*state = &g;
	return g.frame == NULL || choir_scope_enter(&g.scope, g.strategy) != CHOIR_OK;
}

int scoped_close(void **state)
{
	scoped *g = *state;
	const choir_status status = choir_scope_exit(&g->scope);
	choir_frame_free(g->frame);
	choir_strategy_free(g->strategy);
	return status != CHOIR_OK;
}

void assert_shape(const choir_tensor *t, choir_shape expected)
{
	if (t == NULL)
		fail_msg("%s", choir_error());
	const choir_shape *s = choir_tensor_shape(t);
	assert_int_equal(s->rank, expected.rank);
	for (int i = 0; i < s->rank; i++)
		assert_int_equal(s->dim[i], expected.dim[i]);
}

// ---- Examples that were judged.

const float judged_scores[JUDGED][JUDGED_CLASSES] = { { 1, 2, 3 }, { 3, 3, 1 }, { -3, 0, -2 },
	{ 5, 6, 5 }, { 1, 0, 0 }, { 0, 0, 1 } };
const uint8_t judged_labels[JUDGED] = { 2, 1, 1, 0, 0, 2 };
const float judged_chances[JUDGED] = { 0.9f, 0.5f, 0.6f, 0.1f, 1, 0.51f };
const int32_t judged_truths[JUDGED] = { 1, 1, 0, 0, 7, 0 };

void judged_split(choir_values *batch, const char *name, choir_dtype dtype, choir_shape shape,
		const void *data)
{
	if (choir_values_split(batch, name,
				choir_borrow(choir_values_frame(batch), dtype, shape, data)) != CHOIR_OK)
		fail_msg("%s", choir_error());
}

choir_values *judged_batch(choir_strategy *s)
{
	choir_values *batch = choir_values_new(s);
	judged_split(batch, "scores", CHOIR_F32, CHOIR_SHAPE(JUDGED, JUDGED_CLASSES), judged_scores);
	judged_split(batch, "label", CHOIR_U8, CHOIR_SHAPE(JUDGED), judged_labels);
	judged_split(batch, "chance", CHOIR_F32, CHOIR_SHAPE(JUDGED), judged_chances);
	judged_split(batch, "truth", CHOIR_I32, CHOIR_SHAPE(JUDGED), judged_truths);
	return batch;
}
