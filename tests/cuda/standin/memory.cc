// The memory of devices, and pinned memory of the host. A device's memory is mapped twice: what
// programs get has no access rights, and the engine opens for a kernel exactly what its arguments
// lead to. So a host that forgets to copy, and a kernel that reaches beyond its memory, stop at
// the instruction that does it.
#include "state.h"

namespace standin
{

std::string describe(const block *b)
{
	return b->device < 0 ? format("%zu bytes of pinned memory", b->bytes)
						 : format("%zu bytes of device %d", b->bytes, b->device);
}

bool map_device(device_state *d)
{
	void *inside = mmap(NULL, RESERVED, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (inside == MAP_FAILED)
		return false;
	void *outside = mremap(inside, 0, RESERVED, MREMAP_MAYMOVE);
	if (outside == MAP_FAILED || mprotect(outside, RESERVED, PROT_NONE) != 0)
		return false;
	d->inside = (char *) inside;
	d->outside = (char *) outside;
	return true;
}

// The device whose memory holds an address; -1: none.
int device_of(const void *p)
{
	const runtime &r = R();
	for (int i = 0; i < r.devices; i++)
		if (r.device[i].outside != NULL && (const char *) p >= r.device[i].outside &&
				(const char *) p < r.device[i].outside + RESERVED)
			return i;
	return -1;
}

std::shared_ptr<block> find_block(const void *p)
{
	runtime &r = R();
	auto it = r.blocks.upper_bound((uintptr_t) p);
	if (it == r.blocks.begin())
		return nullptr;
	std::shared_ptr<block> b = std::prev(it)->second;
	return (const char *) p < b->at + std::max<size_t>(b->bytes, 1) ? b : nullptr;
}

// First fit from where the last one was found, so that what was freed is used again late. A page
// on either side stays closed, and the end of the memory is the end of a page but for the
// alignment.
static char *find_gap(int index, size_t pages)
{
	runtime &r = R();
	device_state *d = &r.device[index];
	const uintptr_t base = (uintptr_t) d->outside;
	for (int pass = 0; pass < 2; pass++) {
		uintptr_t at = base + d->cursor;
		auto it = r.blocks.lower_bound(at);
		if (it != r.blocks.begin()) {
			const block *before = std::prev(it)->second.get();
			const uintptr_t end = (uintptr_t) before->first_page() + before->page_bytes() + PAGE;
			if (end > at && end <= base + RESERVED && (uintptr_t) before->at >= base)
				at = end;
		}
		for (;;) {
			const uintptr_t next = it == r.blocks.end() || it->first >= base + RESERVED
					? base + RESERVED - PAGE
					: (uintptr_t) it->second->first_page();
			if (at + pages + PAGE <= next) {
				d->cursor = at + pages + PAGE - base;
				return (char *) at;
			}
			if (it == r.blocks.end() || it->first >= base + RESERVED)
				break;
			at = (uintptr_t) it->second->first_page() + it->second->page_bytes() + PAGE;
			++it;
		}
		d->cursor = PAGE;
	}
	return NULL;
}

} // namespace standin

using namespace standin;

cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
	BEGIN(cudaMemGetInfo);
	*all = R().memory;
	*left = R().memory - R().device[current_device].used;
	return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	BEGIN(cudaDeviceCanAccessPeer);
	*can = R().peers && device != peer;
	return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
	(void) flags;
	BEGIN(cudaDeviceEnablePeerAccess);
	if (!R().peers || peer == current_device || peer < 0 || peer >= R().devices)
		return leave(cudaErrorPeerAccessUnsupported);
	bool *own = &R().device[current_device].peer[peer];
	if (*own)
		return leave(cudaErrorPeerAccessAlreadyEnabled);
	*own = true;
	return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
	BEGIN(cudaMalloc);
	runtime &r = R();
	device_state *d = &r.device[current_device];
	*memory = NULL;
	if (bytes == 0)
		return cudaSuccess;
	if (bytes > r.memory - d->used)
		return leave(cudaErrorMemoryAllocation);
	const size_t whole = (bytes + 255) & ~(size_t) 255;
	const size_t pages = (whole + PAGE - 1) & ~(size_t) (PAGE - 1);
	char *at = find_gap(current_device, pages);
	if (at == NULL)
		return leave(cudaErrorMemoryAllocation);
	std::shared_ptr<block> b = std::make_shared<block>();
	b->device = current_device;
	b->at = at + (pages - whole); // so that what is behind it is closed
	b->inside = b->at - d->outside + d->inside;
	b->bytes = bytes;
	memset(b->inside, 0xff, whole); // not a number, in every type
	d->used += whole;
	r.blocks[(uintptr_t) b->at] = b;
	r.counts.allocations++;
	*memory = b->at;
	return cudaSuccess;
}

// With the lock held: whether something that is queued still uses it.
static void check_free(block *b, const char *call)
{
	for (const record &was : b->records)
		if (was.number > was.stream->observed) {
			report_locked(format("%s of %s, which %s on %s may have yet to use", call,
					describe(b).c_str(), was.name.c_str(), name_of(was.stream.get()).c_str()));
			return;
		}
}

cudaError_t cudaFree(void *memory)
{
	BEGIN(cudaFree);
	runtime &r = R();
	if (memory == NULL)
		return cudaSuccess;
	auto it = r.blocks.find((uintptr_t) memory);
	if (it == r.blocks.end() || it->second->device < 0) {
		report_locked(format("cudaFree of %p, which is no memory of a device", memory));
		return leave(cudaErrorInvalidValue);
	}
	std::shared_ptr<block> b = it->second;
	check_free(b.get(), "cudaFree");
	b->freed = true;
	const size_t whole = (b->bytes + 255) & ~(size_t) 255;
	r.device[b->device].used -= whole;
	device_state *d = &r.device[b->device];
	madvise(b->first_page() - d->outside + d->inside, b->page_bytes(), MADV_REMOVE);
	r.blocks.erase(it);
	r.counts.frees++;
	return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags)
{
	(void) flags;
	BEGIN(cudaHostAlloc);
	*memory = NULL;
	if (bytes == 0)
		return cudaSuccess;
	const size_t pages = (bytes + PAGE - 1) & ~(size_t) (PAGE - 1);
	void *at = mmap(NULL, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return leave(cudaErrorMemoryAllocation);
	memset(at, 0xff, bytes);
	R().counts.pinned++;
	std::shared_ptr<block> b = std::make_shared<block>();
	b->device = -1;
	b->at = b->inside = (char *) at;
	b->bytes = bytes;
	R().blocks[(uintptr_t) at] = b;
	*memory = at;
	return cudaSuccess;
}

cudaError_t cudaFreeHost(void *memory)
{
	BEGIN(cudaFreeHost);
	if (memory == NULL)
		return cudaSuccess;
	auto it = R().blocks.find((uintptr_t) memory);
	if (it == R().blocks.end() || it->second->device >= 0)
		return leave(cudaErrorInvalidValue);
	check_free(it->second.get(), "cudaFreeHost");
	it->second->freed = true;
	munmap(it->second->at, it->second->page_bytes());
	R().blocks.erase(it);
	return cudaSuccess;
}
