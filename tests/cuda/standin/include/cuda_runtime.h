// The stand-in: the part of the CUDA runtime that Choir's CUDA backend uses, on a CPU, so that one
// source compiles for both. Names, arguments and rules are NVIDIA's; what breaks a rule that a GPU
// would forgive today and punish tomorrow is a report (standin.h). Kernels are plain functions:
// each thread of a block is a fiber, which __syncthreads and the warp's calls switch. This file
// stands where a program looks for <cuda_runtime.h> when it is not compiled by nvcc.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <cmath>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#define CHOIR_STANDIN 1
#define CUDART_VERSION 13000

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
// One block runs at a time in the whole process, so what a block shares is static.
#define __shared__ static
#define CUDART_CB

using std::exp;
using std::log;
using std::sqrt;
using std::tanh;

typedef enum cudaError {
	cudaSuccess = 0,
	cudaErrorInvalidValue = 1,
	cudaErrorMemoryAllocation = 2,
	cudaErrorInvalidConfiguration = 9,
	cudaErrorInsufficientDriver = 35,
	cudaErrorDevicesUnavailable = 46,
	cudaErrorNoDevice = 100,
	cudaErrorInvalidDevice = 101,
	cudaErrorDeviceUninitialized = 201,
	cudaErrorECCUncorrectable = 214,
	cudaErrorInvalidResourceHandle = 400,
	cudaErrorNotReady = 600,
	cudaErrorIllegalAddress = 700,
	cudaErrorPeerAccessAlreadyEnabled = 704,
	cudaErrorPeerAccessUnsupported = 217,
	cudaErrorContextIsDestroyed = 709,
	cudaErrorLaunchFailure = 719,
	cudaErrorUnknown = 999
} cudaError_t;

typedef enum cudaMemcpyKind {
	cudaMemcpyHostToHost = 0,
	cudaMemcpyHostToDevice,
	cudaMemcpyDeviceToHost,
	cudaMemcpyDeviceToDevice,
	cudaMemcpyDefault
} cudaMemcpyKind;

typedef enum cudaDeviceAttr {
	cudaDevAttrMaxThreadsPerBlock = 1,
	cudaDevAttrMultiProcessorCount = 16,
	cudaDevAttrComputeCapabilityMajor = 75,
	cudaDevAttrComputeCapabilityMinor = 76
} cudaDeviceAttr;

typedef struct cudaDeviceProp {
	char name[256];
	int major, minor, multiProcessorCount;
} cudaDeviceProp;

enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1 };
enum { cudaEventDefault = 0, cudaEventDisableTiming = 2 };
enum { cudaHostAllocDefault = 0, cudaHostAllocPortable = 1 };

typedef struct standin_stream *cudaStream_t;
typedef struct standin_event *cudaEvent_t;
typedef void (*cudaHostFn_t)(void *user);

