// Algorithms that carry partial sums from device to device, for devices with memory of their own.
// A chunk of a collective travels: it has the nodes of the canonical tree that it has gathered so
// far, takes what each member has, and adds whatever makes a node of the tree. After it has been
// with all members it is the sum, in the bits of the tree, whichever order it took.
#pragma once

#include "base/lock.h"
#include "collective/rendezvous.h"
#include "collective/tree.h"

// Where a member's device adds for whoever comes by; one at a time.
typedef struct {
	chi_mutex lock;
	chi_stream *stream;
} chi_chunk_stream;

typedef struct {
	chi_algorithm base; // first, so that the table's slots are its
	chi_chunk_stream *chunk_stream; // of each member
} chi_chunk_algorithm;

choir_status chi_chunk_algorithm_open(
		chi_chunk_algorithm *r, const choir_group *group, chi_chunk_fn *chunk, int chunks);
void chi_chunk_algorithm_close(void *self);
// The member that has the sum of a chunk first: the collective's root, or of an all-reduce one
// after the other, so that all are used alike.
int chi_chunk_algorithm_root(
		const chi_chunk_algorithm *r, const choir_collective *c, int64_t index);

// What is queued for one chunk, wherever it is, and the memory that this needs.
typedef struct {
	chi_chunk_algorithm *algorithm;
	const chi_round *round;
	const choir_collective *c; // any member's
	int64_t first, count; // elements of the collective
	int at; // the member where something was queued last; CHOIR_NONE: nothing was
	uint64_t event; // of its stream after that
	chi_buffer *spent; // memory that what is queued may use
} chi_chunk_task;

// any: a member, all of which joined with equal collectives.
void chi_chunk_task_begin(
		chi_chunk_task *h, chi_chunk_algorithm *r, const chi_round *round, int64_t index, int any);
// Waits until all that the chunk has queued is done.
choir_status chi_chunk_task_wait(const chi_chunk_task *h);
// The same, and gives the memory back, also after a failure: status, or else how the wait ended.
choir_status chi_chunk_task_end(chi_chunk_task *h, choir_status status);

// Partial sums on their way.
typedef struct {
	chi_chunk_task *task;
	int at; // the member on whose device it is
	chi_partial_sums partial_sums;
	const void *data; // the sum (or what is broadcast), when it is whole
} chi_chunk;

// With nothing yet, at a member.
void chi_chunk_begin(chi_chunk *g, chi_chunk_task *h, int at);
// Takes what a member has.
choir_status chi_chunk_take(chi_chunk *g, int member);
// Takes what another part of the same chunk has gathered.
choir_status chi_chunk_join(chi_chunk *g, const chi_chunk *other);
// Of a broadcast, which begins at its root: what the root has is the result.
choir_status chi_chunk_take_whole(chi_chunk *g);
// Goes to another member's device.
choir_status chi_chunk_move(chi_chunk *g, int to);
// All members' parts are there: makes g->data, divided. CHOIR_INTERNAL: some are not.
choir_status chi_chunk_finish(chi_chunk *g);
// Gives the result to a member: a copy from data, which lies on from's device, and the call of its
// function. Members that share a result are served with the first of them. *shown, if it is not
// NULL, becomes where the result lies there, and stays as it was if the member wants none.
choir_status chi_chunk_deliver(
		const chi_chunk *g, int from, const void *data, int member, const void **shown);
// From where the chunk is to members first .. last - 1.
choir_status chi_chunk_deliver_all(const chi_chunk *g, int first, int last);
void chi_chunk_end(chi_chunk *g);
