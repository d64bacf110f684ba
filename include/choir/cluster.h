// Workers: the processes of one job, on one machine or many, each of which runs the same program.
// They are started by a launcher (mpirun, srun); choir_cluster_new finds out who this process is
// and makes sure that all of them fit together. What carries bytes between them is a transport:
// MPI, which is looked for when a program asks for it (libchoir itself links none), or one of the
// program's own (choir/extend/cluster.h).
//
// Every wait for another worker has a deadline. After a wait that failed the cluster is over: all
// its calls fail with the first cause, and the other workers' waits do, naming this worker. A job
// that failed is ended and started again. One failure is none of the cluster's: that which all
// workers make at the same place, with the same status and text, such as an argument that is wrong
// on all of them, before anything of it was sent. Each then gets its failure, and all go on.
#pragma once

#include "status.h"

CHOIR_C_BEGIN

typedef struct choir_cluster choir_cluster;

typedef struct choir_cluster_options {
	size_t size; // of this struct
	// "mpi", "alone" (one worker, this process), or a registered one. NULL: "mpi" if a launcher of
	// MPI has started this process, else "alone".
	const char *transport;
	const void *argument; // for a registered transport; borrowed while the call lasts
	// Which MPI: "openmpi", "mpich", or the path of a libchoir-mpi of one's own. NULL: what the
	// environment's CHOIR_MPI says; else the MPI that is in this process already, else the
	// launcher's, else the first that is installed.
	const char *mpi;
	// Who is who, by hand. cluster_spec is JSON as in TF_CONFIG's "cluster":
	// {"worker": ["a:1", "b:1"]}; task_type is one of "chief", "worker", "evaluator", "ps".
	// cluster_spec NULL: from the environment (see choir_cluster_new).
	const char *cluster_spec, *task_type;
	int task_index;
	double start_timeout; // seconds until all workers are there; 0: 60; CHOIR_NONE: no limit
	// Seconds that a worker waits for another one, also while the chief writes or reads weights or
	// a checkpoint: as long as its disk needs. 0: 300; CHOIR_NONE: no limit.
	double timeout;
	// What must be the same in all workers; NULL: the content of the program's file.
	const char *program;
	// Where processors differ. Off: that is refused. On: all workers take the kernels of the
	// lowest instruction set among them (choir_instruction_set), until the process ends.
	choir_toggle lowest_instruction_set;
} choir_cluster_options;

// The workers of this job, o NULL: all defaults. All of them must call it, and it returns when all
// have.
//
// Roles come from the first of these that there is: the options; TF_CONFIG (chief and workers are
// the job's workers, in this order; a lone evaluator is a cluster of its own); torchrun's RANK,
// WORLD_SIZE and LOCAL_RANK; the launcher's own variables (OMPI_COMM_WORLD_RANK and _SIZE,
// PMI_RANK and PMI_SIZE); srun's SLURM_PROCID and SLURM_STEP_NUM_TASKS; else this is one worker
// alone. They are checked against the transport: a program that is told of two workers and finds
// one gets an error that says how to start it.
//
// CHOIR_INVALID: options or variables that contradict each other or themselves, malformed JSON
// with its position; CHOIR_NOT_FOUND: no such transport, no MPI; CHOIR_UNSUPPORTED: the task ps,
// a thread that MPI's level does not allow to call it, lowest_instruction_set where workers have
// none in common; CHOIR_STATE: MPI was ended, workers of different builds, programs, settings or
// instruction sets (the text names which), an instruction set that is to be lowered after the
// first operation; CHOIR_TIMEOUT, CHOIR_PEER_LOST: not all came.
choir_cluster *choir_cluster_new(const choir_cluster_options *o);

// A cluster of the processes of a communicator of a program that has initialised MPI itself:
// MPI_Comm comm; choir_cluster_from_mpi(&comm, sizeof comm, NULL). The communicator is duplicated
// (all its processes must call this), and MPI is left running in the end. With
// MPI_THREAD_SERIALIZED the program must not call MPI while a call of Choir may do so. Below it
// (MPI_Init, MPI_THREAD_FUNNELED) a worker can have one replica, nothing is exchanged during the
// backward pass (.overlap has no effect), and only the thread that initialised MPI may make calls
// that concern other workers: another thread, and a strategy with more replicas in a worker, get
// CHOIR_UNSUPPORTED. Options as for choir_cluster_new, without a transport and without roles.
choir_cluster *choir_cluster_from_mpi(
		const void *communicator, size_t size, const choir_cluster_options *o);

// Leaves. Over MPI it waits, at most the time-out, for the other workers to do so, also where the
// program has initialised MPI (choir_cluster_from_mpi): what another worker needs from this one to
// get there must come before. Where Choir has initialised MPI, MPI then ends, and cannot be
// initialised again. After a failure it waits for nobody. Everything made with c must be gone.
// NULL is fine.
void choir_cluster_free(choir_cluster *c);

// These are of a cluster that is NULL, too: 0, false, "".
//
// This worker's number, 0 to workers - 1, and how many there are.
int choir_cluster_worker(const choir_cluster *c);
int choir_cluster_workers(const choir_cluster *c);
// The chief saves checkpoints and writes summaries: worker 0, or an evaluator for itself.
bool choir_cluster_is_chief(const choir_cluster *c);
// The task as TensorFlow would name it: "chief", "worker" or "evaluator", and its index among
// those. A job without roles has workers only.
const char *choir_cluster_task_type(const choir_cluster *c);
int choir_cluster_task_index(const choir_cluster *c);
// Where worker i runs, for messages: "node3, pid 4711"; "" where there is no such worker.
const char *choir_cluster_worker_name(const choir_cluster *c, int i);
// What carries the bytes: "mpi: Open MPI v4.1.4, MPI_THREAD_MULTIPLE".
const char *choir_cluster_transport(const choir_cluster *c);

// These three are for all workers together, in the same order: one that is called by some while
// others call another one, or with other sizes, is CHOIR_STATE that names both. Threads: one at a
// time.
//
// Returns when all workers have called it.
CHOIR_MUST_CHECK choir_status choir_cluster_barrier(choir_cluster *c);
// The bytes of worker from, everywhere.
CHOIR_MUST_CHECK choir_status choir_cluster_broadcast(
		choir_cluster *c, int from, void *data, size_t bytes);
// Bytes of each worker, in the order of workers: all has room for workers times bytes.
CHOIR_MUST_CHECK choir_status choir_cluster_all_gather(
		choir_cluster *c, const void *own, size_t bytes, void *all);

// Stops the job: from now on all calls fail, here and in all other workers, with this reason.
// Threads: any.
void choir_cluster_abort(choir_cluster *c, const char *why);

CHOIR_C_END
