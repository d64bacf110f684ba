// What a worker hands to its servers: with one device, gradients lie where the backward pass has
// left them.
#include "choir/optimizer.h"

#include "strategy/remote_variables.h"
#include "test.h"

#include <string.h>

enum { ROWS = 500, WIDTH = 8, SOME = 2, REPLICAS = 3 };

static float dense[REPLICAS][ROWS * WIDTH];
static struct {
	choir_variable *dense, *rows;
	choir_optimizer *sgd;
	const void *handed; // the dense gradient
	float first, last, row; // of it, and of the second row of the other
	int pushes;
} made;

static choir_status refresh(void *user)
{
	(void) user;
	return CHOIR_OK;
}

static choir_status push(void *user, void *optimizer, size_t n, choir_variable *const v[],
		const chi_remote_gradient gradient[])
{
	(void) user, (void) optimizer;
	made.pushes++;
	for (size_t i = 0; i < n; i++)
		if (v[i] == made.dense) {
			made.handed = gradient[i].dense;
			made.first = ((const float *) gradient[i].dense)[0];
			made.last = ((const float *) gradient[i].dense)[ROWS * WIDTH - 1];
		} else if (gradient[i].dense != NULL || gradient[i].n != SOME) {
			return choir_fail(CHOIR_INTERNAL, "not %d rows", SOME);
		} else {
			made.row = ((const float *) gradient[i].values)[WIDTH];
		}
	return CHOIR_OK;
}

static choir_status step(choir_replica *r, void *user)
{
	static const int64_t row[SOME] = { 3, 7 };
	const int replica = choir_replica_id(r);
	(void) user;
	for (int i = 0; i < ROWS * WIDTH; i++)
		dense[replica][i] = (float) (i % 100 + replica);
	CHOIR_TRY(choir_optimizer_add_gradient_memory(
			made.sgd, r, made.dense, dense[replica], sizeof dense[replica]));
	choir_tensor *rows = choir_indexed_slices(
			choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(SOME, WIDTH), replica + 1),
			choir_constant(r->frame, CHOIR_I64, CHOIR_SHAPE(SOME), row), ROWS);
	CHOIR_TRY(choir_optimizer_add_gradient(made.sgd, r, made.rows, rows));
	return choir_optimizer_apply_gradients(made.sgd, r);
}

static void train(int replicas)
{
	const chi_remote remote = { .refresh = refresh, .push = push };
	memset(&made, 0, sizeof made);
	choir_strategy *s = choir_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .devices = "cpu:0", .replicas = replicas));
	assert_non_null(s);
	CHOIR_SCOPE (s) {
		made.dense = choir_variable_new("dense", CHOIR_SHAPE(ROWS, WIDTH), NULL);
		made.rows = choir_variable_new("rows", CHOIR_SHAPE(ROWS, WIDTH), NULL);
		made.sgd = choir_optimizer_new(CHOIR_SGD, NULL);
	}
	s->remote = &remote;
	for (int i = 0; i < 2; i++)
		if (choir_strategy_run(s, step, NULL, NULL, NULL) != CHOIR_OK)
			fail_msg("%s", choir_error());
	assert_int_equal(made.pushes, 2);
	s->remote = NULL;
	choir_strategy_free(s);
}

TEST(one_replica_hands_its_gradients_over_where_they_lie)
{
	train(1);
	assert_ptr_equal(made.handed, dense[0]);
	assert_true(made.first == 0 && made.last == 99 && made.row == 1);
}

TEST(the_sum_of_replicas_is_handed_over)
{
	train(REPLICAS);
	assert_true(made.first == 3 && made.last == 3 * 99 + 3 && made.row == 6);
}
