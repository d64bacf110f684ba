// The programs of the suite of strategies.
#pragma once

#include <choir/choir.h>

// The results of a program: numbers that must not depend on the strategy.
enum { MAX_RECORD = 4096 };
typedef struct {
	int n;
	double number[MAX_RECORD];
	choir_cluster *cluster; // each worker has a part of the results; NULL: this process has all
	bool stops; // at the first failure, because workers cannot go on after one
} chi_record;

void chi_record_number(chi_record *to, double number);
// Records the elements of a tensor; NULL: returns the frame's failure.
choir_status chi_record_tensor(chi_record *to, choir_tensor *t);
choir_status chi_record_variable(chi_record *to, choir_variable *v);
// Records a leaf of a set, of all replicas of all workers.
choir_status chi_record_leaf(chi_record *to, choir_values *set, const char *name);
// Records a call that must fail with this status and a text that contains part. With several
// workers, another one may have found it first; CHOIR_END then stops the program.
choir_status chi_record_failure(
		chi_record *to, choir_status found, choir_status expected, const char *part);

// Fails with the position in the source if the condition is false.
#define NEED(condition) \
	do { \
		if (!(condition)) \
			return choir_fail(CHOIR_INTERNAL, "%s, line %d: %s is needed; the last failure: %s", \
					__func__, __LINE__, #condition, choir_error()); \
	} while (0)

// Makes a variable with elements 1, 2, ...
choir_variable *chi_program_counted(choir_strategy *s, const char *name, int64_t n,
		choir_synchronization synchronization, choir_aggregation aggregation);
// Makes three elements for each replica, for choir_values_set_from_function.
choir_tensor *chi_program_vector(choir_frame *f, int replica, int count, void *user);

// The programs of variable_programs.c.
choir_status chi_program_assign_mirrored(choir_strategy *s, chi_record *to);
choir_status chi_program_assign_parts(choir_strategy *s, chi_record *to);
choir_status chi_program_assign_outside(choir_strategy *s, chi_record *to);
choir_status chi_program_refuse_assigns(choir_strategy *s, chi_record *to);
choir_status chi_program_make_in_replicas(choir_strategy *s, chi_record *to);
choir_status chi_program_refuse_variables(choir_strategy *s, chi_record *to);
choir_status chi_program_scatter(choir_strategy *s, chi_record *to);

typedef struct {
	const char *name;
	choir_status (*run)(choir_strategy *s, chi_record *to);
	bool goes_on; // after failed runs, which several workers cannot do
} chi_program;
extern const chi_program chi_strategy_programs[];
extern const int chi_strategy_program_count;
