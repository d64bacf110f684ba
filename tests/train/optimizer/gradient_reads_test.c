// Gradients that are reads of variables which the same update changes first: what was read counts.
#include "choir/op.h"
#include "choir/optimizer.h"
#include "test.h"

enum { LARGE = 20000 };

static choir_strategy *strategy;
static choir_variable *pair[2];

static void works(choir_status status)
{
	if (status != CHOIR_OK)
		fail_msg("%s: %s", choir_status_name(status), choir_error());
}

static choir_status apply_both(choir_cross *x, choir_optimizer *o, choir_value *read)
{
	choir_value *one =
			choir_tensor_as_value(choir_fill(x->frame, CHOIR_F32, CHOIR_SHAPE(LARGE), 1));
	return choir_optimizer_distributed_apply(o, x, 2, pair, (choir_value *const[]){ one, read });
}

static choir_status apply_given(choir_cross *x, void *user)
{
	return apply_both(x, user, choir_cross_arg(x, "read"));
}

static choir_status bring_reads(choir_replica *r, void *user)
{
	CHOIR_TRY(choir_replica_set_arg(r, "read", choir_variable_read(pair[0], r->frame)));
	return choir_replica_merge_call(r, apply_given, user);
}

static choir_status give_reads(choir_replica *r, void *user)
{
	const double share = 1.0 / choir_replica_count(r);
	choir_tensor *own = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(LARGE), share);
	CHOIR_TRY(choir_optimizer_add_gradient(user, r, pair[0], own));
	CHOIR_TRY(choir_optimizer_add_gradient(
			user, r, pair[1], choir_variable_read(pair[0], r->frame)));
	return choir_optimizer_apply_gradients(user, r);
}

static void check_all(choir_variable *v, float expected)
{
	static float got[LARGE];
	choir_frame *f = choir_frame_new(NULL);
	works(choir_tensor_to_host(choir_variable_read(v, f), got, sizeof got));
	for (int i = 0; i < LARGE; i++)
		assert_float_equal(got[i], expected, 0);
	choir_frame_free(f);
}

// way 0: in the program's own context, 1: in a merge call, 2: in replicas.
static void train(choir_optimizer *o, int replicas, int way)
{
	choir_cross *x = choir_strategy_cross(strategy);
	works(choir_variable_assign(pair[0], choir_number(x->frame, 4)));
	works(choir_variable_assign(pair[1], choir_number(x->frame, 100)));
	if (way == 0)
		works(apply_both(x, o, choir_tensor_as_value(choir_variable_read(pair[0], x->frame))));
	else
		works(choir_strategy_run(strategy, way == 1 ? bring_reads : give_reads, o, NULL, NULL));
	choir_frame_clear(x->frame);
	check_all(pair[0], 3);
	check_all(pair[1], way == 0 ? 96 : (float) (100 - 4 * replicas));
}

// spec: 2.5
TEST(gradients_that_are_reads)
{
	static const char *const places[] = { "cpu:0", "cpu:0,cpu:1", "far:0,far:1", "cpu:0,far:0" };
	for (int i = 0; i < 4; i++)
		for (int replicas = 2; replicas <= 4; replicas += 2) {
			strategy = choir_mirrored_strategy_new(CHOIR_OPTIONS(
					choir_strategy_options, .replicas = replicas, .devices = places[i]));
			choir_optimizer *o = NULL;
			CHOIR_SCOPE (strategy) {
				pair[0] = choir_variable_new("a", CHOIR_SHAPE(LARGE), NULL);
				pair[1] = choir_variable_new("b", CHOIR_SHAPE(LARGE), NULL);
				o = choir_optimizer_new(
						CHOIR_SGD, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 1));
			}
			for (int way = 0; way < 3; way++)
				train(o, replicas, way);
			choir_strategy_free(strategy);
		}
}
