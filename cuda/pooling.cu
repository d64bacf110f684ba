// Pools over windows. A thread for each element of the result, also of a gradient: it adds what
// the windows around its element give, by the windows' rows and then columns.
#include "device_math.h"

namespace choir_cuda
{

struct pool {
	int64_t n, h, w, c, out_h, out_w; // elements of out; of x and y
	int window, stride, top, left;

	__device__ int64_t pixel(int64_t image, int64_t row, int64_t column, int64_t channel) const
	{
		return ((image * h + row) * w + column) * c + channel;
	}
};

// The part of a window that is inside x.
struct window {
	int64_t image, channel, top, bottom, left, right;
	__device__ window(const pool &p, int64_t image, int64_t r, int64_t s, int64_t channel)
		: image(image), channel(channel)
	{
		top = r * p.stride - p.top;
		left = s * p.stride - p.left;
		bottom = top + p.window < p.h ? top + p.window : p.h;
		right = left + p.window < p.w ? left + p.window : p.w;
		top = top < 0 ? 0 : top;
		left = left < 0 ? 0 : left;
	}

	// Of element i of y.
	static __device__ window of(const pool &p, int64_t i)
	{
		const int64_t pixel = i / p.c;
		return window(p, pixel / (p.out_h * p.out_w), pixel / p.out_w % p.out_h, pixel % p.out_w,
				i % p.c);
	}

	__device__ int64_t count() const
	{
		return bottom > top && right > left ? (bottom - top) * (right - left) : 0;
	}

	// The first element of x that equals y, where all NANs are equal; -1: none.
	template <class T> __device__ int64_t find(const pool &p, const T *x, T y) const
	{
		for (int64_t row = top; row < bottom; row++)
			for (int64_t column = left; column < right; column++) {
				const int64_t at = p.pixel(image, row, column, channel);
				if (x[at] == y || (x[at] != x[at] && y != y))
					return at;
			}
		return -1;
	}
};

static pool pool_of(const choir_kernel_call *call, const choir_buffer *x, const choir_buffer *y)
{
	const auto *a = attributes<choir_pool2d_attributes>(call);
	const int64_t *x_dim = x->shape.dim, *y_dim = y->shape.dim;
	return { elements(*call->out), x_dim[1], x_dim[2], x_dim[3], y_dim[1], y_dim[2], a->window,
		a->stride, a->top, a->left };
}

template <class T> __global__ void max_kernel(const T *x, T *out, pool p)
{
	EACH (i, p.n) {
		const window w = window::of(p, i);
		T best = (T) 0;
		bool first = true;
		for (int64_t row = w.top; row < w.bottom; row++)
			for (int64_t column = w.left; column < w.right; column++) {
				const T other = x[p.pixel(w.image, row, column, w.channel)];
				best = first ? other : op_maximum::of<T>(best, other);
				first = false;
			}
		out[i] = best;
	}
}

KERNEL(max_pool)
{
	const pool p = pool_of(c, &c->in[0], c->out);
	return launch_each(c, p.n, max_kernel<T>, given<T>(c, 0), made<T>(c), p);
}

template <class T> __global__ void take_kernel(const T *x, const T *y, const T *u, T *out, pool p)
{
	EACH (i, p.n) {
		const int64_t at = window::of(p, i).find(p, x, y[i]);
		out[i] = at < 0 ? (T) 0 : u[at];
	}
}

KERNEL(max_take)
{
	const pool p = pool_of(c, &c->in[0], c->out);
	return launch_each(
			c, p.n, take_kernel<T>, given<T>(c, 0), given<T>(c, 1), given<T>(c, 2), made<T>(c), p);
}

template <class T> __global__ void average_kernel(const T *x, T *out, pool p)
{
	EACH (i, p.n) {
		const window w = window::of(p, i);
		real<T> sum = 0;
		for (int64_t row = w.top; row < w.bottom; row++)
			for (int64_t column = w.left; column < w.right; column++)
				sum += (real<T>) x[p.pixel(w.image, row, column, w.channel)];
		out[i] = (T) (sum * ((real<T>) 1 / (real<T>) (w.count() > 0 ? w.count() : 1)));
	}
}

KERNEL(average_pool)
{
	const pool p = pool_of(c, &c->in[0], c->out);
	return launch_each(c, p.n, average_kernel<T>, given<T>(c, 0), made<T>(c), p);
}

// The first and the last window along an axis that hold an element.
__device__ inline int64_t first_window(int64_t at, int window, int stride)
{
	return at < window ? 0 : (at - window) / stride + 1;
}

__device__ inline int64_t last_window(int64_t at, int stride, int64_t windows)
{
	return at / stride < windows ? at / stride : windows - 1;
}

// x and y are NULL in the gradient of an average.
template <class T>
__global__ void pool_gradient_kernel(const T *x, const T *y, const T *dy, T *out, pool p)
{
	EACH (i, p.n) {
		const int64_t channel = i % p.c, column = i / p.c % p.w, row = i / p.c / p.w % p.h;
		const int64_t image = i / p.c / p.w / p.h, below = row + p.top, right = column + p.left;
		const int64_t last_r = last_window(below, p.stride, p.out_h);
		const int64_t last_s = last_window(right, p.stride, p.out_w);
		real<T> sum = 0;
		for (int64_t r = first_window(below, p.window, p.stride); r <= last_r; r++)
			for (int64_t s = first_window(right, p.window, p.stride); s <= last_s; s++) {
				const window w(p, image, r, s, channel);
				const int64_t at = ((image * p.out_h + r) * p.out_w + s) * p.c + channel;
				if (x == nullptr)
					sum += (real<T>) dy[at] * ((real<T>) 1 / (real<T>) w.count());
				else if (w.find(p, x, y[at]) == i)
					sum += (real<T>) dy[at];
			}
		out[i] = (T) sum;
	}
}

KERNEL(max_gradient)
{
	const pool p = pool_of(c, &c->in[0], &c->in[1]);
	return launch_each(c, p.n, pool_gradient_kernel<T>, given<T>(c, 0), given<T>(c, 1),
			given<T>(c, 2), made<T>(c), p);
}

KERNEL(average_gradient)
{
	const pool p = pool_of(c, c->out, &c->in[0]);
	const T *none = NULL;
	return launch_each(c, p.n, pool_gradient_kernel<T>, none, none, given<T>(c, 0), made<T>(c), p);
}

static const kernel kernels[] = {
	{ "max_pool2d", FLOATS, run_float<max_pool> },
	{ "max_pool2d_gradient", FLOATS, run_float<max_gradient> },
	{ "max_pool2d_take", FLOATS, run_float<max_take> },
	{ "average_pool2d", FLOATS, run_float<average_pool> },
	{ "average_pool2d_gradient", FLOATS, run_float<average_gradient> },
};
const kernel_list pool_kernels = list_of(kernels);

} // namespace choir_cuda
