// A distributed dataset cuts a dataset into global batches and gives each replica of a strategy
// its rows of each batch.
//
// If R replicas share a global batch of G examples, the first G mod R replicas have one row more
// than the others. A short batch at the end of the data fills the first replicas first
// (docs/rules.md, section 9). A replica without examples gets tensors of 0 rows. Every batch has
// at least one example.
//
// Workers that train in step (choir_multi_worker_mirrored_strategy_new) all make the same calls
// of this header. Each worker gets the rows of its own replicas. A worker whose data have ended
// takes part without examples until the data of all workers have ended. If one worker fails, the
// others fail with CHOIR_CANCELLED, and the text names the worker and the reason.
//
// Threads: one thread of the program at a time may use a distributed dataset.
#pragma once

#include "source.h"
#include "strategy.h"

CHOIR_C_BEGIN

typedef struct choir_distributed_dataset choir_distributed_dataset;

// How workers share the data. With one worker all policies have the same effect.
typedef enum {
	// All workers read all data, and each keeps the rows of its own replicas.
	CHOIR_AUTO_SHARD_DATA = 0,
	// All workers read and use all data: with two workers a pass has twice the steps, and every
	// example is used twice.
	CHOIR_AUTO_SHARD_OFF,
	CHOIR_AUTO_SHARD_AUTO, // FILE if files are read, else DATA with a warning in the log
	// Each worker reads its own files. CHOIR_NOT_FOUND: a source does not read files.
	// CHOIR_INVALID: fewer files than workers.
	CHOIR_AUTO_SHARD_FILE,
	CHOIR_AUTO_SHARD_HINT // choir_dataset_shard with CHOIR_SHARD_HINT divides the data
} choir_auto_shard;

// Where batches go: to the memory of each replica's device, or to that of the host.
typedef enum { CHOIR_FETCH_TO_DEVICE = 0, CHOIR_FETCH_TO_HOST } choir_fetch;
// How often the function of choir_strategy_distribute_datasets_from_function is called: once for
// the local replicas together, or once for each of them.
typedef enum { CHOIR_REPLICATION_PER_WORKER = 0, CHOIR_REPLICATION_PER_REPLICA } choir_replication;

// How a distributed dataset reads.
typedef struct choir_input_options {
	size_t size;
	// The number of examples in a global batch; the dataset's own batches may have any size. 0:
	// the size of the dataset's own batches. This size is unknown after a map that may change it
	// (docs/rules.md, section 9). Each batch of n examples is then cut into parts of ceil(n /
	// replicas).
	int64_t global_batch;
	choir_auto_shard auto_shard;
	// For programs that connect workers themselves: the number of workers, and this worker's
	// index. Each worker has as many replicas as the strategy, and its data end independently.
	// Both 0: the strategy's workers.
	int workers, worker;
	// Each replica takes a whole batch of the dataset. Under DATA, batch i of a step goes to
	// replica i of the job. Under other policies a worker's batches go to its own replicas, in
	// order.
	bool per_replica_batches;
	// Where the tensors of a batch are. TO_HOST: on the host until a run needs them.
	choir_fetch fetch;
	choir_replication replication; // for distribute_datasets_from_function
	bool place_on_device; // puts the dataset on a device (always CHOIR_UNSUPPORTED)
	// Whether a thread of Choir reads steps ahead, from the first batch on. Prefetch stages of
	// the dataset read ahead, too. Default: on if .read_ahead_steps is set. Otherwise on if the
	// dataset reads files, does not end with a prefetch, and calls no function of the program.
	// Without such functions the thread also reads ahead into the next pass, if no rows were
	// left out.
	choir_toggle read_ahead;
	int read_ahead_steps; // 0: as many as fit in 1 MiB, from one to eight
	// Reading ahead starts when the dataset is distributed, unless the dataset calls a function
	// of the program. A shuffle's buffer then fills while the program makes its variables.
	bool start_reading_now;
	// Whether checkpoints keep the position of the dataset. Default: on. OFF: a restore does not
	// move the dataset, and accepts any number of workers and any policy. All workers need the
	// same value.
	choir_toggle checkpoint;
} choir_input_options;

// Distributes d over the replicas of s. Takes ownership of d, also after a failure. With one
// replica and no global_batch, the dataset's batches stay as they are. Failures:
//
// - CHOIR_INVALID: d has no batch stage and o has no global_batch; a negative global_batch; a
//   worker index that is out of range, or differs from the strategy's; fewer files than workers;
//   workers with different options; under DATA, workers with different datasets (different
//   files: CHOIR_STATE); place_on_device without PER_REPLICA, or with TO_DEVICE.
// - CHOIR_UNSUPPORTED: replication is PER_REPLICA.
// - CHOIR_NOT_FOUND: see CHOIR_AUTO_SHARD_FILE.
// - CHOIR_STATE: d has CHOIR_SHARD_HINT, but several workers use another policy; a call inside a
//   replica, in the scope of another strategy, or after a fork.
choir_distributed_dataset *choir_strategy_distribute_dataset(
		choir_strategy *s, choir_dataset *d, const choir_input_options *o);

// Compares the files that all workers of c are going to read: their number, their sizes, and
// checksums of some blocks. Under DATA choir_strategy_distribute_dataset makes this comparison,
// so only programs that read files themselves need this call. All workers make it, with their
// files in the same order. CHOIR_STATE, on all workers: the files differ.
CHOIR_MUST_CHECK choir_status choir_cluster_compare_files(
		choir_cluster *c, const choir_files *files);

// Makes a memory dataset with the same data on all workers of s. All workers make this call,
// outside of replicas. The first worker's data are copied to the others. Other workers'
// columns[i].data and examples are ignored. CHOIR_INVALID, on all workers: columns differ in
// more than data.
choir_dataset *choir_strategy_make_memory_dataset(
		choir_strategy *s, int64_t examples, size_t n, const choir_column columns[]);

