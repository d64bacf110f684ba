// The processors that this process may use, determined at the first call.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// In the affinity mask, limited by the cgroup quota.
int chi_processor_count(void);
// It excludes online processors.
bool chi_processor_mask_is_narrowed(void);

enum { CHI_PROCESSOR_WORDS = 16 };
typedef struct {
	uint64_t word[CHI_PROCESSOR_WORDS]; // the affinity mask, a bit for each processor
} chi_processor_set;

void chi_processor_set_read(chi_processor_set *out);
bool chi_processor_sets_overlap(const chi_processor_set *a, const chi_processor_set *b);

// To count processors of the mask, from first on, modulo their number. False: refused.
bool chi_thread_pin(int first, int count);

// Rounded up; 0: none. groups_path is a file like /proc/self/cgroup; mount is the cgroup tree.
int chi_processor_quota(const char *groups_path, const char *mount);
