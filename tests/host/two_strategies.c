// Two strategies in one process, on the same devices: one after the other, step by step in
// turns, and on two threads at the same time. Neither may notice the other; what one must not do
// with the other's variables is an error, after which both go on.
#include <choir/choir.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 60, ROWS = 40, COLUMNS = 6 };

struct job {
	int replicas;
	uint64_t seed;
	choir_strategy *strategy;
	choir_layer *net;
	choir_optimizer *adam;
	choir_values *batch;
	uint64_t weights;
};

static void demand(int good, const char *what)
{
	if (good)
		return;
	printf("failed: %s (%s)\n", what, choir_error());
	exit(1);
}

static choir_status step(choir_replica *r, void *user)
{
	struct job *j = (struct job *) user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *y = choir_dropout(choir_layer_apply(j->net, choir_replica_arg(r, "x")), 0.2, 1);
	choir_tensor *target = choir_replica_arg(r, "target");
	return choir_optimizer_minimize(
			j->adam, choir_replica_average_loss(r, choir_mean_squared_error(target, y)), tape);
}

static void begin(struct job *j)
{
	float x[ROWS][COLUMNS], target[ROWS][3];
	for (int i = 0; i < ROWS * COLUMNS; i++)
		x[i / COLUMNS][i % COLUMNS] = (float) (i * 37 % 101) / 50 - 1;
	for (int i = 0; i < ROWS * 3; i++)
		target[i / 3][i % 3] = (float) (i * 53 % 89) / 44 - 1;
	j->strategy = choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
			.replicas = j->replicas, .devices = "cpu:0,cpu:1", .seed = j->seed));
	CHOIR_SCOPE (j->strategy) {
		choir_layer *two[] = { choir_dense_new("a", COLUMNS, 9, CHOIR_TANH),
			choir_dense_new("b", 9, 3, CHOIR_LINEAR) };
		j->net = choir_sequential_new(2, two);
		j->adam = choir_optimizer_new(CHOIR_ADAM, NULL);
	}
	CHOIR_CHECK_NEW(j->adam);
	CHOIR_CHECK_NEW(j->batch = choir_values_new(j->strategy));
	choir_frame *f = choir_values_frame(j->batch);
	CHOIR_CHECK(choir_values_split(
			j->batch, "x", choir_constant(f, CHOIR_F32, CHOIR_SHAPE(ROWS, COLUMNS), x)));
	CHOIR_CHECK(choir_values_split(
			j->batch, "target", choir_constant(f, CHOIR_F32, CHOIR_SHAPE(ROWS, 3), target)));
}

static void train(struct job *j, int steps)
{
	for (int i = 0; i < steps; i++)
		CHOIR_CHECK(choir_strategy_run(j->strategy, step, j, j->batch, NULL));
}

static void end(struct job *j)
{
	j->weights = choir_strategy_hash(j->strategy);
	choir_values_free(j->batch);
	choir_strategy_free(j->strategy);
}

static void *alone(void *user)
{
	struct job *j = (struct job *) user;
	begin(j);
	train(j, STEPS);
	end(j);
	return NULL;
}

static void in_turns(struct job *a, struct job *b)
{
	begin(a);
	begin(b);
	for (int i = 0; i < STEPS; i++) {
		train(a, 1);
		train(b, 1);
	}
	end(a);
	end(b);
}

static void at_once(struct job *a, struct job *b)
{
	pthread_t other;
	demand(pthread_create(&other, NULL, alone, b) == 0, "starting a thread");
	alone(a);
	pthread_join(other, NULL);
}

// Reads a variable of another strategy, given as user.
static choir_status peek(choir_replica *r, void *user)
{
	choir_variable *foreign = choir_layer_variable((choir_layer *) user, 0);
	choir_replica_return(r, "x", choir_variable_read(foreign, r->frame));
	return CHOIR_OK;
}

static void mix(struct job *a, struct job *b)
{
	begin(a);
	begin(b);
	train(a, STEPS / 2);
	demand(choir_strategy_run(b->strategy, peek, a->net, NULL, NULL) == CHOIR_STATE,
			"a foreign variable was read");
	demand(strstr(choir_error(), "a/kernel") != NULL, "the message does not name the variable");
	choir_scope outer, inner;
	CHOIR_CHECK(choir_scope_enter(&outer, a->strategy));
	demand(choir_scope_enter(&inner, b->strategy) == CHOIR_STATE,
			"a scope inside another strategy's");
	demand(choir_strategy_run(b->strategy, step, b, b->batch, NULL) == CHOIR_STATE,
			"a run inside another's scope");
	CHOIR_CHECK(choir_scope_exit(&outer));
	demand(choir_strategy_run(b->strategy, step, b, a->batch, NULL) == CHOIR_INVALID,
			"arguments of another strategy");
	train(a, STEPS - STEPS / 2);
	train(b, STEPS);
	end(a);
	end(b);
}

int main(void)
{
	struct job a = { .replicas = 2, .seed = 1 }, b = { .replicas = 3, .seed = 2 };
	alone(&a);
	alone(&b);
	const uint64_t weights_a = a.weights, weights_b = b.weights;
	demand(weights_a != weights_b, "two seeds, and the same weights: this test looks at nothing");
	void (*const ways[])(struct job *, struct job *) = { in_turns, at_once, mix };
	for (int i = 0; i < 9; i++) {
		ways[i % 3](&a, &b);
		demand(a.weights == weights_a && b.weights == weights_b, "a strategy noticed the other");
	}
	return 0;
}
