// The conformance suite of the transport table: programs that every worker runs on its own cluster
// and that must work over any transport, with any number of workers. On every worker, a program
// returns NULL or the error found.
#pragma once

#include "choir/cluster.h"

typedef struct {
	const char *name;
	int min; // number of workers
	bool ends; // the cluster has failed afterwards
	bool waits; // for the timeout
	const char *(*run)(choir_cluster *c);
} suite_program;

extern const suite_program suite_programs[];
extern const int suite_count;
// The timeout of such programs, in seconds of the transport's clock.
#define SUITE_TIMEOUT 2.0
// Returns NULL if the last failure has this status and its text these facts (test.h), else a
// description of the failure.
const char *suite_failure(choir_status found, choir_status status, const char *words);
// Runs a random program in which one of 2 to 64 workers does one step differently; every worker
// must detect it. The cluster has failed afterwards.
const char *suite_mismatch(choir_cluster *c, uint64_t seed);
