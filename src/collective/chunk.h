// Chunks for all-reduce algorithms of devices with separate memory. A chunk travels from device to
// device and carries partial sums, which are nodes of the canonical tree. It takes each member's
// parts and adds two nodes when they are the halves of a third. So it ends with the bits of the
// canonical tree, for any order of members.
#pragma once

#include "base/lock.h"
#include "collective/rendezvous.h"
#include "collective/tree.h"

// The stream for the chunks at one member's device. The lock is held while something is queued.
typedef struct {
	chi_mutex lock;
	chi_stream *stream;
} chi_chunk_stream;

typedef struct {
	chi_algorithm base; // first: functions of the table cast self to it
	chi_chunk_stream *chunk_stream; // one per member
} chi_chunk_algorithm;

choir_status chi_chunk_algorithm_open(
		chi_chunk_algorithm *r, const choir_group *group, chi_chunk_fn *chunk, int chunks);
void chi_chunk_algorithm_close(void *self);
// Returns the member that completes a chunk's sum: the root, or for an all-reduce member index %
// members, which spreads the load.
int chi_chunk_algorithm_root(
		const chi_chunk_algorithm *r, const choir_collective *c, int64_t index);

// The work queued for one chunk on all devices, and its memory.
typedef struct {
	chi_chunk_algorithm *algorithm;
	const chi_round *round;
	const choir_collective *c; // of any member
	int64_t first, count; // in the collective
	int at; // member of the last queued operation; CHOIR_NONE: nothing is queued
	uint64_t event; // recorded on that member's stream after the operation
	chi_buffer *spent; // memory that queued operations may use
} chi_chunk_task;

// any: index of any member, because the collectives of all members are equal.
void chi_chunk_task_begin(
		chi_chunk_task *h, chi_chunk_algorithm *r, const chi_round *round, int64_t index, int any);
// Waits until the chunk's queued operations are done.
choir_status chi_chunk_task_wait(const chi_chunk_task *h);
// Waits and releases the memory, also after a failure. Returns status if it is a failure, else
// that of the wait.
choir_status chi_chunk_task_end(chi_chunk_task *h, choir_status status);

// The partial sums of one chunk, at one member.
typedef struct {
	chi_chunk_task *task;
	int at; // member whose device holds them
	chi_partial_sums partial_sums;
	const void *data; // the complete sum, or the broadcast data
} chi_chunk;

// Begins without partial sums at member at.
void chi_chunk_begin(chi_chunk *g, chi_chunk_task *h, int at);
// Adds the parts of a member.
choir_status chi_chunk_take(chi_chunk *g, int member);
// Adds the partial sums of another chunk.
choir_status chi_chunk_join(chi_chunk *g, const chi_chunk *other);
// For a broadcast, at its root: takes the root's data.
choir_status chi_chunk_take_whole(chi_chunk *g);
// Moves to another member's device.
choir_status chi_chunk_move(chi_chunk *g, int to);
// Completes and divides the sum after all parts are added. CHOIR_INTERNAL: parts are missing.
choir_status chi_chunk_finish(chi_chunk *g);
// Copies data, on member from's device, to a member's result and calls its done function. Members
// that share a result get it with the first of them. *shown, unless NULL, becomes the member's
// result, if it has one.
choir_status chi_chunk_deliver(
		const chi_chunk *g, int from, const void *data, int member, const void **shown);
// Delivers the result to members first .. last - 1.
choir_status chi_chunk_deliver_all(const chi_chunk *g, int first, int last);
void chi_chunk_end(chi_chunk *g);
