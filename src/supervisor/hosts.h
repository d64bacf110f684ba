// The hosts of a job, and how many workers each has room for.
#pragma once

#include "base/text.h"
#include "supervisor/restart_policy.h"

enum { CHI_MAX_HOSTS = 1024 };

typedef struct {
	char name[CHI_HOST_NAME]; // a name or an address that ssh and launchers accept
	int slots;
	bool lost; // left out from now on
} chi_host;

typedef struct {
	int n;
	chi_host host[CHI_MAX_HOSTS];
} chi_hosts;

// Reads "a,b:2" or, if list is the name of a file, its lines "a", "b:2" or "b slots=2" with
// comments after #. Hosts that were lost stay so, unless the file names them again after it did
// not. NULL: no hosts. CHOIR_INVALID names the line or the item.
choir_status chi_hosts_read(chi_hosts *h, const char *list);
int chi_hosts_capacity(const chi_hosts *h);
// By its name in the list or the name that it gives itself.
void chi_hosts_lose(chi_hosts *h, const char *name);
// Gives the host of worker i: hosts are filled in their order. NULL: there is no room.
const char *chi_hosts_of(const chi_hosts *h, int worker);
// Gives the list's name for the host of a worker that calls itself own. own: it has no host there.
const char *chi_hosts_name(const chi_hosts *h, const char *own, int worker);
// Adds "a:2,b:1" for that many workers.
void chi_hosts_add_list(const chi_hosts *h, int workers, chi_text *out);
