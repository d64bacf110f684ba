// What libchoir-cuda gives to libchoir: devices, kernels, cross-device operations, and a report.
#include "library.h"

#include <cstdio>

namespace choir_cuda
{

static const kernel_list *const lists[] = { &elementwise_kernels, &comparison_kernels,
	&cast_kernels, &move_kernels, &index_kernels, &reduce_kernels, &softmax_kernels,
	&update_kernels, &random_kernels, &product_kernels, &norm_kernels, &pool_kernels,
	&convolution_kernels, &attention_kernels };

// The user of a table is its kernel.
static choir_status run_kernel(const choir_kernel_call *call)
{
	const kernel *k = (const kernel *) call->user;
	CHOIR_TRY(check_process());
	note_operation(stream_of(call->stream), k->operation);
	return k->run(call);
}

static choir_status run_all_kernels(const choir_kernel_call *calls, size_t count)
{
	const kernel *k = (const kernel *) calls->user;
	CHOIR_TRY(check_process());
	note_operation(stream_of(calls->stream), k->operation);
	return k->run_all(calls, count);
}

static std::vector<choir_kernel_table> make_tables()
{
	std::vector<choir_kernel_table> tables;
	for (const kernel_list *list : lists)
		for (size_t i = 0; i < list->count; i++)
			for (int dtype = CHOIR_F32; dtype <= CHOIR_BF16; dtype++) {
				const kernel *k = &list->first[i];
				choir_kernel_table t = {};
				t.size = sizeof t;
				t.version = CHOIR_TABLE_VERSION;
				t.operation = k->operation;
				t.kind = "gpu";
				t.name = k->tf32 ? "cuda_tf32" : "cuda";
				t.arithmetic = k->tf32 ? CHOIR_ARITHMETIC_TF32 : CHOIR_ARITHMETIC_OF_DTYPE;
				t.dtype = (choir_dtype) dtype;
				t.user = k;
				t.score = k->score;
				t.scratch = k->scratch;
				t.run = run_kernel;
				t.run_all = k->run_all != NULL ? run_all_kernels : NULL;
				if ((k->dtypes >> dtype & 1) != 0)
					tables.push_back(t);
			}
	return tables;
}

static const choir_kernel_table *kernel_at(size_t i)
{
	static const std::vector<choir_kernel_table> tables = make_tables();
	return i < tables.size() ? &tables[i] : NULL;
}

static const choir_cross_device_ops_table *cross_device_ops_at(size_t i)
{
	static const choir_cross_device_ops_table *const tables[] = { &cross_table, &nccl_table };
	return i < sizeof tables / sizeof tables[0] ? tables[i] : NULL;
}

static choir_status open_plugin(const choir_cuda_argument *argument)
{
	if (argument->size < sizeof with)
		return CHOIR_INVALID;
	with = *argument;
	CHOIR_TRY(check_process()); // from now on this is CUDA's process
	int n = 0, driver = 0;
	const cudaError_t error = cudaGetDeviceCount(&n);
	if (error == cudaSuccess && n > 0)
		return CHOIR_OK;
	(void) cudaGetLastError();
	if (cudaDriverGetVersion(&driver) != cudaSuccess)
		driver = 0;
	if (error != cudaSuccess && driver == 0)
		return with.fail(CHOIR_NOT_FOUND, "this machine has no NVIDIA driver");
	if (error == cudaErrorInsufficientDriver)
		return with.fail(CHOIR_NOT_FOUND,
				"the NVIDIA driver has CUDA %d.%d; libchoir-cuda needs a driver for CUDA %d.%d",
				driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000,
				CUDART_VERSION % 1000 / 10);
	return with.fail(CHOIR_NOT_FOUND, "CUDA shows no GPU: %s",
			error == cudaSuccess ? "there is none" : cudaGetErrorString(error));
}

static bool sees_others(int gpu)
{
	int can = 1;
	for (int other = 0; can && other < count_gpus(); other++)
		if (other != gpu && cudaDeviceCanAccessPeer(&can, gpu, other) != cudaSuccess)
			can = 0;
	(void) cudaGetLastError();
	return can != 0;
}

// The name of a MIG instance ends in its profile, such as "MIG 1g.10gb".
static void describe_gpu(int gpu, char *line, size_t size)
{
	cudaDeviceProp of = {};
	size_t left = 0, all = 0;
	on_gpu on(gpu);
	cudaError_t error = cudaGetDeviceProperties(&of, gpu);
	if (error == cudaSuccess)
		error = cudaMemGetInfo(&left, &all);
	(void) cudaGetLastError();
	if (error == cudaSuccess)
		snprintf(line, size,
				"GPU %d: %s, compute capability %d.%d, %d multiprocessors, %zu MiB, %zu free%s",
				gpu, of.name, of.major, of.minor, of.multiProcessorCount, all >> 20, left >> 20,
				sees_others(gpu) ? "" : "; no peer access to all other GPUs: sums are slow");
	else
		snprintf(line, size, "GPU %d: cannot be used: %s (%s)", gpu, cudaGetErrorString(error),
				cudaGetErrorName(error));
}

enum { LIBRARY_LINES = 4 };

static void describe_libraries(int i, char *line, size_t size)
{
	static const char *const missing[] = { "the driver does not tell its version",
		"cuBLAS is missing; products use slow kernels",
		"cuDNN is missing; convolutions use slow kernels",
		"NCCL is missing; sums need peer access or go through the host" };
	int version = 0;
	if (i == 0 && cudaDriverGetVersion(&version) == cudaSuccess)
		snprintf(line, size, "driver for CUDA %d.%d, libchoir-cuda of CUDA %d.%d", version / 1000,
				version % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
	else if (i == 1 && cublas() != NULL)
		snprintf(line, size, "cuBLAS %zu", cublas()->cublasLtGetVersion());
	else if (i == 2 && cudnn_version() != 0)
		snprintf(line, size, "cuDNN %zu", cudnn_version());
	else if (i == 3 && nccl() != NULL && nccl()->ncclGetVersion(&version) == ncclSuccess)
		snprintf(line, size, "NCCL %d", version);
	else
		snprintf(line, size, "%s", missing[i]);
}

static bool describe(int i, char *line, size_t size)
{
	if (i >= LIBRARY_LINES + count_gpus())
		return false;
	if (i < LIBRARY_LINES)
		describe_libraries(i, line, size);
	else
		describe_gpu(i - LIBRARY_LINES, line, size);
	return true;
}

} // namespace choir_cuda

extern "C" {
#ifdef __GNUC__
__attribute__((visibility("default")))
#endif
extern const choir_cuda_plugin choir_cuda_plugin_data = { CHOIR_CUDA_PLUGIN_VERSION,
	choir_cuda::open_plugin, &choir_cuda::device_table, choir_cuda::kernel_at,
	choir_cuda::cross_device_ops_at, choir_cuda::queue_host_kernel, choir_cuda::describe };
}
