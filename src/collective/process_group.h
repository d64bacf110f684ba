// Exchanges of memory between workers: the host's, or a device's if the transport takes it.
// Numbers and fingerprints show whether all make the same one (docs/decisions/0028, 0060).
//
// One thread at a time uses a group, in one order on all workers. A second one, with another tag,
// may work meanwhile.
#pragma once

#include "base/alloc.h"
#include "choir/extend/cross_device_ops_table.h"
#include "cluster/message.h"
#include "tensor/buffer_pool.h"

typedef struct {
	uint64_t key; // hash of what must be equal; 0: empty
	chi_fingerprint fingerprint;
} chi_cached_fingerprint;
enum { CHI_CACHED_FINGERPRINTS = 64 };

typedef struct chi_process_group {
	choir_cluster *cluster;
	int tag;
	uint64_t exchanges; // with CHI_TAG_OVERLAP
	chi_atomic64 order; // of the worker's first replica in this run
	int workers, worker;
	int replicas;
	bool host; // all workers' devices have host memory
	int *first; // worker w has first[w] .. first[w + 1] - 1
	int *first_node;
	choir_partial_sum *partial_sum;
	chi_message *message;
	chi_message **wait;
	size_t *bytes;
	chi_scratch scratch;
	chi_buffer *device_scratch; // of the last device; NULL: no device has needed any
	chi_cached_fingerprint fingerprint_cache[CHI_CACHED_FINGERPRINTS];
} chi_process_group;

// On all workers. own: this worker's replicas. A zeroed group may be closed.
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
// In place of the next exchange. The cluster continues if all workers fail there alike.
choir_status chi_process_group_fail(chi_process_group *p);

// own: this worker's maximal nodes, in order. Of c only dtype, elements and name are used. key: 0,
// or a hash of what must be equal; a cached fingerprint replaces c->name.
choir_status chi_process_group_all_reduce(chi_process_group *p, uint64_t key,
		const choir_collective *c, const choir_partial_sum own[], void *sum);
// As above, in the memory of the stream's device, without key. The parts are final.
choir_status chi_process_group_all_reduce_on_device(chi_process_group *p, chi_stream *stream,
		const choir_collective *c, const choir_partial_sum own[], void *sum);
// Each worker then adds up the sum itself.
bool chi_process_group_needs_one_round(const chi_process_group *p, size_t bytes);
static inline bool chi_process_group_knows(const chi_process_group *p, uint64_t key)
{
	return p->fingerprint_cache[key % CHI_CACHED_FINGERPRINTS].key == key;
}
// In order. fmt says what is gathered, equally on all workers.
choir_status chi_process_group_all_gather(chi_process_group *p, const void *own, size_t bytes,
		void *all, const char *fmt, ...) CHOIR_PRINTF(5, 6);
// bytes[w] from worker w; all know bytes. own may point into all.
choir_status chi_process_group_all_gather_v(chi_process_group *p, const void *own,
		const size_t bytes[], void *all, const char *fmt, ...) CHOIR_PRINTF(5, 6);
// In an exchange that began with chi_process_group_all_gather.
choir_status chi_process_group_broadcast(chi_process_group *p, int from, void *data, size_t bytes,
		const char *fmt, ...) CHOIR_PRINTF(5, 6);
