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
// Where a strategy is in step with other workers (choir_multi_worker_mirrored_strategy_new), all
// of them make the same calls here, and each gets its own replicas' rows. They stop together: a
// worker whose data have ended takes part without examples until all have. All know how many
// examples there are in a step, and a failure of one is a failure of all in that step: its own for
// the one, CHOIR_CANCELLED with the worker and its reason for the others.
//
// Threads: the program's, one at a time for a distributed dataset.
#pragma once

#include "source.h"
#include "strategy.h"

CHOIR_C_BEGIN

// It belongs to its strategy and is freed with it.
typedef struct choir_distributed_dataset choir_distributed_dataset;

// Which part of the data each of several workers reads. With one worker none of them changes
// anything.
typedef enum {
	// All read everything, and each keeps the pieces of its own replicas, so that the number of
	// workers changes nothing.
	CHOIR_AUTO_SHARD_DATA = 0,
	// All read everything and keep it. A batch of the dataset is still the global one: in each
	// step a worker reads what its replicas have of it, so a pass of two workers has twice the
	// steps, and every example comes twice.
	CHOIR_AUTO_SHARD_OFF,
	CHOIR_AUTO_SHARD_AUTO, // FILE, or with a warning in the log DATA where no files are read
	// Each reads files of its own. CHOIR_NOT_FOUND: nothing that reads files was found, or a step
	// behind it hides it; CHOIR_INVALID: fewer files than workers.
	CHOIR_AUTO_SHARD_FILE,
	CHOIR_AUTO_SHARD_HINT // choir_dataset_shard with CHOIR_SHARD_HINT says where
} choir_auto_shard;

typedef enum { CHOIR_FETCH_TO_DEVICE = 0, CHOIR_FETCH_TO_HOST } choir_fetch;
typedef enum { CHOIR_REPLICATION_PER_WORKER = 0, CHOIR_REPLICATION_PER_REPLICA } choir_replication;

typedef struct choir_input_options {
	size_t size;
	// Examples of a global batch, of all replicas together. 0: as many as the dataset's own
	// batch has, if no step behind it changed what a batch is (map does, behind a batch step that
	// keeps a short last batch); if one did, each batch of n is cut into ceil(n / replicas).
	// Another number cuts the stream of examples anew, without regard to the dataset's batches.
	int64_t global_batch;
	choir_auto_shard auto_shard;
	// How many workers there are, each with as many replicas as the strategy, and which of them
	// this is, for programs that bring the workers together themselves: each then ends by itself.
	// Both 0: those that the strategy is in step with, or this one alone.
	int workers, worker;
	// Each replica takes a whole batch of the dataset, whose batches then are of one replica: what
	// make_dataset_iterator of tf.contrib did. Under DATA batch i of a step is replica i's of the
	// job; under other policies each worker's replicas take the next ones of what it reads.
	bool per_replica_batches;
	// Where the tensors of a batch are: on their replicas' devices, or on the host until a run
	// asks for them.
	choir_fetch fetch;
	choir_replication replication; // of distribute_datasets_from_function
	bool place_on_device; // the dataset itself: no device of Choir's can (CHOIR_UNSUPPORTED)
	// Steps that are read ahead on a thread of Choir's, beside what the dataset's own prefetch
	// steps read; it starts with the first batch. CHOIR_NONE: none, so that nothing is read but
	// what a step needs. 0: as many as 1 MiB holds, from one to eight, where the dataset reads
	// files and calls no function of the program, which would see that thread; else none, and
	// none behind a prefetch step. Such a dataset is also read on behind the end of a pass, into
	// the next, unless rows of it were left out.
	int buffer;
	// Reading ahead begins now, so that a shuffle's buffer fills while the program still makes its
	// variables. Of datasets that call no function of the program; with others it waits for the
	// first batch all the same.
	bool begin_now;
	// Whether checkpoints keep where the dataset stands: on. OFF: they save and restore nothing of
	// it, and the dataset goes on from where it is, on any number of workers and under any policy;
	// for data that have no place to go back to (queues) or that are to begin anew. All workers
	// need the same.
	choir_toggle checkpoint;
} choir_input_options;

