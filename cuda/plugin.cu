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
				t.name = "cuda";
				t.dtype = (choir_dtype) dtype;
				t.user = k;
				t.score = k->score;
				t.scratch = k->scratch;
				t.run = run_kernel;
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

static void describe_gpu(int gpu, char *line, size_t size)
{
	int major = 0, minor = 0, processors = 0;
	on_gpu on(gpu);
	size_t left = 0, all = 0;
	(void) cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, gpu);
	(void) cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, gpu);
	(void) cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, gpu);
	if (cudaMemGetInfo(&left, &all) != cudaSuccess)
		(void) cudaGetLastError();
	snprintf(line, size, "GPU %d: compute capability %d.%d, %d multiprocessors, %zu MiB, %zu free",
			gpu, major, minor, processors, all >> 20, left >> 20);
}

static void describe_driver(char *line, size_t size)
{
	int driver = 0;
	(void) cudaDriverGetVersion(&driver);
	snprintf(line, size, "driver for CUDA %d.%d, libchoir-cuda of CUDA %d.%d", driver / 1000,
			driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
}

static void describe_cublas(char *line, size_t size)
{
	if (cublas() == NULL)
		snprintf(line, size, "cuBLAS is missing; products use slow kernels");
	else
		snprintf(line, size, "cuBLAS %zu", cublas()->cublasLtGetVersion());
}

static void describe_cudnn(char *line, size_t size)
{
	const size_t version = cudnn_version();
	if (version == 0)
		snprintf(line, size, "cuDNN is missing; convolutions use slow kernels");
	else
		snprintf(line, size, "cuDNN %zu", version);
}

static void describe_nccl(char *line, size_t size)
{
	int version = 0;
	if (nccl() == NULL || nccl()->ncclGetVersion(&version) != ncclSuccess)
		snprintf(line, size, "NCCL is missing; sums need peer access or go through the host");
	else
		snprintf(line, size, "NCCL %d", version);
}

static bool describe(int i, char *line, size_t size)
{
	static void (*const parts[])(
			char *, size_t) = { describe_driver, describe_cublas, describe_cudnn, describe_nccl };
	const int n = sizeof parts / sizeof parts[0];
	if (i < n)
		parts[i](line, size);
	else if (i - n < count_gpus())
		describe_gpu(i - n, line, size);
	else
		return false;
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
