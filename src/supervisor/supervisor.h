// A running job: the supervisor's processes and connections.
#pragma once

#include "base/atomic.h"
#include "choir/supervisor.h"
#include "net/hub.h"
#include "supervisor/hosts.h"
#include "supervisor/job_key.h"

enum { CHI_JOB_PATH = 96, CHI_JOB_ADDRESS = 160, CHI_LAUNCHER_NAME = 128 };

// An agent, or a process that starts agents, such as ssh or mpirun.
typedef struct {
	chi_process process; // pid 0: it has ended
	int attempt, out; // out: its output, -1 at the end
	int worker; // CHOIR_NONE: it starts all agents
	bool is_agent; // its output is the agent's
	char name[CHI_LAUNCHER_NAME], host[CHI_HOST_NAME];
	char last[CHI_RESTART_POLICY_TEXT];
	chi_text line; // incomplete
	double end_by; // after this, SIGTERM and then SIGKILL; HUGE_VAL: never
	bool asked; // by SIGTERM
} chi_launched;

// An agent's connection, from its first message on.
typedef struct {
	chi_peer *peer; // NULL: lost
	int attempt, worker;
	bool has_joined, asks; // asks: it is `choir status`
	chi_text line[2]; // incomplete, of output and error
} chi_job_peer;

struct choir_supervisor {
	choir_supervisor_options o;
	char *agent; // path
	char **program;
	chi_hosts hosts;
	const char *mpi; // "openmpi", "mpich" or "none"
	bool remote; // agents use TCP and the key
	chi_key key;
	char name[24]; // of the job
	char path[CHI_JOB_PATH]; // of the Unix socket
	char address[CHI_JOB_ADDRESS]; // for agents
	chi_connections *connections;
	chi_hello hello;
	chi_hub *hub;
	chi_restart_policy *policy;
	chi_launched *launched;
	size_t launches, launch_capacity;
	chi_job_peer **agents;
	size_t peer_count, peer_capacity;
	double killed; // when the last attempt was killed
	bool has_run, must_start;
	chi_atomic32 stops, stop_number; // asked for
	uint32_t stops_seen;
	char progress[200];
};

void chi_job_report(
		const choir_supervisor *s, choir_supervisor_kind kind, int worker, const char *line);
// Reports whole lines, and keeps the rest in text.
void chi_job_lines(const choir_supervisor *s, choir_supervisor_kind kind, int worker,
		chi_text *text, const char *bytes, size_t n);

// A failure ends the attempt by chi_job_start_failed.
choir_status chi_job_start(choir_supervisor *s, int attempt, int workers);
choir_status chi_job_start_worker(choir_supervisor *s, int attempt, int worker);
// Reads launchers' output, notes their ends, and ends those that are due.
void chi_job_look_at_launchers(choir_supervisor *s, double now);
// Those of this attempt and earlier ones have until then to end by themselves.
void chi_job_end_launchers(choir_supervisor *s, int attempt, double by);
bool chi_job_has_launchers(const choir_supervisor *s);
void chi_job_kill_all(choir_supervisor *s); // on this machine
void chi_job_free_launchers(choir_supervisor *s);

// The MPI; its launcher must exist.
choir_status chi_job_choose(choir_supervisor *s);

choir_status chi_job_open_hub(choir_supervisor *s);
void chi_job_close_hub(choir_supervisor *s);
// To each agent of the attempt.
void chi_job_tell(choir_supervisor *s, int attempt, uint16_t kind, const chi_pack *p);
// Ends a worker's agent, and ignores its later messages.
void chi_job_release(choir_supervisor *s, int attempt, int worker);
// Of this user's jobs.
choir_status chi_job_directory(char *out, size_t size);
