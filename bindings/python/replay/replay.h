// Steps of Python that were recorded as calls of Choir's functions, and their replay without Python.
// The module choir fills these structs by cffi; they are no part of libchoir.
#pragma once

#include <choir/choir.h>

// A number, a pointer, or the index of a tensor (-1: NULL). Of an array of tensors that a function
// reads: a pointer to its length and the indices. Of one that it writes: the first index.
typedef union {
	int64_t number;
	double real;
	void *pointer;
} replay_argument;

typedef struct {
	int64_t function; // its place in the generated table
	int64_t result; // index of the tensor
	replay_argument *argument;
} replay_call;

// An argument of the replica as it was when the step was recorded.
typedef struct {
	char *name;
	choir_dtype dtype;
	choir_shape shape;
} replay_guard;

typedef struct replay_program {
	struct replay_program *next; // of another replica, or for other arguments
	int replica;
	int64_t guards, calls, tensors;
	replay_guard *guard;
	replay_call *call;
	int64_t returned; // index of the step's result; -1: none
	choir_shape shape; // its shape, and host memory for it
	void *to;
	uint64_t bytes;
	int64_t replays; // of this program
} replay_program;

typedef struct {
	replay_program *first;
	choir_replica_fn *record; // for a replica that no program fits
	void *user;
} replay_step;

// A choir_replica_fn; user is a replay_step.
choir_status choir_replay(choir_replica *r, void *user);
