// The memory of the far devices: shared pages mapped twice. The outside mapping has no access
// rights and is what programs are handed; the inside mapping lies at a fixed distance from it and
// is what the devices' threads use. So an address is translated by one addition, and a host that
// forgets to copy crashes at the line that forgot. Both mappings are reserved once, for as long
// as the program lives: the system gives pages only where something is written, and takes them
// back at a release.
#include "base/alloc.h"
#include "base/atomic.h"
#include "base/lock.h"
#include "base/size.h"
#include "base/thread.h"
#include "far/far.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Addresses, not memory. Halved where the system gives no more (ulimit -v), down to the least.
static const size_t MAX_RESERVE = (size_t) 1 << 36;
static const size_t MIN_RESERVE = (size_t) 1 << 26;
static const size_t PAGE = 4096;

// New memory is filled with it: not a number in every floating-point type, so that what reads
// before it writes is noticed.
static const int POISON = 0xff;

// What is handed out, in ascending order; what lies between is free.
typedef struct block {
	struct block *next;
	size_t at, bytes;
} block;

static chi_mutex memory_mutex = CHI_MUTEX_STATIC(CHI_RANK_STREAM, "far memory");
static struct {
	chi_atomic64 outside; // address; 0: not mapped yet. Those below are set before it, once
	size_t reserved;
	char *inside;
	int pages; // the descriptor behind both mappings; 0: not opened yet
	unsigned generation; // of the process that mapped it
	block *blocks; // under the mutex, as is
	size_t used; // bytes of all blocks
} memory;

static bool map_twice(size_t bytes)
{
	const int shared = MAP_SHARED | MAP_NORESERVE;
	void *inside = MAP_FAILED, *outside = MAP_FAILED;
	if (ftruncate(memory.pages, (off_t) bytes) == 0) {
		inside = mmap(NULL, bytes, PROT_READ | PROT_WRITE, shared, memory.pages, 0);
		outside = mmap(NULL, bytes, PROT_NONE, shared, memory.pages, 0);
	}
	const int failure = errno;
	if (inside == MAP_FAILED || outside == MAP_FAILED) {
		if (outside != MAP_FAILED)
			munmap(outside, bytes);
		if (inside != MAP_FAILED)
			munmap(inside, bytes);
		errno = failure;
		return false;
	}
	memory.inside = inside;
	memory.reserved = bytes;
	memory.generation = chi_fork_generation();
	chi_atomic64_store(&memory.outside, (uint64_t) (uintptr_t) outside);
	return true;
}

static choir_status open_locked(void)
{
	if (chi_atomic64_load(&memory.outside) != 0)
		return CHOIR_OK;
	if (memory.pages <= 0)
		memory.pages = memfd_create("choir far memory", MFD_CLOEXEC);
	for (size_t bytes = MAX_RESERVE; bytes >= MIN_RESERVE; bytes /= 2)
		if (map_twice(bytes))
			return CHOIR_OK;
	return choir_fail(CHOIR_NO_MEMORY, "far memory: cannot map %zu bytes twice: %s", MIN_RESERVE,
			strerror(errno));
}

choir_status far_memory_open(void)
{
	chi_mutex_lock(&memory_mutex);
	choir_status status = open_locked();
	chi_mutex_unlock(&memory_mutex);
	return status;
}

// Puts a block into the first gap that has room. False: there is none.
static bool place(block *new)
{
	size_t at = 0;
	block **before = &memory.blocks;
	while (*before != NULL && (*before)->at - at < new->bytes) {
		at = (*before)->at + (*before)->bytes;
		before = &(*before)->next;
	}
	if (memory.reserved - at < new->bytes)
		return false;
	new->at = at;
	new->next = *before;
	*before = new;
	memory.used += new->bytes;
	return true;
}

choir_status far_memory_allocate(size_t bytes, void **out)
{
	if (chi_fork_generation() != memory.generation)
		return choir_fail(CHOIR_STATE, "far memory: it belongs to the process before the fork");
	size_t rounded;
	if (!chi_size_round_up(bytes > 0 ? bytes : 1, PAGE, &rounded))
		return choir_fail(CHOIR_NO_MEMORY, "far memory: %zu bytes", bytes);
	block *new = chi_alloc(sizeof *new);
	if (new == NULL)
		return CHOIR_NO_MEMORY;
	new->bytes = rounded;
	chi_mutex_lock(&memory_mutex);
	bool placed = place(new);
	chi_mutex_unlock(&memory_mutex);
	if (!placed) {
		chi_free(new);
		return choir_fail(CHOIR_NO_MEMORY, "far memory: %zu bytes", bytes);
	}
	memset(memory.inside + new->at, POISON, rounded);
	*out = (void *) ((uintptr_t) chi_atomic64_load(&memory.outside) + new->at);
	return CHOIR_OK;
}

void far_memory_release(void *address)
{
	if (chi_fork_generation() != memory.generation)
		return; // the pages are shared with the parent, who still uses them
	size_t at = (uintptr_t) address - (uintptr_t) chi_atomic64_load(&memory.outside);
	chi_mutex_lock(&memory_mutex);
	block **before = &memory.blocks;
	while (*before != NULL && (*before)->at != at)
		before = &(*before)->next;
	block *old = *before;
	if (old != NULL) {
		// While the mutex is held: the next owner's bytes must not be the ones that go.
		fallocate(memory.pages, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t) old->at,
				(off_t) old->bytes);
		*before = old->next;
		memory.used -= old->bytes;
	}
	chi_mutex_unlock(&memory_mutex);
	chi_free(old);
}

void far_memory_describe(uint64_t *total, uint64_t *available)
{
	chi_mutex_lock(&memory_mutex);
	*total = memory.reserved;
	*available = memory.reserved - memory.used;
	chi_mutex_unlock(&memory_mutex);
}

void *far_inside(const void *address)
{
	uintptr_t outside = (uintptr_t) chi_atomic64_load(&memory.outside);
	uintptr_t at = (uintptr_t) address - outside;
	// The distance wraps around for addresses below, and is too large then.
	if (outside == 0 || at >= memory.reserved)
		return (void *) (uintptr_t) address;
	return memory.inside + at;
}
