// The supervisor starts the workers of a job and watches them. If a worker fails, it names the
// worker, and starts the job again from its last checkpoint. The command `choir run` calls these
// functions.
//
// Each worker has an agent: a process that starts the program, passes on its output, and tells the
// supervisor how it ended. Both share a page of memory with the present step and collective
// (environment variable CHOIR_RUN). A job succeeds only if each worker frees its clusters without
// a failure and exits with status 0.
//
// Linux only. During choir_supervisor_run, this process adopts descendants whose parents have
// ended, and kills all descendants after a failed attempt and at the end. So it must have no other
// child processes.
#pragma once

#include "status.h"

CHOIR_C_BEGIN

typedef struct choir_supervisor choir_supervisor; // of one job

// The kind of a reported line.
typedef enum {
	CHOIR_SUPERVISOR_OUTPUT = 1, // of a worker's standard output
	CHOIR_SUPERVISOR_ERROR, // of a worker's standard error
	CHOIR_SUPERVISOR_LAUNCHER, // of a launcher, such as mpirun or ssh
	CHOIR_SUPERVISOR_NOTE, // a decision of the supervisor, and its reason
	CHOIR_SUPERVISOR_EVENT, // an event as a JSON object, with times of the monotonic clock
	CHOIR_SUPERVISOR_PROGRESS // the job's newest progress
} choir_supervisor_kind;

// Gets each reported line, on the thread of choir_supervisor_run. line has no line end, and is
// valid only during the call. worker: CHOIR_NONE if the line is no worker's. The function may call
// only choir_supervisor_stop.
typedef void choir_supervisor_fn(
		choir_supervisor_kind kind, int worker, const char *line, void *user);

// The options of a job. Times are in seconds.
typedef struct choir_supervisor_options {
	size_t size;
	int workers; // 0: 1
	int min_workers; // with which the job may start or restart; 0: workers
	int restarts; // the largest number of restarts
	// Hosts, as in "a,b:2", where b may have 2 workers; or a file with one host per line, which
	// each restart reads again. NULL: this machine.
	const char *hosts;
	// The MPI that connects the workers: "openmpi", "mpich" or "none". NULL: "none" for one worker
	// or with .launcher, else the first MPI whose launcher is installed.
	const char *mpi;
	// The program and its arguments, which end in NULL.
	const char *const *program;
	// The path of the command choir on all hosts, which the agents run.
	const char *agent;
	// A command and its arguments, separated by spaces, in place of ssh or the MPI's launcher.
	// NULL: srun for an MPI in a Slurm job, else mpirun, mpiexec or ssh.
	const char *launcher;
	// This machine's address for agents on other hosts. NULL: its host name.
	const char *address;
	double lost_after; // seconds without a heartbeat until a worker is lost; 0: 5
	double start_timeout; // seconds until all workers have started; 0: 60
	double stall; // seconds that workers may wait for another; 0: no limit
	double stop_timeout; // seconds in which workers can save after a stop; 0: 30
	choir_supervisor_fn *report;
	void *user;
	// The number of a coordinator's parameter servers (coordinator.h); 0: no coordinator. Worker 0
	// is the coordinator, the next ones are servers. If another worker fails, it restarts, and the
	// others go on. Each program gets its task by CHOIR_TASK, and with .hosts also CHOIR_HOST and
	// the job's key.
	int servers;
} choir_supervisor_options;

// Makes a supervisor. CHOIR_NOT_FOUND: the file of hosts, the MPI's launcher or libchoir-net is
// missing.
choir_supervisor *choir_supervisor_new(const choir_supervisor_options *o);

// Runs the job until all of its processes on this machine have ended. CHOIR_OK: all workers have
// finished. CHOIR_CANCELLED: choir_supervisor_stop stopped the job. CHOIR_STATE: a step has failed
// twice in the same way; this supervisor has run before. CHOIR_PEER_LOST: a worker has failed
// without a restart left; too few hosts are left. CHOIR_INVALID: the hosts have room for fewer
// than .min_workers.
CHOIR_MUST_CHECK choir_status choir_supervisor_run(choir_supervisor *s);

// Asks the workers to stop after their present step, as if they got the signal number (15:
// SIGTERM). A second call kills them. Threads: any, and signal handlers.
void choir_supervisor_stop(choir_supervisor *s, int number);

// The signal that stopped the job before the workers had saved; 0: none.
int choir_supervisor_unsaved(const choir_supervisor *s);
// The job's name, for choir_supervisor_show.
const char *choir_supervisor_job(const choir_supervisor *s);
void choir_supervisor_free(choir_supervisor *s);

// The options of a worker's agent. The supervisor starts `AGENT run --agent ADDRESS --attempt N
// --lost-after SECONDS [--worker I] -- PROGRAM`, which calls choir_agent_run. AGENT is its option
// .agent.
typedef struct choir_agent_options {
	size_t size;
	const char *address; // of the supervisor
	int attempt;
	int worker; // CHOIR_NONE: the rank from the launcher's environment
	double lost_after; // seconds without the supervisor's messages until the program's kill
	const char *const *program; // and its arguments, which end in NULL
	const volatile int *signal; // NULL, or the signal to send to the program; 0: none yet
} choir_agent_options;
// Runs a program as its agent, until the supervisor ends the attempt. CHOIR_NOT_FOUND: no
// supervisor or program. CHOIR_TIMEOUT: the supervisor does not answer. CHOIR_PEER_LOST: the
// supervisor has ended, and the agent has killed the program.
CHOIR_MUST_CHECK choir_status choir_agent_run(const choir_agent_options *o);

// Reports the state of this user's running job on this machine; job NULL: the only one. Lines have
// the kind CHOIR_SUPERVISOR_NOTE; with json, one JSON object has the kind CHOIR_SUPERVISOR_EVENT.
// CHOIR_INVALID: an invalid name; job is NULL and several jobs run, which the text lists.
// CHOIR_TIMEOUT: the supervisor does not answer.
CHOIR_MUST_CHECK choir_status choir_supervisor_show(
		const char *job, bool json, choir_supervisor_fn *report, void *user);

CHOIR_C_END
