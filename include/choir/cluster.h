// Clusters: the workers of one job, processes of one program that a launcher (mpirun, srun)
// starts. A transport moves bytes between them: MPI, which Choir loads when a program asks for it,
// or a registered table (extend/transport_table.h).
//
// Every wait for another worker has a time limit. After a failed wait all calls on all workers
// fail with the first failure's text, and the job must start again (docs/cluster.md).
#pragma once

#include "status.h"

CHOIR_C_BEGIN

typedef struct choir_cluster choir_cluster;

// How a worker joins its job.
typedef struct choir_cluster_options {
	size_t size;
	// "mpi", "alone" (only this process), or a registered name. NULL: "mpi" if an MPI launcher
	// started this process, else "alone".
	const char *transport;
	const void *argument; // for a registered transport
	// "openmpi", "mpich", or the path of another libchoir-mpi. NULL: the environment variable
	// CHOIR_MPI, else the loaded MPI, else the launcher's, else the first installed.
	const char *mpi;
	// The workers' roles, like "cluster" of TF_CONFIG: {"worker": ["a:1", "b:1"]}, and this
	// worker's task: "chief", "worker", "evaluator" or "ps". NULL: from the environment.
	const char *cluster_spec, *task_type;
	int task_index;
	double start_timeout; // seconds until all workers have joined; 0: 60; CHOIR_FOREVER: no limit
	// Seconds that a worker waits for another worker or for the chief's files. 0: 300;
	// CHOIR_FOREVER: no limit.
	double timeout;
	// Must be equal on all workers. NULL: the content of the program's file.
	const char *program;
	// On: if the workers' instruction sets differ, all use the lowest until the process ends. Off
	// (default): choir_cluster_new then fails.
	choir_toggle lowest_instruction_set;
} choir_cluster_options;

// Joins this job's workers. Returns after all have made this call.
//
// The roles come from the options, else from TF_CONFIG, else from the variables of torchrun,
// mpirun or srun. Without them, this process is the only worker. In TF_CONFIG, the job's workers
// are the chief, then the workers; an evaluator is a cluster by itself.
//
// CHOIR_INVALID: options or environment variables contradict each other; malformed JSON.
// CHOIR_NOT_FOUND also: no MPI. CHOIR_UNSUPPORTED: the task ps; MPI's thread level does not let
// this thread call MPI; lowest_instruction_set is on, but no set is common. CHOIR_STATE: MPI has
// ended; the workers' builds, programs, settings or instruction sets differ; the set must be
// lowered after an operation. CHOIR_TIMEOUT, CHOIR_PEER_LOST: a worker did not join.
choir_cluster *choir_cluster_new(const choir_cluster_options *o);

// Makes a cluster of a communicator's processes, in a program that has initialized MPI: MPI_Comm
// comm; choir_cluster_from_mpi(&comm, sizeof comm, NULL). All of these make this call. Choir
// duplicates the communicator, and does not finalize MPI. A Fortran communicator is an MPI_Fint. o
// sets no transport and roles.
//
// With MPI_THREAD_SERIALIZED, the program must not call MPI during a call of Choir that may do so.
// With a lower level (MPI_Init, MPI_THREAD_FUNNELED), a worker has one replica, .overlap
// (strategy.h) has no effect, and only the thread that initialized MPI may make calls that need
// other workers (else CHOIR_UNSUPPORTED).
choir_cluster *choir_cluster_from_mpi(
		const void *communicator, size_t size, const choir_cluster_options *o);

// Leaves the cluster and frees it. First free everything made with c, and finish what others need.
// With MPI, waits for the others to leave, at most .timeout, but not after a failure. If Choir
// initialized MPI, it finalizes MPI for good.
void choir_cluster_free(choir_cluster *c);

// Getters

// This worker's number, from 0, and how many there are.
int choir_cluster_worker(const choir_cluster *c);
int choir_cluster_workers(const choir_cluster *c);
// True for worker 0 and for an evaluator, which save checkpoints and write summaries.
bool choir_cluster_is_chief(const choir_cluster *c);
// "chief", "worker" (also without roles) or "evaluator", and the index among tasks of this type.
const char *choir_cluster_task_type(const choir_cluster *c);
int choir_cluster_task_index(const choir_cluster *c);
// "node3, pid 4711"; "" if there is no such worker.
const char *choir_cluster_worker_name(const choir_cluster *c, int i);
// "mpi: Open MPI v4.1.4, MPI_THREAD_MULTIPLE".
const char *choir_cluster_transport(const choir_cluster *c);

// Collective calls: all workers make them in the same order. CHOIR_STATE: the calls or sizes
// differ. Threads: one at a time.

// Waits until all workers have made this call.
CHOIR_MUST_CHECK choir_status choir_cluster_barrier(choir_cluster *c);
// Broadcasts data. from is the number of the sending worker.
CHOIR_MUST_CHECK choir_status choir_cluster_broadcast(
		choir_cluster *c, int from, void *data, size_t bytes);
// Gathers every worker's data. own is this one's; all gets every worker's, in order.
CHOIR_MUST_CHECK choir_status choir_cluster_all_gather(
		choir_cluster *c, const void *own, size_t bytes, void *all);

// Stops the job: later calls on all workers fail with this text. Threads: any.
void choir_cluster_abort(choir_cluster *c, const char *why);

CHOIR_C_END