// Distributes d over the replicas of s. d is taken over, also on failure; o may be NULL. Nothing
// is read before the first batch is asked for, unless o says begin_now. With one replica and no
// global_batch, the dataset's batches are handed on as they come. Errors: d is NULL: the first
// cause stays.
// CHOIR_INVALID: d has no batch step and o names no global batch; a negative one; a worker that
// there is not, or not this one in the strategy's cluster; fewer files than workers; workers in
// step whose options, or under DATA whose datasets, differ (their files:
// CHOIR_STATE); place_on_device without PER_REPLICA or
// with fetching to the device; a strategy that is NULL. CHOIR_UNSUPPORTED: PER_REPLICA.
// CHOIR_NOT_FOUND: see CHOIR_AUTO_SHARD_FILE. CHOIR_STATE: CHOIR_SHARD_HINT in d under another
// policy and several workers; inside a replica, in the scope of another strategy, or after a fork.
choir_distributed_dataset *choir_strategy_distribute_dataset(
		choir_strategy *s, choir_dataset *d, const choir_input_options *o);

// Compares the files that all workers of c are to read: how many there are, their sizes, and a
// checksum of their beginning, their end and some blocks between. distribute_dataset does so under
// DATA with all files of sources; this is for programs that read files themselves. All workers
// make this call, at the same place of the program, with their files in the same order.
// CHOIR_STATE, on all workers: the text names the first file that differs and the worker.
// Threads: the program's.
CHOIR_MUST_CHECK choir_status choir_cluster_compare_files(
		choir_cluster *c, const choir_files *files);

// Arrays as a dataset on all workers that s is in step with, which all make this call: the first
// worker's data are copied, and sent to the others once, where columns[i].data and examples are
// ignored. The columns' names, dtypes and shapes must be the same everywhere (CHOIR_INVALID, on
// all workers). Without other workers it is choir_memory_dataset_new with a copy. Threads: the
// program's, outside of replicas.
choir_dataset *choir_strategy_make_memory_dataset(
		choir_strategy *s, int64_t examples, size_t n, const choir_column columns[]);

// For which input pipeline a function makes a dataset.
typedef struct choir_input_context {
	size_t size;
	int input_pipelines; // workers; under PER_REPLICA replicas
	int input_pipeline; // which of them, from 0
	int replicas_in_sync; // of the job
} choir_input_context;
// The batch of one replica. CHOIR_INVALID: replicas do not divide the global batch.
CHOIR_MUST_CHECK choir_status choir_input_context_per_replica_batch(
		const choir_input_context *context, int64_t global, int64_t *batch);

// Makes the dataset of an input pipeline, in batches of one replica. NULL: it has failed, with
// choir_fail or in a constructor. It becomes the distributed dataset's.
typedef choir_dataset *choir_dataset_fn(const choir_input_context *context, void *user);
// A distributed dataset of what fn makes: nothing is split and nothing sharded, each replica takes
// a whole batch in each step, the next ones of the worker's dataset in the order of the replicas.
// fn is called now: once, or under PER_REPLICA once for each replica of a mirrored strategy (of
// others CHOIR_UNSUPPORTED), which then reads its own. o as above, without global_batch
// (CHOIR_INVALID); auto_shard changes nothing.
choir_distributed_dataset *choir_strategy_distribute_datasets_from_function(
		choir_strategy *s, choir_dataset_fn *fn, void *user, const choir_input_options *o);

// Fills *batch with the next global batch: a per-replica leaf for each column of the dataset,
// under the column's name, one tensor of [rows, ...] a replica, in the order of the data. *batch
// is NULL, and is made (free it with choir_values_free), or an earlier one, and is refilled: the
// tensors in it die, their memory is used again, and reading on and on allocates nothing.
// CHOIR_OK; CHOIR_END after the last batch, now and until the rewind; or an error, of the
// dataset or of memory, after which the dataset stays failed until the rewind, on all workers that
// are in step: the others have CHOIR_CANCELLED. A rewind or restore that has failed on one is told
// to them when it asks for the next batch. Other than with CHOIR_OK *batch is empty. CHOIR_STATE:
// inside a replica, where each replica would take a batch of its own. CHOIR_INVALID: *batch
// belongs to another strategy; one replica would get examples of different shapes in one batch.
// Batches of different replicas may differ in shape where the column's shape is not known.
CHOIR_MUST_CHECK choir_status choir_distributed_dataset_next(
		choir_distributed_dataset *data, choir_values **batch);

