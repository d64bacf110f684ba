// The conformance suite of the transport table: programs that every worker runs on a cluster of
// its own, and that must hold over any transport with any number of workers. A program returns
// NULL, or what is wrong, on every worker.
#pragma once

#include "choir/cluster.h"

typedef struct {
	const char *name;
	int min; // workers
	bool ends; // the cluster has failed when it returns
	bool waits; // until the time-out has passed
	const char *(*run)(choir_cluster *c);
} suite_program;

extern const suite_program suite_programs[];
extern const int suite_count;
// The time-out of programs that wait for it, in seconds of the transport's clock.
#define SUITE_TIMEOUT 2.0
// Whether the last failure has this status and says these words; else text says what it was.
const char *suite_failure(choir_status found, choir_status status, const char *words);
// A random program, in which one worker (of at least 2, at most 64) does one step otherwise: each
// must find out. The cluster has failed when it returns.
const char *suite_mismatch(choir_cluster *c, uint64_t seed);
