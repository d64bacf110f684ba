// Normalization by rows (layer norm, RMS norm) and by channels over a batch. Sums are in f64 and
// their order depends on the shape alone.
#include "block_reduce.h"
#include "device_math.h"

namespace choir_cuda
{

enum { COLUMNS = 32, LANES = THREADS / COLUMNS, ROWS = 64, MAX_PARTS = 256 };

static const choir_norm_attributes *attributes_of(const choir_kernel_call *c)
{
	return attributes<choir_norm_attributes>(c);
}

// ---- By rows: a block for each row.

template <class T>
__global__ void row_moments_kernel(
		const T *x, output<T> out, int64_t n, double epsilon, bool centered)
{
	const T *row = x + (int64_t) blockIdx.x * n;
	double sum = 0, squares = 0;
	EACH_IN_ROW(j, n)
	sum += (double) row[j];
	const double mean = centered ? block_sum(sum) / (double) n : 0;
	EACH_IN_ROW(j, n)
	squares += ((double) row[j] - mean) * ((double) row[j] - mean);
	const double variance = block_sum(squares) / (double) n;
	if (threadIdx.x != 0)
		return;
	out.set(2 * (int64_t) blockIdx.x, mean);
	out.set(2 * (int64_t) blockIdx.x + 1, 1 / sqrt(variance + epsilon));
}

KERNEL(row_moments)
{
	return launch_rows(c, row_moments_kernel<T>, given<T>(c, 0), output_of<T>(*c->out),
			width_of(c), attributes_of(c)->epsilon, attributes_of(c)->centered);
}

template <class T>
__global__ void row_norm_kernel(const T *x, input<T> scale, input<T> offset, bool offsets,
		input<T> moments, T *out, int64_t n)
{
	const int64_t row = (int64_t) blockIdx.x;
	const real<T> mean = moments[2 * row], factor = moments[2 * row + 1];
	EACH_IN_ROW(j, n)
	{
		const real<T> z = ((real<T>) x[row * n + j] - mean) * factor;
		out[row * n + j] = (T) (z * scale[j] + (offsets ? offset[j] : 0));
	}
}

KERNEL(row_norm)
{
	return launch_rows(c, row_norm_kernel<T>, given<T>(c, 0), input_of<T>(c->in[1]),
			input_of<T>(c->in[2]), c->n > 3, input_of<T>(c->in[c->n - 1]), made<T>(c),
			width_of(c));
}

template <class T>
__global__ void row_norm_gradient_kernel(const T *x, input<T> scale, input<T> moments, input<T> dy,
		output<T> out, int64_t n, bool centered)
{
	const int64_t row = (int64_t) blockIdx.x, first = row * n;
	const real<T> mean = moments[2 * row], factor = moments[2 * row + 1];
	double plain = 0, normal = 0;
	EACH_IN_ROW(j, n)
	{
		const real<T> g = dy[first + j] * scale[j];
		plain += (double) g;
		normal += (double) g * (double) (((real<T>) x[first + j] - mean) * factor);
	}
	const real<T> level = centered ? (real<T>) (block_sum(plain) / (double) n) : 0;
	const real<T> tilt = (real<T>) (block_sum(normal) / (double) n) * factor;
	EACH_IN_ROW(j, n)
	out.set(first + j,
			factor * (dy[first + j] * scale[j] - level - ((real<T>) x[first + j] - mean) * tilt));
}

KERNEL(row_norm_gradient)
{
	return launch_rows(c, row_norm_gradient_kernel<T>, given<T>(c, 0), input_of<T>(c->in[1]),
			input_of<T>(c->in[2]), input_of<T>(c->in[3]), output_of<T>(*c->out), width_of(c),
			attributes_of(c)->centered);
}

// ---- Sums of columns: a block adds COLUMNS columns of a part of the rows, and a second kernel
// adds the parts. A functor gives the two terms of an element.

template <class T> struct row_terms { // of "row_norm_sums"
	using reads_only = void;
	const T *x;
	input<T> moments, dy;
	__device__ void prepare(int64_t) {}
	__device__ void add(int64_t row, int64_t at, double *a, double *b) const
	{
		const real<T> z = ((real<T>) x[at] - moments[2 * row]) * moments[2 * row + 1];
		*a += (double) dy[at] * (double) z;
		*b += (double) dy[at];
	}
};

template <class T> struct square_terms { // of "channel_sums"
	using reads_only = void;
	const T *x;
	__device__ void prepare(int64_t) {}
	__device__ void add(int64_t, int64_t at, double *a, double *b) const
	{
		*a += (double) x[at];
		*b += (double) x[at] * (double) x[at];
	}
};

template <class T> struct channel_terms { // of "channel_norm_sums"
	using reads_only = void;
	const T *x;
	const double *moments;
	input<T> dy;
	int64_t n;
	double epsilon;
	real<T> mean, factor;
	__device__ void prepare(int64_t j)
	{
		mean = (real<T>) moments[j];
		factor = (real<T>) (1 / sqrt(moments[n + j] + epsilon));
	}
	__device__ void add(int64_t, int64_t at, double *a, double *b) const
	{
		*a += (double) dy[at] * (double) (((real<T>) x[at] - mean) * factor);
		*b += (double) dy[at];
	}
};

template <class F>
__global__ void column_parts_kernel(F terms, double *parts, int64_t rows, int64_t n, int64_t each)
{
	__shared__ double all[2][LANES][COLUMNS];
	const int x = (int) threadIdx.x % COLUMNS, y = (int) threadIdx.x / COLUMNS;
	const int64_t j = (int64_t) blockIdx.x * COLUMNS + x;
	const int64_t first = (int64_t) blockIdx.y * each;
	const int64_t last = first + each < rows ? first + each : rows;
	double a = 0, b = 0;
	if (j < n) {
		terms.prepare(j);
		for (int64_t row = first + y; row < last; row += LANES)
			terms.add(row, row * n + j, &a, &b);
	}
	all[0][y][x] = a;
	all[1][y][x] = b;
	__syncthreads();
	if (y > 1 || j >= n)
		return;
	double sum = 0;
	for (int lane = 0; lane < LANES; lane++)
		sum += all[y][lane][x];
	parts[((int64_t) blockIdx.y * 2 + y) * n + j] = sum;
}

template <class T>
__global__ void column_sums_kernel(const double *parts, output<T> out, int64_t n, int count)
{
	EACH (j, 2 * n) {
		double sum = 0;
		for (int part = 0; part < count; part++)
			sum += parts[part * 2 * n + j];
		out.set(j, sum);
	}
}

// Rows of a part.
static int64_t rows_each(int64_t rows)
{
	const int64_t each = (rows + MAX_PARTS - 1) / MAX_PARTS;
	return each < ROWS ? (int64_t) ROWS : each;
}

static int64_t parts_of(int64_t rows)
{
	return (rows + rows_each(rows) - 1) / rows_each(rows);
}

static size_t column_scratch(const choir_kernel_call *c)
{
	const int64_t n = width_of(c);
	return (size_t) (parts_of(elements(c->in[0]) / n) * 2 * n) * sizeof(double);
}

template <class... P, class... A>
static choir_status launch_columns(
		const choir_kernel_call *c, void (*kernel)(P...), A... arguments)
{
	const int64_t n = width_of(c), rows = elements(c->in[0]) / n;
	const dim3 grid((unsigned) ((n + COLUMNS - 1) / COLUMNS), (unsigned) parts_of(rows));
	return launch(
			stream_of(c->stream), grid, THREADS, kernel, arguments..., rows, n, rows_each(rows));
}

template <class T, class F>
static choir_status sum_columns(const choir_kernel_call *c, const F &terms)
{
	const int64_t n = width_of(c);
	CHOIR_TRY(launch_columns(c, column_parts_kernel<F>, terms, (double *) c->scratch));
	return launch_each(c, 2 * n, column_sums_kernel<T>, (const double *) c->scratch,
			output_of<T>(*c->out), n, (int) parts_of(elements(c->in[0]) / n));
}

KERNEL(row_norm_sums)
{
	return sum_columns<T>(
			c, row_terms<T>{ given<T>(c, 0), input_of<T>(c->in[1]), input_of<T>(c->in[2]) });
}

__global__ void set_kernel(double *to, double value)
{
	*to = value;
}

KERNEL(channel_sums)
{
	const int64_t n = width_of(c);
	CHOIR_TRY(sum_columns<double>(c, square_terms<T>{ given<T>(c, 0) }));
	return launch(stream_of(c->stream), 1, 1, set_kernel, made<double>(c) + 2 * n,
			(double) (elements(c->in[0]) / n));
}

KERNEL(channel_norm_sums)
{
	channel_terms<T> terms = {};
	terms.x = given<T>(c, 0);
	terms.moments = given<double>(c, 1);
	terms.dy = input_of<T>(c->in[2]);
	terms.n = width_of(c);
	terms.epsilon = attributes_of(c)->epsilon;
	return sum_columns<double>(c, terms);
}

// ---- By channels.

__global__ void channel_moments_kernel(const double *sums, double *out, int64_t n)
{
	const double rows = sums[2 * n];
	EACH (j, n) {
		const double mean = rows > 0 ? sums[j] / rows : 0;
		const double variance = rows > 0 ? sums[n + j] / rows - mean * mean : 0;
		out[j] = mean;
		out[n + j] = variance < 0 ? 0 : variance; // a NAN stays
		if (j == 0)
			out[2 * n] = rows;
	}
}

static choir_status run_channel_moments(const choir_kernel_call *c)
{
	const int64_t n = (elements(*c->out) - 1) / 2;
	return launch_each(c, n, channel_moments_kernel, given<double>(c, 0), made<double>(c), n);
}

template <class T>
__global__ void channel_norm_kernel(const T *x, input<T> scale, input<T> offset,
		const double *moments, T *out, double epsilon, int64_t rows, int64_t n, int64_t each)
{
	const int64_t j = (int64_t) blockIdx.x * COLUMNS + threadIdx.x % COLUMNS;
	const int64_t first = (int64_t) blockIdx.y * each;
	const int64_t last = first + each < rows ? first + each : rows;
	if (j >= n)
		return;
	const real<T> mean = (real<T>) moments[j], plus = offset[j];
	const real<T> by = (real<T>) ((double) scale[j] / sqrt(moments[n + j] + epsilon));
	for (int64_t row = first + threadIdx.x / COLUMNS; row < last; row += LANES)
		out[row * n + j] = (T) (((real<T>) x[row * n + j] - mean) * by + plus);
}

KERNEL(channel_norm)
{
	return launch_columns(c, channel_norm_kernel<T>, given<T>(c, 0), input_of<T>(c->in[1]),
			input_of<T>(c->in[2]), given<double>(c, 3), made<T>(c), attributes_of(c)->epsilon);
}

template <class T>
__global__ void channel_norm_gradient_kernel(const T *x, input<T> scale, const double *moments,
		input<T> dy, const double *total, output<T> out, double epsilon, int64_t rows, int64_t n,
		int64_t each)
{
	const int64_t j = (int64_t) blockIdx.x * COLUMNS + threadIdx.x % COLUMNS;
	const int64_t first = (int64_t) blockIdx.y * each;
	const int64_t last = first + each < rows ? first + each : rows;
	if (j >= n)
		return;
	const double factor = 1 / sqrt(moments[n + j] + epsilon), all = moments[2 * n];
	const real<T> mean = (real<T>) moments[j], by = (real<T>) ((double) scale[j] * factor);
	const real<T> tilt = (real<T>) (total[j] / all * factor);
	const real<T> level = (real<T>) (total[n + j] / all);
	for (int64_t row = first + threadIdx.x / COLUMNS; row < last; row += LANES) {
		const int64_t at = row * n + j;
		out.set(at, by * (dy[at] - level - ((real<T>) x[at] - mean) * tilt));
	}
}

KERNEL(channel_norm_gradient)
{
	return launch_columns(c, channel_norm_gradient_kernel<T>, given<T>(c, 0),
			input_of<T>(c->in[1]), given<double>(c, 2), input_of<T>(c->in[3]), given<double>(c, 4),
			output_of<T>(*c->out), attributes_of(c)->epsilon);
}

static const kernel kernels[] = {
	{ "row_moments", FLOATS, run_float<row_moments> },
	{ "row_norm", FLOATS, run_float<row_norm> },
	{ "row_norm_gradient", FLOATS, run_float<row_norm_gradient> },
	{ "row_norm_sums", FLOATS, run_float<row_norm_sums>, column_scratch },
	{ "channel_sums", FLOATS, run_float<channel_sums>, column_scratch },
	{ "channel_moments", F64, run_channel_moments },
	{ "channel_norm", FLOATS, run_float<channel_norm> },
	{ "channel_norm_sums", FLOATS, run_float<channel_norm_sums>, column_scratch },
	{ "channel_norm_gradient", FLOATS, run_float<channel_norm_gradient> },
};
const kernel_list norm_kernels = list_of(kernels);

} // namespace choir_cuda
