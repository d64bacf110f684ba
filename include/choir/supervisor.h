// The supervisor starts the workers of a job and watches them. If a worker fails, the supervisor
// names that worker and starts the job again from its last checkpoint. The command `choir run`
// calls these functions.
//
// Each worker has an agent. The agent is a process that starts the program, passes on its output
// and tells the supervisor how it ended. The program and its agent share a page of memory. Choir
// writes the present step and collective of the program there (environment variable CHOIR_RUN). A
// job has succeeded only if each worker has freed its clusters without a failure and has exited
// with status 0.
//
// Linux only. During choir_supervisor_run, this process adopts descendants whose parents have
// ended. It kills all of its descendants after an attempt has failed, and at the end of the call.
// So it must have no other child processes.
#pragma once

#include "status.h"

CHOIR_C_BEGIN

typedef struct choir_supervisor choir_supervisor; // of one job

// The kind of a reported line.
typedef enum {
	CHOIR_SUPERVISOR_OUTPUT = 1, // a line of a worker's standard output
	CHOIR_SUPERVISOR_ERROR, // a line of a worker's standard error
	CHOIR_SUPERVISOR_LAUNCHER, // a line of a launcher, such as mpirun or ssh
	CHOIR_SUPERVISOR_NOTE, // a decision of the supervisor, and its reason
	CHOIR_SUPERVISOR_EVENT, // an event as a JSON object; times are of the monotonic clock
	CHOIR_SUPERVISOR_PROGRESS // the newest progress of the job
} choir_supervisor_kind;

// Called with each reported line, on the thread of choir_supervisor_run. line has no line end, and
// is valid only during the call. worker is CHOIR_NONE unless the line belongs to a worker.
// choir_supervisor_stop is the only function of the supervisor that this function may call.
typedef void choir_supervisor_fn(
		choir_supervisor_kind kind, int worker, const char *line, void *user);

// The options of a job. Times are in seconds.
typedef struct choir_supervisor_options {
	size_t size;
	int workers; // 0: 1
	int min_workers; // the fewest with which the job may start or restart; 0: workers
	int restarts; // the largest number of restarts after failures
	// The hosts and, after a colon, the number of workers that a host may have: "a,b:2". Or the
	// path of a file with one host per line. The file is read again before each restart. NULL:
	// this machine.
	const char *hosts;
	// The MPI that connects the workers: "openmpi", "mpich" or "none". NULL: "none" for one worker
	// or with .launcher, else the first MPI whose launcher is installed.
	const char *mpi;
	// The program and its arguments, which end in NULL.
	const char *const *program;
	// The path of the command choir, the same on all hosts. The agents run it.
	const char *agent;
	// A command and its arguments, separated by spaces, which replaces ssh or the MPI's launcher.
	// NULL: srun for an MPI in a Slurm job, else mpirun, mpiexec or ssh.
	const char *launcher;
	// The address of this machine to which agents on other hosts connect. NULL: its host name.
	const char *address;
	double lost_after; // seconds without a heartbeat after which a worker is lost; 0: 5
	double start_timeout; // seconds until all workers have started; 0: 60
	double stall; // seconds that workers may wait for another worker; 0: no limit
	double stop_timeout; // seconds in which workers can save after a stop; 0: 30
	choir_supervisor_fn *report;
	void *user;
	// The number of parameter servers of a coordinator's job (coordinator.h). Worker 0 is then the
	// coordinator, the next ones are the servers. Each program gets its task by CHOIR_TASK, and
	// with .hosts also by CHOIR_HOST and the job's key. If one of the other workers fails, it
	// starts again, and the rest goes on. 0: no coordinator.
	int servers;
} choir_supervisor_options;

// Makes a supervisor. CHOIR_INVALID: an invalid option; no program or agent. CHOIR_NOT_FOUND: the
// file of hosts, the MPI's launcher, or the library for connections (libchoir-net) is missing.
choir_supervisor *choir_supervisor_new(const choir_supervisor_options *o);

// Runs the job to its end. CHOIR_OK: all workers have finished. CHOIR_CANCELLED:
// choir_supervisor_stop stopped the job. CHOIR_STATE: the same step has failed twice in the same
// way, or this supervisor has run before. CHOIR_PEER_LOST: a worker has failed, and no restart is
// left, or too few hosts are left. CHOIR_INVALID: the hosts have capacity for fewer than
// .min_workers. When the call returns, all processes of the job on this machine have ended.
CHOIR_MUST_CHECK choir_status choir_supervisor_run(choir_supervisor *s);

// Asks the workers to stop after their present step, as if they got the signal number (15:
// SIGTERM). A second call kills the workers. Threads: any. A signal handler may make this call.
void choir_supervisor_stop(choir_supervisor *s, int number);

// The signal that stopped the job before the workers had saved; 0: none.
int choir_supervisor_unsaved(const choir_supervisor *s);
// The name of the job, as choir_supervisor_show takes it.
const char *choir_supervisor_job(const choir_supervisor *s);
void choir_supervisor_free(choir_supervisor *s);

// The options of one worker's agent. The supervisor starts `AGENT run --agent ADDRESS --attempt N
// --lost-after SECONDS [--worker I] -- PROGRAM`. AGENT is choir_supervisor_options.agent; it calls
// choir_agent_run.
typedef struct choir_agent_options {
	size_t size;
	const char *address; // of the supervisor
	int attempt;
	int worker; // CHOIR_NONE: the rank from the launcher's environment
	double lost_after; // seconds without a message of the supervisor; then the program is killed
	const char *const *program; // and its arguments, which end in NULL
	const volatile int *signal; // *signal is sent to the program when it is not 0; or NULL
} choir_agent_options;
// Runs a program as its agent, until the supervisor ends the attempt. CHOIR_NOT_FOUND: no
// supervisor or no program. CHOIR_TIMEOUT: the supervisor does not answer. CHOIR_PEER_LOST: the
// supervisor has ended. The agent has then killed the program.
CHOIR_MUST_CHECK choir_status choir_agent_run(const choir_agent_options *o);

// Reports the state of a running job of this user on this machine: as lines of kind
// CHOIR_SUPERVISOR_NOTE or, if json is true, as one JSON object of kind CHOIR_SUPERVISOR_EVENT.
// job NULL: the only running job. CHOIR_NOT_FOUND: no such job. CHOIR_INVALID: job is not a valid
// name; or job is NULL and several jobs run, which the text lists.
CHOIR_MUST_CHECK choir_status choir_supervisor_show(
		const char *job, bool json, choir_supervisor_fn *report, void *user);

CHOIR_C_END
