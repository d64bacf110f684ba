// cuDNN on the stand-in: one convolution as a task of the stream. Its heuristic first offers an
// algorithm whose bits differ from call to call, then one with too much workspace, and none at all
// for convolutions with dilation and groups. It reports a taken algorithm of these kinds, shapes
// that do not fit each other, and a workspace of another convolution.
#include "standin.h"

#include "../../../cuda/half.h"

#include <cudnn.h>

#include <cstring>

struct standin_dnn {
	int device;
	cudaStream_t stream;
};
struct standin_tensor {
	cudnnDataType_t type;
	int n, c, h, w;
};
struct standin_filter {
	cudnnDataType_t type;
	int k, c, h, w;
};
struct standin_convolution {
	int pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w, groups;
	cudnnMathType_t math;
};

enum { RANDOM = 0, LARGE = 1, GOOD = 2 };
enum pass { FORWARD, DATA, FILTER };

template <class T> static cudnnStatus_t make(T **out, const char *call)
{
	*out = NULL;
	if (standin_is_to_fail(call))
		return CUDNN_STATUS_ALLOC_FAILED;
	*out = new T();
	return CUDNN_STATUS_SUCCESS;
}

template <class T> static cudnnStatus_t drop(T *what)
{
	delete what;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
	const cudnnStatus_t status = make(handle, "cudnnCreate");
	if (*handle != NULL)
		cudaGetDevice(&(*handle)->device);
	return status;
}

