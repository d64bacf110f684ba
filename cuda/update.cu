// Updates of optimizers: the formulas of src/op/plain/update.inc, in the same order of operations,
// so that they give the CPU's bits.
#include "numbers.h"

namespace choir_cuda
{

// What a kernel needs of the attributes.
struct update {
	double rate, gradient_scale, decay, momentum, take1, take2, epsilon, keep, corrected;
	double ahead, now; // how w moves by the next and the present change
	double m_factor, g_factor, v_factor, accumulator;
};

static update update_of(const choir_kernel_call *c)
{
	const choir_update_attributes *a = (const choir_update_attributes *) c->attributes;
	update u = {};
	u.rate = a->rate;
	u.gradient_scale = a->gradient_scale;
	u.decay = a->rate * a->decay;
	u.momentum = a->momentum;
	u.take1 = 1 - a->beta1;
	u.take2 = 1 - a->beta2;
	u.epsilon = a->epsilon;
	u.keep = a->rho;
	u.corrected = a->rate * a->correction;
	u.ahead = a->nesterov ? a->momentum : 1;
	u.now = a->nesterov ? a->rate : 0;
	u.m_factor = a->m_factor;
	u.g_factor = a->g_factor;
	u.v_factor = a->v_factor;
	u.accumulator = a->initial_accumulator + a->epsilon;
	return u;
}

template <class T> __global__ void sgd_kernel(T *w, const T *g, int64_t n, update u)
{
	const T rate = (T) u.rate, by = (T) u.gradient_scale, decay = (T) u.decay;
	EACH (i, n)
		w[i] = (w[i] - decay * w[i]) - rate * (by * g[i]);
}

template <class T> __global__ void momentum_kernel(T *w, T *v, const T *g, int64_t n, update u)
{
	const T rate = (T) u.rate, by = (T) u.gradient_scale, decay = (T) u.decay;
	const T keep = (T) u.momentum, ahead = (T) u.ahead, now = (T) u.now;
	EACH (i, n) {
		const T gradient = by * g[i];
		const T next = keep * v[i] - rate * gradient;
		v[i] = next;
		w[i] = (w[i] - decay * w[i]) + (ahead * next - now * gradient);
	}
}

template <class T> __global__ void adam_kernel(T *w, T *m, T *v, const T *g, int64_t n, update u)
{
	const T by = (T) u.gradient_scale, decay = (T) u.decay, take1 = (T) u.take1;
	const T take2 = (T) u.take2, rate = (T) u.corrected, epsilon = (T) u.epsilon;
	EACH (i, n) {
		const T gradient = by * g[i];
		const T first = m[i] + (gradient - m[i]) * take1;
		const T second = v[i] + (gradient * gradient - v[i]) * take2;
		m[i] = first;
		v[i] = second;
		w[i] = (w[i] - decay * w[i]) - rate * first / (square_root(second) + epsilon);
	}
}

template <class T>
__global__ void rmsprop_kernel(T *w, T *v, T *m, const T *g, int64_t n, update u)
{
	const T by = (T) u.gradient_scale, decay = (T) u.decay, rate = (T) u.rate, keep = (T) u.keep;
	const T take = (T) (1 - u.keep), momentum = (T) u.momentum, epsilon = (T) u.epsilon;
	EACH (i, n) {
		const T gradient = by * g[i];
		const T square = keep * v[i] + take * (gradient * gradient);
		const T moved = momentum * m[i] + rate * gradient / square_root(square + epsilon);
		v[i] = square;
		m[i] = moved;
		w[i] = (w[i] - decay * w[i]) - moved;
	}
}

template <class T> __global__ void nadam_kernel(T *w, T *m, T *v, const T *g, int64_t n, update u)
{
	const T by = (T) u.gradient_scale, decay = (T) u.decay, rate = (T) u.rate;
	const T take1 = (T) u.take1, take2 = (T) u.take2, epsilon = (T) u.epsilon;
	const T of_m = (T) u.m_factor, of_g = (T) u.g_factor, of_v = (T) u.v_factor;
	EACH (i, n) {
		const T gradient = by * g[i];
		const T first = m[i] + (gradient - m[i]) * take1;
		const T second = v[i] + (gradient * gradient - v[i]) * take2;
		m[i] = first;
		v[i] = second;
		w[i] = (w[i] - decay * w[i]) -
				rate * (of_m * first + of_g * gradient) / (square_root(of_v * second) + epsilon);
	}
}

template <class T> __global__ void adagrad_kernel(T *w, T *v, const T *g, int64_t n, update u)
{
	const T by = (T) u.gradient_scale, decay = (T) u.decay, rate = (T) u.rate;
	const T more = (T) u.accumulator;
	EACH (i, n) {
		const T gradient = by * g[i];
		const T sum = v[i] + gradient * gradient;
		v[i] = sum;
		w[i] = (w[i] - decay * w[i]) - rate * gradient / square_root(sum + more);
	}
}

template <class T> __global__ void lion_kernel(T *w, T *m, const T *g, int64_t n, update u)
{
	const T by = (T) u.gradient_scale, decay = (T) u.decay, rate = (T) u.rate;
	const T take1 = (T) u.take1, take2 = (T) u.take2;
	EACH (i, n) {
		const T gradient = by * g[i];
		const T to = m[i] + (gradient - m[i]) * take1;
		m[i] += (gradient - m[i]) * take2;
		w[i] = (w[i] - decay * w[i]) - (to > 0 ? rate : to < 0 ? -rate : 0);
	}
}

// Entries of the list, for kernels of a weight with no, one and two slots.
#define SLOTS_0(name) \
	struct name { \
		template <class T> static choir_status run(const choir_kernel_call *c) \
		{ \
			const int64_t n = elements(c->in[0]); \
			return launch_each(c, n, name##_kernel<T>, (T *) c->in[0].data, \
					(const T *) c->in[1].data, n, update_of(c)); \
		} \
	}
#define SLOTS_1(name) \
	struct name { \
		template <class T> static choir_status run(const choir_kernel_call *c) \
		{ \
			const int64_t n = elements(c->in[0]); \
			return launch_each(c, n, name##_kernel<T>, (T *) c->in[0].data, (T *) c->in[1].data, \
					(const T *) c->in[2].data, n, update_of(c)); \
		} \
	}
#define SLOTS_2(name) \
	struct name { \
		template <class T> static choir_status run(const choir_kernel_call *c) \
		{ \
			const int64_t n = elements(c->in[0]); \
			return launch_each(c, n, name##_kernel<T>, (T *) c->in[0].data, (T *) c->in[1].data, \
					(T *) c->in[2].data, (const T *) c->in[3].data, n, update_of(c)); \
		} \
	}
SLOTS_0(sgd);
SLOTS_1(momentum);
SLOTS_2(adam);
SLOTS_2(rmsprop);
SLOTS_2(nadam);
SLOTS_1(adagrad);
SLOTS_1(lion);

static const kernel kernels[] = {
	{ "sgd_update", REAL, run_real<sgd>, NULL, NULL },
	{ "momentum_update", REAL, run_real<momentum>, NULL, NULL },
	{ "adam_update", REAL, run_real<adam>, NULL, NULL },
	{ "rmsprop_update", REAL, run_real<rmsprop>, NULL, NULL },
	{ "nadam_update", REAL, run_real<nadam>, NULL, NULL },
	{ "adagrad_update", REAL, run_real<adagrad>, NULL, NULL },
	{ "lion_update", REAL, run_real<lion>, NULL, NULL },
};
const kernel_list update_kernels = list_of(kernels);

} // namespace choir_cuda
