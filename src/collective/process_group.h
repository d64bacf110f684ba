// The workers of a strategy that spans several, seen from one of them: which replicas each has,
// and the exchanges that collectives are made of. All that is exchanged here lies in host memory.
// Every exchange is numbered and carries a fingerprint with its data, and each begins in the same
// way, by a message of every worker to every other one: so whatever two workers are in, they find
// out by the first message (docs/decisions/0028, 0060). One thread at a time exchanges anything
// with one chi_process_group, and in the same order on every worker. There may be a second one,
// with a tag and numbers of its own, whose exchanges go on beside those of the first.
#pragma once

#include "base/alloc.h"
#include "choir/extend/cross_device_ops_table.h"
#include "cluster/message.h"

// The fingerprint of a sum, but for its number: most sums are made again and again, and a text
// takes longer than a small one.
typedef struct {
	uint64_t key; // of all that must be equal; 0: there is none
	chi_fingerprint fingerprint;
} chi_cached_fingerprint;
enum { CHI_CACHED_FINGERPRINTS = 64 };

typedef struct chi_process_group {
	choir_cluster *cluster; // borrowed
	int tag; // CHI_TAG_COLLECTIVES, or CHI_TAG_OVERLAP
	uint64_t exchanges; // so far, of those beside
	chi_atomic64 order; // chi_call_order of what this worker's first replica has given in this run
	int workers, worker;
	int replicas; // of all of them
	bool host; // everybody's devices have host memory, as the first group of devices finds
	int *first; // worker w has replicas first[w] .. first[w + 1] - 1
	int *first_node; // its maximal nodes of the canonical tree are node[w] .. node[w + 1] - 1
	choir_partial_sum *partial_sum; // of all nodes, with their data while a sum is made
	chi_message *message; // of each worker: one to it, and one from it
	chi_message **wait; // of those that are on their way
	size_t *bytes; // of each worker, for an exchange of rows
	chi_scratch scratch; // for what others send, and what has to be packed
	// Each at the place of its key.
	chi_cached_fingerprint fingerprint_cache[CHI_CACHED_FINGERPRINTS];
} chi_process_group;

// own: this worker's replicas, at least 1. All workers must call it. A zeroed one can be closed.
choir_status chi_process_group_open(chi_process_group *p, choir_cluster *c, int tag, int own);
void chi_process_group_close(chi_process_group *p);
static inline int chi_process_group_first_replica(const chi_process_group *p)
{
	return p->first[p->worker];
}
// How many maximal nodes worker has, and which they are.
static inline int chi_process_group_node_count(const chi_process_group *p, int worker)
{
	return p->first_node[worker + 1] - p->first_node[worker];
}
// A collective that has not failed yet is about to: the others get the reason. Its status.
choir_status chi_process_group_abort(chi_process_group *p);
// This worker will not make the next exchange: it has failed, as the thread's last error says,
// while nothing was under way. It tells the others in place of that exchange. Where all of them
// fail there in the same way, they are as much in step as before, and go on; else it is the end,
// as with chi_process_group_abort. Its status.
choir_status chi_process_group_fail(chi_process_group *p);

// The sum over all replicas, in the canonical tree. own: this worker's maximal nodes, in order;
// sum: c->elements of c->dtype. Of c dtype, elements and name are used. key: not 0, and of all
// that must be equal, so that the name is only needed where the key is not known; or 0.
choir_status chi_process_group_all_reduce(chi_process_group *p, uint64_t key,
		const choir_collective *c, const choir_partial_sum own[], void *sum);
static inline bool chi_process_group_knows(const chi_process_group *p, uint64_t key)
{
	return p->fingerprint_cache[key % CHI_CACHED_FINGERPRINTS].key == key;
}
// Bytes of each worker, the same number, in the order of workers. fmt says what it is for, and
// what of it must be equal.
choir_status chi_process_group_all_gather(chi_process_group *p, const void *own, size_t bytes,
		void *all, const char *fmt, ...) CHOIR_PRINTF(5, 6);
// The same with bytes[w] of worker w, which all know; all has them one behind another. own may be
// where they belong in all.
choir_status chi_process_group_all_gather_v(chi_process_group *p, const void *own,
		const size_t bytes[], void *all, const char *fmt, ...) CHOIR_PRINTF(5, 6);
// Worker from's bytes, everywhere; part of an exchange that has begun with
// chi_process_group_all_gather.
choir_status chi_process_group_broadcast(chi_process_group *p, int from, void *data, size_t bytes,
		const char *fmt, ...) CHOIR_PRINTF(5, 6);
