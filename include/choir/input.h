// A distributed dataset cuts a dataset into global batches and gives each replica of a strategy
// its rows.
//
// If R replicas share a global batch of G examples, the first G mod R have one row more than the
// others. A short batch at the end of the data fills these sizes, beginning with the first
// replica (docs/rules.md, section 9). A replica without examples gets tensors of 0 rows. No
// batch is empty.
//
// Workers in step (choir_multi_worker_mirrored_strategy_new) all make the same calls of this
// header, and each gets the rows of its own replicas. A worker whose data have ended takes part
// without examples until all data have ended. If one worker fails, the others fail with
// CHOIR_CANCELLED; the text has the worker and the reason.
//
// Threads: one thread of the program at a time may use a distributed dataset.
#pragma once

#include "source.h"
#include "strategy.h"

CHOIR_C_BEGIN

typedef struct choir_distributed_dataset choir_distributed_dataset;

// How workers share the data. With one worker all policies are the same.
typedef enum {
	// All workers read all data, and each keeps the rows of its own replicas.
	CHOIR_AUTO_SHARD_DATA = 0,
	// All workers read and use all data: with two workers a pass has twice the steps, and every
	// example is used twice.
	CHOIR_AUTO_SHARD_OFF,
	CHOIR_AUTO_SHARD_AUTO, // FILE, or, if no files are read, DATA with a warning in the log
	// Each worker reads its own files. CHOIR_NOT_FOUND: no source reads files, or a later stage
	// hides the source. CHOIR_INVALID: fewer files than workers.
	CHOIR_AUTO_SHARD_FILE,
	CHOIR_AUTO_SHARD_HINT // choir_dataset_shard with CHOIR_SHARD_HINT divides the data
} choir_auto_shard;

typedef enum { CHOIR_FETCH_TO_DEVICE = 0, CHOIR_FETCH_TO_HOST } choir_fetch;
typedef enum { CHOIR_REPLICATION_PER_WORKER = 0, CHOIR_REPLICATION_PER_REPLICA } choir_replication;

typedef struct choir_input_options {
	size_t size;
	// The number of examples in a global batch; the dataset's own batches may have any size. 0:
	// the size of the dataset's own batches. If that size is unknown (as after a map that
	// follows a batch that keeps a short last batch), each batch of n examples is cut into parts
	// of ceil(n / replicas).
	int64_t global_batch;
	choir_auto_shard auto_shard;
	// For programs that connect workers themselves: the number of workers, and this one's index.
	// Each has as many replicas as the strategy, and reaches its end independently. Both 0: the
	// workers that the strategy is in step with.
	int workers, worker;
	// Each replica takes a whole batch of the dataset. Under DATA, batch i of a step goes to
	// replica i of the job. Under other policies a worker's batches go to its own replicas, in
	// order.
	bool per_replica_batches;
	// Where the tensors of a batch are. TO_HOST: on the host until a run needs them.
	choir_fetch fetch;
	choir_replication replication; // for distribute_datasets_from_function
	bool place_on_device; // the dataset; no device supports it (CHOIR_UNSUPPORTED)
	// Whether a thread of Choir's reads steps ahead, from the first batch on, in addition to the
	// dataset's own prefetch stages. Default: on if .read_ahead_steps is set, or if the dataset
	// reads files, has no prefetch at its end, and calls no function of the program. A dataset
	// without such functions is read ahead into the next pass, unless rows of it were left out.
	choir_toggle read_ahead;
	int read_ahead_steps; // 0: as many as fit in 1 MiB, from one to eight
	// Reading ahead starts when the dataset is distributed, unless the dataset calls a function
	// of the program. So a shuffle's buffer fills while the program makes its variables.
	bool start_reading_now;
	// Whether checkpoints keep the position of the dataset. Default: on. OFF: a restore leaves
	// the dataset where it is, for any number of workers and any policy. All workers need the
	// same value.
	choir_toggle checkpoint;
} choir_input_options;

// Distributes d over the replicas of s. d is taken over, also on failure. With one replica and
// no global_batch the dataset's batches are passed on as they are. NULL after a failure:
//
// - CHOIR_INVALID: d has no batch stage and o has no global_batch; a negative global_batch; a
//   worker index that is out of range, or not this worker's in the strategy's cluster; fewer
//   files than workers; different options on workers in step, or under DATA different datasets
//   (different files: CHOIR_STATE); place_on_device without PER_REPLICA, or with TO_DEVICE.
// - CHOIR_UNSUPPORTED: replication is PER_REPLICA.
// - CHOIR_NOT_FOUND: see CHOIR_AUTO_SHARD_FILE.
// - CHOIR_STATE: d has CHOIR_SHARD_HINT, but the policy of several workers is not HINT; a call
//   inside a replica, in the scope of another strategy, or after a fork.
choir_distributed_dataset *choir_strategy_distribute_dataset(
		choir_strategy *s, choir_dataset *d, const choir_input_options *o);

// Compares the files that all workers of c are going to read: their number, their sizes, and
// checksums of some blocks. It is for programs that read files themselves; under DATA
// choir_strategy_distribute_dataset does it. All workers make this call, with their files in the
// same order. CHOIR_STATE, on all workers: the files differ.
CHOIR_MUST_CHECK choir_status choir_cluster_compare_files(
		choir_cluster *c, const choir_files *files);

// Makes a memory dataset with the same data on all workers that s is in step with; all of them
// make this call, outside of replicas. The first worker's data are copied to the others, where
// columns[i].data and examples are ignored. CHOIR_INVALID, on all workers: their columns differ
// in more than data.
choir_dataset *choir_strategy_make_memory_dataset(
		choir_strategy *s, int64_t examples, size_t n, const choir_column columns[]);

