// A job of real processes: a coordinator, servers and workers, which are forks of the test.
#pragma once

#include "choir/coordinator.h"

#include <sys/types.h>

enum { JOB_PROCESSES = 64 };

typedef struct {
	char folder[64], address[128], key[128];
	int servers;
	double lost_after; // 0: 5
	double patience; // of new processes until others come, 0: 8
	const choir_strategy_options *strategy;
	const choir_coordinator_options *options;
	pid_t pid[JOB_PROCESSES]; // servers first, then workers; 0: none
	int n;
} job;

// tcp: over loopback, with a key; else over Unix sockets. Before any thread is made.
void job_open(job *j, int servers, bool tcp);
// Starts a worker, or with ps the server of this index. other: the process has another program.
int job_start(job *j, const char *type, int index, const char *other);
choir_task *job_task(const job *j, const char *type, int index);
// Waits for a process at most 10 seconds; returns its exit status, or -1: a signal.
int job_wait(job *j, int process);
void job_wait_for_all(job *j); // all processes that live must end well
// Schedules the closure with the argument "number".
choir_status job_schedule(choir_strategy *s, choir_coordinator *c, const char *name, double number,
		choir_remote_value **value);
// Makes this process the coordinator.
void job_coordinate(const job *j, choir_task **task, choir_strategy **s, choir_coordinator **c);
void job_close(job *j); // kills what is left
// After job_coordinate: all processes must end well.
void job_end(job *j, choir_task *task, choir_strategy *s, choir_coordinator *c);
