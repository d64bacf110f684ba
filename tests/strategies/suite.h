// The conformance suite of strategies: programs that must give the same bits, or the same errors,
// as the mirrored strategy with as many replicas on one CPU. It uses only public headers, so it
// also tests strategies outside Choir.
#pragma once

#include <choir/choir.h>

typedef struct {
	const char *kind; // for choir_strategy_new
	int max_replicas; // 0: any number
	// Options other than .devices, .replicas, .seed and .timeout; NULL: none.
	const choir_strategy_options *options;
	bool host_only; // no `far` devices
} strategy_subject;

// Runs every program with 1 to 4 replicas on 1 and 2 devices with host memory, on far devices
// (far/far.h, if linked), and on one of each. Prints what failed; returns the number of programs
// that failed.
int strategy_suite_run(const strategy_subject *subject);
