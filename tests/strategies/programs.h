// The programs of the conformance suite of strategies.
#pragma once

#include "suite.h"

// The results of a program: numbers that must not depend on the strategy.
enum { MAX_RECORD = 4096 };
typedef struct {
	int n;
	double number[MAX_RECORD];
	choir_cluster *cluster; // each worker has a part of the results; NULL: this process has all
	bool stops; // at the first failure, because workers cannot go on after one
} record;

void record_number(record *to, double number);
// Records the elements of a tensor; NULL: returns the frame's failure.
choir_status record_tensor(record *to, choir_tensor *t);
choir_status record_variable(record *to, choir_variable *v);
// Records a leaf of a set, of all replicas of all workers.
choir_status record_leaf(record *to, choir_values *set, const char *name);
// Records a call that must fail with this status and a text that contains part. With several
// workers, another one may have found it first; CHOIR_END then stops the program.
choir_status record_failure(
		record *to, choir_status found, choir_status expected, const char *part);

// Fails with the position in the source if the condition is false.
#define NEED(condition) \
	do { \
		if (!(condition)) \
			return choir_fail(CHOIR_INTERNAL, "%s:%d: %s", __FILE__, __LINE__, #condition); \
	} while (0)

// Makes a variable with elements 1, 2, ...
choir_variable *program_counted(choir_strategy *s, const char *name, int64_t n,
		choir_synchronization synchronization, choir_aggregation aggregation);
// Makes three elements for each replica, for choir_values_set_from_function.
choir_tensor *program_vector(choir_frame *f, int replica, int count, void *user);

// The programs of variable_programs.c.
choir_status program_assign_mirrored(choir_strategy *s, record *to);
choir_status program_assign_parts(choir_strategy *s, record *to);
choir_status program_assign_outside(choir_strategy *s, record *to);
choir_status program_refuse_assigns(choir_strategy *s, record *to);
choir_status program_make_in_replicas(choir_strategy *s, record *to);
choir_status program_refuse_variables(choir_strategy *s, record *to);
choir_status program_scatter(choir_strategy *s, record *to);

typedef struct {
	const char *name;
	choir_status (*run)(choir_strategy *s, record *to);
	bool goes_on; // after failed runs, which several workers cannot do
} program;
extern const program strategy_programs[];
extern const int strategy_program_count;
