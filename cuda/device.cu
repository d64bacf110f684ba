// The device table: GPUs and their memory.
#include "internal.h"

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

// Errors after which a GPU's context does nothing more, whatever is called.
static bool is_sticky(cudaError_t error)
{
	switch ((int) error) {
	case 214: // cudaErrorECCUncorrectable
	case 220: // cudaErrorNvlinkUncorrectable
	case 226: // cudaErrorContained
	case 700: // cudaErrorIllegalAddress
	case 709: // cudaErrorContextIsDestroyed
	case 710: // cudaErrorAssert
	case 714: // cudaErrorHardwareStackError
	case 715: // cudaErrorIllegalInstruction
	case 716: // cudaErrorMisalignedAddress
	case 717: // cudaErrorInvalidAddressSpace
	case 718: // cudaErrorInvalidPc
	case 719: // cudaErrorLaunchFailure
	case 721: // cudaErrorTensorMemoryLeak
		return true;
	default:
		return false;
	}
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
			"gpu:%d: the GPU is lost for this process: %s (%s), first reported by %s", d->index,
			cudaGetErrorString(d->lost), cudaGetErrorName(d->lost), d->lost_in.c_str());
}

choir_status check_on(device *d, cudaError_t error, const char *what)
{
	if (error == cudaSuccess)
		return CHOIR_OK;
	(void) cudaGetLastError();
	if (is_sticky(error))
		return lose(d, error, what);
	return with.fail(error == cudaErrorMemoryAllocation ? CHOIR_NO_MEMORY : CHOIR_IO,
			"gpu:%d: %s: %s (%s)", d->index, what, cudaGetErrorString(error),
			cudaGetErrorName(error));
}

choir_status check_lost(stream *s, const char *what)
{
	const cudaError_t cause = cudaStreamQuery(s->s);
	if (is_sticky(cause))
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
	return check_on(d,
			cudaDeviceGetAttribute(&d->processors, cudaDevAttrMultiProcessorCount, d->gpu),
			"cudaDeviceGetAttribute");
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

static void release(void *self, void *block, size_t)
{
	if (check_process() != CHOIR_OK)
		return;
	on_gpu on(device_of(self)->gpu);
	device_blocks.remove(block);
	if (cudaFree(block) != cudaSuccess)
		(void) cudaGetLastError();
}

static choir_status allocate_pinned(void *self, size_t bytes, void **out)
{
	CHOIR_TRY(check_process());
	device *d = device_of(self);
	on_gpu on(d->gpu);
	CHOIR_TRY(check_on(
			d, cudaHostAlloc(out, bytes > 0 ? bytes : 1, cudaHostAllocPortable), "cudaHostAlloc"));
	pinned_blocks.add(*out, bytes > 0 ? bytes : 1);
	return CHOIR_OK;
}

static void release_pinned(void *self, void *block, size_t)
{
	if (check_process() != CHOIR_OK)
		return;
	on_gpu on(device_of(self)->gpu);
	pinned_blocks.remove(block);
	if (cudaFreeHost(block) != cudaSuccess)
		(void) cudaGetLastError();
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