// Back to the start, for another pass (of which shuffles make another order). Examples that were
// read and not handed out are dropped. Batches that the program holds stay as they are.
CHOIR_MUST_CHECK choir_status choir_distributed_dataset_rewind(choir_distributed_dataset *data);

enum { CHOIR_INPUT_MARKS = 16, CHOIR_INPUT_MARK_NUMBERS = 8 };
// Where a distributed dataset stands: numbers that a checkpoint can keep as it likes.
typedef struct choir_input_position {
	size_t size; // set it: CHOIR_OPTIONS, or sizeof
	int64_t pass; // from 0
	int64_t elements; // of the dataset, used up in this pass
	int64_t examples; // of the next one that were handed out
	int64_t steps; // in this pass
	int64_t signature; // of the dataset's steps, seeds and columns, and of whose part it is
	// Places in files a little before, so that sources whose records can only be counted by
	// reading them (CSV, TFRecord, lines) need not read all that lies before. So many rows of
	// mark; without them restoring gives the same and takes longer. What the numbers mean is the
	// sources' own.
	int64_t marks;
	int64_t mark[CHOIR_INPUT_MARKS][CHOIR_INPUT_MARK_NUMBERS];
} choir_input_position;
// What was read ahead does not count. Of a dataset that is failed it is where the step that has
// failed began, or where the rewind or restore was to go: nothing is passed over that was not
// handed out. A position of an older program, which is shorter, is filled as far as it goes.
CHOIR_MUST_CHECK choir_status choir_distributed_dataset_save(
		const choir_distributed_dataset *data, choir_input_position *position);
// The batch that comes next is the one that came next there, bit by bit; with the same global
// batch and the policy DATA, or one worker, also at another number of replicas and workers. (A
// global batch over single examples is a step of the dataset.)
// Sources and steps that can jump do; the others (functions, filters, shuffles of streams) are
// read up to there, which costs what reading them had cost. Under other policies with several
// workers, and of datasets from a function, a position is that of its worker's part, of which only
// the same worker of as many goes on: each saves and restores its own (a checkpoint does this by
// itself). CHOIR_INVALID: the position is of a dataset with other steps, seeds or columns, or of
// another worker's part, or its numbers are none that saving gives, and then nothing has changed;
// or the data have fewer elements or examples than it says. After that, or another failure to
// read, the dataset is failed until it is rewound or restored.
CHOIR_MUST_CHECK choir_status choir_distributed_dataset_restore(
		choir_distributed_dataset *data, const choir_input_position *position);

// What is known of a distributed dataset. One that is NULL has nothing.
// The i-th column as a replica gets it, [rows, ...]; dimensions that can differ are CHOIR_NONE.
// NULL: there is no i-th. It is the dataset's.
const choir_column *choir_distributed_dataset_column(
		const choir_distributed_dataset *data, size_t i);
// How many batches a pass has; CHOIR_NONE: that shows only by reading; CHOIR_ENDLESS.
int64_t choir_distributed_dataset_cardinality(const choir_distributed_dataset *data);
// The policy that is at work: with AUTO, FILE or DATA, where it was decided.
choir_auto_shard choir_distributed_dataset_auto_shard(const choir_distributed_dataset *data);
// Whether that is DATA because AUTO found no files.
bool choir_distributed_dataset_fell_back(const choir_distributed_dataset *data);
// Who reads what: lines of text, of all workers and replicas; the files of each that are shared
// out, of many the first four. Writes at most size bytes with the zero, and returns how long the
// text is.
size_t choir_distributed_dataset_describe(
		const choir_distributed_dataset *data, char *out, size_t size);

CHOIR_C_END