size_t cudnnGetVersion(void)
{
	return 91000;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
	int device = 0;
	cudaGetDevice(&device);
	if (handle->device != device)
		standin_report("cudnnSetStream: a handle of device %d while device %d is current",
				handle->device, device);
	handle->stream = stream;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *tensor)
{
	return make(tensor, "cudnnCreateTensorDescriptor");
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor,
		cudnnTensorFormat_t format, cudnnDataType_t type, int n, int c, int h, int w)
{
	*tensor = { type, n, c, h, w };
	return format == CUDNN_TENSOR_NHWC ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor)
{
	return drop(tensor);
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *filter)
{
	return make(filter, "cudnnCreateFilterDescriptor");
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
		cudnnTensorFormat_t format, int k, int c, int h, int w)
{
	*filter = { type, k, c, h, w };
	return format == CUDNN_TENSOR_NHWC ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter)
{
	return drop(filter);
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *convolution)
{
	return make(convolution, "cudnnCreateConvolutionDescriptor");
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convolution, int pad_h,
		int pad_w, int stride_h, int stride_w, int dilation_h, int dilation_w,
		cudnnConvolutionMode_t mode, cudnnDataType_t compute)
{
	*convolution = { pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w, 1,
		CUDNN_DEFAULT_MATH };
	return mode == CUDNN_CROSS_CORRELATION && compute == CUDNN_DATA_FLOAT
			? CUDNN_STATUS_SUCCESS
			: CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t convolution, int groups)
{
	convolution->groups = groups;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(
		cudnnConvolutionDescriptor_t convolution, cudnnMathType_t math)
{
	convolution->math = math;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convolution)
{
	return drop(convolution);
}

static int extent(int in, int pad, int dilation, int filter, int stride)
{
	return (in + 2 * pad - dilation * (filter - 1) - 1) / stride + 1;
}

static bool fits(const standin_tensor *x, const standin_filter *f, const standin_convolution *v,
		const standin_tensor *y)
{
	return x->type == f->type && y->type == f->type && x->n == y->n && y->c == f->k &&
			x->c == f->c * v->groups && y->c % v->groups == 0 &&
			y->h == extent(x->h, v->pad_h, v->dilation_h, f->h, v->stride_h) &&
			y->w == extent(x->w, v->pad_w, v->dilation_w, f->w, v->stride_w);
}

// The bytes that the good algorithm needs, which differ between most convolutions.
static size_t workspace_of(const standin_tensor *x, const standin_filter *f,
		const standin_convolution *v, const standin_tensor *y, pass of)
{
	uint64_t hash = 1469598103934665603u;
	for (int number :
			{ (int) of, (int) x->type, x->n, x->c, x->h, x->w, f->k, f->c, f->h, f->w, y->h, y->w,
					v->pad_h, v->pad_w, v->stride_h, v->dilation_h, v->groups, (int) v->math })
		hash = (hash ^ (uint64_t) number) * 1099511628211u;
	return 1000 + hash % 1000 * 8;
}

static cudnnStatus_t offer(pass of, const standin_tensor *x, const standin_filter *f,
		const standin_convolution *v, const standin_tensor *y, int most, int *found,
		cudnnConvolutionFwdAlgoPerf_t *results)
{
	*found = 0;
	if (standin_is_to_fail("cudnnGetConvolutionAlgorithm"))
		return CUDNN_STATUS_ALLOC_FAILED;
	if (!fits(x, f, v, y))
		return CUDNN_STATUS_BAD_PARAM;
	if (v->groups > 1 && v->dilation_h > 1)
		return CUDNN_STATUS_NOT_SUPPORTED;
	for (int algo = RANDOM; algo <= GOOD && algo < most; algo++)
		results[(*found)++] = { algo, CUDNN_STATUS_SUCCESS, 1,
			algo == LARGE ? (size_t) 1 << 40 : workspace_of(x, f, v, y, of),
			algo == RANDOM ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC, v->math, {} };
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t x,
		cudnnFilterDescriptor_t filter, cudnnConvolutionDescriptor_t convolution,
		cudnnTensorDescriptor_t y, int most, int *found, cudnnConvolutionFwdAlgoPerf_t *results)
{
	return offer(FORWARD, x, filter, convolution, y, most, found, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t,
		cudnnFilterDescriptor_t filter, cudnnTensorDescriptor_t dy,
		cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t dx, int most, int *found,
		cudnnConvolutionBwdDataAlgoPerf_t *results)
{
	return offer(DATA, dx, filter, convolution, dy, most, found, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t,
		cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
		cudnnConvolutionDescriptor_t convolution, cudnnFilterDescriptor_t dw, int most, int *found,
		cudnnConvolutionBwdFilterAlgoPerf_t *results)
{
	return offer(FILTER, x, dw, convolution, dy, most, found, results);
}

static float load(cudnnDataType_t type, const void *p, size_t i)
{
	return type == CUDNN_DATA_FLOAT	  ? ((const float *) p)[i]
			: type == CUDNN_DATA_HALF ? (float) ((const choir_cuda::f16 *) p)[i]
									  : (float) ((const choir_cuda::bf16 *) p)[i];
}

static void store(cudnnDataType_t type, void *p, size_t i, float x)
{
	if (type == CUDNN_DATA_FLOAT)
		((float *) p)[i] = x;
	else if (type == CUDNN_DATA_HALF)
		((choir_cuda::f16 *) p)[i] = (choir_cuda::f16) x;
	else
		((choir_cuda::bf16 *) p)[i] = (choir_cuda::bf16) x;
}

// A convolution as a loop over its products x y, in which the sums of the third operand grow.
struct loops {
	standin_tensor x, y;
	standin_filter f;
	standin_convolution v;
	pass of;

	template <class V> void each(V visit) const
	{
		const int group_out = f.k / v.groups;
		for (int image = 0; image < y.n; image++)
			for (int r = 0; r < y.h; r++)
				for (int s = 0; s < y.w; s++)
					for (int o = 0; o < f.k; o++)
						for (int i = 0; i < f.h; i++)
							for (int j = 0; j < f.w; j++) {
								const int row = r * v.stride_h - v.pad_h + i * v.dilation_h;
								const int column = s * v.stride_w - v.pad_w + j * v.dilation_w;
								if (row < 0 || row >= x.h || column < 0 || column >= x.w)
									continue;
								const size_t of_x =
										(((size_t) image * x.h + row) * x.w + column) * x.c +
										(size_t) (o / group_out * f.c);
								const size_t of_y =
										(((size_t) image * y.h + r) * y.w + s) * y.c + o;
								const size_t of_f = (((size_t) o * f.h + i) * f.w + j) * f.c;
								for (int c = 0; c < f.c; c++)
									visit(of_x + c, of_f + c, of_y);
							}
	}

	size_t elements() const
	{
		return of == FORWARD ? (size_t) y.n * y.h * y.w * y.c
				: of == DATA ? (size_t) x.n * x.h * x.w * x.c
							 : (size_t) f.k * f.h * f.w * f.c;
	}

	std::string run(const void *first, const void *second, void *out) const
	{
		std::vector<double> sums(elements());
		const bool tf32 = f.type == CUDNN_DATA_FLOAT && v.math != CUDNN_FMA_MATH;
		const auto operand = [&](const void *from, size_t at) {
			const float value = load(f.type, from, at);
			return (double) (tf32 ? standin_tf32(value) : value);
		};
		each([&](size_t of_x, size_t of_f, size_t of_y) {
			if (of == FORWARD)
				sums[of_y] += operand(first, of_x) * operand(second, of_f);
			else if (of == DATA)
				sums[of_x] += operand(first, of_f) * operand(second, of_y);
			else
				sums[of_f] += operand(first, of_x) * operand(second, of_y);
		});
		for (size_t i = 0; i < sums.size(); i++)
			store(f.type, out, i, (float) sums[i]);
		return std::string();
	}
};

static size_t bytes_of(const standin_tensor &t)
{
	return (size_t) t.n * t.h * t.w * t.c * (t.type == CUDNN_DATA_FLOAT ? 4 : 2);
}

static size_t bytes_of(const standin_filter &t)
{
	return (size_t) t.k * t.h * t.w * t.c * (t.type == CUDNN_DATA_FLOAT ? 4 : 2);
}

static cudnnStatus_t convolve(cudnnHandle_t handle, const loops &l, int algorithm, void *workspace,
		size_t bytes, const standin_reach (&operands)[3])
{
	if (standin_is_to_fail("cudnnConvolution"))
		return CUDNN_STATUS_EXECUTION_FAILED;
	if (!fits(&l.x, &l.f, &l.v, &l.y))
		return CUDNN_STATUS_BAD_PARAM;
	const size_t needed = workspace_of(&l.x, &l.f, &l.v, &l.y, l.of);
	if (algorithm != GOOD || workspace == NULL || bytes != needed) {
		standin_report("cuDNN: algorithm %d with %zu bytes of workspace; 2 and %zu are right",
				algorithm, bytes, needed);
		return CUDNN_STATUS_NOT_SUPPORTED;
	}
	std::vector<standin_reach> reach(operands, operands + 3);
	reach.push_back({ workspace, true, true, needed });
	const void *first = operands[0].pointer, *second = operands[1].pointer;
	void *out = (void *) (uintptr_t) operands[2].pointer;
	const cudaError_t error = standin_queue(handle->stream, "cudnnConvolution", reach, [=] {
		memset(workspace, 0xff, needed);
		return l.run(first, second, out);
	});
	return error == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *,
		cudnnTensorDescriptor_t x_layout, const void *x, cudnnFilterDescriptor_t filter_layout,
		const void *filter, cudnnConvolutionDescriptor_t convolution,
		cudnnConvolutionFwdAlgo_t algorithm, void *workspace, size_t bytes, const void *,
		cudnnTensorDescriptor_t y_layout, void *y)
{
	const loops l = { *x_layout, *y_layout, *filter_layout, *convolution, FORWARD };
	return convolve(handle, l, algorithm, workspace, bytes,
			{ { x, false, true, bytes_of(l.x) }, { filter, false, true, bytes_of(l.f) },
					{ y, true, true, bytes_of(l.y) } });
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *,
		cudnnFilterDescriptor_t filter_layout, const void *filter,
		cudnnTensorDescriptor_t dy_layout, const void *dy,
		cudnnConvolutionDescriptor_t convolution, cudnnConvolutionBwdDataAlgo_t algorithm,
		void *workspace, size_t bytes, const void *, cudnnTensorDescriptor_t dx_layout, void *dx)
{
	const loops l = { *dx_layout, *dy_layout, *filter_layout, *convolution, DATA };
	return convolve(handle, l, algorithm, workspace, bytes,
			{ { filter, false, true, bytes_of(l.f) }, { dy, false, true, bytes_of(l.y) },
					{ dx, true, true, bytes_of(l.x) } });
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *,
		cudnnTensorDescriptor_t x_layout, const void *x, cudnnTensorDescriptor_t dy_layout,
		const void *dy, cudnnConvolutionDescriptor_t convolution,
		cudnnConvolutionBwdFilterAlgo_t algorithm, void *workspace, size_t bytes, const void *,
		cudnnFilterDescriptor_t dw_layout, void *dw)
{
	const loops l = { *x_layout, *dy_layout, *dw_layout, *convolution, FILTER };
	return convolve(handle, l, algorithm, workspace, bytes,
			{ { x, false, true, bytes_of(l.x) }, { dy, false, true, bytes_of(l.y) },
					{ dw, true, true, bytes_of(l.f) } });
}
