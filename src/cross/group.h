// Who exchanges with whom: the devices of one strategy and the cross-device operations that they
// were given. Communicators belong to the strategy, so two strategies on the same devices never
// meet.
#pragma once

#include "choir/extend/cross.h"
#include "cross/peers.h"
#include "device/device.h"

typedef struct {
	choir_group shown; // what the table sees
	const choir_cross_device_ops_table *table; // without empty slots
	void *self;
} chi_group;

// devices (of each member) outlives the group. name NULL: the best score for all-reduces of a
// mebibyte. An unknown name is CHOIR_NOT_FOUND with the list of those known.
choir_status chi_group_open(
		chi_group *g, int members, int replicas, choir_device *const *devices, const char *name);
// The same for the devices of one worker of several, whose replicas are p's. name is checked, but
// there is one way between workers, which ends on the host.
choir_status chi_group_open_among(
		chi_group *g, int members, choir_device *const *devices, chi_peers *p, const char *name);
choir_status chi_group_known(const char *name); // CHOIR_NOT_FOUND with the list of those known
void chi_group_close(chi_group *g); // a zeroed group is fine
choir_status chi_group_join(chi_group *g, int member, const choir_collective *c, uint64_t *ticket);
choir_status chi_group_wait(chi_group *g, int member, uint64_t ticket, double seconds);
void chi_group_abort(chi_group *g);
void chi_group_reset(chi_group *g);

// At most so many collectives may be joined and not yet waited for by a member.
enum { CHI_GROUP_WINDOW = 64 };

extern const choir_cross_device_ops_table chi_direct_table;
extern const choir_cross_device_ops_table chi_reduce_to_one_table;
extern const choir_cross_device_ops_table chi_ring_table;
extern const choir_cross_device_ops_table chi_hierarchical_copy_table;
// Among workers (workers.c): not in the list, since it needs to know them. To be told before open.
extern const choir_cross_device_ops_table chi_workers_table;
void chi_workers_tell(void *self, chi_peers *p);
