// The conformance suite of strategies: programs that must give the same bits, or the same errors,
// whatever strategy runs them, as mirrored gives with as many replicas on one CPU. It uses public
// headers alone, so a strategy of somebody else's runs it, too.
#pragma once

#include <choir/choir.h>

typedef struct {
	const char *kind; // what choir_strategy_new takes
	int max_replicas; // 0: any number
	// Options beside .devices, .replicas, .seed and .timeout; NULL: none.
	const choir_strategy_options *options;
	bool host_only; // devices `far` are left out
} strategy_subject;

// Runs every program with 1 to 4 replicas on 1 and 2 devices of host memory and of far memory
// (far/far.h, if the program is linked with it), and on one of each. The number of programs that
// failed anywhere; what failed is printed.
int strategy_suite_run(const strategy_subject *subject);
