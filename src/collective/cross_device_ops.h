// A communicator: a strategy's devices and the algorithm of their collectives. Strategies share
// none, so their collectives never interfere.
#pragma once

#include "choir/extend/cross_device_ops_table.h"
#include "device/device.h"

typedef struct {
	choir_group base;
	const choir_cross_device_ops_table *table;
	void *self;
} chi_communicator;

// devices, one per member, outlives g. name NULL: the best score for an all-reduce of 1 MiB.
choir_status chi_communicator_open(chi_communicator *g, int members, int replicas,
		choir_device *const *devices, const char *name);
choir_status chi_communicator_check_name(const char *name);
void chi_communicator_close(chi_communicator *g);
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
int chi_group_memories(const choir_group *group);

// Open requests per member.
enum { CHI_COMMUNICATOR_WINDOW = 64 };

extern const choir_cross_device_ops_table chi_direct_table;
extern const choir_cross_device_ops_table chi_reduce_to_one_device_table;
extern const choir_cross_device_ops_table chi_ring_table;
extern const choir_cross_device_ops_table chi_hierarchical_copy_table;
