// NVIDIA's libraries, which are opened at run time: libchoir-cuda works without them, on kernels
// of its own.
#pragma once

#include "plugin.h"

#if __has_include(<nccl.h>)
#include <nccl.h>
#else // what is used of it, which all versions 2 have
extern "C" {
typedef struct ncclComm *ncclComm_t;
typedef enum { ncclSuccess = 0 } ncclResult_t;
typedef enum { ncclInt8 = 0 } ncclDataType_t;
ncclResult_t ncclCommInitAll(ncclComm_t *comms, int n, const int *devices);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer,
		ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
		cudaStream_t stream);
ncclResult_t ncclGetVersion(int *version);
const char *ncclGetErrorString(ncclResult_t result);
}
#endif

#if __has_include(<cudnn.h>)
#include <cudnn.h>
#define CHOIR_HAS_CUDNN 1
#endif

namespace choir_cuda
{

#define CHOIR_CUBLAS_FUNCTIONS(F) \
	F(cublasLtCreate) \
	F(cublasLtDestroy) \
	F(cublasLtGetVersion) \
	F(cublasLtMatmulDescCreate) \
	F(cublasLtMatmulDescDestroy) \
	F(cublasLtMatmulDescSetAttribute) \
	F(cublasLtMatrixLayoutCreate) \
	F(cublasLtMatrixLayoutDestroy) \
	F(cublasLtMatrixLayoutSetAttribute) \
	F(cublasLtMatmulPreferenceCreate) \
	F(cublasLtMatmulPreferenceDestroy) \
	F(cublasLtMatmulPreferenceSetAttribute) \
	F(cublasLtMatmulAlgoGetHeuristic) \
	F(cublasLtMatmul)
#define CHOIR_NCCL_FUNCTIONS(F) \
	F(ncclCommInitAll) \
	F(ncclCommDestroy) \
	F(ncclGroupStart) \
	F(ncclGroupEnd) \
	F(ncclSend) \
	F(ncclRecv) \
	F(ncclGetVersion) \
	F(ncclGetErrorString)

#define CHOIR_CUDNN_FUNCTIONS(F) \
	F(cudnnCreate) \
	F(cudnnGetVersion) \
	F(cudnnSetStream) \
	F(cudnnCreateTensorDescriptor) \
	F(cudnnSetTensor4dDescriptor) \
	F(cudnnDestroyTensorDescriptor) \
	F(cudnnCreateFilterDescriptor) \
	F(cudnnSetFilter4dDescriptor) \
	F(cudnnDestroyFilterDescriptor) \
	F(cudnnCreateConvolutionDescriptor) \
	F(cudnnSetConvolution2dDescriptor) \
	F(cudnnSetConvolutionGroupCount) \
	F(cudnnSetConvolutionMathType) \
	F(cudnnDestroyConvolutionDescriptor) \
	F(cudnnGetConvolutionForwardAlgorithm_v7) \
	F(cudnnGetConvolutionBackwardDataAlgorithm_v7) \
	F(cudnnGetConvolutionBackwardFilterAlgorithm_v7) \
	F(cudnnConvolutionForward) \
	F(cudnnConvolutionBackwardData) \
	F(cudnnConvolutionBackwardFilter)

#define CHOIR_FIELD(name) decltype(&::name) name;
struct cublas_functions {
	CHOIR_CUBLAS_FUNCTIONS(CHOIR_FIELD)
};
struct nccl_functions {
	CHOIR_NCCL_FUNCTIONS(CHOIR_FIELD)
};
#ifdef CHOIR_HAS_CUDNN
struct cudnn_functions {
	CHOIR_CUDNN_FUNCTIONS(CHOIR_FIELD)
};
#endif
#undef CHOIR_FIELD

// Open a library at the first call. NULL: it is missing, or lacks a function; logged once.
const cublas_functions *cublas();
const nccl_functions *nccl();
#ifdef CHOIR_HAS_CUDNN
const cudnn_functions *cudnn();
#endif
size_t cudnn_version(); // 0: cuDNN is missing

} // namespace choir_cuda
