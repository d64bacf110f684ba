// Softmax, its logarithm, and the cross entropy of labels: a block for each row, with sums in f64.
// A label outside of the classes gives NAN.
#include "block.h"
#include "numbers.h"

namespace choir_cuda
{

#define EACH_CLASS(j, classes) \
	for (int64_t j = (int64_t) threadIdx.x; j < (classes); j += (int64_t) blockDim.x)

// The row's maximum, and the sum of exp(x - maximum).
template <class T>
__device__ inline void row_softmax(const T *x, int64_t classes, double *most, double *sum)
{
	double own = -(double) INFINITY;
	EACH_CLASS (j, classes)
		own = own >= (double) x[j] || own != own ? own : (double) x[j];
	*most = block_max(own);
	double part = 0;
	EACH_CLASS (j, classes)
		part += (double) exponential((T) (x[j] - (T) *most));
	*sum = block_sum(part);
}

template <class T>
__global__ void softmax_kernel(const T *x, T *out, int64_t classes, bool logarithms)
{
	double most, sum;
	const int64_t first = (int64_t) blockIdx.x * classes;
	row_softmax(x + first, classes, &most, &sum);
	EACH_CLASS (j, classes) {
		const T below = (T) (x[first + j] - (T) most);
		out[first + j] = logarithms ? (T) ((double) below - log(sum))
									: (T) ((double) exponential(below) * (1 / sum));
	}
}

template <class T>
__global__ void softmax_gradient_kernel(
		const T *y, const T *dy, T *out, int64_t classes, bool logarithms)
{
	const int64_t first = (int64_t) blockIdx.x * classes;
	double part = 0;
	EACH_CLASS (j, classes)
		part += logarithms ? (double) dy[first + j]
						   : (double) y[first + j] * (double) dy[first + j];
	const T sum = (T) block_sum(part);
	EACH_CLASS (j, classes)
		out[first + j] = logarithms ? dy[first + j] - exponential(y[first + j]) * sum
									: y[first + j] * (dy[first + j] - sum);
}

template <class T>
__global__ void cross_entropy_kernel(
		const T *x, const void *labels, int dtype, T *out, int64_t classes, double smoothing)
{
	double most, sum;
	const T *row = x + (int64_t) blockIdx.x * classes;
	row_softmax(row, classes, &most, &sum);
	double part = 0;
	EACH_CLASS (j, classes)
		part += (double) row[j] - most;
	const double below = smoothing > 0 ? block_sum(part) / (double) classes : 0;
	const int64_t label = index_at(dtype, labels, (int64_t) blockIdx.x);
	if (threadIdx.x != 0)
		return;
	if (label < 0 || label >= classes)
		out[blockIdx.x] = (T) NAN;
	else
		out[blockIdx.x] = (T) (log(sum) - (1 - smoothing) * ((double) row[label] - most) -
				smoothing * below);
}

template <class T>
__global__ void cross_entropy_gradient_kernel(const T *x, const void *labels, int dtype,
		const T *dlosses, T *out, int64_t classes, double smoothing)
{
	double most, sum;
	const int64_t first = (int64_t) blockIdx.x * classes;
	row_softmax(x + first, classes, &most, &sum);
	const int64_t label = index_at(dtype, labels, (int64_t) blockIdx.x);
	const double by = (double) dlosses[blockIdx.x], all = smoothing / (double) classes;
	EACH_CLASS (j, classes) {
		const double p = (double) exponential((T) (x[first + j] - (T) most)) / sum;
		const double target = (j == label ? 1 - smoothing : 0) + all;
		out[first + j] = label < 0 || label >= classes ? (T) NAN : (T) ((p - target) * by);
	}
}

static int64_t classes_of(const choir_kernel_call *c)
{
	return c->in[0].shape.dim[c->in[0].shape.rank - 1];
}

// Launches a block for each row of in[0].
template <class... P, class... A>
static choir_status launch_rows(const choir_kernel_call *c, void (*kernel)(P...), A... arguments)
{
	const unsigned rows = (unsigned) (elements(c->in[0]) / classes_of(c));
	return launch(stream_of(c->stream), rows, THREADS, kernel, arguments...);
}

template <bool logarithms> struct softmax {
	template <class T> static choir_status run(const choir_kernel_call *c)
	{
		return launch_rows(c, softmax_kernel<T>, (const T *) c->in[0].data, (T *) c->out->data,
				classes_of(c), logarithms);
	}
};

template <bool logarithms> struct softmax_gradient {
	template <class T> static choir_status run(const choir_kernel_call *c)
	{
		return launch_rows(c, softmax_gradient_kernel<T>, (const T *) c->in[0].data,
				(const T *) c->in[1].data, (T *) c->out->data, classes_of(c), logarithms);
	}
};

static double smoothing_of(const choir_kernel_call *c)
{
	return ((const choir_cross_entropy_attributes *) c->attributes)->smoothing;
}

struct cross_entropy {
	template <class T> static choir_status run(const choir_kernel_call *c)
	{
		return launch_rows(c, cross_entropy_kernel<T>, (const T *) c->in[0].data,
				(const void *) c->in[1].data, (int) c->in[1].dtype, (T *) c->out->data,
				classes_of(c), smoothing_of(c));
	}
};

struct cross_entropy_gradient {
	template <class T> static choir_status run(const choir_kernel_call *c)
	{
		return launch_rows(c, cross_entropy_gradient_kernel<T>, (const T *) c->in[0].data,
				(const void *) c->in[1].data, (int) c->in[1].dtype, (const T *) c->in[2].data,
				(T *) c->out->data, classes_of(c), smoothing_of(c));
	}
};

static const kernel kernels[] = {
	{ "softmax", REAL, run_real<softmax<false>>, NULL, NULL },
	{ "softmax_gradient", REAL, run_real<softmax_gradient<false>>, NULL, NULL },
	{ "log_softmax", REAL, run_real<softmax<true>>, NULL, NULL },
	{ "log_softmax_gradient", REAL, run_real<softmax_gradient<true>>, NULL, NULL },
	{ "softmax_cross_entropy", REAL, run_real<cross_entropy>, NULL, NULL },
	{ "softmax_cross_entropy_gradient", REAL, run_real<cross_entropy_gradient>, NULL, NULL },
};
const kernel_list softmax_kernels = list_of(kernels);

} // namespace choir_cuda
