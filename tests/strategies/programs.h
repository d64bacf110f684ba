// The programs of the suite of strategies.
#pragma once

#include "suite.h"

// What a program found out: the numbers that must not depend on the strategy.
enum { MAX_RECORD = 4096 };
typedef struct {
	int n;
	double number[MAX_RECORD];
	choir_cluster *cluster; // whose workers have a part of each leaf; NULL: this process has all
	bool stops; // at the first failure: nothing goes on between workers behind one
} record;

void record_number(record *to, double number);
// The elements of a tensor (NULL: a failure that the frame has).
choir_status record_tensor(record *to, choir_tensor *t);
choir_status record_variable(record *to, choir_variable *v);
// A leaf of a set, of every replica of all workers.
choir_status record_leaf(record *to, choir_values *set, const char *name);
// A call that must fail with a status, and a text with part in it; between workers another one may
// have found it first. CHOIR_END: it did, and the program stops.
choir_status record_failure(
		record *to, choir_status found, choir_status expected, const char *part);

// Fails with the place in the source if a condition does not hold.
#define NEED(condition) \
	do { \
		if (!(condition)) \
			return choir_fail(CHOIR_INTERNAL, "%s:%d: %s", __FILE__, __LINE__, #condition); \
	} while (0)

// A variable of the strategy with its elements 1, 2, ...
choir_variable *program_counted(choir_strategy *s, const char *name, int64_t n,
		choir_synchronization synchronization, choir_aggregation aggregation);
// Three elements of each replica's own, for choir_values_set_from_function.
choir_tensor *program_vector(choir_frame *f, int replica, int count, void *user);

// Programs of variable_programs.c.
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
	bool goes_on; // after runs that fail, which several workers cannot do
} program;
extern const program strategy_programs[];
extern const int strategy_program_count;
