// How tests steer the stand-in and ask it, errors, and calls that only ask.
#include "state.h"

#include <cstdarg>

using namespace standin;

cudaError_t standin_queue(cudaStream_t stream, const char *name,
		const std::vector<standin_reach> &reach, std::function<std::string()> work)
{
	lock_type lock(R().lock);
	cudaError_t error = enter(name, false);
	if (error == cudaSuccess) {
		R().counts.library_calls++;
		error = queue_work(lock, stream, name, reach, std::move(work));
	}
	return leave(error);
}

void standin_report(const char *fmt, ...)
{
	char text[1000];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	lock_type lock(R().lock);
	report_locked(text);
}

bool standin_is_to_fail(const char *call)
{
	lock_type lock(R().lock);
	start_locked();
	return injected(call);
}

cudaError_t cudaDriverGetVersion(int *version)
{
	lock_type lock(R().lock);
	start_locked();
	*version = R().driver;
	return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
	lock_type lock(R().lock);
	start_locked();
	*count = R().devices;
	if (R().driver < CUDART_VERSION / 1000 * 1000)
		return leave(R().driver == 0 ? cudaErrorNoDevice : cudaErrorInsufficientDriver);
	return leave(R().devices > 0 ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int device)
{
	lock_type lock(R().lock);
	start_locked();
	if (device < 0 || device >= R().devices)
		return leave(cudaErrorInvalidDevice);
	if (R().fail_call == "cudaSetDevice" && injected("cudaSetDevice"))
		return leave(R().fail_error);
	current_device = device;
	return leave(R().device[device].lost);
}

cudaError_t cudaGetDevice(int *device)
{
	*device = current_device;
	return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device)
{
	BEGIN(cudaDeviceGetAttribute);
	if (device < 0 || device >= R().devices)
		return leave(cudaErrorInvalidDevice);
	*value = attribute == cudaDevAttrMultiProcessorCount ? 4
			: attribute == cudaDevAttrMaxThreadsPerBlock ? MOST_THREADS
														 : 9;
	return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *of, int device)
{
	BEGIN(cudaGetDeviceProperties);
	if (device < 0 || device >= R().devices)
		return leave(cudaErrorInvalidDevice);
	*of = { "Stand-in MIG 1g.4gb", 9, 0, 4 };
	return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
	const cudaError_t error = last_error;
	last_error = cudaSuccess;
	return error;
}

cudaError_t cudaPeekAtLastError(void)
{
	return last_error;
}

static const struct {
	cudaError_t error;
	const char *name, *text;
} texts[] = {
	{ cudaSuccess, "cudaSuccess", "no error" },
	{ cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument" },
	{ cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory" },
	{ cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
			"invalid configuration argument" },
	{ cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected" },
	{ cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal" },
	{ cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle",
			"invalid resource handle" },
	{ cudaErrorNotReady, "cudaErrorNotReady", "device not ready" },
	{ cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
			"an illegal memory access was encountered" },
	{ cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled",
			"peer access is already enabled" },
	{ cudaErrorPeerAccessUnsupported, "cudaErrorPeerAccessUnsupported",
			"peer access is not supported between these two devices" },
	{ cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure" },
	{ cudaErrorDevicesUnavailable, "cudaErrorDevicesUnavailable",
			"CUDA-capable device(s) is/are busy or unavailable" },
	{ cudaErrorDeviceUninitialized, "cudaErrorDeviceUninitialized", "invalid device context" },
	{ cudaErrorContextIsDestroyed, "cudaErrorContextIsDestroyed", "context is destroyed" },
	{ cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable",
			"uncorrectable ECC error encountered" },
};

const char *cudaGetErrorName(cudaError_t error)
{
	for (const auto &t : texts)
		if (t.error == error)
			return t.name;
	return "cudaErrorUnknown";
}

const char *cudaGetErrorString(cudaError_t error)
{
	for (const auto &t : texts)
		if (t.error == error)
			return t.text;
	return "unknown error";
}

void standin_set(uint64_t seed, unsigned delay, int lazy)
{
	lock_type lock(R().lock);
	start_locked();
	R().seed = R().random = seed;
	R().delay = delay;
	R().lazy = lazy != 0;
}

void standin_fail(const char *call, unsigned nth, int error)
{
	lock_type lock(R().lock);
	start_locked();
	R().fail_call = call == NULL ? "" : call;
	R().fail_nth = nth;
	R().fail_error = (cudaError_t) error;
	R().failed = false;
}

int standin_failed(void)
{
	lock_type lock(R().lock);
	return R().failed;
}

unsigned standin_reports(void)
{
	lock_type lock(R().lock);
	return R().reports;
}

const char *standin_last_report(void)
{
	return R().last_report.c_str();
}

void standin_forget_reports(void)
{
	lock_type lock(R().lock);
	R().reports = 0;
	R().last_report.clear();
}

void standin_lose(int device, int error)
{
	lock_type lock(R().lock);
	R().device[device].lost = (cudaError_t) error;
	R().progress.notify_all();
}

void standin_revive(int device)
{
	lock_type lock(R().lock);
	R().device[device].lost = cudaSuccess;
	for (auto &b : R().blocks)
		if (b.second->device == device)
			b.second->records.clear();
}

void standin_count(standin_counts *counts)
{
	lock_type lock(R().lock);
	*counts = R().counts;
}

void standin_compare_launches(uint64_t *launches, uint64_t *equal)
{
	lock_type lock(R().lock);
	std::vector<uint64_t> *l = R().launches;
	*launches = l[0].size();
	*equal = 0;
	for (size_t i = 0; i < l[0].size() && i < l[1].size(); i++)
		*equal += l[0][i] == l[1][i];
	l[1].swap(l[0]);
	l[0].clear();
}

void standin_take_memory(int device, long long bytes)
{
	lock_type lock(R().lock);
	R().device[device].used += (size_t) bytes;
}

void standin_pause(int paused)
{
	lock_type lock(R().lock);
	R().paused = paused != 0;
	R().work.notify_all();
}
