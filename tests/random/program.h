// Random programs of variables, reductions, updates, merge calls and collectives, with a model of
// their meaning: the rules of the specification, applied to all replicas in a loop.
#pragma once

#include "choir/strategy.h"

enum {
	PROGRAM_REPLICAS = 5,
	PROGRAM_VARIABLES = 4,
	PROGRAM_RUNS = 3,
	PROGRAM_OPS = 8,
	PROGRAM_ELEMENTS = 5000 // more than a small all-reduce takes
};

// The operations. In a replica they use its own tensor x; in a merge call or outside of replicas,
// the values of all. c is a number of the program.
typedef enum {
	LOCAL, // x = x + (c + id)
	ALL_REDUCE, // x = the sum or mean of all x
	ROTATE, // x = x of the next replica, by all_gather
	BROADCAST, // x = x of replica c
	READ, // x = x + v
	WRITE, // v =, += or -= x
	WRITE_NUMBER, // v =, += or -= c
	OPTIMIZE, // v -= the sum of all x, by an optimizer
	UPDATE, // v += c, by an update function that every replica calls
	MERGE_REDUCE, // x = the sum or mean of all x, in a merge call
	MERGE_READ, // x = x + v, read in a merge call
	MERGE_WRITE, // v =, += or -= a tensor full of c, in a merge call
	MERGE_UPDATE, // v = v - c, in an update function called in a merge call
	MERGE_RUN, // x = the sum of all x, by a run in a merge call
	PROGRAM_KINDS
} program_kind;

typedef struct {
	program_kind kind;
	int v;
	int op; // 0: assign, 1: add, 2: subtract
	bool mean;
	int c;
} program_op;

typedef struct {
	choir_synchronization synchronization;
	choir_aggregation aggregation;
} program_variable;

typedef struct {
	uint64_t seed;
	const char *kind, *devices; // of the strategy
	int replicas;
	choir_dtype dtype;
	int64_t n; // of every tensor and variable
	program_variable variable[PROGRAM_VARIABLES];
	int runs, ops[PROGRAM_RUNS];
	program_op op[PROGRAM_RUNS][PROGRAM_OPS];
} program;

// The state of the model. x and the parts of a variable have n elements; all numbers are exact as
// doubles.
typedef struct {
	double x[PROGRAM_REPLICAS][PROGRAM_ELEMENTS];
	// A mirrored variable uses part 0.
	double part[PROGRAM_VARIABLES][PROGRAM_REPLICAS][PROGRAM_ELEMENTS];
	// The parts are unknown: after a failed run, some replicas may have written theirs.
	bool open[PROGRAM_VARIABLES];
} world_model;

// Makes the program of a seed; prints it for a replay.
program program_write(uint64_t seed);
void program_print(const program *p);

// Initial values of replica r's x in each run, and of a variable.
double program_begin(const program *p, int r, int64_t i);
double program_initial(const program *p, int v, int64_t i);

// Set the initial state: of the variables, and of x before each run.
void model_begin(const program *p, world_model *m);
void model_begin_run(const program *p, world_model *m);
// Returns false if the specification makes it an error; nothing changes then.
bool model_step(const program *p, const program_op *op, world_model *m);
// Reads v outside of replicas; false: an error.
bool model_read(const program *p, const world_model *m, int v, double *to);
