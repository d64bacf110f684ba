// Softmax, its logarithm, and the cross entropy of labels: a block for each row, with sums in f64.
// A label outside of the classes gives NAN.
#include "block_reduce.h"
#include "device_math.h"

namespace choir_cuda
{

// The row's maximum, and the sum of exp(x - maximum).
template <class T>
__device__ inline void row_softmax(const T *x, int64_t classes, double *most, double *sum)
{
	double own = -(double) INFINITY;
	EACH_IN_ROW(j, classes)
	own = own >= (double) x[j] || own != own ? own : (double) x[j];
	*most = block_max(own);
	double part = 0;
	EACH_IN_ROW(j, classes)
	part += (double) exponential((real<T>) x[j] - (real<T>) *most);
	*sum = block_sum(part);
}

template <class T>
__global__ void softmax_kernel(const T *x, T *out, int64_t classes, bool logarithms)
{
	double most, sum;
	const int64_t first = (int64_t) blockIdx.x * classes;
	row_softmax(x + first, classes, &most, &sum);
	EACH_IN_ROW(j, classes)
	{
		const real<T> below = (real<T>) x[first + j] - (real<T>) most;
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
	EACH_IN_ROW(j, classes)
	part += logarithms ? (double) dy[first + j] : (double) y[first + j] * (double) dy[first + j];
	const real<T> sum = (real<T>) block_sum(part);
	EACH_IN_ROW(j, classes)
	{
		const real<T> by = (real<T>) y[first + j], d = (real<T>) dy[first + j];
		out[first + j] = (T) (logarithms ? d - exponential(by) * sum : by * (d - sum));
	}
}

template <class T>
__global__ void cross_entropy_kernel(const T *x, const void *labels, int dtype, output<T> out,
		int64_t classes, double smoothing)
{
	double most, sum;
	const T *row = x + (int64_t) blockIdx.x * classes;
	row_softmax(row, classes, &most, &sum);
	double part = 0;
	EACH_IN_ROW(j, classes)
	part += (double) row[j] - most;
	const double below = smoothing > 0 ? block_sum(part) / (double) classes : 0;
	const int64_t label = index_at(dtype, labels, (int64_t) blockIdx.x);
	if (threadIdx.x != 0)
		return;
	if (label < 0 || label >= classes)
		out.set(blockIdx.x, (double) NAN);
	else
		out.set(blockIdx.x,
				log(sum) - (1 - smoothing) * ((double) row[label] - most) - smoothing * below);
}

template <class T>
__global__ void cross_entropy_gradient_kernel(const T *x, const void *labels, int dtype,
		input<T> dlosses, T *out, int64_t classes, double smoothing)
{
	double most, sum;
	const int64_t first = (int64_t) blockIdx.x * classes;
	row_softmax(x + first, classes, &most, &sum);
	const int64_t label = index_at(dtype, labels, (int64_t) blockIdx.x);
	const double by = (double) dlosses[blockIdx.x], all = smoothing / (double) classes;
	EACH_IN_ROW(j, classes)
	{
		const double p = (double) exponential((real<T>) x[first + j] - (real<T>) most) / sum;
		const double target = (j == label ? 1 - smoothing : 0) + all;
		out[first + j] =
				label < 0 || label >= classes ? (T) (double) NAN : (T) ((p - target) * by);
	}
}

KERNEL_OF(bool, logarithms, softmax)
{
	return launch_rows(c, softmax_kernel<T>, given<T>(c, 0), made<T>(c), width_of(c), logarithms);
}

KERNEL_OF(bool, logarithms, softmax_gradient)
{
	return launch_rows(c, softmax_gradient_kernel<T>, given<T>(c, 0), given<T>(c, 1), made<T>(c),
			width_of(c), logarithms);
}

KERNEL(cross_entropy)
{
	return launch_rows(c, cross_entropy_kernel<T>, given<T>(c, 0), given<void>(c, 1),
			(int) c->in[1].dtype, output_of<T>(*c->out), width_of(c),
			attributes<choir_cross_entropy_attributes>(c)->smoothing);
}

KERNEL(cross_entropy_gradient)
{
	return launch_rows(c, cross_entropy_gradient_kernel<T>, given<T>(c, 0), given<void>(c, 1),
			(int) c->in[1].dtype, input_of<T>(c->in[2]), made<T>(c), width_of(c),
			attributes<choir_cross_entropy_attributes>(c)->smoothing);
}

static const kernel kernels[] = {
	{ "softmax", FLOATS, run_float<softmax<false>> },
	{ "softmax_gradient", FLOATS, run_float<softmax_gradient<false>> },
	{ "log_softmax", FLOATS, run_float<softmax<true>> },
	{ "log_softmax_gradient", FLOATS, run_float<softmax_gradient<true>> },
	{ "softmax_cross_entropy", FLOATS, run_float<cross_entropy> },
	{ "softmax_cross_entropy_gradient", FLOATS, run_float<cross_entropy_gradient> },
};
const kernel_list softmax_kernels = list_of(kernels);

} // namespace choir_cuda
