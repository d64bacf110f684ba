// A training as choir train --run has recorded it.
#pragma once

#include "trace_waits.h"

#include <choir/choir.h>

enum { RUN_TEXT = 256, RUN_PAIRS = 96, RUN_CLASSES = 256, RUN_TRACKS = 64, RUN_OPERATIONS = 128 };

typedef struct {
	char key[64], value[RUN_TEXT];
} run_pair;

typedef struct {
	size_t n;
	run_pair pair[RUN_PAIRS];
} run_pairs;

// A point of all curves; NAN: unknown; infinite: was not finite.
typedef struct {
	double step, loss, rate, examples_per_s;
	double epoch, test_loss, accuracy, test_accuracy; // of an epoch
	double error, bits; // of an epoch: mean squared error, bits per byte
	double seconds; // of an epoch
} run_point;

typedef struct {
	size_t n, capacity;
	run_point *point;
} run_points;

typedef struct {
	char name[RUN_TEXT];
	double *predicted; // by class, of examples of this class
	size_t n; // classes; equal to the number of rows, if the matrix is whole
	double examples;
} run_class;

// Seconds in spans, without the spans inside them.
typedef struct {
	int worker, track;
	char name[WAIT_NAME];
	double seconds[CHOIR_TRACE_CATEGORIES];
} run_track;

typedef struct {
	char name[48];
	int64_t calls;
	double seconds;
} run_operation;

typedef struct {
	run_pairs machine, options, start, end, failed; // of the last event of each kind
	run_points steps, epochs;
	size_t classes;
	run_class class[RUN_CLASSES];
	// From the traces; without them all are 0.
	size_t tracks, operations;
	run_track track[RUN_TRACKS];
	run_operation operation[RUN_OPERATIONS]; // longest first
	wait_table waits;
} run_events;

// Reads DIR/run.jsonl and the traces. CHOIR_CORRUPT: a line that choir train did not write.
choir_status run_events_read(run_events *r, const char *directory);
void run_events_free(run_events *r);
const char *run_pair_find(const run_pairs *p, const char *key); // "": none
double run_pair_number(const run_pairs *p, const char *key); // NAN: none
