// For devices with separate memory. A chunk moves from device to device and takes each member's
// partial sums. Only the two halves of a tree node are added, so the members' order does not
// change bits.
#pragma once

#include "base/lock.h"
#include "collective/chunked_algorithm.h"
#include "collective/tree.h"

// Locked while something is queued.
typedef struct {
	chi_mutex lock;
	chi_stream *stream;
} chi_chunk_stream;

// In stream order, later chunks may use it after an event.
typedef struct {
	chi_buffer *buffer;
	int at;
	uint64_t event;
} chi_kept_memory;

typedef struct {
	chi_algorithm base;
	chi_chunk_stream *chunk_stream; // of each member for sums, then of each for results
	int streams;
	bool all_queued; // the devices are of one kind and have streams and memory of their own
	chi_mutex kept_lock;
	int n_kept;
	chi_kept_memory kept[64];
} chi_chunk_algorithm;

choir_status chi_chunk_algorithm_open(
		chi_chunk_algorithm *r, const choir_group *group, chi_chunk_fn *chunk, int chunks);
void chi_chunk_algorithm_close(void *self);
choir_status chi_chunk_algorithm_wait(void *self, int member, uint64_t request, double seconds);
void chi_chunk_algorithm_reset(void *self);
// The root, or for an all-reduce index % members.
int chi_chunk_algorithm_root(
		const chi_chunk_algorithm *r, const choir_collective *c, int64_t index);

typedef struct {
	chi_chunk_algorithm *algorithm;
	const chi_round *round;
	const choir_collective *c;
	int64_t first, count;
	int at;
	uint64_t event; // recorded after that operation
	chi_buffer *spent; // may still be used by operations
} chi_chunk_task;

void chi_chunk_task_begin(
		chi_chunk_task *h, chi_chunk_algorithm *r, const chi_round *round, int64_t index, int any);
// Also after a failure. Returns status, else the wait's.
choir_status chi_chunk_task_end(chi_chunk_task *h, choir_status status);

typedef struct {
	chi_chunk_task *task;
	int at;
	chi_partial_sums partial_sums;
	const void *data;
} chi_chunk;

void chi_chunk_begin(chi_chunk *g, chi_chunk_task *h, int at);
choir_status chi_chunk_take(chi_chunk *g, int member);
choir_status chi_chunk_join(chi_chunk *g, const chi_chunk *other);
choir_status chi_chunk_take_whole(chi_chunk *g);
choir_status chi_chunk_move(chi_chunk *g, int to);
// CHOIR_INTERNAL: parts are missing.
choir_status chi_chunk_finish(chi_chunk *g);
// Copies to member's result and calls done. Members that share a result get it with the first.
// *shown: the result.
choir_status chi_chunk_deliver(
		const chi_chunk *g, int from, const void *data, int member, const void **shown);
choir_status chi_chunk_deliver_all(const chi_chunk *g, int first, int last);
void chi_chunk_end(chi_chunk *g);
