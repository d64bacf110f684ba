// Regularizers: the penalty and its gradient against the formula, on any devices; which variables
// have one; and what is refused.
#include "train/problem.h"

#include "base/status.h"
#include "choir/op.h"
#include "choir/scope.h"
#include "choir/tape.h"
#include "test.h"

#include <math.h>

enum { IN = 3, OUT = 4, N = IN * OUT };

typedef struct {
	choir_strategy *strategy;
	choir_layer *net;
	choir_optimizer *optimizer;
	double loss;
} job;

static job open_job(const char *devices, double l1, double l2)
{
	job j = { .strategy = mirrored(devices, 2) };
	choir_scope scope;
	CHOIR_SCOPE (j.strategy) {
		assert_int_equal(choir_scope_regularizer(&scope, l1, l2), CHOIR_OK);
		choir_layer *inside = choir_dense_new("inside", IN, OUT, CHOIR_LINEAR);
		assert_int_equal(choir_scope_exit(&scope), CHOIR_OK);
		choir_layer *layers[] = { inside, choir_dense_new("outside", OUT, 2, CHOIR_LINEAR) };
		j.net = choir_sequential_new(2, layers);
		j.optimizer = choir_optimizer_new(
				CHOIR_SGD, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 1));
	}
	assert_true(j.net != NULL && j.optimizer != NULL);
	return j;
}

// The penalty is the loss, so that the step of SGD is its gradient.
static choir_status step(choir_replica *r, void *user)
{
	job *j = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *loss = choir_layer_regularization_loss(j->net, r);
	if (choir_replica_id(r) == 0)
		j->loss = choir_tensor_number(loss);
	return choir_optimizer_minimize(j->optimizer, loss, tape);
}

static void follow(const char *devices, double l1, double l2)
{
	job j = open_job(devices, l1, l2);
	float before[N], after[N], rest[8], same[8];
	fetch_variable(choir_layer_variable(j.net, 0), before, sizeof before);
	fetch_variable(choir_layer_variable(j.net, 2), rest, sizeof rest);
	if (choir_strategy_run(j.strategy, step, &j, NULL, NULL) != CHOIR_OK)
		fail_msg("%s", choir_error());
	fetch_variable(choir_layer_variable(j.net, 0), after, sizeof after);
	fetch_variable(choir_layer_variable(j.net, 2), same, sizeof same);
	double penalty = 0;
	for (int i = 0; i < N; i++) {
		const double w = (double) before[i];
		penalty += l1 * fabs(w) + l2 * w * w;
		const double moved = w - (l1 * ((w > 0) - (w < 0)) + 2 * l2 * w);
		assert_true(fabs((double) after[i] - moved) < 1e-6);
	}
	assert_true(penalty > 0 && fabs(2 * j.loss - penalty) < 1e-6); // each of two replicas has half
	for (int i = 0; i < 8; i++)
		assert_true(rest[i] == same[i]);
	choir_strategy_free(j.strategy);
}

TEST(the_penalty_is_its_formula)
{
	follow("cpu:0", 0.01, 0.02);
	follow("cpu:0,cpu:1", 0.1, 0);
	follow("far:0,far:1", 0, 0.1);
}

static choir_status without(choir_replica *r, void *user)
{
	job *j = user;
	assert_true(choir_tensor_number(choir_layer_regularization_loss(j->net, r)) == 0);
	assert_null(choir_layer_regularization_loss(NULL, r));
	return CHOIR_OK;
}

TEST(no_regularizer_no_penalty)
{
	job j = open_job("cpu:0", 0, 0);
	assert_failed(choir_strategy_run(j.strategy, without, &j, NULL, NULL), CHOIR_INVALID, "layer");
	choir_strategy_free(j.strategy);
}

static choir_status foreign(choir_replica *r, void *user)
{
	return choir_layer_regularization_loss(user, r) == NULL ? choir_error_status() : CHOIR_OK;
}

TEST(wrong_use)
{
	choir_scope scope;
	job j = open_job("cpu:0", 0, 0), other = open_job("cpu:0", 0.1, 0);
	assert_failed(choir_scope_regularizer(&scope, 0.1, 0), CHOIR_STATE, "regularizer*outside");
	CHOIR_SCOPE (j.strategy) {
		assert_failed(choir_scope_regularizer(&scope, -1, 0), CHOIR_INVALID, "l1 -1*l2 0");
		assert_failed(
				choir_scope_regularizer(&scope, 0, (double) INFINITY), CHOIR_INVALID, "l2 inf");
	}
	assert_null(choir_layer_regularization_loss(j.net, NULL));
	assert_failed(choir_strategy_run(j.strategy, foreign, other.net, NULL, NULL), CHOIR_STATE,
			"mixing strategies*\"mirrored\" #*\"mirrored\" #");
	choir_strategy_free(j.strategy);
	choir_strategy_free(other.strategy);
}

TEST_GROUP(NULL, NULL)
