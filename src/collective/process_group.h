// The process group: the replicas of each worker, and the exchanges on which collectives are
// built. All exchanged data lie in host memory.
//
// Every exchange has a number and a fingerprint, and begins with a message from every worker to
// every other one. So workers in different exchanges detect it by the first message
// (docs/decisions/0028, 0060).
//
// One thread at a time uses a process group, in the same order on all workers. A second one, with
// its own tag and numbers, can exchange data at the same time.
#pragma once

#include "base/alloc.h"
#include "choir/extend/cross_device_ops_table.h"
#include "cluster/message.h"

// A sum's fingerprint without its number. Most sums repeat in every step, and formatting takes
// longer than a small sum.
typedef struct {
	uint64_t key; // hash of all that must be equal; 0: empty
	chi_fingerprint fingerprint;
} chi_cached_fingerprint;
enum { CHI_CACHED_FINGERPRINTS = 64 };

typedef struct chi_process_group {
	choir_cluster *cluster; // borrowed
	int tag; // CHI_TAG_COLLECTIVES, or CHI_TAG_OVERLAP
	uint64_t exchanges; // so far, with CHI_TAG_OVERLAP
	chi_atomic64 order; // chi_call_order of this worker's first replica in this run
	int workers, worker;
	int replicas; // of all workers
	bool host; // all workers' devices have host memory; set by the first communicator
	int *first; // worker w has replicas first[w] .. first[w + 1] - 1
	int *first_node; // worker w has nodes first_node[w] .. first_node[w + 1] - 1
	choir_partial_sum *partial_sum; // all maximal nodes; data is set during a sum
	chi_message *message; // two per worker: one received, one sent
	chi_message **wait; // those in progress
	size_t *bytes; // per worker, for an exchange of rows
	chi_scratch scratch; // received and packed data
	// Indexed by key % CHI_CACHED_FINGERPRINTS.
	chi_cached_fingerprint fingerprint_cache[CHI_CACHED_FINGERPRINTS];
} chi_process_group;

// Opens a process group; all workers call it. own: number of replicas of this worker, at least 1.
// A zeroed group may be closed.
choir_status chi_process_group_open(chi_process_group *p, choir_cluster *c, int tag, int own);
void chi_process_group_close(chi_process_group *p);
static inline int chi_process_group_first_replica(const chi_process_group *p)
{
	return p->first[p->worker];
}
// Returns the number of maximal nodes of a worker.
static inline int chi_process_group_node_count(const chi_process_group *p, int worker)
{
	return p->first_node[worker + 1] - p->first_node[worker];
}
// Ends the cluster; the other workers get the thread's last error. Returns its status.
choir_status chi_process_group_abort(chi_process_group *p);
// Reports the thread's last error to the other workers in place of the next exchange; none is in
// progress. If all workers fail there in the same way, the cluster goes on, else it ends as with
// chi_process_group_abort. Returns the error's status.
choir_status chi_process_group_fail(chi_process_group *p);

// Sums over all replicas in the canonical tree. own: this worker's maximal nodes, in order. sum:
// c->elements of c->dtype. Of c, only dtype, elements and name are used. key: 0, or a hash of
// all that must be equal. If its fingerprint is cached, c->name is not used.
choir_status chi_process_group_all_reduce(chi_process_group *p, uint64_t key,
		const choir_collective *c, const choir_partial_sum own[], void *sum);
static inline bool chi_process_group_knows(const chi_process_group *p, uint64_t key)
{
	return p->fingerprint_cache[key % CHI_CACHED_FINGERPRINTS].key == key;
}
// Gathers the same number of bytes from each worker, in the order of workers. fmt says what is
// gathered; the text must be equal on all workers.
choir_status chi_process_group_all_gather(chi_process_group *p, const void *own, size_t bytes,
		void *all, const char *fmt, ...) CHOIR_PRINTF(5, 6);
// Gathers bytes[w] from each worker w, concatenated; all workers know bytes. own may point to its
// position in all.
choir_status chi_process_group_all_gather_v(chi_process_group *p, const void *own,
		const size_t bytes[], void *all, const char *fmt, ...) CHOIR_PRINTF(5, 6);
// Sends worker from's bytes to all others, as part of an exchange that began with
// chi_process_group_all_gather.
choir_status chi_process_group_broadcast(chi_process_group *p, int from, void *data, size_t bytes,
		const char *fmt, ...) CHOIR_PRINTF(5, 6);
