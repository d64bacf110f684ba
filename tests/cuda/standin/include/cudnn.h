// The stand-in's part of cuDNN: convolutions of NHWC images, by plain loops.
#pragma once

#include <cuda_runtime.h>

typedef enum {
	CUDNN_STATUS_SUCCESS = 0,
	CUDNN_STATUS_ALLOC_FAILED = 1003,
	CUDNN_STATUS_BAD_PARAM = 2000,
	CUDNN_STATUS_NOT_SUPPORTED = 3000,
	CUDNN_STATUS_EXECUTION_FAILED = 5000
} cudnnStatus_t;
typedef enum {
	CUDNN_DATA_FLOAT = 0,
	CUDNN_DATA_HALF = 2,
	CUDNN_DATA_BFLOAT16 = 9
} cudnnDataType_t;
typedef enum { CUDNN_TENSOR_NCHW = 0, CUDNN_TENSOR_NHWC = 1 } cudnnTensorFormat_t;
typedef enum { CUDNN_CONVOLUTION = 0, CUDNN_CROSS_CORRELATION = 1 } cudnnConvolutionMode_t;
typedef enum {
	CUDNN_DEFAULT_MATH = 0,
	CUDNN_TENSOR_OP_MATH = 1,
	CUDNN_FMA_MATH = 3
} cudnnMathType_t;
typedef enum { CUDNN_NON_DETERMINISTIC = 0, CUDNN_DETERMINISTIC = 1 } cudnnDeterminism_t;
typedef int cudnnConvolutionFwdAlgo_t, cudnnConvolutionBwdDataAlgo_t,
		cudnnConvolutionBwdFilterAlgo_t;
typedef struct standin_dnn *cudnnHandle_t;
typedef struct standin_tensor *cudnnTensorDescriptor_t;
typedef struct standin_filter *cudnnFilterDescriptor_t;
typedef struct standin_convolution *cudnnConvolutionDescriptor_t;
typedef struct {
	int algo;
	cudnnStatus_t status;
	float time;
	size_t memory;
	cudnnDeterminism_t determinism;
	cudnnMathType_t mathType;
	int reserved[3];
} cudnnConvolutionFwdAlgoPerf_t;
typedef cudnnConvolutionFwdAlgoPerf_t cudnnConvolutionBwdDataAlgoPerf_t,
		cudnnConvolutionBwdFilterAlgoPerf_t;

extern "C" {
cudnnStatus_t cudnnCreate(cudnnHandle_t *handle);
size_t cudnnGetVersion(void);
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream);
cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *tensor);
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor,
		cudnnTensorFormat_t format, cudnnDataType_t type, int n, int c, int h, int w);
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor);
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *filter);
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
		cudnnTensorFormat_t format, int k, int c, int h, int w);
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter);
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *convolution);
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convolution, int pad_h,
		int pad_w, int stride_h, int stride_w, int dilation_h, int dilation_w,
		cudnnConvolutionMode_t mode, cudnnDataType_t compute);
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t convolution, int groups);
cudnnStatus_t cudnnSetConvolutionMathType(
		cudnnConvolutionDescriptor_t convolution, cudnnMathType_t math);
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convolution);
cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle,
		cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t filter,
		cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t y, int most, int *found,
		cudnnConvolutionFwdAlgoPerf_t *results);
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t handle,
		cudnnFilterDescriptor_t filter, cudnnTensorDescriptor_t dy,
		cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t dx, int most, int *found,
		cudnnConvolutionBwdDataAlgoPerf_t *results);
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t handle,
		cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
		cudnnConvolutionDescriptor_t convolution, cudnnFilterDescriptor_t dw, int most, int *found,
		cudnnConvolutionBwdFilterAlgoPerf_t *results);
cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha,
		cudnnTensorDescriptor_t x_layout, const void *x, cudnnFilterDescriptor_t filter_layout,
		const void *filter, cudnnConvolutionDescriptor_t convolution,
		cudnnConvolutionFwdAlgo_t algorithm, void *workspace, size_t bytes, const void *beta,
		cudnnTensorDescriptor_t y_layout, void *y);
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha,
		cudnnFilterDescriptor_t filter_layout, const void *filter,
		cudnnTensorDescriptor_t dy_layout, const void *dy,
		cudnnConvolutionDescriptor_t convolution, cudnnConvolutionBwdDataAlgo_t algorithm,
		void *workspace, size_t bytes, const void *beta, cudnnTensorDescriptor_t dx_layout,
		void *dx);
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha,
		cudnnTensorDescriptor_t x_layout, const void *x, cudnnTensorDescriptor_t dy_layout,
		const void *dy, cudnnConvolutionDescriptor_t convolution,
		cudnnConvolutionBwdFilterAlgo_t algorithm, void *workspace, size_t bytes, const void *beta,
		cudnnFilterDescriptor_t dw_layout, void *dw);
}