// What a function that makes a dataset is told.
typedef struct choir_input_context {
	size_t size;
	int input_pipelines; // number of workers; under PER_REPLICA, of replicas
	int input_pipeline; // index of this pipeline, from 0
	int replicas_in_sync; // of the job
} choir_input_context;
// Sets *batch to global / replicas_in_sync, the batch of one replica. CHOIR_INVALID: the
// quotient is not whole.
CHOIR_MUST_CHECK choir_status choir_input_context_per_replica_batch(
		const choir_input_context *context, int64_t global, int64_t *batch);

// Makes the dataset of an input pipeline. Each of its batches is for one replica. The
// distributed dataset owns it. NULL: a failure.
typedef choir_dataset *choir_dataset_fn(const choir_input_context *context, void *user);
// Distributes the datasets that fn makes, without cutting or sharding them. This call calls fn
// once. In each step the worker's replicas, in order, each take the next whole batch of this
// dataset. Under PER_REPLICA this calls fn once for each replica, and each replica reads its own
// dataset (mirrored strategies only, else CHOIR_UNSUPPORTED). Failures are those of
// choir_strategy_distribute_dataset. Setting global_batch is CHOIR_INVALID, and auto_shard has
// no effect.
choir_distributed_dataset *choir_strategy_distribute_datasets_from_function(
		choir_strategy *s, choir_dataset_fn *fn, void *user, const choir_input_options *o);

// Fills *batch with the next global batch. Each column becomes a per-replica leaf with the
// column's name: one tensor [rows, ...] for each replica, in the order of the data. If *batch is
// NULL, this call makes it; free it with choir_values_free. Otherwise this call frees the
// tensors of the earlier batch and uses their memory again.
//
// CHOIR_END after the last batch, until the dataset is rewound. After a failure to read or to
// allocate, data stays failed until it is rewound. If the status is not CHOIR_OK, *batch is
// empty. If a rewind or restore failed on one worker, this call fails on all workers.
// CHOIR_STATE: a call inside a replica. CHOIR_INVALID: *batch belongs to another strategy; one
// replica's examples have different shapes. Shapes may differ between replicas, in dimensions
// that are CHOIR_UNKNOWN in the column.
CHOIR_MUST_CHECK choir_status choir_distributed_dataset_next(
		choir_distributed_dataset *data, choir_values **batch);

// Begins another pass at the start of the data. Shuffles then use another order. Batches that
// the program has stay valid.
CHOIR_MUST_CHECK choir_status choir_distributed_dataset_rewind(choir_distributed_dataset *data);

// The size of .seek_point of a position.
enum { CHOIR_INPUT_SEEK_POINTS = 16, CHOIR_INPUT_SEEK_POINT_NUMBERS = 8 };
// The position of a distributed dataset, as plain numbers.
typedef struct choir_input_position {
	size_t size;
	int64_t pass; // from 0
	int64_t elements; // elements of this pass that are used completely
	int64_t examples; // examples of the next element that are used
	int64_t steps; // in this pass
	int64_t signature; // hash of the dataset's stages, seeds, columns and shard
	// The number of valid rows of seek_point. Each row is a place in a file, a little before the
	// position. A CSV, TFRecord or lines source begins to read there; without seek points it
	// must read everything before the position. The restored position is the same.
	int64_t seek_points;
	int64_t seek_point[CHOIR_INPUT_SEEK_POINTS][CHOIR_INPUT_SEEK_POINT_NUMBERS];
} choir_input_position;
// Saves the position of the next batch. If the dataset has failed, saves the start of the failed
// step, or the target of the failed rewind or restore.
CHOIR_MUST_CHECK choir_status choir_distributed_dataset_save(
		const choir_distributed_dataset *data, choir_input_position *position);
// Restores a position. The next batch then has the same bits as the batch that followed the
// save. Under DATA, or with one worker, the number of replicas or workers may have changed, if
// the global batch is the same.
//
// Under other policies with several workers, and for datasets from a function, a position is
// valid for one worker only. The same worker must restore it, with the same number of workers.
//
// Cost: generators (unless seekable), filters and shuffles of streams cannot seek; they read the
// examples before the position again. CHOIR_INVALID, and nothing is changed: the position is
// from a dataset with other stages, seeds or columns, or from another worker; its numbers are
// invalid. CHOIR_INVALID also: the data have fewer elements or examples than the position. After
// this or another failure to read, the dataset stays failed until it is rewound or restored.
CHOIR_MUST_CHECK choir_status choir_distributed_dataset_restore(
		choir_distributed_dataset *data, const choir_input_position *position);

// Getters

// The i-th column as a replica gets it. Its shape is [rows, ...], with CHOIR_UNKNOWN in
// dimensions that can differ.
const choir_column *choir_distributed_dataset_column(
		const choir_distributed_dataset *data, size_t i);
// The number of global batches in a pass, or a constant of choir_dataset_cardinality.
int64_t choir_distributed_dataset_cardinality(const choir_distributed_dataset *data);
// The policy in effect. AUTO becomes FILE or DATA.
choir_auto_shard choir_distributed_dataset_auto_shard(const choir_distributed_dataset *data);
// Whether the policy is DATA because AUTO found no files.
bool choir_distributed_dataset_fell_back(const choir_distributed_dataset *data);
// Writes lines of text that say what each worker and replica reads. If files are sharded, they
// name up to four files of each worker. Works as snprintf.
size_t choir_distributed_dataset_describe(
		const choir_distributed_dataset *data, char *out, size_t size);

CHOIR_C_END
