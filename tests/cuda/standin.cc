// The stand-in itself: right programs give right results and no report, and each program that
// breaks a rule is reported.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "standin.h"

#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

static int failed;
static const char *current;
#define CHECK(what) \
	do { \
		if (!(what)) { \
			printf("%s:%d: %s: not %s\n", __FILE__, __LINE__, current, #what); \
			failed++; \
		} \
	} while (0)
#define CUDA(call) CHECK((call) == cudaSuccess)

template <class... P, class... A>
static cudaError_t launch(
		cudaStream_t s, unsigned grid, unsigned block, void (*kernel)(P...), A... a)
{
	cudaLaunchConfig_t c = {};
	c.gridDim = dim3(grid);
	c.blockDim = dim3(block);
	c.stream = s;
	return cudaLaunchKernelEx(&c, kernel, a...);
}

__global__ void add_kernel(const float *a, const float *b, float *to, int n)
{
	const int i = (int) (blockIdx.x * blockDim.x + threadIdx.x);
	if (i < n)
		to[i] = a[i] + b[i];
}

// The sum of a block, by the warps' shuffles and shared memory.
__global__ void sum_kernel(const float *x, float *to, int n)
{
	__shared__ float part[32];
	float sum = 0;
	for (int i = (int) threadIdx.x; i < n; i += (int) blockDim.x)
		sum += x[blockIdx.x * (unsigned) n + (unsigned) i];
	for (int by = 16; by > 0; by /= 2)
		sum += __shfl_down_sync(0xffffffffu, sum, (unsigned) by);
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = sum;
	__syncthreads();
	if (threadIdx.x == 0) {
		float all = 0;
		for (unsigned i = 0; i < blockDim.x / 32; i++)
			all += part[i];
		to[blockIdx.x] = all;
	}
}

struct fixture {
	cudaStream_t s;
	float *a, *b, *to, *pinned;
	enum { N = 10000 };
	explicit fixture(int device = 0)
	{
		CUDA(cudaSetDevice(device));
		CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
		CUDA(cudaMalloc((void **) &a, N * sizeof(float)));
		CUDA(cudaMalloc((void **) &b, N * sizeof(float)));
		CUDA(cudaMalloc((void **) &to, N * sizeof(float)));
		CUDA(cudaHostAlloc((void **) &pinned, N * sizeof(float), cudaHostAllocDefault));
		for (int i = 0; i < N; i++)
			pinned[i] = (float) (i % 100);
		CUDA(cudaMemcpyAsync(a, pinned, N * sizeof(float), cudaMemcpyDefault, s));
		CUDA(cudaMemcpyAsync(b, pinned, N * sizeof(float), cudaMemcpyDefault, s));
		CUDA(cudaStreamSynchronize(s));
	}
	void close()
	{
		cudaStreamSynchronize(s);
		cudaStreamDestroy(s);
		cudaFree(a), cudaFree(b), cudaFree(to), cudaFreeHost(pinned);
	}
};

static void right_programs()
{
	fixture f;
	for (int round = 0; round < 20; round++) {
		CUDA(launch(f.s, (f.N + 255) / 256, 256, add_kernel, (const float *) f.a,
				(const float *) f.b, f.to, (int) f.N));
		CUDA(cudaMemcpyAsync(f.pinned, f.to, f.N * sizeof(float), cudaMemcpyDefault, f.s));
		CUDA(cudaStreamSynchronize(f.s));
		int wrong = 0;
		for (int i = 0; i < f.N; i++)
			wrong += f.pinned[i] != 2 * (float) (i % 100);
		CHECK(wrong == 0);
		CUDA(launch(f.s, 10, 256, sum_kernel, (const float *) f.a, f.to, 1000));
		CUDA(cudaMemcpyAsync(f.pinned, f.to, 10 * sizeof(float), cudaMemcpyDefault, f.s));
		CUDA(cudaStreamSynchronize(f.s));
		for (int i = 0; i < 10; i++)
			CHECK(f.pinned[i] == 49500);
	}
	// Two streams, in an order by events.
	cudaStream_t other;
	cudaEvent_t event;
	CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	for (int round = 0; round < 50; round++) {
		CUDA(cudaMemsetAsync(f.to, round, f.N * sizeof(float), f.s));
		CUDA(cudaEventRecord(event, f.s));
		CUDA(cudaStreamWaitEvent(other, event, 0));
		CUDA(cudaMemcpyAsync(f.pinned, f.to, f.N * sizeof(float), cudaMemcpyDefault, other));
		CUDA(cudaEventRecord(event, other));
		CUDA(cudaStreamWaitEvent(f.s, event, 0));
		CUDA(cudaStreamSynchronize(f.s));
		CHECK(((const char *) f.pinned)[77] == round);
	}
	CUDA(cudaEventDestroy(event));
	CUDA(cudaStreamDestroy(other));
	f.close();
}

__global__ void forgets_a_barrier(const float *x, float *to, int n)
{
	__shared__ float part[256];
	part[threadIdx.x] = (int) threadIdx.x < n ? x[threadIdx.x] : 0;
	if (threadIdx.x == 0) {
		float all = 0;
		for (int i = 0; i < n; i++)
			all += part[i];
		to[0] = all;
	}
}

__global__ void barriers_apart(float *to)
{
	if (threadIdx.x < 32)
		__syncthreads();
	else
		__syncthreads();
	to[threadIdx.x] = 1;
}

__global__ void beyond(float *to, int n)
{
	to[n + 64 + (int) threadIdx.x] = 1;
}

__global__ void writes_const(const float *x)
{
	((float *) x)[threadIdx.x] = 1;
}

__global__ void leaves_its_warp(float *to)
{
	float x = 1;
	if (threadIdx.x < 16)
		x = __shfl_down_sync(0xffffffffu, x, 1);
	to[threadIdx.x] = x;
}

static unsigned told(const char *what)
{
	const unsigned n = standin_reports();
	const bool says = strstr(standin_last_report(), what) != NULL;
	if (n == 0 || !says)
		printf("%s: %u reports, the last: \"%s\"\n", current, n, standin_last_report());
	standin_forget_reports();
	for (int i = 0; i < 2; i++)
		standin_revive(i);
	cudaGetLastError();
	return n > 0 && says;
}

static void a_missing_barrier()
{
	fixture f;
	int wrong = 0;
	for (int seed = 0; seed < 10; seed++) {
		CUDA(launch(f.s, 1, 256, forgets_a_barrier, (const float *) f.a, f.to, 256));
		CUDA(cudaMemcpyAsync(f.pinned, f.to, 4, cudaMemcpyDefault, f.s));
		CUDA(cudaStreamSynchronize(f.s));
		wrong += f.pinned[0] != 99 * 50 * 2 + 55 * 56 / 2;
	}
	CHECK(wrong >= 1);
	f.close();
}

static void kernels_that_break_rules()
{
	fixture f;
	launch(f.s, 1, 64, barriers_apart, f.to);
	CHECK(cudaStreamSynchronize(f.s) == cudaErrorIllegalAddress);
	CHECK(cudaMemsetAsync(f.to, 0, 4, f.s) == cudaErrorIllegalAddress); // it sticks
	CHECK(told("different __syncthreads"));
	launch(f.s, 1, 32, leaves_its_warp, f.to);
	cudaStreamSynchronize(f.s);
	CHECK(told("wait for each other"));
	launch(f.s, 1, 32, beyond, f.to, (int) f.N);
	cudaStreamSynchronize(f.s);
	CHECK(told("reached"));
	launch(f.s, 1, 32, writes_const, (const float *) f.a);
	cudaStreamSynchronize(f.s);
	CHECK(told("only reads"));
	float host[64];
	launch(f.s, 1, 32, writes_const, (const float *) host);
	CHECK(told("memory of the host"));
	CHECK(launch(f.s, 1, 2048, writes_const, (const float *) f.a) ==
			cudaErrorInvalidConfiguration);
	CHECK(told("a grid of"));
	f.close();
}

static void devices_that_are_mixed_up()
{
	fixture f, g(1);
	CUDA(cudaSetDevice(0));
	CHECK(cudaMemsetAsync(g.to, 0, 4, g.s) == cudaErrorInvalidResourceHandle);
	CHECK(told("is current"));
	launch(f.s, 1, 32, add_kernel, (const float *) f.a, (const float *) g.a, f.to, 32);
	CHECK(told("no access"));
	CUDA(cudaDeviceEnablePeerAccess(1, 0));
	CUDA(launch(f.s, 1, 32, add_kernel, (const float *) f.a, (const float *) g.a, f.to, 32));
	CUDA(cudaStreamSynchronize(f.s));
	CHECK(standin_reports() == 0);
	f.close();
	CUDA(cudaSetDevice(1));
	g.close();
}

static void memory_that_is_gone()
{
	fixture f;
	CUDA(launch(
			f.s, 40, 256, add_kernel, (const float *) f.a, (const float *) f.b, f.to, (int) f.N));
	cudaFree(f.b);
	CHECK(told("yet to use"));
	cudaStreamSynchronize(f.s);
	standin_forget_reports();
	standin_revive(0);
	launch(f.s, 1, 32, add_kernel, (const float *) f.a, (const float *) f.b, f.to, 32);
	CHECK(told("it was freed"));
	cudaGetLastError();
	cudaStream_t gone = f.s;
	CUDA(cudaStreamCreateWithFlags(&f.s, cudaStreamNonBlocking));
	CUDA(cudaStreamDestroy(gone));
	cudaMemsetAsync(f.to, 0, 4, gone);
	CHECK(told("does not exist"));
	f.b = NULL;
	f.close();
}

static void streams_without_order()
{
	fixture f;
	cudaStream_t other;
	CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	CUDA(launch(
			f.s, 40, 256, add_kernel, (const float *) f.a, (const float *) f.b, f.to, (int) f.N));
	CUDA(cudaMemsetAsync(f.to, 0, 100, other));
	CHECK(told("race: a fill"));
	CUDA(cudaStreamSynchronize(f.s));
	CUDA(cudaStreamSynchronize(other));
	// Two that read, and two parts that do not meet, are fine; so is what the host has waited for.
	CUDA(launch(f.s, 1, 32, add_kernel, (const float *) f.a, (const float *) f.a, f.to, 32));
	CUDA(launch(other, 1, 32, add_kernel, (const float *) f.a, (const float *) f.a, f.b, 32));
	CUDA(cudaStreamSynchronize(f.s));
	CUDA(cudaStreamSynchronize(other));
	CUDA(cudaMemsetAsync(f.to, 0, 100, other));
	CUDA(cudaMemsetAsync(f.to + 25, 0, 100, f.s));
	CHECK(standin_reports() == 0);
	CUDA(cudaStreamSynchronize(other));
	CUDA(cudaStreamDestroy(other));
	f.close();
}

static void hosts_that_do_not_wait()
{
	fixture f;
	CUDA(cudaMemcpyAsync(f.pinned, f.a, f.N * sizeof(float), cudaMemcpyDefault, f.s));
	CHECK(f.pinned[99] != 99); // whatever is read before the wait
	CUDA(cudaStreamSynchronize(f.s));
	CHECK(f.pinned[99] == 99);
	for (int i = 0; i < 20 && standin_reports() == 0; i++) {
		CUDA(launch(f.s, 40, 256, add_kernel, (const float *) f.a, (const float *) f.b, f.to,
				(int) f.N));
		CUDA(cudaMemcpyAsync(f.b, f.pinned, f.N * sizeof(float), cudaMemcpyDefault, f.s));
		f.pinned[5] += 1;
		cudaStreamSynchronize(f.s);
	}
	CHECK(told("has yet to read"));
	f.close();
}

static void copies_by_the_host()
{
	fixture f;
	float host[fixture::N] = {};
	standin_pause(1);
	CUDA(launch(
			f.s, 40, 256, add_kernel, (const float *) f.a, (const float *) f.b, f.to, (int) f.N));
	CHECK(standin_copy(host, f.a, sizeof host) == 2 && host[99] == 99); // both read
	CHECK(standin_reports() == 0);
	standin_copy(host, f.to, sizeof host);
	CHECK(told("the host reads what")); // and what is queued is forgotten
	CUDA(launch(
			f.s, 40, 256, add_kernel, (const float *) f.a, (const float *) f.b, f.to, (int) f.N));
	standin_copy(f.a, host, sizeof host);
	CHECK(told("the host writes what"));
	standin_pause(0);
	CUDA(cudaStreamSynchronize(f.s));
	CHECK(standin_copy(host, f.to, sizeof host) == 2 && standin_copy(f.a, host, 4) == 2);
	CHECK(standin_reports() == 0);
	CHECK(standin_copy(host, host + 5, 4) == 1);
	CHECK(standin_copy(host, f.to + 1, sizeof host) == 0);
	CHECK(told("not all there"));
	f.close();
}

static void two_threads_on_a_stream()
{
	fixture f;
	for (int i = 0; i < 50 && standin_reports() == 0; i++) {
		std::thread other([&] {
			for (int k = 0; k < 20; k++)
				cudaMemsetAsync(f.to, 0, 100, f.s);
		});
		for (int k = 0; k < 20; k++)
			cudaMemsetAsync(f.to, 1, 100, f.s);
		other.join();
	}
	CHECK(told("two threads"));
	f.close();
}

static void a_host_that_touches()
{
	fixture f;
	fflush(stdout);
	const pid_t child = fork();
	if (child == 0) {
		fclose(stderr);
		volatile float x = f.a[3];
		(void) x;
		_exit(0);
	}
	int status = 0;
	waitpid(child, &status, 0);
	CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
	f.close();
}

static void calls_that_fail()
{
	unsigned n = 1;
	for (; n < 1000; n++) {
		standin_fail(NULL, n, cudaErrorMemoryAllocation);
		cudaStream_t s = NULL;
		void *memory = NULL;
		cudaError_t e = cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
		if (e == cudaSuccess)
			e = cudaMalloc(&memory, 100);
		if (e == cudaSuccess)
			e = cudaMemsetAsync(memory, 0, 100, s);
		if (e == cudaSuccess)
			e = cudaStreamSynchronize(s);
		const bool was = standin_failed();
		standin_fail(NULL, 0, 0);
		if (s != NULL)
			CUDA(cudaStreamSynchronize(s));
		if (memory != NULL)
			CUDA(cudaFree(memory));
		if (s != NULL)
			CUDA(cudaStreamDestroy(s));
		CHECK(e == (was ? cudaErrorMemoryAllocation : cudaSuccess));
		if (!was)
			break;
	}
	CHECK(n == 5);
	cudaGetLastError();
}

static const struct {
	const char *name;
	void (*test)();
} tests[] = {
	{ "right programs", right_programs },
	{ "a missing barrier", a_missing_barrier },
	{ "kernels that break rules", kernels_that_break_rules },
	{ "memory that is gone", memory_that_is_gone },
	{ "devices that are mixed up", devices_that_are_mixed_up },
	{ "streams without order", streams_without_order },
	{ "hosts that do not wait", hosts_that_do_not_wait },
	{ "copies by the host", copies_by_the_host },
	{ "two threads on a stream", two_threads_on_a_stream },
	{ "a host that touches", a_host_that_touches },
	{ "calls that fail", calls_that_fail },
};

int main()
{
	for (auto &t : tests) {
		current = t.name;
		const int before = failed;
		t.test();
		CHECK(standin_reports() == 0);
		standin_forget_reports();
		printf("%s %s\n", failed == before ? "ok    " : "FAILED", t.name);
	}
	return failed != 0;
}