typedef struct choir_input_context {
	size_t size;
	int input_pipelines; // number of workers, or under PER_REPLICA of replicas
	int input_pipeline; // index of this one, from 0
	int replicas_in_sync; // of the job
} choir_input_context;
// Sets *batch to global / replicas_in_sync, the batch of one replica. CHOIR_INVALID: the
// quotient is not whole.
CHOIR_MUST_CHECK choir_status choir_input_context_per_replica_batch(
		const choir_input_context *context, int64_t global, int64_t *batch);

// Makes the dataset of an input pipeline; each batch is for one replica. The distributed dataset
// takes it over. NULL: a failure.
typedef choir_dataset *choir_dataset_fn(const choir_input_context *context, void *user);
// Distributes the datasets that fn makes, without cutting or sharding them. In each step the
// worker's replicas, in their order, take the next whole batches of its dataset. This calls fn
// once, or under PER_REPLICA once for each replica, which then reads its own dataset (mirrored
// strategies only, else CHOIR_UNSUPPORTED). Fails as choir_strategy_distribute_dataset;
// global_batch is CHOIR_INVALID, and auto_shard has no effect.
choir_distributed_dataset *choir_strategy_distribute_datasets_from_function(
		choir_strategy *s, choir_dataset_fn *fn, void *user, const choir_input_options *o);

// Fills *batch with the next global batch. It has a per-replica leaf for each column of the
// dataset, under the column's name: one tensor [rows, ...] for each replica, in the order of the
// data. If *batch is NULL, it is made; free it with choir_values_free. An earlier batch is
// refilled: its tensors are freed, and the memory is used again.
//
// CHOIR_END after the last batch, until the dataset is rewound. After a failure of the dataset
// or of memory, data stays failed until it is rewound. If the status is not CHOIR_OK, *batch is
// empty. Workers in step also learn here that a rewind or restore failed on one of them.
// CHOIR_STATE: a call inside a replica. CHOIR_INVALID: *batch belongs to another strategy; a
// replica would get examples of different shapes in one batch. Different replicas may get
// different shapes, where the column has CHOIR_UNKNOWN.
CHOIR_MUST_CHECK choir_status choir_distributed_dataset_next(
		choir_distributed_dataset *data, choir_values **batch);

// Goes back to the start for another pass, in which shuffles use another order. Batches that the
// program holds stay as they are.
CHOIR_MUST_CHECK choir_status choir_distributed_dataset_rewind(choir_distributed_dataset *data);

enum { CHOIR_INPUT_SEEK_POINTS = 16, CHOIR_INPUT_SEEK_POINT_NUMBERS = 8 };
// The position of a distributed dataset, as plain numbers.
typedef struct choir_input_position {
	size_t size;
	int64_t pass; // from 0
	int64_t elements; // used completely in this pass
	int64_t examples; // used of the next element
	int64_t steps; // in this pass
	int64_t signature; // of the dataset's stages, seeds, columns and shard
	// The number of valid rows of seek_point, which are places in files a little before the
	// position. With them, sources whose records can be counted only by reading (CSV, TFRecord,
	// lines) need not read everything before the position. Restoring without them gives the same
	// result, more slowly.
	int64_t seek_points;
	int64_t seek_point[CHOIR_INPUT_SEEK_POINTS][CHOIR_INPUT_SEEK_POINT_NUMBERS];
} choir_input_position;
// Saves the position of the next batch that the program gets. For a failed dataset it is the
// start of the failed step, or the target of the failed rewind or restore.
CHOIR_MUST_CHECK choir_status choir_distributed_dataset_save(
		const choir_distributed_dataset *data, choir_input_position *position);
// Restores a position: the next batch has the same bits as the one that came next when it was
// saved. Under DATA, or with one worker, this also holds with another number of replicas or
// workers, if the global batch is the same.
//
// Under other policies with several workers, and for datasets from a function, a position
// belongs to one worker's part. Only the same worker can restore it, with the same number of
// workers.
//
// Cost: functions, filters and shuffles of streams cannot seek; they read the examples before
// the position again. CHOIR_INVALID: the position belongs to a dataset with other stages, seeds
// or columns, or to another worker's part, or its numbers are invalid. Then nothing has changed.
// CHOIR_INVALID also if the data have fewer elements or examples than the position says. After
// this failure, or another failure to read, the dataset stays failed until it is rewound or
// restored.
CHOIR_MUST_CHECK choir_status choir_distributed_dataset_restore(
		choir_distributed_dataset *data, const choir_input_position *position);

// Getters

// The i-th column as a replica gets it. Its shape is [rows, ...], with CHOIR_UNKNOWN in
// dimensions that can differ.
const choir_column *choir_distributed_dataset_column(
		const choir_distributed_dataset *data, size_t i);
// The number of global batches in a pass, as choir_dataset_cardinality.
int64_t choir_distributed_dataset_cardinality(const choir_distributed_dataset *data);
// The policy in effect. AUTO becomes FILE or DATA.
choir_auto_shard choir_distributed_dataset_auto_shard(const choir_distributed_dataset *data);
// Whether the policy is DATA because AUTO found no files.
bool choir_distributed_dataset_fell_back(const choir_distributed_dataset *data);
// Describes, in lines of text, what each worker and replica reads, with up to four files of each
// worker if they are sharded. Works as snprintf.
size_t choir_distributed_dataset_describe(
		const choir_distributed_dataset *data, char *out, size_t size);

CHOIR_C_END
