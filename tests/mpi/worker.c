// A worker that links no MPI: it asks for a cluster, says who it is, takes part in a few things,
// and leaves. Arguments change what it does: "differ" (worker 1 claims to be another program),
// "again" (a second cluster), "die" (worker 1 ends in the middle), "exit" (it exits with 0
// there), "data" (each reads another number of examples), "alike" (all make one mistake).
#include "choir/cluster.h"
#include "choir/input.h"
#include "choir/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(void)
{
	printf("failed: %s: %s\n", choir_status_name(choir_error_status()), choir_error());
	fflush(stdout);
	return 1;
}

static choir_status take_part(choir_cluster *c, const char *what)
{
	double numbers[1000] = { 0 };
	for (int i = 0; choir_cluster_is_chief(c) && i < 1000; i++)
		numbers[i] = i;
	CHOIR_TRY(choir_cluster_broadcast(c, 0, numbers, sizeof numbers));
	if (numbers[999] != 999)
		return choir_fail(CHOIR_INTERNAL, "the numbers did not come");
	if (choir_cluster_worker(c) == 1 && strcmp(what, "die") == 0)
		abort();
	if (choir_cluster_worker(c) == 1 && strcmp(what, "exit") == 0)
		_exit(0);
	return choir_cluster_barrier(c);
}

static choir_status count_up(int64_t position, void *const out[], void *user)
{
	memcpy(out[0], &position, sizeof position);
	return position < *(int64_t *) user ? CHOIR_OK : CHOIR_END;
}

// Worker w has 5 + 7 w examples, and all stop together.
static choir_status read_data(choir_cluster *c)
{
	const choir_column number = { "number", CHOIR_I64, CHOIR_SCALAR, NULL };
	int64_t length = 5 + 7 * choir_cluster_worker(c), examples = 0;
	int steps = 0;
	choir_values *batch = NULL;
	choir_strategy *s = choir_multi_worker_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .cluster = c, .devices = "cpu:0"));
	choir_distributed_dataset *data = s == NULL
			? NULL
			: choir_strategy_distribute_dataset(s,
					  choir_dataset_batch(
							  choir_generator_dataset_new(1, &number, count_up, &length), 4),
					  CHOIR_OPTIONS(choir_input_options, .auto_shard = CHOIR_AUTO_SHARD_OFF));
	choir_status status = data == NULL ? choir_error_status() : CHOIR_OK;
	while (status == CHOIR_OK &&
			(status = choir_distributed_dataset_next(data, &batch)) == CHOIR_OK) {
		examples += choir_tensor_shape(choir_value_local(choir_values_find(batch, "number"), 0))
							->dim[0];
		steps++;
	}
	choir_values_free(batch);
	choir_strategy_free(s);
	if (status == CHOIR_END)
		printf("worker %d read %lld examples in %d steps\n", choir_cluster_worker(c),
				(long long) examples, steps);
	return status == CHOIR_END ? CHOIR_OK : status;
}

static choir_status sum_of_one(choir_replica *r, void *user)
{
	(void) user;
	return choir_replica_all_reduce(r, (choir_reduce_op) 7, choir_number(r->frame, 1)) == NULL
			? choir_error_status()
			: CHOIR_OK;
}

// All make the same mistake, in a run, and are as usable as before.
static choir_status fail_alike(choir_cluster *c)
{
	choir_strategy *s = choir_multi_worker_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .cluster = c, .devices = "cpu:0"));
	if (s == NULL)
		return choir_error_status();
	const choir_status status = choir_strategy_run(s, sum_of_one, NULL, NULL, NULL);
	choir_strategy_free(s);
	return status == CHOIR_INVALID ? choir_cluster_barrier(c)
								   : choir_fail(CHOIR_INTERNAL, "operation 7 was not refused");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	const char *rank = getenv("OMPI_COMM_WORLD_RANK") != NULL ? getenv("OMPI_COMM_WORLD_RANK")
															  : getenv("PMI_RANK");
	const bool differs = strcmp(what, "differ") == 0 && rank != NULL && strcmp(rank, "1") == 0;
	const choir_cluster_options o = { .size = sizeof o,
		.timeout = strcmp(what, "exit") == 0 ? 5 : 60, // one waits so long for who has left
		.start_timeout = 60,
		.transport = strcmp(what, "mpi") == 0 ? "mpi" : NULL,
		.program = differs ? "another" : NULL };
	choir_cluster *c = choir_cluster_new(&o);
	if (c == NULL)
		return fail();
	if (take_part(c, what) != CHOIR_OK)
		return fail();
	if (strcmp(what, "data") == 0 && read_data(c) != CHOIR_OK)
		return fail();
	if (strcmp(what, "alike") == 0 && fail_alike(c) != CHOIR_OK)
		return fail();
	printf("worker %d of %d, %s %d, %s\n", choir_cluster_worker(c), choir_cluster_workers(c),
			choir_cluster_task_type(c), choir_cluster_task_index(c), choir_cluster_transport(c));
	choir_cluster_free(c);
	if (strcmp(what, "again") == 0 && choir_cluster_new(&o) == NULL)
		return fail();
	return 0;
}
