// Who exchanges with whom: the devices of one strategy and the cross-device operations that they
// were given. Communicators belong to the strategy, so two strategies on the same devices never
// meet.
#pragma once

#include "choir/extend/cross_device_ops_table.h"
#include "collective/process_group.h"
#include "device/device.h"

typedef struct {
	choir_group base; // what the table sees
	const choir_cross_device_ops_table *table; // without empty slots
	void *self;
	chi_process_group *process_group; // NULL: there is one worker
} chi_communicator;

// devices (of each member) outlives the group. name NULL: the best score for all-reduces of a
// mebibyte. An unknown name is CHOIR_NOT_FOUND with the list of those known.
choir_status chi_communicator_open(chi_communicator *g, int members, int replicas,
		choir_device *const *devices, const char *name);
// The same for the devices of one worker of several, whose replicas are p's. name is checked, but
// there is one algorithm among workers, which ends on the host.
choir_status chi_communicator_open_among_workers(chi_communicator *g, int members,
		choir_device *const *devices, chi_process_group *p, const char *name);
// CHOIR_NOT_FOUND with the list of those known.
choir_status chi_communicator_check_name(const char *name);
void chi_communicator_close(chi_communicator *g); // a zeroed group is fine
static inline choir_status chi_communicator_join(
		chi_communicator *g, int member, const choir_collective *c, uint64_t *request)
{
	return g->table->join(g->self, member, c, request);
}
static inline choir_status chi_communicator_wait(
		chi_communicator *g, int member, uint64_t request, double seconds)
{
	return g->table->wait(g->self, member, request, seconds);
}
static inline void chi_communicator_abort(chi_communicator *g)
{
	g->table->abort(g->self);
}
static inline void chi_communicator_reset(chi_communicator *g)
{
	g->table->reset(g->self);
}
// Memories that members have of their own: 1 if all share theirs.
int chi_group_memories(const choir_group *group);

// At most so many collectives may be joined and not yet waited for by a member.
enum { CHI_COMMUNICATOR_WINDOW = 64 };

extern const choir_cross_device_ops_table chi_direct_table;
extern const choir_cross_device_ops_table chi_reduce_to_one_device_table;
extern const choir_cross_device_ops_table chi_ring_table;
extern const choir_cross_device_ops_table chi_hierarchical_copy_table;
// Among workers. It is not in the list: it is opened with the base of a communicator and uses the
// communicator's process group.
extern const choir_cross_device_ops_table chi_multi_worker_table;
