// Workers with their replicas, and exchanges of host memory between them, of which collectives
// consist. An exchange begins with a message from every worker to every other, whose number and
// fingerprint show whether all make the same exchange (docs/decisions/0028, 0060).
//
// One thread at a time uses a process group, in the same order on all workers. A second group,
// with another tag and other numbers, can exchange data at the same time.
#pragma once

#include "base/alloc.h"
#include "choir/extend/cross_device_ops_table.h"
#include "cluster/message.h"

// Without its number. Formatting takes longer than a small sum.
typedef struct {
	uint64_t key; // hash of what must be equal; 0: empty
	chi_fingerprint fingerprint;
} chi_cached_fingerprint;
enum { CHI_CACHED_FINGERPRINTS = 64 };

typedef struct chi_process_group {
	choir_cluster *cluster; // borrowed
	int tag; // CHI_TAG_COLLECTIVES or CHI_TAG_OVERLAP
	uint64_t exchanges; // so far, with CHI_TAG_OVERLAP
	chi_atomic64 order; // chi_call_order of this worker's first replica in this run
	int workers, worker;
	int replicas; // of all workers
	bool host; // all workers' devices have host memory
	int *first; // worker w has replicas first[w] .. first[w + 1] - 1
	int *first_node; // worker w has nodes first_node[w] .. first_node[w + 1] - 1
	choir_partial_sum *partial_sum; // all maximal nodes; data is set during a sum
	chi_message *message; // two per worker: received, sent
	chi_message **wait;
	size_t *bytes; // per worker, for an exchange of rows
	chi_scratch scratch;
	chi_cached_fingerprint fingerprint_cache[CHI_CACHED_FINGERPRINTS];
} chi_process_group;

// All workers call it. own: this worker's replicas. A zeroed group may be closed.
choir_status chi_process_group_open(chi_process_group *p, choir_cluster *c, int tag, int own);
void chi_process_group_close(chi_process_group *p);
static inline int chi_process_group_first_replica(const chi_process_group *p)
{
	return p->first[p->worker];
}
static inline int chi_process_group_node_count(const chi_process_group *p, int worker)
{
	return p->first_node[worker + 1] - p->first_node[worker];
}
// The other workers get the thread's last error. Returns its status.
choir_status chi_process_group_abort(chi_process_group *p);
// The other workers get the thread's last error in place of the next exchange. If all fail there
// in the same way, the cluster goes on, else it ends. Returns the error's status.
choir_status chi_process_group_fail(chi_process_group *p);

// Over the replicas of all workers, in the canonical tree. own: this worker's maximal nodes, in
// order. sum: c->elements of c->dtype. Uses only dtype, elements and name of c. key: 0, or a hash
// of what must be equal; if its fingerprint is cached, c->name is not used.
choir_status chi_process_group_all_reduce(chi_process_group *p, uint64_t key,
		const choir_collective *c, const choir_partial_sum own[], void *sum);
static inline bool chi_process_group_knows(const chi_process_group *p, uint64_t key)
{
	return p->fingerprint_cache[key % CHI_CACHED_FINGERPRINTS].key == key;
}
// The same number of bytes from each worker, in order. fmt says what is gathered, in a text that
// is equal on all workers.
choir_status chi_process_group_all_gather(chi_process_group *p, const void *own, size_t bytes,
		void *all, const char *fmt, ...) CHOIR_PRINTF(5, 6);
// bytes[w] from each worker w, concatenated; all know bytes. own may point to its position in
// all.
choir_status chi_process_group_all_gather_v(chi_process_group *p, const void *own,
		const size_t bytes[], void *all, const char *fmt, ...) CHOIR_PRINTF(5, 6);
// In an exchange that began with chi_process_group_all_gather.
choir_status chi_process_group_broadcast(chi_process_group *p, int from, void *data, size_t bytes,
		const char *fmt, ...) CHOIR_PRINTF(5, 6);