struct dim3 {
	unsigned x, y, z;
	constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
struct uint3 {
	unsigned x, y, z;
};

// Of the thread that runs.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
enum { warpSize = 32 };

typedef struct cudaLaunchAttribute cudaLaunchAttribute;
typedef struct cudaLaunchConfig_st {
	dim3 gridDim, blockDim;
	size_t dynamicSmemBytes;
	cudaStream_t stream;
	cudaLaunchAttribute *attrs;
	unsigned numAttrs;
} cudaLaunchConfig_t;

extern "C" {
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *of, int device);
cudaError_t cudaMemGetInfo(size_t *left, size_t *all);
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaMalloc(void **memory, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaMemcpyAsync(
		void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *user);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
}

// What a kernel may do.
void standin_syncthreads(const void *site);
uint64_t standin_exchange(unsigned mask, uint64_t own, int from, const void *site);
unsigned standin_ballot(unsigned mask, bool own, const void *site);
void *standin_dynamic_shared(void);
int standin_lane(void);

// The line tells barriers apart: compilers make copies of a call.
inline void __syncthreads(int line = __builtin_LINE())
{
	standin_syncthreads((const void *) (uintptr_t) line);
}

template <class T> inline T standin_shuffle(unsigned mask, T own, int from)
{
	static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
	union {
		uint64_t bits;
		T value;
	} u;
	u.bits = 0;
	u.value = own;
	u.bits = standin_exchange(mask, u.bits, from, nullptr);
	return u.value;
}

template <class T> inline T __shfl_sync(unsigned mask, T own, int from, int width = 32)
{
	return standin_shuffle(mask, own, standin_lane() / width * width + from % width);
}

template <class T> inline T __shfl_xor_sync(unsigned mask, T own, int bits, int width = 32)
{
	(void) width;
	return standin_shuffle(mask, own, standin_lane() ^ bits);
}

template <class T> inline T __shfl_down_sync(unsigned mask, T own, unsigned by, int width = 32)
{
	const int lane = standin_lane(),
			  from = lane % width + (int) by < width ? lane + (int) by : lane;
	return standin_shuffle(mask, own, from);
}

inline unsigned __ballot_sync(unsigned mask, bool own)
{
	return standin_ballot(mask, own, nullptr);
}

inline void __syncwarp(unsigned mask = 0xffffffffu)
{
	standin_ballot(mask, false, nullptr);
}

template <class T> inline T __ldg(const T *p)
{
	return *p;
}

inline float __int_as_float(int x)
{
	union {
		int i;
		float f;
	} u = { x };
	return u.f;
}

// What a launch may reach: pointers among the arguments, and whatever in a struct looks like one.
struct standin_reach {
	const void *pointer;
	bool writes, certain; // certain: the argument is a pointer, so it must be the device's
	size_t bytes; // SIZE_MAX: up to the end of its memory
};

// A struct may say more of itself: `using reads_only = void;` where kernels only read what its
// pointers lead to, and `using is_span = void;` if it is a pointer `data` and its number of
// elements `count`.
template <class P, class = void> struct standin_reads : std::false_type {
};
template <class P> struct standin_reads<P, std::void_t<typename P::reads_only>> : std::true_type {
};
template <class P, class = void> struct standin_spans : std::false_type {
};
template <class P> struct standin_spans<P, std::void_t<typename P::is_span>> : std::true_type {
};

template <class P> inline void standin_look(std::vector<standin_reach> &all, const P &p)
{
	if constexpr (std::is_pointer_v<P>) {
		using target = std::remove_pointer_t<P>;
		if (p != nullptr)
			all.push_back({ (const void *) p, !std::is_const_v<target>, true, SIZE_MAX });
	} else if constexpr (standin_spans<P>::value) {
		using target = std::remove_pointer_t<decltype(p.data)>;
		if (p.count > 0)
			all.push_back({ (const void *) p.data, !std::is_const_v<target>, true,
					(size_t) p.count * sizeof(target) });
	} else if constexpr (std::is_class_v<P>) {
		const char *bytes = (const char *) &p;
		for (size_t i = 0; i + sizeof(void *) <= sizeof(P); i += sizeof(void *)) {
			void *word;
			__builtin_memcpy(&word, bytes + i, sizeof word);
			all.push_back({ word, !standin_reads<P>::value, false, SIZE_MAX });
		}
	}
}

struct standin_closure {
	virtual ~standin_closure() {}
	virtual void call() = 0;
};

cudaError_t standin_launch(const cudaLaunchConfig_t *config, const void *address,
		const std::vector<standin_reach> &reach, standin_closure *kernel, uint64_t hash);

template <class P> inline void standin_hash(uint64_t *hash, const P &p)
{
	const unsigned char *bytes = (const unsigned char *) &p;
	for (size_t i = 0; i < sizeof p; i++)
		*hash = (*hash ^ bytes[i]) * 1099511628211u;
}

template <class... P, class... A>
inline cudaError_t cudaLaunchKernelEx(
		const cudaLaunchConfig_t *config, void (*kernel)(P...), A &&...arguments)
{
	struct closure : standin_closure {
		void (*kernel)(P...);
		std::tuple<std::decay_t<P>...> arguments;
		closure(void (*kernel)(P...), std::tuple<std::decay_t<P>...> a)
			: kernel(kernel), arguments(std::move(a))
		{
		}
		void call() override
		{
			std::apply(kernel, arguments);
		}
	};
	closure *c =
			new closure(kernel, std::tuple<std::decay_t<P>...>(std::forward<A>(arguments)...));
	std::vector<standin_reach> reach;
	uint64_t hash = 1469598103934665603u;
	std::apply([&](auto &...p) { (standin_look(reach, p), ...); }, c->arguments);
	std::apply([&](auto &...p) { (standin_hash(&hash, p), ...); }, c->arguments);
	return standin_launch(config, (const void *) kernel, reach, c, hash);
}
