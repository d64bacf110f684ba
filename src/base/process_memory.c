// Copies by process_vm_readv, which needs no preparation by the other process.
#include "base/process_memory.h"

#include "base/atomic.h"

#include <sys/types.h>
#include <sys/uio.h>

enum { PARTS = 512, PART_BYTES = 1 << 28 }; // below the system's limits of a call

static bool refuses;
static chi_atomic64 read_bytes;

void chi_process_memory_fence(void)
{
#ifndef CHI_NO_FENCES
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

void chi_process_memory_refuse(bool refuse)
{
	refuses = refuse;
}

uint64_t chi_process_memory_bytes(void)
{
	return chi_atomic64_load(&read_bytes);
}

// May extend the last part: a whole page costs no more than one byte.
static void add(struct iovec part[], unsigned long *n, uintptr_t at, size_t bytes)
{
	if (*n > 0 && (uintptr_t) part[*n - 1].iov_base + part[*n - 1].iov_len == at)
		part[*n - 1].iov_len += bytes;
	else
		part[(*n)++] = (struct iovec){ (void *) at, bytes };
}

bool chi_process_memory_read(int64_t pid, const chi_process_memory_part part[], size_t n)
{
	struct iovec to[PARTS], from[PARTS];
	for (size_t i = 0, at = 0; i < n && !refuses;) {
		size_t all = 0;
		unsigned long targets = 0, sources = 0;
		while (i < n && targets < PARTS && sources < PARTS && all < PART_BYTES) {
			if (part[i].bytes == 0) {
				i++;
				continue;
			}
			const size_t left = part[i].bytes - at;
			const size_t bytes = left < PART_BYTES ? left : PART_BYTES;
			add(to, &targets, (uintptr_t) part[i].to + at, bytes);
			add(from, &sources, (uintptr_t) (part[i].from + at), bytes);
			all += bytes;
			at = bytes < left ? at + bytes : 0;
			i += at == 0;
		}
		chi_process_memory_fence();
		if (process_vm_readv((pid_t) pid, to, targets, from, sources, 0) != (ssize_t) all)
			return false;
		(void) chi_atomic64_add(&read_bytes, all);
	}
	return !refuses;
}
