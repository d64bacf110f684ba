// Updates of optimizers: the formulas of src/op/plain/update.inc, in the same order of operations,
// so that they give the CPU's bits, but for the norms of "lamb_update". "update_gate" decides on
// the device whether and by which factor the updates write.
#include "block.h"
#include "numbers.h"

namespace choir_cuda
{

// What a kernel needs of the attributes.
struct update {
	using reads_only = void;
	const double *gate; // the output of "update_gate", or NULL
	double rate, gradient_scale, decay, wanted_decay, momentum, take1, take2, epsilon, keep,
			corrected;
	double ahead, now; // how w moves by the next and the present change
	double m_factor, g_factor, v_factor, accumulator;

	__device__ bool is_refused() const
	{
		return gate != nullptr && gate[1] != 0;
	}
	__device__ double scale() const
	{
		return gate != nullptr ? gradient_scale * gate[0] : gradient_scale;
	}
};

static update update_of(const choir_kernel_call *c)
{
	const choir_update_attributes *a = (const choir_update_attributes *) c->attributes;
	update u = {};
	u.gate = a->gate;
	u.rate = a->rate;
	u.gradient_scale = a->gradient_scale;
	u.decay = a->rate * a->decay;
	u.wanted_decay = a->decay;
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

// The steps of an element. A weight has up to two slots, a and b.
#define STEP(name) \
	struct name { \
		template <class T> \
		static __device__ inline void step( \
				T &w, T &a, T &b, T g, T rate, T kept, const update &u); \
	}; \
	template <class T> \
	__device__ inline void name::step(T &w, T &a, T &b, T g, T rate, T kept, const update &u)

// kept: the weight after its decay. g: the scaled gradient.
STEP(sgd)
{
	(void) a, (void) b, (void) u;
	w = kept - rate * g;
}

STEP(momentum)
{
	(void) b;
	const T next = (T) u.momentum * a - rate * g;
	a = next;
	w = kept + ((T) u.ahead * next - (T) u.now * g);
}

// The moments of "adam_update" and others.
template <class T> __device__ inline void move_moments(T &m, T &v, T g, const update &u)
{
	m = m + (g - m) * (T) u.take1;
	v = v + (g * g - v) * (T) u.take2;
}

STEP(adam)
{
	(void) rate;
	move_moments(a, b, g, u);
	w = kept - (T) u.corrected * a / (square_root(b) + (T) u.epsilon);
}

STEP(rmsprop)
{
	a = (T) u.keep * a + (T) (1 - u.keep) * (g * g);
	b = (T) u.momentum * b + rate * g / square_root(a + (T) u.epsilon);
	w = kept - b;
}

STEP(nadam)
{
	move_moments(a, b, g, u);
	w = kept -
			rate * ((T) u.m_factor * a + (T) u.g_factor * g) /
					(square_root((T) u.v_factor * b) + (T) u.epsilon);
}

STEP(adagrad)
{
	(void) b;
	a = a + g * g;
	w = kept - rate * g / square_root(a + (T) u.accumulator);
}

STEP(lion)
{
	(void) b;
	const T to = a + (g - a) * (T) u.take1;
	a += (g - a) * (T) u.take2;
	w = kept - (to > 0 ? rate : to < 0 ? -rate : 0);
}
#undef STEP

template <class T, class F>
__global__ void update_kernel(T *w, T *a, T *b, const T *g, int64_t n, update u)
{
	if (u.is_refused())
		return;
	const T by = (T) u.scale(), decay = (T) u.decay, rate = (T) u.rate;
	EACH (i, n) {
		T none = 0, value = w[i];
		F::step(value, a != nullptr ? a[i] : none, b != nullptr ? b[i] : none, by * g[i], rate,
				value - decay * value, u);
		w[i] = value;
	}
}

template <class F> struct updating {
	template <class T> static choir_status run(const choir_kernel_call *c)
	{
		const int64_t n = elements(c->in[0]);
		T *a = c->n > 2 ? (T *) c->in[1].data : NULL, *b = c->n > 3 ? (T *) c->in[2].data : NULL;
		return launch_each(c, n, update_kernel<T, F>, (T *) c->in[0].data, a, b,
				(const T *) c->in[c->n - 1].data, n, update_of(c));
	}
};

enum { MAX_PARTS = 256 };

// The step of "lamb_update" without its norms.
template <class T> __device__ inline T lamb_step(T w, T m, T v, const update &u)
{
	return (T) u.m_factor * m / (square_root((T) u.v_factor * v) + (T) u.epsilon) +
			(T) u.wanted_decay * w;
}

// A block adds the squares of w and of the step for a part of the elements.
template <class T>
__global__ void lamb_parts_kernel(
		const T *w, T *m, T *v, const T *g, int64_t n, int64_t each, update u, double *parts)
{
	if (u.is_refused())
		return;
	const T by = (T) u.scale();
	const int64_t first = (int64_t) blockIdx.x * each;
	const int64_t last = first + each < n ? first + each : n;
	double of_w = 0, of_step = 0;
	for (int64_t i = first + threadIdx.x; i < last; i += blockDim.x) {
		const T gradient = by * g[i];
		move_moments(m[i], v[i], gradient, u);
		const double step = (double) lamb_step(w[i], m[i], v[i], u);
		of_w += (double) w[i] * (double) w[i];
		of_step += step * step;
	}
	of_w = block_sum(of_w);
	of_step = block_sum(of_step);
	if (threadIdx.x == 0) {
		parts[2 * blockIdx.x] = of_w;
		parts[2 * blockIdx.x + 1] = of_step;
	}
}

template <class T>
__global__ void lamb_kernel(
		T *w, const T *m, const T *v, const double *parts, int count, int64_t n, update u)
{
	if (u.is_refused())
		return;
	double of_w = 0, of_step = 0;
	for (int i = (int) threadIdx.x; i < count; i += (int) blockDim.x) {
		of_w += parts[2 * i];
		of_step += parts[2 * i + 1];
	}
	of_w = sqrt(block_sum(of_w));
	of_step = sqrt(block_sum(of_step));
	const T rate = (T) (u.rate * (of_w > 0 && of_step > 0 ? of_w / of_step : 1));
	EACH (i, n)
		w[i] = w[i] - rate * lamb_step(w[i], m[i], v[i], u);
}

static int64_t lamb_each(int64_t n)
{
	const int64_t each = (n + MAX_PARTS - 1) / MAX_PARTS;
	return each < THREADS ? (int64_t) THREADS : each;
}

static size_t lamb_scratch(const choir_kernel_call *)
{
	return 2 * MAX_PARTS * sizeof(double);
}

struct lamb {
	template <class T> static choir_status run(const choir_kernel_call *c)
	{
		const int64_t n = elements(c->in[0]), each = lamb_each(n), parts = (n + each - 1) / each;
		T *w = (T *) c->in[0].data, *m = (T *) c->in[1].data, *v = (T *) c->in[2].data;
		double *sums = (double *) c->scratch;
		CHOIR_TRY(launch(stream_of(c->stream), (unsigned) parts, THREADS, lamb_parts_kernel<T>,
				(const T *) w, m, v, (const T *) c->in[3].data, n, each, update_of(c), sums));
		return launch_each(c, n, lamb_kernel<T>, w, (const T *) m, (const T *) v,
				(const double *) sums, (int) parts, n, update_of(c));
	}
};

// One block. A thread adds the squares of a variable, and thread 0 the variables' sums.
__global__ void update_gate_kernel(const double *squares, const int64_t *ends, double *sums,
		int64_t variables, double *out, double scale, double clip, bool any)
{
	for (int64_t i = (int64_t) threadIdx.x; i < variables; i += (int64_t) blockDim.x) {
		double sum = 0;
		for (int64_t at = i > 0 ? ends[i - 1] : 0; at < ends[i]; at++)
			sum += squares[at];
		sums[i] = sum;
	}
	__syncthreads();
	if (threadIdx.x != 0)
		return;
	double all = 0;
	int64_t bad = -1;
	for (int64_t i = 0; i < variables; i++) {
		if (bad < 0 && !(absolute(sums[i]) < (double) INFINITY))
			bad = i;
		all += sums[i];
	}
	const double norm = sqrt(all) / scale;
	const bool finite = bad < 0 && (clip == 0 || norm < (double) INFINITY);
	const double factor = clip > 0 && norm > clip ? 1 / scale * (clip / norm) : 1 / scale;
	out[0] = finite || any ? factor : 0;
	out[1] = finite || any ? 0 : 1;
	out[2] = all;
	out[3] = (double) bad;
}

static size_t gate_scratch(const choir_kernel_call *c)
{
	return (size_t) elements(c->in[1]) * sizeof(double);
}

static choir_status run_update_gate(const choir_kernel_call *c)
{
	const choir_update_gate_attributes *a = (const choir_update_gate_attributes *) c->attributes;
	return launch(stream_of(c->stream), 1, THREADS, update_gate_kernel,
			(const double *) c->in[0].data, (const int64_t *) c->in[1].data, (double *) c->scratch,
			elements(c->in[1]), (double *) c->out->data, a->scale, a->clip, a->any);
}

static const kernel kernels[] = {
	{ "sgd_update", REAL, run_real<updating<sgd>>, NULL, NULL },
	{ "momentum_update", REAL, run_real<updating<momentum>>, NULL, NULL },
	{ "adam_update", REAL, run_real<updating<adam>>, NULL, NULL },
	{ "rmsprop_update", REAL, run_real<updating<rmsprop>>, NULL, NULL },
	{ "nadam_update", REAL, run_real<updating<nadam>>, NULL, NULL },
	{ "adagrad_update", REAL, run_real<updating<adagrad>>, NULL, NULL },
	{ "lion_update", REAL, run_real<updating<lion>>, NULL, NULL },
	{ "lamb_update", REAL, run_real<lamb>, lamb_scratch, NULL },
	{ "update_gate", F64, run_update_gate, gate_scratch, NULL },
};
const kernel_list update_kernels = list_of(kernels);

} // namespace choir_cuda
