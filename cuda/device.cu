// The device table: GPUs and their memory.
#include "plugin.h"

#include <cstdlib>
#include <new>

#ifndef CHOIR_CUDA_ALIASES // tests add names
#define CHOIR_CUDA_ALIASES "cuda"
#endif

namespace choir_cuda
{

enum { MAX_SHARES = 8 };

// CHOIR_GPU_SHARES=N: each GPU is N devices, so that work between devices can be tried on one GPU.
static int shares()
{
	static const int n = [] {
		const char *text = getenv("CHOIR_GPU_SHARES");
		const int asked = text == NULL ? 1 : atoi(text);
		return asked < 1 ? 1 : asked > MAX_SHARES ? (int) MAX_SHARES : asked;
	}();
	return n;
}

int count_gpus()
{
	int n = 0;
	if (cudaGetDeviceCount(&n) == cudaSuccess)
		return n;
	(void) cudaGetLastError();
	return 0;
}

// Blocks of memory by their addresses.
class block_list
{
  public:
	void add(const void *block, size_t bytes)
	{
		std::lock_guard<std::mutex> hold(lock);
		blocks[(uintptr_t) block] = bytes;
	}
	void remove(const void *block)
	{
		std::lock_guard<std::mutex> hold(lock);
		blocks.erase((uintptr_t) block);
	}
	bool holds(const void *p)
	{
		std::lock_guard<std::mutex> hold(lock);
		auto it = blocks.upper_bound((uintptr_t) p);
		if (it == blocks.begin())
			return false;
		--it;
		return (uintptr_t) p < it->first + it->second;
	}

