// Replicas that make one variable ask for one kind: the same synchronization and aggregation.
#include "strategy/world.h"
#include "test.h"

typedef struct {
	const char *name;
	choir_variable_options of_replica[2];
} kinds;

static choir_status make_kind(choir_replica *r, void *user)
{
	const kinds *k = user;
	choir_variable *v =
			choir_variable_new(k->name, CHOIR_SCALAR, &k->of_replica[choir_replica_id(r)]);
	return v == NULL ? choir_error_status() : CHOIR_OK;
}

static kinds kinds_of(choir_synchronization synchronization, choir_aggregation aggregation)
{
	const choir_variable_options one = {
		.size = sizeof one, .synchronization = synchronization, .aggregation = aggregation
	};
	return (kinds){ "kind", { one, one } };
}

// spec: 2.3
TEST(replicas_ask_for_one_kind)
{
	choir_strategy *s = world_new(2, "cpu:0,cpu:1", 0);
	kinds k = kinds_of(CHOIR_SYNCHRONIZATION_AUTO, CHOIR_AGGREGATION_NONE);
	k.of_replica[1].synchronization = CHOIR_SYNCHRONIZATION_ON_READ;
	world_failed(choir_strategy_run(s, make_kind, &k, NULL, NULL), CHOIR_STATE,
			"\"kind\", ON_WRITE NONE", "\"kind\", ON_READ NONE");
	k = kinds_of(CHOIR_SYNCHRONIZATION_AUTO, CHOIR_AGGREGATION_SUM);
	k.name = "sum";
	k.of_replica[1].aggregation = CHOIR_AGGREGATION_MEAN;
	world_failed(choir_strategy_run(s, make_kind, &k, NULL, NULL), CHOIR_STATE,
			"\"sum\", ON_WRITE SUM", "\"sum\", ON_WRITE MEAN");
	k = kinds_of(CHOIR_SYNCHRONIZATION_AUTO, CHOIR_AGGREGATION_SUM);
	k.name = "same";
	k.of_replica[1].synchronization = CHOIR_SYNCHRONIZATION_ON_WRITE; // what AUTO means
	world_ok(choir_strategy_run(s, make_kind, &k, NULL, NULL));
	choir_strategy_free(s);
}

// spec: 2.3
TEST(a_variable_keeps_its_kind)
{
	choir_strategy *s = world_new(2, "cpu:0,cpu:1", 0);
	kinds k = kinds_of(CHOIR_SYNCHRONIZATION_ON_READ, CHOIR_AGGREGATION_SUM);
	for (int i = 0; i < 2; i++)
		world_ok(choir_strategy_run(s, make_kind, &k, NULL, NULL));
	k = kinds_of(CHOIR_SYNCHRONIZATION_ON_READ, CHOIR_AGGREGATION_MEAN);
	world_failed(choir_strategy_run(s, make_kind, &k, NULL, NULL), CHOIR_INVALID,
			"it exists as ON_READ SUM", "not ON_READ MEAN");
	k = kinds_of(CHOIR_SYNCHRONIZATION_AUTO, CHOIR_AGGREGATION_SUM);
	world_failed(choir_strategy_run(s, make_kind, &k, NULL, NULL), CHOIR_INVALID,
			"it exists as ON_READ SUM", "not ON_WRITE SUM");
	choir_strategy_free(s);
}
