// For devices with separate memory. A chunk moves from device to device and takes each member's
// partial sums. Only the two halves of a node of the canonical tree are added, so bits do not
// depend on the order of members.
#pragma once

#include "base/lock.h"
#include "collective/rendezvous.h"
#include "collective/tree.h"

// At one member's device. The lock is held while something is queued.
typedef struct {
	chi_mutex lock;
	chi_stream *stream;
} chi_chunk_stream;

// Chunks of a collective in stream order may use it again after an event.
typedef struct {
	chi_buffer *buffer;
	int at; // member with the stream
	uint64_t event;
} chi_kept_memory;

typedef struct {
	chi_algorithm base; // first: the table's functions cast to it
	chi_chunk_stream *chunk_stream;
	bool all_queued; // the devices are of one kind and have streams and memory of their own
	chi_mutex kept_lock;
	int n_kept;
	chi_kept_memory kept[64];
} chi_chunk_algorithm;

// The slots of the tables, but for score and open.
choir_status chi_chunk_algorithm_open(
		chi_chunk_algorithm *r, const choir_group *group, chi_chunk_fn *chunk, int chunks);
void chi_chunk_algorithm_close(void *self);
choir_status chi_chunk_algorithm_wait(void *self, int member, uint64_t request, double seconds);
void chi_chunk_algorithm_reset(void *self);
// Who completes a chunk's sum: the root, or for an all-reduce index % members.
int chi_chunk_algorithm_root(
		const chi_chunk_algorithm *r, const choir_collective *c, int64_t index);

// What is queued for one chunk on all devices.
typedef struct {
	chi_chunk_algorithm *algorithm;
	const chi_round *round;
	const choir_collective *c;
	int64_t first, count;
	int at; // member of the last operation; CHOIR_NONE: none is queued
	uint64_t event; // recorded after that operation
	chi_buffer *spent; // may still be used by operations
} chi_chunk_task;

// any: index of any member; all have equal collectives.
void chi_chunk_task_begin(
		chi_chunk_task *h, chi_chunk_algorithm *r, const chi_round *round, int64_t index, int any);
choir_status chi_chunk_task_wait(const chi_chunk_task *h);
// Also after a failure; releases the memory. Returns status, or the wait's if it is CHOIR_OK.
choir_status chi_chunk_task_end(chi_chunk_task *h, choir_status status);

typedef struct {
	chi_chunk_task *task;
	int at; // member whose device holds them
	chi_partial_sums partial_sums;
	const void *data; // the complete sum, or the broadcast data
} chi_chunk;

// At member at, without partial sums.
void chi_chunk_begin(chi_chunk *g, chi_chunk_task *h, int at);
choir_status chi_chunk_take(chi_chunk *g, int member);
choir_status chi_chunk_join(chi_chunk *g, const chi_chunk *other);
// For a broadcast.
choir_status chi_chunk_take_whole(chi_chunk *g);
choir_status chi_chunk_move(chi_chunk *g, int to);
// CHOIR_INTERNAL: parts are missing.
choir_status chi_chunk_finish(chi_chunk *g);
// Copies from member from's device to a member's result and calls done. Members that share a
// result get it with the first. *shown (may be NULL) becomes the result, if there is one.
choir_status chi_chunk_deliver(
		const chi_chunk *g, int from, const void *data, int member, const void **shown);
// Delivers to members first to last - 1.
choir_status chi_chunk_deliver_all(const chi_chunk *g, int first, int last);
void chi_chunk_end(chi_chunk *g);
