// A distributed dataset cuts a dataset into global batches, and gives each replica its rows.
//
// If R replicas share a batch of G examples, the first G mod R replicas have one row more. A short
// batch at the end fills the first replicas first (docs/rules.md, section 9). A replica without
// examples gets tensors of 0 rows. A batch has at least one example.
//
// The workers of a multi-worker mirrored strategy all make the same calls of this header. Each
// worker gets its replicas' rows. After its data's end, it takes part without examples until all
// workers' data have ended.
//
// Threads: one at a time.
#pragma once

#include "source.h"
#include "strategy.h"

CHOIR_C_BEGIN

typedef struct choir_distributed_dataset choir_distributed_dataset;

// How several workers share the data.
typedef enum {
	// Each worker reads all data, and keeps its replicas' rows.
	CHOIR_AUTO_SHARD_DATA = 0,
	// Each worker uses all data, so two workers use every example twice.
	CHOIR_AUTO_SHARD_OFF,
	CHOIR_AUTO_SHARD_AUTO, // FILE if files are read, else DATA with a warning in the log
	// Each worker reads its own files. CHOIR_NOT_FOUND: a source reads no files.
	CHOIR_AUTO_SHARD_FILE,
	CHOIR_AUTO_SHARD_HINT // choir_dataset_shard with CHOIR_SHARD_HINT divides the data
} choir_auto_shard;

// Where batches go: to each replica's device, or to the host's memory.
typedef enum { CHOIR_FETCH_TO_DEVICE = 0, CHOIR_FETCH_TO_HOST } choir_fetch;
// Whether choir_strategy_distribute_datasets_from_function calls the function once for all local
// replicas, or once for each.
typedef enum { CHOIR_REPLICATION_PER_WORKER = 0, CHOIR_REPLICATION_PER_REPLICA } choir_replication;

// How a distributed dataset reads.
typedef struct choir_input_options {
	size_t size;
	// Examples in a global batch, whatever the dataset's batches. 0: its batches (docs/rules.md,
	// section 9).
	int64_t global_batch;
	choir_auto_shard auto_shard;
	// If the program connects workers: their number, and this one's index. Each has the strategy's
	// replicas, and its data end independently. Both 0: the strategy's.
	int workers, worker;
	// Each replica takes a whole batch of the dataset. With DATA, batch i of a step goes to
	// replica i of the job. With other policies, a worker's batches go to its replicas in order.
	bool per_replica_batches;
	// TO_HOST: tensors stay on the host until a run needs them.
	choir_fetch fetch;
	choir_replication replication; // for distribute_datasets_from_function
	bool place_on_device; // always CHOIR_UNSUPPORTED
	// Whether a thread reads steps ahead, from the first batch on. Default: on if
	// .read_ahead_steps is set, or if the dataset reads files, does not end with a prefetch, and
	// calls no function of the program.
	choir_toggle read_ahead;
	int read_ahead_steps; // 0: as many as fit in 1 MiB, from one to eight
	// True: reading ahead starts at once, unless the dataset calls a function of the program.
	bool start_reading_now;
	// Whether checkpoints keep, and a restore moves, the dataset's position; equal on all workers.
	// Default: on.
	choir_toggle checkpoint;
} choir_input_options;

// Distributes d over the replicas of s. Takes ownership of d, also after a failure. With one
// replica and no global_batch, batches stay as they are.
//
// - CHOIR_INVALID: d has no batch stage and o no global_batch; fewer files than workers; workers
//   with different options; with DATA, workers with different datasets. The values of memory
//   datasets are not compared.
// - CHOIR_UNSUPPORTED: replication is PER_REPLICA.
// - CHOIR_STATE: workers' files differ; d has CHOIR_SHARD_HINT, and several workers use another
//   policy; the thread is in a replica or another strategy's scope; s is from before a fork.
choir_distributed_dataset *choir_strategy_distribute_dataset(
		choir_strategy *s, choir_dataset *d, const choir_input_options *o);

// For programs that read files themselves: compares the files of c's workers, by number, sizes and
// checksums of some blocks. All workers call it, with files in one order. CHOIR_STATE, on all
// workers: they differ.
CHOIR_MUST_CHECK choir_status choir_cluster_compare_files(
		choir_cluster *c, const choir_files *files);

// Makes a memory dataset of the first worker's data on all workers of s, which all make this call,
// outside of replicas. Ignores the others' columns[i].data and examples.
choir_dataset *choir_strategy_make_memory_dataset(
		choir_strategy *s, int64_t examples, size_t n, const choir_column columns[]);

