// Random programs of variables, reductions, updates, merge calls and collectives, and the model of
// what they mean: the rules of the specification, applied to all replicas in a loop.
#pragma once

#include "choir/strategy.h"

enum {
	PROGRAM_REPLICAS = 5,
	PROGRAM_VARIABLES = 4,
	PROGRAM_RUNS = 3,
	PROGRAM_OPS = 8,
	PROGRAM_ELEMENTS = 5000 // more than a light sum takes
};

// What one step does. In a replica: with its own x, a tensor. In a merge call or outside of
// replicas: with what all have. c is a plain number of the program.
typedef enum {
	LOCAL, // x = x + (c + id)
	ALL_REDUCE, // x = the sum or mean of all x
	ROTATE, // x = that of the next replica, by all_gather
	BROADCAST, // x = replica c's
	READ, // x = x + v
	WRITE, // v = or += or -= x
	WRITE_NUMBER, // v = or += or -= c
	OPTIMIZE, // v -= the sum of all x, by an optimizer
	UPDATE, // v += c, by an update function that every replica asks for
	MERGE_REDUCE, // x = the sum or mean of all x, in a merge call
	MERGE_READ, // x = x + v, read in a merge call
	MERGE_WRITE, // v = or += or -= a tensor full of c, in a merge call
	MERGE_UPDATE, // v = v - c in an update function called in a merge call
	MERGE_RUN, // x = the sum of all x, by a run inside a merge call
	PROGRAM_KINDS
} program_kind;

typedef struct {
	program_kind kind;
	int v;
	int op; // 0 to 2: assign, add, subtract
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
	int64_t n; // elements of every tensor and variable
	program_variable variable[PROGRAM_VARIABLES];
	int runs, ops[PROGRAM_RUNS];
	program_op op[PROGRAM_RUNS][PROGRAM_OPS];
} program;

// How many elements a replica's x and a variable's parts have is n of the program; numbers of all
// dtypes of the programs are exact as doubles.
typedef struct {
	double x[PROGRAM_REPLICAS][PROGRAM_ELEMENTS];
	// A mirrored variable has its value in part 0.
	double part[PROGRAM_VARIABLES][PROGRAM_REPLICAS][PROGRAM_ELEMENTS];
	// Whether the parts still follow from the program: a failed run leaves open who wrote his own.
	bool open[PROGRAM_VARIABLES];
} world_model;

// The seed's program, and the same for a replay.
program program_write(uint64_t seed);
void program_print(const program *p);

// What replica r begins a run with, and a variable its life.
double program_begin(const program *p, int r, int64_t i);
double program_initial(const program *p, int v, int64_t i);

void model_begin(const program *p, world_model *m);
void model_begin_run(const program *p, world_model *m);
// False: the specification makes it an error, and nothing is changed.
bool model_step(const program *p, const program_op *op, world_model *m);
// What reading v outside of replicas gives; false: an error.
bool model_read(const program *p, const world_model *m, int v, double *to);