  private:
	std::mutex lock;
	std::map<uintptr_t, size_t> blocks;
};

static block_list device_blocks, pinned_blocks;

bool is_device_memory(const void *p)
{
	return device_blocks.holds(p);
}

bool is_pinned_memory(const void *p)
{
	return pinned_blocks.holds(p);
}

// What else there is to say about an error. sticky: the GPU's context does nothing more after it,
// whatever is called.
static const struct {
	int error;
	bool sticky;
	const char *why;
} known[] = {
	{ 46, false,
			"; another process has it alone, or it was reset" }, // cudaErrorDevicesUnavailable
	{ 201, true, "; the GPU was reset" }, // cudaErrorDeviceUninitialized
	{ 214, true, "" }, // cudaErrorECCUncorrectable
	{ 220, true, "" }, // cudaErrorNvlinkUncorrectable
	{ 226, true, "" }, // cudaErrorContained
	{ 700, true, "" }, // cudaErrorIllegalAddress
	{ 709, true, "; the GPU was reset" }, // cudaErrorContextIsDestroyed
	{ 710, true, "" }, // cudaErrorAssert
	{ 714, true, "" }, // cudaErrorHardwareStackError
	{ 715, true, "" }, // cudaErrorIllegalInstruction
	{ 716, true, "" }, // cudaErrorMisalignedAddress
	{ 717, true, "" }, // cudaErrorInvalidAddressSpace
	{ 718, true, "" }, // cudaErrorInvalidPc
	{ 719, true, "" }, // cudaErrorLaunchFailure
	{ 721, true, "" }, // cudaErrorTensorMemoryLeak
	{ 0, false, "" } // all others
};

static size_t find_known(cudaError_t error)
{
	size_t i = 0;
	while (known[i].error != 0 && known[i].error != (int) error)
		i++;
	return i;
}

// The first sticky error is the cause of all later ones.
static choir_status lose(device *d, cudaError_t error, const char *what)
{
	std::lock_guard<std::mutex> hold(d->lock);
	if (d->lost == cudaSuccess) {
		d->lost = error;
		d->lost_in = what;
	}
	return with.fail(CHOIR_IO,
			"gpu:%d: the GPU is lost for this process: %s (%s)%s, first reported by %s", d->index,
			cudaGetErrorString(d->lost), cudaGetErrorName(d->lost), known[find_known(d->lost)].why,
			d->lost_in.c_str());
}

choir_status check_on(device *d, cudaError_t error, const char *what)
{
	if (error == cudaSuccess)
		return CHOIR_OK;
	(void) cudaGetLastError();
	const size_t i = find_known(error);
	if (known[i].sticky)
		return lose(d, error, what);
	return with.fail(error == cudaErrorMemoryAllocation ? CHOIR_NO_MEMORY : CHOIR_IO,
			"gpu:%d: %s: %s (%s)%s", d->index, what, cudaGetErrorString(error),
			cudaGetErrorName(error), known[i].why);
}

choir_status check_lost(stream *s, const char *what)
{
	const cudaError_t cause = cudaStreamQuery(s->s);
	if (known[find_known(cause)].sticky)
		return lose(s->d, cause, what);
	(void) cudaGetLastError();
	return CHOIR_OK;
}

choir_status check_on(stream *s, cublasStatus_t status, const char *what)
{
	if (status != CUBLAS_STATUS_SUCCESS)
		CHOIR_TRY(check_lost(s, what));
	return check(status, what);
}

static int count_devices()
{
	return count_gpus() * shares();
}

static choir_status open_device(void *self, int index)
{
	CHOIR_TRY(check_process());
	device *d = new (std::nothrow) device;
	if (d == NULL)
		return CHOIR_NO_MEMORY;
	*(device **) self = d;
	d->index = index;
	d->gpu = index % count_gpus();
	on_gpu on(d->gpu);
	CHOIR_TRY(CALL(d, cudaSetDevice, d->gpu)); // begins its context
	return CALL(d, cudaDeviceGetAttribute, &d->processors, cudaDevAttrMultiProcessorCount, d->gpu);
}

static void close_device(void *self)
{
	delete device_of(self); // it has opened nothing
}

static void describe_device(const void *self, choir_device_info *info)
{
	const device *d = device_of(self);
	on_gpu on(d->gpu);
	size_t left = 0, all = 0;
	info->cores = d->processors;
	if (cudaMemGetInfo(&left, &all) == cudaSuccess) {
		info->memory_free = left;
		info->memory_total = all;
	} else {
		(void) cudaGetLastError();
	}
}

static choir_status allocate(void *self, size_t bytes, void **out)
{
	CHOIR_TRY(check_process());
	device *d = device_of(self);
	on_gpu on(d->gpu);
	const size_t some = bytes > 0 ? bytes : 1;
	const cudaError_t error = cudaMalloc(out, some);
	if (error == cudaErrorMemoryAllocation) {
		(void) cudaGetLastError(); // it does not stick
		return CHOIR_NO_MEMORY;
	}
	CHOIR_TRY(check_on(d, error, "cudaMalloc"));
	device_blocks.add(*out, some);
	return CHOIR_OK;
}

static void drop(void *self, void *block, block_list *list, cudaError_t (*give)(void *))
{
	if (check_process() != CHOIR_OK)
		return;
	on_gpu on(device_of(self)->gpu);
	list->remove(block);
	if (give(block) != cudaSuccess)
		(void) cudaGetLastError();
}

static void release(void *self, void *block, size_t)
{
	drop(self, block, &device_blocks, cudaFree);
}

static choir_status allocate_pinned(void *self, size_t bytes, void **out)
{
	CHOIR_TRY(check_process());
	device *d = device_of(self);
	on_gpu on(d->gpu);
	CHOIR_TRY(CALL(d, cudaHostAlloc, out, bytes > 0 ? bytes : 1, cudaHostAllocPortable));
	pinned_blocks.add(*out, bytes > 0 ? bytes : 1);
	return CHOIR_OK;
}

static void release_pinned(void *self, void *block, size_t)
{
	drop(self, block, &pinned_blocks, cudaFreeHost);
}

static choir_device_table make_table()
{
	choir_device_table t = {};
	t.size = sizeof t;
	t.version = CHOIR_TABLE_VERSION;
	t.host_memory = false;
	t.kind = "gpu";
	t.self_size = sizeof(device *);
	t.stream_size = sizeof(stream *);
	t.count = count_devices;
	t.open = open_device;
	t.close = close_device;
	t.describe = describe_device;
	t.allocate = allocate;
	t.release = release;
	t.stream_open = open_stream;
	t.stream_close = close_stream;
	t.copy = copy;
	t.fill = fill;
	t.record_event = record_event;
	t.wait_event = wait_event;
	t.wait = wait;
	t.aliases = CHOIR_CUDA_ALIASES;
	t.immediate = false;
	t.accelerator = true;
	t.host_allocate = allocate_pinned;
	t.host_release = release_pinned;
	return t;
}

const choir_device_table device_table = make_table();

} // namespace choir_cuda