// The argument of a choir_dataset_fn.
typedef struct choir_input_context {
	size_t size;
	int input_pipelines; // number of workers; with PER_REPLICA, of replicas
	int input_pipeline; // from 0
	int replicas_in_sync; // of the job
} choir_input_context;
// Sets *batch to global / replicas_in_sync, which must be a whole number.
CHOIR_MUST_CHECK choir_status choir_input_context_per_replica_batch(
		const choir_input_context *context, int64_t global, int64_t *batch);

// Makes an input pipeline's dataset, with batches for one replica. The distributed dataset owns
// it.
typedef choir_dataset *choir_dataset_fn(const choir_input_context *context, void *user);
// Distributes the datasets that fn makes, whatever auto_shard is. Calls fn once; in each step each
// replica takes the next whole batch, in order. With PER_REPLICA (mirrored strategies only, else
// CHOIR_UNSUPPORTED), calls fn for each replica, and each replica reads its own dataset. Fails as
// choir_strategy_distribute_dataset. CHOIR_INVALID also: global_batch is set.
choir_distributed_dataset *choir_strategy_distribute_datasets_from_function(
		choir_strategy *s, choir_dataset_fn *fn, void *user, const choir_input_options *o);

// Frees data before its strategy does. Its batches can then only be freed or refilled by another
// dataset. Checkpoints lack its position. All workers make this call.
void choir_distributed_dataset_free(choir_distributed_dataset *data);

// Fills *batch with the next global batch. Each column becomes a per-replica leaf of its name, of
// tensors [rows, ...], in the order of the data. *batch NULL: makes a set, which the caller frees.
// Else reuses the earlier batch's memory.
//
// In dimensions that are CHOIR_UNKNOWN in the column, shapes may differ between replicas, but not
// inside one. CHOIR_END: after the last batch. After it, or a failure to read or to allocate,
// calls return the same until data is rewound. If a rewind or restore failed on one worker, this
// call fails on all. Without CHOIR_OK *batch is empty. CHOIR_STATE: in a replica.
CHOIR_MUST_CHECK choir_status choir_distributed_dataset_next(
		choir_distributed_dataset *data, choir_values **batch);

// Begins another pass, in which shuffles use another order. Earlier batches stay valid.
CHOIR_MUST_CHECK choir_status choir_distributed_dataset_rewind(choir_distributed_dataset *data);

// The size of .seek_point.
enum { CHOIR_INPUT_SEEK_POINTS = 16, CHOIR_INPUT_SEEK_POINT_NUMBERS = 8 };
// The position of a distributed dataset.
typedef struct choir_input_position {
	size_t size;
	int64_t pass; // from 0
	int64_t elements; // elements of this pass that are used completely
	int64_t examples; // examples of the next element that are used
	int64_t steps; // in this pass
	int64_t signature; // hash of the dataset's stages, seeds, columns and shard
	// The valid rows of seek_point: places in files before the position, from which a CSV,
	// TFRecord or lines source reads.
	int64_t seek_points;
	int64_t seek_point[CHOIR_INPUT_SEEK_POINTS][CHOIR_INPUT_SEEK_POINT_NUMBERS];
} choir_input_position;
// Saves the position of the next batch: after a failure, the start of the failed step, or the
// target of the failed rewind or restore.
CHOIR_MUST_CHECK choir_status choir_distributed_dataset_save(
		const choir_distributed_dataset *data, choir_input_position *position);
// Restores a position: the next batch has the bits of the batch after the save. With DATA, or with
// one worker, the number of replicas or workers may differ from the save's, if the global batch is
// the same. Else, and for datasets from a function, a worker can restore only its own position,
// with the same number of workers.
//
// Cost: a filter, a shuffle of a stream, or an unseekable generator reads the examples before the
// position again. CHOIR_INVALID, and nothing changes: the position is from another worker, or from
// a dataset with other stages, seeds or columns. After another failure, such as too few data, the
// dataset stays failed until rewound or restored.
CHOIR_MUST_CHECK choir_status choir_distributed_dataset_restore(
		choir_distributed_dataset *data, const choir_input_position *position);

// Getters

// The i-th column as a replica gets it: [rows, ...], with CHOIR_UNKNOWN in dimensions that can
// differ.
const choir_column *choir_distributed_dataset_column(
		const choir_distributed_dataset *data, size_t i);
// The global batches in a pass, or a constant of choir_dataset_cardinality.
int64_t choir_distributed_dataset_cardinality(const choir_distributed_dataset *data);
// The policy in effect: AUTO has become FILE or DATA.
choir_auto_shard choir_distributed_dataset_auto_shard(const choir_distributed_dataset *data);
// Whether AUTO found no files.
bool choir_distributed_dataset_fell_back(const choir_distributed_dataset *data);
// Writes lines that say what each worker and replica reads; size and the result are snprintf's.
size_t choir_distributed_dataset_describe(
		const choir_distributed_dataset *data, char *out, size_t size);

CHOIR_C_END
