// Distributed datasets: a dataset cut into global batches, of which each replica of a strategy
// gets its rows. This is where examples become the arguments of a run.
//
// How a global batch of G examples is dealt to R replicas: the first G mod R replicas have one
// row more than the others, and this holds for every batch, whatever its number of examples: a
// batch that the end of the data cuts short fills the replicas' fixed sizes from the first on.
// Six examples in a batch of 8 for two replicas are 4 and 2; with three examples they are 3 and
// 0. A replica without an example gets tensors of 0 rows, and there is no batch without any
// example. How many examples the global batch really has is known to every replica:
// choir_replica_global_examples.
//
// Threads: the program's, one at a time for a distributed dataset.
#pragma once

#include "dataset.h"
#include "strategy.h"

CHOIR_C_BEGIN

// It belongs to its strategy and is freed with it.
typedef struct choir_distributed_dataset choir_distributed_dataset;

typedef struct choir_input_options {
	size_t size;
	// Examples of a global batch, of all replicas together. 0: as many as the dataset's own
	// batch has. Another number cuts the stream of examples anew, without regard to the
	// dataset's batches.
	int64_t global_batch;
} choir_input_options;

// Distributes d over the replicas of s. d is taken over, also on failure; o may be NULL. Nothing
// is read before the first batch is asked for. With one replica and no global_batch, the
// dataset's batches are handed on as they come. Errors: d is NULL: the first cause stays.
// CHOIR_INVALID: d has no batch step and o names no global batch; a negative one; a strategy
// that is NULL. CHOIR_STATE: inside a replica, in the scope of another strategy, or after a
// fork.
choir_distributed_dataset *choir_strategy_distribute_dataset(
		choir_strategy *s, choir_dataset *d, const choir_input_options *o);

// Fills *batch with the next global batch: a per-replica leaf for each column of the dataset,
// under the column's name, one tensor of [rows, ...] a replica, in the order of the data. *batch
// is NULL, and is made (free it with choir_values_free), or an earlier one, and is refilled: the
// tensors in it die, their memory is used again, and reading on and on allocates nothing.
// CHOIR_OK; CHOIR_END after the last batch, now and until the rewind; or an error, of the
// dataset or of memory, after which the dataset stays failed until the rewind. Other than with
// CHOIR_OK *batch is empty. CHOIR_STATE: inside a replica, where each replica would take a batch
// of its own. CHOIR_INVALID: *batch belongs to another strategy.
CHOIR_MUST_CHECK choir_status choir_distributed_dataset_next(
		choir_distributed_dataset *data, choir_values **batch);

// Back to the start, for another pass (of which shuffles make another order). Examples that were
// read and not handed out are dropped. Batches that the program holds stay as they are.
CHOIR_MUST_CHECK choir_status choir_distributed_dataset_rewind(choir_distributed_dataset *data);

CHOIR_C_END
