// The supervisor starts the workers of a job, watches them, names the one that fails, and starts
// the job again from its last checkpoint. The command `choir run` is a program around it.
//
// Each worker has an agent, a process that starts the program, passes on its output and tells the
// supervisor how it ended. The program shares a page of memory with its agent, in which Choir
// writes the step and the collective under way (environment variable CHOIR_RUN). A job has
// succeeded only if each worker has freed its clusters without a failure and exited with status 0.
//
// Linux only. While choir_supervisor_run runs, this process adopts descendants whose parents have
// ended, and it ends all of its descendants when an attempt has failed. So it must have no other
// child processes.
#pragma once

#include "status.h"

CHOIR_C_BEGIN

typedef struct choir_supervisor choir_supervisor; // of one job

// What a reported line is.
typedef enum {
	CHOIR_SUPERVISOR_OUTPUT = 1, // a line of a worker's standard output
	CHOIR_SUPERVISOR_ERROR, // a line of a worker's standard error
	CHOIR_SUPERVISOR_LAUNCHER, // a line of a launcher, such as mpirun or ssh
	CHOIR_SUPERVISOR_NOTE, // what the supervisor decides, and why
	CHOIR_SUPERVISOR_EVENT, // the same as a JSON object; times are of the monotonic clock
	CHOIR_SUPERVISOR_PROGRESS // the newest progress of the job
} choir_supervisor_kind;

// Gets a line without a line end, valid only during the call, on the thread of
// choir_supervisor_run. worker is CHOIR_NONE unless the line is a worker's. The function must not
// call the supervisor, except for choir_supervisor_stop.
typedef void choir_supervisor_fn(
		choir_supervisor_kind kind, int worker, const char *line, void *user);

// The job, and how it is watched. Times are in seconds.
typedef struct choir_supervisor_options {
	size_t size;
	int workers; // 0: 1
	int min_workers; // that a restart may have if hosts are lost; 0: workers
	int restarts; // after failures
	// "a,b:2", or a file with such lines: hosts, and how many workers each may have. The file is
	// read again before a restart. NULL: this machine.
	const char *hosts;
	// What connects the workers: "openmpi", "mpich" or "none". NULL: "none" for one worker, else
	// the first whose launcher is installed.
	const char *mpi;
	// The program and its arguments, which end in NULL.
	const char *const *program;
	// The command choir, under the same path on all hosts; it is the agents' program.
	const char *agent;
	// A command and its arguments, split at spaces, in place of ssh or of the MPI's launcher.
	// NULL: in a Slurm job srun for MPI, else mpirun, mpiexec or ssh.
	const char *launcher;
	// The address of this machine that agents on other hosts connect to. NULL: its host name.
	const char *address;
	double lost_after; // seconds without a heartbeat, then a worker is lost; 0: 5
	double start_timeout; // seconds until all workers have started; 0: 60
	double stall; // seconds that workers may wait for another one; 0: no limit
	double stop_timeout; // seconds that workers have to save after a stop; 0: 30
	choir_supervisor_fn *report;
	void *user;
} choir_supervisor_options;

// Makes a supervisor. CHOIR_INVALID: an option; no program or agent. CHOIR_NOT_FOUND: the list of
// hosts; no launcher; no library for connections (libchoir-net).
choir_supervisor *choir_supervisor_new(const choir_supervisor_options *o);

// Runs the job to its end. CHOIR_OK: all workers have finished. CHOIR_CANCELLED: it was stopped.
// CHOIR_STATE: the same step has failed twice in the same way. CHOIR_PEER_LOST: a worker has
// failed, and no restart is left. CHOIR_STATE also if it has run before. On return no process of
// the job is left on this machine.
CHOIR_MUST_CHECK choir_status choir_supervisor_run(choir_supervisor *s);

// Asks the workers to stop after their step, as the signal number does (15: SIGTERM). A second
// call kills them. Threads: any; also allowed in a signal handler.
void choir_supervisor_stop(choir_supervisor *s, int number);

// The signal that has stopped workers which had not saved; 0: none.
int choir_supervisor_unsaved(const choir_supervisor *s);
// The name of the job for choir_supervisor_show.
const char *choir_supervisor_job(const choir_supervisor *s);
void choir_supervisor_free(choir_supervisor *s);

// The agent of one worker. The supervisor starts `AGENT run --agent ADDRESS --attempt N
// --lost-after SECONDS [--worker I] -- PROGRAM`, and that program makes this call.
typedef struct choir_agent_options {
	size_t size;
	const char *address; // of the supervisor
	int attempt;
	int worker; // CHOIR_NONE: the rank from the launcher's environment
	double lost_after; // without a word from the supervisor, then the program is killed
	const char *const *program; // and its arguments, which end in NULL
	const volatile int *signal; // not 0: a signal for the program; NULL: none comes
} choir_agent_options;
// Runs a program as its agent, until the supervisor lets it go. CHOIR_NOT_FOUND: no supervisor or
// no program. CHOIR_PEER_LOST: the supervisor has ended; so has the program.
CHOIR_MUST_CHECK choir_status choir_agent_run(const choir_agent_options *o);

// Reports the state of a running job of this user on this machine, in lines of kind
// CHOIR_SUPERVISOR_NOTE, or in one JSON object of kind CHOIR_SUPERVISOR_EVENT. job: NULL is the
// only one. CHOIR_NOT_FOUND: no such job. CHOIR_INVALID: there are several; the text lists them.
CHOIR_MUST_CHECK choir_status choir_supervisor_show(
		const char *job, bool json, choir_supervisor_fn *report, void *user);

CHOIR_C_END
