// Copies between processes by process_vm_readv, which needs no preparation by the other process.
#include "base/process_memory.h"

#include <sys/types.h>
#include <sys/uio.h>

enum { PARTS = 512, PART_BYTES = 1 << 28 }; // below the system's limits of a call

static bool refuses;

void chi_process_memory_refuse(bool refuse)
{
	refuses = refuse;
}

bool chi_process_memory_read(int64_t pid, const chi_process_memory_part part[], size_t n)
{
	struct iovec to[PARTS], from[PARTS];
	for (size_t i = 0, at = 0; i < n && !refuses;) {
		size_t all = 0;
		unsigned long count = 0;
		for (; i < n && count < PARTS && all < PART_BYTES; count++) {
			const size_t left = part[i].bytes - at;
			const size_t bytes = left < PART_BYTES ? left : PART_BYTES;
			to[count] = (struct iovec){ (char *) part[i].to + at, bytes };
			from[count] = (struct iovec){ (void *) (uintptr_t) (part[i].from + at), bytes };
			all += bytes;
			at = bytes < left ? at + bytes : 0;
			i += at == 0;
		}
		if (process_vm_readv((pid_t) pid, to, count, from, count, 0) != (ssize_t) all)
			return false;
	}
	return !refuses;
}
