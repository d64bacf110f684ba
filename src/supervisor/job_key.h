// The key of a job whose agents connect by TCP. It travels in an environment variable to agents
// started by an MPI launcher, through standard input to those started by ssh.
#pragma once

#include "net/key.h"

#define CHI_JOB_KEY "CHOIR_RUN_KEY"
#define CHI_TASK_VARIABLE "CHOIR_TASK" // choir/coordinator.h
#define CHI_JOB_TASK_SOCKET ".job" // after the path of the supervisor's socket: the coordinator's
#define CHI_TASK_HOST "CHOIR_HOST" // this host's address for the other processes of the job
#define CHI_JOB_PROTOCOL "choir run 1" // of the messages between supervisor and agents
enum { CHI_JOB_KEY_BYTES = 32, CHI_JOB_KEY_TEXT = 2 * CHI_JOB_KEY_BYTES + 1 };

// Of a coordinator or its server, by the supervisor's path.
void chi_job_task_socket(const char *path, int worker, char *out, size_t size);

choir_status chi_job_key_make(chi_key *key);
void chi_job_key_text(const chi_key *key, char out[CHI_JOB_KEY_TEXT]);
// From the variable or, without one, from a line of standard input.
choir_status chi_job_key_take(chi_key *key);
