// Convolutions by cuDNN. Images stay as they are (NHWC). cuDNN wants filters as [out, kh, kw, c]
// and equal padding on both sides, so filters are transposed, and images with other padding are
// copied into a frame of zeros. Only algorithms that give the same bits each time are taken, and
// cuDNN's heuristic chooses among them, never a timing.
#include "convolution.h"
#include "library.h"

#ifdef CHOIR_HAS_CUDNN

namespace choir_cuda
{

enum { MOST_ALGORITHMS = 10, LINE = 256 };
static const size_t MOST_WORKSPACE = (size_t) 256 << 20;

// Descriptors of a convolution, which free themselves.
struct dnn_call {
	const cudnn_functions *dnn = cudnn();
	cudnnTensorDescriptor_t x = NULL, y = NULL;
	cudnnFilterDescriptor_t filter = NULL;
	cudnnConvolutionDescriptor_t convolution = NULL;
	~dnn_call()
	{
		if (convolution != NULL)
			(void) dnn->cudnnDestroyConvolutionDescriptor(convolution);
		if (filter != NULL)
			(void) dnn->cudnnDestroyFilterDescriptor(filter);
		for (cudnnTensorDescriptor_t tensor : { y, x })
			if (tensor != NULL)
				(void) dnn->cudnnDestroyTensorDescriptor(tensor);
	}
};

static choir_status check(cudnnStatus_t status, const char *what)
{
	if (status == CUDNN_STATUS_SUCCESS)
		return CHOIR_OK;
	return with.fail(status == CUDNN_STATUS_ALLOC_FAILED ? CHOIR_NO_MEMORY : CHOIR_IO,
			"%s: cuDNN returns status %d", what, (int) status);
}
#define TRY_DNN(call) CHOIR_TRY(check(d->dnn->call, #call))

static bool is_framed(const convolution *v)
{
	return v->top != v->bottom || v->left != v->right;
}

static int64_t framed_h(const convolution *v)
{
	return is_framed(v) ? v->top + v->h + v->bottom : v->h;
}

static int64_t framed_w(const convolution *v)
{
	return is_framed(v) ? v->left + v->w + v->right : v->w;
}

static cudnnDataType_t dnn_type(choir_dtype dtype)
{
	return dtype == CHOIR_F16	  ? CUDNN_DATA_HALF
			: dtype == CHOIR_BF16 ? CUDNN_DATA_BFLOAT16
								  : CUDNN_DATA_FLOAT;
}

// For f32, the default math may use TF32.
static choir_status describe(const convolution *v, dnn_call *d)
{
	const cudnnDataType_t type = dnn_type(v->dtype);
	const bool framed = is_framed(v);
	const int n = (int) v->n, stride = (int) v->stride, dilation = (int) v->dilation;
	TRY_DNN(cudnnCreateTensorDescriptor(&d->x));
	TRY_DNN(cudnnSetTensor4dDescriptor(
			d->x, CUDNN_TENSOR_NHWC, type, n, (int) v->c, (int) framed_h(v), (int) framed_w(v)));
	TRY_DNN(cudnnCreateTensorDescriptor(&d->y));
	TRY_DNN(cudnnSetTensor4dDescriptor(
			d->y, CUDNN_TENSOR_NHWC, type, n, (int) v->out, (int) v->oh, (int) v->ow));
	TRY_DNN(cudnnCreateFilterDescriptor(&d->filter));
	TRY_DNN(cudnnSetFilter4dDescriptor(d->filter, type, CUDNN_TENSOR_NHWC, (int) v->out,
			(int) v->group_c, (int) v->kh, (int) v->kw));
	TRY_DNN(cudnnCreateConvolutionDescriptor(&d->convolution));
	TRY_DNN(cudnnSetConvolution2dDescriptor(d->convolution, framed ? 0 : (int) v->top,
			framed ? 0 : (int) v->left, stride, stride, dilation, dilation,
			CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
	TRY_DNN(cudnnSetConvolutionGroupCount(d->convolution, (int) v->groups));
	TRY_DNN(cudnnSetConvolutionMathType(d->convolution,
			v->dtype != CHOIR_F32 ? CUDNN_TENSOR_OP_MATH
					: v->tf32	  ? CUDNN_DEFAULT_MATH
								  : CUDNN_FMA_MATH));
	return CHOIR_OK;
}

template <class P>
static choir_status pick(cudnnStatus_t status, const P *results, int n, dnn_choice *out)
{
	if (status == CUDNN_STATUS_NOT_SUPPORTED || status == CUDNN_STATUS_BAD_PARAM)
		return CHOIR_OK;
	CHOIR_TRY(check(status, "cudnnGetConvolutionAlgorithm"));
	for (int i = 0; i < n && !out->found; i++)
		if (results[i].status == CUDNN_STATUS_SUCCESS &&
				results[i].determinism == CUDNN_DETERMINISTIC &&
				results[i].memory <= MOST_WORKSPACE)
			*out = { true, (int) results[i].algo, results[i].memory };
	return CHOIR_OK;
}

static choir_status ask(
		const convolution *v, const dnn_call *d, cudnnHandle_t handle, dnn_choice *out)
{
	int n = 0;
	if (v->of == FORWARD) {
		cudnnConvolutionFwdAlgoPerf_t results[MOST_ALGORITHMS];
		const cudnnStatus_t status = d->dnn->cudnnGetConvolutionForwardAlgorithm_v7(
				handle, d->x, d->filter, d->convolution, d->y, MOST_ALGORITHMS, &n, results);
		return pick(status, results, n, out);
	}
	if (v->of == GRADIENT_INPUT) {
		cudnnConvolutionBwdDataAlgoPerf_t results[MOST_ALGORITHMS];
		const cudnnStatus_t status = d->dnn->cudnnGetConvolutionBackwardDataAlgorithm_v7(
				handle, d->filter, d->y, d->convolution, d->x, MOST_ALGORITHMS, &n, results);
		return pick(status, results, n, out);
	}
	cudnnConvolutionBwdFilterAlgoPerf_t results[MOST_ALGORITHMS];
	const cudnnStatus_t status = d->dnn->cudnnGetConvolutionBackwardFilterAlgorithm_v7(
			handle, d->x, d->y, d->convolution, d->filter, MOST_ALGORITHMS, &n, results);
	return pick(status, results, n, out);
}

static bool is_possible(const convolution *v)
{
	const int64_t most = INT32_MAX;
	return cudnn() != NULL && v->dtype != CHOIR_F64 &&
			v->n * framed_h(v) * framed_w(v) <= most / v->c && v->pixels() <= most / v->out;
}

// Needs the device's dnn_lock.
static choir_status choose(device *dev, const convolution *v, const dnn_call *d, dnn_choice *out)
{
	const dnn_key key = { { (v->tf32 * 4 + v->of) * 8 + v->dtype, v->n, v->h, v->w, v->c, v->kh,
			v->kw, v->out, v->groups, v->stride, v->dilation, v->top << 32 | v->bottom,
			v->left << 32 | v->right } };
	auto known = dev->convolutions.find(key);
	if (known != dev->convolutions.end()) {
		*out = known->second;
		return CHOIR_OK;
	}
	if (dev->dnn == NULL)
		CHOIR_TRY(check(d->dnn->cudnnCreate((cudnnHandle_t *) &dev->dnn), "cudnnCreate"));
	*out = { false, 0, 0 };
	CHOIR_TRY(ask(v, d, (cudnnHandle_t) dev->dnn, out));
	dev->convolutions[key] = *out;
	return CHOIR_OK;
}

static size_t whole(int64_t elements, choir_dtype dtype)
{
	return ((size_t) elements * size_of(dtype) + LINE - 1) / LINE * LINE;
}

static size_t filter_bytes(const convolution *v)
{
	return whole(v->patch() * v->out, v->dtype);
}

static size_t frame_bytes(const convolution *v)
{
	return is_framed(v) ? whole(v->n * framed_h(v) * framed_w(v) * v->c, v->dtype) : 0;
}

size_t dnn_scratch(device *dev, const convolution *v)
{
	dnn_choice chosen = { false, 0, 0 };
	if (!is_possible(v))
		return 0;
	on_gpu on(dev->gpu);
	std::lock_guard<std::mutex> hold(dev->dnn_lock);
	dnn_call d;
	if (describe(v, &d) != CHOIR_OK || choose(dev, v, &d, &chosen) != CHOIR_OK)
		return 0; // the call then fails, too
	return chosen.found ? filter_bytes(v) + frame_bytes(v) + chosen.workspace : 0;
}

// out [columns, rows] is x [rows, columns] transposed.
template <class T>
__global__ void turn_kernel(const T *x, output<T> out, int64_t rows, int64_t columns)
{
	EACH (i, rows * columns)
		out.set(i, (real<T>) x[i % rows * columns + i / rows]);
}

// Copies x [n, h, w, c] into the middle of a frame of zeros, or back.
template <class T>
__global__ void frame_kernel(T *x, T *frame, int64_t n, convolution v, int64_t framed_w, bool back)
{
	EACH (i, n) {
		const int64_t w = back ? v.w : framed_w, pixel = i / v.c;
		const int64_t h = back ? v.h : v.top + v.h + v.bottom;
		const int64_t image = pixel / w / h;
		const int64_t row = pixel / w % h - (back ? 0 : v.top);
		const int64_t column = pixel % w - (back ? 0 : v.left);
		if (back)
			x[i] = frame[((image * (v.top + v.h + v.bottom) + row + v.top) * framed_w + column +
								 v.left) *
							v.c +
					i % v.c];
		else if (row < 0 || row >= v.h || column < 0 || column >= v.w)
			frame[i] = (T) 0;
		else
			frame[i] = x[((image * v.h + row) * v.w + column) * v.c + i % v.c];
	}
}

template <class T>
static choir_status turn_filter(const choir_kernel_call *c, const convolution *v, void *filter)
{
	const int64_t n = v->patch() * v->out;
	if (v->of == GRADIENT_FILTER)
		return launch_each(c, n, turn_kernel<T>, (const T *) filter, output_of<T>(*c->out), v->out,
				v->patch());
	const output<T> to = { (T *) filter, NULL };
	return launch_each(
			c, n, turn_kernel<T>, given<T>(c, v->of == FORWARD ? 1 : 0), to, v->patch(), v->out);
}

template <class T>
static choir_status copy_frame(
		const choir_kernel_call *c, const convolution *v, void *frame, bool back)
{
	T *x = (T *) (v->of == GRADIENT_INPUT ? c->out : &c->in[0])->data;
	const int64_t n = v->n * v->c * (back ? v->h * v->w : framed_h(v) * framed_w(v));
	return launch_each(c, n, frame_kernel<T>, x, (T *) frame, n, *v, framed_w(v), back);
}

static choir_status queue(const choir_kernel_call *c, const convolution *v, const dnn_call *d,
		const dnn_choice *chosen, void *x, void *filter, void *workspace)
{
	stream *s = stream_of(c->stream);
	const cudnnHandle_t handle = (cudnnHandle_t) s->d->dnn;
	const float one = 1, zero = 0;
	const size_t bytes = chosen->workspace;
	TRY_DNN(cudnnSetStream(handle, s->s));
	s->dirty = true;
	cudnnStatus_t status;
	if (v->of == FORWARD)
		status = d->dnn->cudnnConvolutionForward(handle, &one, d->x, x, d->filter, filter,
				d->convolution, (cudnnConvolutionFwdAlgo_t) chosen->algorithm, workspace, bytes,
				&zero, d->y, c->out->data);
	else if (v->of == GRADIENT_INPUT)
		status = d->dnn->cudnnConvolutionBackwardData(handle, &one, d->filter, filter, d->y,
				c->in[1].data, d->convolution, (cudnnConvolutionBwdDataAlgo_t) chosen->algorithm,
				workspace, bytes, &zero, d->x, x);
	else
		status = d->dnn->cudnnConvolutionBackwardFilter(handle, &one, d->x, x, d->y, c->in[1].data,
				d->convolution, (cudnnConvolutionBwdFilterAlgo_t) chosen->algorithm, workspace,
				bytes, &zero, d->filter, filter);
	if (status != CUDNN_STATUS_SUCCESS)
		CHOIR_TRY(check_lost(s, "a convolution of cuDNN"));
	return check(status, "a convolution of cuDNN");
}

struct convolving {
	template <class T>
	static choir_status run(const choir_kernel_call *c, const convolution *v, const dnn_call *d,
			const dnn_choice *chosen)
	{
		char *filter = (char *) c->scratch, *frame = filter + filter_bytes(v);
		char *workspace = frame + frame_bytes(v);
		const bool back = v->of == GRADIENT_INPUT;
		void *x = is_framed(v) ? frame : back ? c->out->data : c->in[0].data;
		if (v->of != GRADIENT_FILTER)
			CHOIR_TRY(turn_filter<T>(c, v, filter));
		if (is_framed(v) && !back)
			CHOIR_TRY(copy_frame<T>(c, v, frame, false));
		CHOIR_TRY(queue(c, v, d, chosen, x, filter, workspace));
		if (is_framed(v) && back)
			CHOIR_TRY(copy_frame<T>(c, v, frame, true));
		return v->of == GRADIENT_FILTER ? turn_filter<T>(c, v, filter) : CHOIR_OK;
	}
};

choir_status convolve_by_dnn(const choir_kernel_call *c, const convolution *v, bool *done)
{
	device *dev = stream_of(c->stream)->d;
	dnn_choice chosen = { false, 0, 0 };
	// Only a filter's gradient may be wider than its operands.
	if (!is_possible(v) || (v->of != GRADIENT_FILTER && c->out->dtype != v->dtype))
		return CHOIR_OK;
	on_gpu on(dev->gpu);
	std::lock_guard<std::mutex> hold(dev->dnn_lock); // a handle serves one thread at a time
	dnn_call d;
	CHOIR_TRY(describe(v, &d));
	CHOIR_TRY(choose(dev, v, &d, &chosen));
	*done = chosen.found;
	if (chosen.found && c->scratch == NULL)
		return with.fail(CHOIR_IO, "cuDNN failed when it was asked for its workspace");
	return chosen.found ? for_float<convolving>(v->dtype, c, v, (const dnn_call *) &d,
								  (const dnn_choice *) &chosen)
						: CHOIR_OK;
}

} // namespace choir_cuda

#else

namespace choir_cuda
{

size_t dnn_scratch(device *, const convolution *)
{
	return 0;
}

choir_status convolve_by_dnn(const choir_kernel_call *, const convolution *, bool *)
{
	return CHOIR_OK;
}

} // namespace choir_cuda

#endif
