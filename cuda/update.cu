// Updates of optimizers: the formulas of src/op/plain/update_loops.inc, in the same order of
// operations, so that they give the CPU's bits, but for the norms of "lamb_update". "update_gate"
// decides on the device whether and by which factor the updates write.
#include "block_reduce.h"
#include "device_math.h"

namespace choir_cuda
{

struct update {
	using reads_only = void;
	choir_update_attributes a;

	__device__ bool is_refused() const
	{
		return a.gate != nullptr && a.gate[1] != 0;
	}
	__device__ double scale() const
	{
		return a.gate != nullptr ? a.gradient_scale * a.gate[0] : a.gradient_scale;
	}
};

static update update_of(const choir_kernel_call *c)
{
	return { *attributes<choir_update_attributes>(c) };
}

// The steps of an element. A weight has up to two slots, a and b. kept: the weight after its
// decay. g: the scaled gradient.
#define STEP(name) \
	struct name { \
		template <class T> \
		static __device__ inline void step( \
				T &w, T &a, T &b, T g, T rate, T kept, const choir_update_attributes &u); \
	}; \
	template <class T> \
	__device__ inline void name::step( \
			T &w, T &a, T &b, T g, T rate, T kept, const choir_update_attributes &u)

STEP(sgd)
{
	(void) a, (void) b, (void) u;
	w = kept - rate * g;
}

STEP(momentum)
{
	(void) b;
	a = (T) u.momentum * a - rate * g;
	w = kept + ((T) (u.nesterov ? u.momentum : 1) * a - (T) (u.nesterov ? u.rate : 0) * g);
}

// The moments of "adam_update" and others.
template <class T>
__device__ inline void move_moments(T &m, T &v, T g, const choir_update_attributes &u)
{
	m = m + (g - m) * (T) (1 - u.beta1);
	v = v + (g * g - v) * (T) (1 - u.beta2);
}

STEP(adam)
{
	(void) rate;
	move_moments(a, b, g, u);
	w = kept - (T) (u.rate * u.correction) * a / (square_root(b) + (T) u.epsilon);
}

STEP(rmsprop)
{
	a = (T) u.rho * a + (T) (1 - u.rho) * (g * g);
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
	w = kept - rate * g / square_root(a + (T) (u.initial_accumulator + u.epsilon));
}

STEP(lion)
{
	(void) b;
	const T to = a + (g - a) * (T) (1 - u.beta1);
	a += (g - a) * (T) (1 - u.beta2);
	w = kept - (to > 0 ? rate : to < 0 ? -rate : 0);
}
#undef STEP

// A row of blocks updates a variable.
template <class T> struct update_targets {
	T *w[MANY], *a[MANY], *b[MANY];
};

template <class T> struct update_sources {
	using reads_only = void;
	const T *g[MANY];
	int64_t n[MANY];
};

template <class T, class F>
__global__ void update_kernel(update_targets<T> to, update_sources<T> from, update u)
{
	if (u.is_refused())
		return;
	const unsigned v = blockIdx.y;
	const T by = (T) u.scale(), decay = (T) (u.a.rate * u.a.decay), rate = (T) u.a.rate;
	T *a = to.a[v], *b = to.b[v];
	EACH (i, from.n[v]) {
		T none = 0, value = to.w[v][i];
		F::step(value, a != nullptr ? a[i] : none, b != nullptr ? b[i] : none, by * from.g[v][i],
				rate, value - decay * value, u.a);
		to.w[v][i] = value;
	}
}

template <class F> struct updating {
	enum { ATTRIBUTES = sizeof(choir_update_attributes) };
	template <class T> static choir_status run(const choir_kernel_call *c, size_t count)
	{
		update_targets<T> to = {};
		update_sources<T> from = {};
		int64_t most = 0;
		for (size_t i = 0; i < count; i++) {
			const choir_buffer *in = c[i].in;
			to.w[i] = (T *) in[0].data;
			to.a[i] = c->n > 2 ? (T *) in[1].data : NULL;
			to.b[i] = c->n > 3 ? (T *) in[2].data : NULL;
			from.g[i] = (const T *) in[c->n - 1].data;
			from.n[i] = elements(in[0]);
			most = from.n[i] > most ? from.n[i] : most;
		}
		return launch(stream_of(c->stream), dim3(grid_for(most), (unsigned) count), THREADS,
				update_kernel<T, F>, to, from, update_of(c));
	}
};

enum { MAX_PARTS = 256 };

// The step of "lamb_update" without its norms.
template <class T> __device__ inline T lamb_step(T w, T m, T v, const update &u)
{
	return (T) u.a.m_factor * m / (square_root((T) u.a.v_factor * v) + (T) u.a.epsilon) +
			(T) u.a.decay * w;
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
		move_moments(m[i], v[i], gradient, u.a);
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
	const T rate = (T) (u.a.rate * (of_w > 0 && of_step > 0 ? of_w / of_step : 1));
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

KERNEL(lamb)
{
	const int64_t n = elements(c->in[0]), each = lamb_each(n), parts = (n + each - 1) / each;
	T *w = (T *) c->in[0].data, *m = (T *) c->in[1].data, *v = (T *) c->in[2].data;
	double *sums = (double *) c->scratch;
	CHOIR_TRY(launch(stream_of(c->stream), (unsigned) parts, THREADS, lamb_parts_kernel<T>,
			(const T *) w, m, v, given<T>(c, 3), n, each, update_of(c), sums));
	return launch_each(c, n, lamb_kernel<T>, w, (const T *) m, (const T *) v,
			(const double *) sums, (int) parts, n, update_of(c));
}

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
	const auto *a = attributes<choir_update_gate_attributes>(c);
	return launch(stream_of(c->stream), 1, THREADS, update_gate_kernel, given<double>(c, 0),
			given<int64_t>(c, 1), (double *) c->scratch, elements(c->in[1]), made<double>(c),
			a->scale, a->clip, a->any);
}

static const kernel kernels[] = {
	LISTED("sgd_update", updating<sgd>),
	LISTED("momentum_update", updating<momentum>),
	LISTED("adam_update", updating<adam>),
	LISTED("rmsprop_update", updating<rmsprop>),
	LISTED("nadam_update", updating<nadam>),
	LISTED("adagrad_update", updating<adagrad>),
	LISTED("lion_update", updating<lion>),
	{ "lamb_update", REAL, run_real<lamb>, lamb_scratch },
	{ "update_gate", F64, run_update_gate, gate_scratch },
};
const kernel_list update_kernels = list_of(kernels);

} // namespace choir_cuda
