// Devices for replicas and variables.
#include "strategy/device_placement.h"

#include "base/processors.h"
#include "strategy/worker_sync.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static choir_status find_devices(choir_strategy *s, choir_device **devices, int *count)
{
	const char *names = s->options.devices;
	if (names == NULL || names[0] == '\0')
		names = getenv("CHOIR_DEVICES");
	if (names != NULL && names[0] != '\0')
		return chi_device_list(names, CHI_MAX_DEVICES, devices, count);
	CHOIR_TRY(chi_device_list_accelerators(CHI_MAX_DEVICES, devices, count));
	if (*count > 0)
		return CHOIR_OK;
	const int cores = chi_processor_count();
	const int all = s->options.replicas > 0 ? s->options.replicas : s->workers;
	const choir_cluster *c = s->options.cluster;
	const int want = c == NULL || s->options.replicas == 0
			? all
			: (int) chi_share_of(all, choir_cluster_workers(c), choir_cluster_worker(c));
	*count = want < cores ? want : cores;
	for (int i = 0; i < *count; i++) {
		char name[16] = "cpu:";
		snprintf(name + 4, sizeof name - 4, "%d", i);
		if ((devices[i] = choir_device_find(name)) == NULL)
			return choir_error_status();
	}
	return CHOIR_OK;
}

static choir_status share_out_replicas(choir_strategy *s, choir_device *const *devices, int count)
{
	const int min = count > s->workers ? count : s->workers;
	int all = s->options.replicas > 0 ? s->options.replicas : min;
	CHOIR_TRY(chi_strategy_open_process_group(s, &all));
	const int used = count < all ? count : all;
	choir_device **of_replica = chi_alloc_array((size_t) all, sizeof(choir_device *));
	s->all_replicas = (chi_layout){ all, of_replica };
	s->devices_in_use = chi_alloc_array((size_t) used, sizeof *s->devices_in_use);
	if (of_replica == NULL || s->devices_in_use == NULL)
		return choir_error_status();
	s->all_host = true;
	for (int i = 0, r = 0; i < used; i++) {
		s->devices_in_use[i] = devices[i];
		s->all_host = s->all_host && devices[i]->host_memory;
		for (int end = r + (int) chi_share_of(all, used, i); r < end; r++)
			of_replica[r] = devices[i];
	}
	return CHOIR_OK;
}

static int ask_devices(choir_strategy *s, int (*slot)(void *, int, choir_device **),
		choir_device **scratch, choir_device ***devices)
{
	const int n = slot(s->self, CHI_MAX_DEVICES, scratch);
	if (n == CHOIR_NONE)
		return CHOIR_NONE;
	if (n < 1 || n > CHI_MAX_DEVICES) {
		choir_fail(CHOIR_INVALID,
				"strategy: the table of \"%s\" names %d "
				"devices for variables; 1 to %d are possible",
				s->kind, n, CHI_MAX_DEVICES);
		return CHOIR_NONE;
	}
	*devices = chi_alloc_array((size_t) n, sizeof **devices);
	if (*devices == NULL)
		return CHOIR_NONE;
	memcpy(*devices, scratch, (size_t) n * sizeof **devices);
	return n;
}

static choir_status open_table(choir_strategy *s, choir_device **scratch)
{
	s->self = chi_alloc(s->table.self_size + 1);
	CHOIR_TRY(chi_made(s->self));
	const int all = s->all_replicas.replicas;
	int used = 1;
	for (int r = 1; r < all; r++)
		used += s->all_replicas.device[r] != s->all_replicas.device[r - 1];
	CHOIR_TRY(s->table.open(s->self, &s->options, used, s->devices_in_use));
	int n = ask_devices(s, s->table.parameter_devices, scratch, &s->parameter);
	if (n == CHOIR_NONE)
		return choir_error_status();
	s->parameters = n;
	n = ask_devices(s, s->table.non_slot_devices, scratch, &s->non_slot);
	if (n == CHOIR_NONE)
		return choir_error_status();
	for (int i = 0; i < n; i++) {
		int k = 0;
		while (k < s->non_slots && !chi_device_shares(s->non_slot[k], s->non_slot[i]))
			k++;
		if (k == s->non_slots)
			s->non_slot[s->non_slots++] = s->non_slot[i];
	}
	return CHOIR_OK;
}

static choir_status open_devices(choir_strategy *s, choir_device **devices)
{
	int count = 0;
	CHOIR_TRY(find_devices(s, devices, &count));
	if (s->table.max_replicas == 1 && count > 1 && s->options.devices != NULL)
		return choir_fail(CHOIR_INVALID, "strategy: \"%s\" needs one device; .devices is \"%s\"",
				s->kind, s->options.devices);
	CHOIR_TRY(share_out_replicas(s, devices, count));
	return open_table(s, devices);
}

choir_status chi_layout_open(choir_strategy *owner)
{
	choir_device **devices = chi_alloc_array(CHI_MAX_DEVICES, sizeof *devices);
	CHOIR_TRY(chi_made(devices));
	const choir_status status = open_devices(owner, devices);
	chi_free(devices);
	return status;
}

choir_status chi_layout_open_block(choir_strategy *s)
{
	const choir_strategy *owner = s->owner;
	s->replicas = (int) chi_share_of(owner->all_replicas.replicas, owner->workers, s->worker);
	s->replica_device = owner->all_replicas.device + s->first_replica;
	s->layout = (chi_layout){ s->replicas, s->replica_device };
	const size_t max = (size_t) s->replicas;
	s->device = chi_alloc_array(max, sizeof *s->device);
	s->first = chi_alloc_array(max + 1, sizeof *s->first);
	if (s->device == NULL || s->first == NULL)
		return choir_error_status();
	for (int r = 0; r < s->replicas; r++) {
		if (r == 0 || s->replica_device[r] != s->replica_device[r - 1]) {
			s->device[s->devices] = s->replica_device[r];
			s->first[s->devices++] = r;
		}
	}
	s->first[s->devices] = s->replicas;
	s->replica_offset =
			s->process_group == NULL ? 0 : chi_process_group_first_replica(s->process_group);
	s->in_sync = s->process_group == NULL ? s->replicas : s->process_group->replicas;
	return CHOIR_OK;
}

int chi_strategy_device_index(const choir_strategy *s, int local_replica)
{
	int d = 0;
	while (local_replica >= s->first[d + 1])
		d++;
	return d;
}
