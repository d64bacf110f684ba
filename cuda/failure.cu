// Failures of CUDA and its libraries as Choir's statuses, and the thread's current GPU.
#include "plugin.h"

#include <chrono>

namespace choir_cuda
{

choir_cuda_argument with;

choir_status check(cudaError_t error, const char *what)
{
	if (error == cudaSuccess)
		return CHOIR_OK;
	(void) cudaGetLastError();
	return with.fail(error == cudaErrorMemoryAllocation ? CHOIR_NO_MEMORY : CHOIR_IO,
			"%s: %s (%s)", what, cudaGetErrorString(error), cudaGetErrorName(error));
}

choir_status check(cublasStatus_t status, const char *what)
{
	if (status == CUBLAS_STATUS_SUCCESS)
		return CHOIR_OK;
	return with.fail(status == CUBLAS_STATUS_ALLOC_FAILED ? CHOIR_NO_MEMORY : CHOIR_IO,
			"%s: cuBLAS returns status %d", what, (int) status);
}

choir_status check_process()
{
	static const unsigned generation = with.fork_generation();
	if (with.fork_generation() == generation)
		return CHOIR_OK;
	return with.fail(CHOIR_STATE,
			"this process is the child of a fork; CUDA works only in the process that used it "
			"first");
}

on_gpu::on_gpu(int gpu) : before(gpu), wanted(gpu)
{
	if (cudaGetDevice(&before) != cudaSuccess || before != wanted)
		(void) cudaSetDevice(wanted);
}

on_gpu::~on_gpu()
{
	if (before != wanted)
		(void) cudaSetDevice(before);
}

double now()
{
	const auto since = std::chrono::steady_clock::now().time_since_epoch();
	return std::chrono::duration<double>(since).count();
}

} // namespace choir_cuda
