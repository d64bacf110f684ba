// The hosts of a job, and each host's capacity in workers.
#pragma once

#include "base/text.h"
#include "supervisor/restart_policy.h"

enum { CHI_MAX_HOSTS = 1024 };

typedef struct {
	char name[CHI_HOST_NAME]; // or address, for ssh and launchers
	int slots;
	bool lost; // not used again
} chi_host;

typedef struct {
	int n;
	chi_host host[CHI_MAX_HOSTS];
} chi_hosts;

// list: "a,b:2", or a file with lines "a", "b:2" or "b slots=2" and comments after #. Lost hosts
// stay lost until the file drops them and names them again. NULL: no hosts. CHOIR_INVALID names
// the line or item.
choir_status chi_hosts_read(chi_hosts *h, const char *list);
int chi_hosts_capacity(const chi_hosts *h);
// name: in the list, or the host's own.
void chi_hosts_lose(chi_hosts *h, const char *name);
// The host of a worker; hosts are filled in order. NULL: no capacity.
const char *chi_hosts_of(const chi_hosts *h, int worker);
// The list's name for the host that calls itself own; own if it has none.
const char *chi_hosts_name(const chi_hosts *h, const char *own, int worker);
// Adds "a:2,b:1".
void chi_hosts_add_list(const chi_hosts *h, int workers, chi_text *out);
