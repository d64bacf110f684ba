// The processors that this process may use, as they are when Choir first asks: threads that are
// pinned later change nothing.
#pragma once

#include <stdbool.h>

// How many there are: those of the affinity mask, at most as many as the quota of the cgroups.
int chi_processor_count(void);
// Whether the affinity mask has fewer processors than are online.
bool chi_processor_mask_is_narrowed(void);
// Pins the calling thread to count processors of the mask from the first-th on, modulo their
// number. False where the system refuses.
bool chi_thread_pin(int first, int count);

// The quota in whole processors, rounded up; 0: none. groups_path lists the process's cgroups as
// /proc/self/cgroup does (v1 or v2); their tree is mounted at mount.
int chi_processor_quota(const char *groups_path, const char *mount);
