// A block of tiles is transformed, multiplied and transformed back in the cache, four of sixteen
// points at a time.
#include "op/winograd/winograd.h"

#include "base/instruction_set.h"
#include "base/thresholds.h"
#include "op/op.h"

#include <string.h>

#ifdef CHI_HAS_X86_KERNELS
enum {
	SCORE = 20, // above oneDNN's
	BLOCK = 8 << 10, // floats of x in L1, for four points
	MAX_TILES = 128,
	LINE = 16 // floats: points use different cache sets
};

static const chi_winograd_loops *best(void)
{
	return chi_instruction_set_use() == CHI_INSTRUCTION_SET_AVX512	? &chi_winograd_avx512
			: chi_instruction_set_use() == CHI_INSTRUCTION_SET_AVX2 ? &chi_winograd_avx2
																	: NULL;
}

typedef struct {
	int64_t n, h, w, c, oh, ow, out;
	int64_t top, left; // zeros before x
	int64_t rows, columns, tiles;
	int64_t block;
} geometry;

static geometry geometry_of(const choir_shape *x, const choir_shape *y, int top, int left)
{
	const int64_t *xd = x->dim, *yd = y->dim;
	geometry g = { .n = xd[0],
		.h = xd[1],
		.w = xd[2],
		.c = xd[3],
		.oh = yd[1],
		.ow = yd[2],
		.out = yd[3],
		.top = top,
		.left = left,
		.rows = (yd[1] + 1) / 2,
		.columns = (yd[2] + 1) / 2 };
	g.tiles = g.n * g.rows * g.columns;
	g.block = BLOCK / 4 / g.c / CHI_WINOGRAD_ROWS * CHI_WINOGRAD_ROWS;
	if (g.block < CHI_WINOGRAD_ROWS)
		g.block = CHI_WINOGRAD_ROWS;
	if (g.block > MAX_TILES)
		g.block = MAX_TILES;
	return g;
}

// With the rotated filter; dy is its x.
static geometry geometry_of_input(const choir_kernel_call *call)
{
	const choir_conv2d_attributes *a = call->attributes;
	return geometry_of(&call->in[1].shape, &call->out->shape, 2 - a->top, 2 - a->left);
}

static geometry geometry_of_output(
		const choir_kernel_call *call, const choir_shape *x, const choir_shape *y)
{
	const choir_conv2d_attributes *a = call->attributes;
	return geometry_of(x, y, a->top, a->left);
}

static int score_of(const choir_kernel_call *call, const choir_shape *filter, const geometry *g)
{
	const choir_conv2d_attributes *a = call->attributes;
	const chi_winograd_loops *loops = best();
	if (loops == NULL || a->stride != 1 || a->dilation != 1 || a->groups != 1 ||
			filter->dim[0] != 3 || filter->dim[1] != 3)
		return 0;
	const bool whole = g->c % loops->width == 0 && g->out % loops->width == 0;
	return whole && g->c * g->out >= CHI_WINOGRAD_MIN_CHANNELS &&
					g->c * g->out <= CHI_WINOGRAD_MAX_CHANNELS &&
					g->tiles >= CHI_WINOGRAD_MIN_TILES
			? SCORE
			: 0;
}

static int64_t apart(int64_t n)
{
	return n + LINE;
}

static int64_t padded(int64_t n)
{
	return CHI_WINOGRAD_PLACES * apart(n);
}

static int64_t padded_rows(int64_t n)
{
	return 4 * apart(n);
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void find_input(const geometry *g, const float *x, int64_t tile, const float *zeros,
		const float *pixel[16])
{
	const int64_t image = tile / (g->rows * g->columns), in_image = tile % (g->rows * g->columns);
	const int64_t row = 2 * (in_image / g->columns) - g->top;
	const int64_t column = 2 * (in_image % g->columns) - g->left;
	const int64_t first = ((image * g->h + row) * g->w + column) * g->c;
	const bool whole = row >= 0 && row + 4 <= g->h && column >= 0 && column + 4 <= g->w;
	for (int64_t i = 0; i < 4; i++)
		for (int64_t j = 0; j < 4; j++) {
			const int64_t r = row + i, s = column + j;
			const bool inside = whole || (r >= 0 && r < g->h && s >= 0 && s < g->w);
			pixel[4 * i + j] = inside ? x + first + (i * g->w + j) * g->c : zeros;
		}
}

// 2 x 2 pixels; CHOIR_NONE: outside y.
static void find_output(const geometry *g, int64_t tile, int64_t at[4])
{
	const int64_t image = tile / (g->rows * g->columns), in_image = tile % (g->rows * g->columns);
	const int64_t row = 2 * (in_image / g->columns), column = 2 * (in_image % g->columns);
	for (int64_t i = 0; i < 4; i++) {
		const int64_t r = row + i / 2, s = column + i % 2;
		at[i] = r < g->oh && s < g->ow ? ((image * g->oh + r) * g->ow + s) * g->out : CHOIR_NONE;
	}
}

typedef struct {
	geometry g;
	const chi_winograd_loops *loops;
	const float *x, *bias;
	float *y;
	bool relu;
	float *u;
	float *turned;
	float *v, *m;
	float *zeros, *outside; // pixels of x and y
} job;

static size_t scratch_of(const geometry *g)
{
	const int64_t all = padded(g->c * g->out) + 9 * g->c * g->out + padded_rows(g->block * g->c) +
			padded(g->block * g->out) + g->c + g->out;
	return (size_t) all * sizeof(float);
}

static void lay_out(job *j, void *scratch)
{
	const geometry *g = &j->g;
	j->u = scratch;
	j->turned = j->u + padded(g->c * g->out);
	j->v = j->turned + 9 * g->c * g->out;
	j->m = j->v + padded_rows(g->block * g->c);
	j->zeros = j->m + padded(g->block * g->out);
	j->outside = j->zeros + g->c;
	memset(j->zeros, 0, (size_t) g->c * sizeof *j->zeros);
}

static void run_block(const job *j, int64_t first, int64_t count)
{
	const geometry *g = &j->g;
	const int64_t v_apart = apart(g->block * g->c), m_apart = apart(g->block * g->out);
	const float *x[MAX_TILES][16];
	for (int64_t t = 0; t < count; t++)
		find_input(g, j->x, first + t, j->zeros, x[t]);
	// Rows after the last tile are uninitialised and unused.
	const int64_t rows = (count + CHI_WINOGRAD_ROWS - 1) / CHI_WINOGRAD_ROWS * CHI_WINOGRAD_ROWS;
	for (int row = 0; row < 4; row++) {
		for (int64_t t = 0; t < count; t++)
			j->loops->input(j->v + t * g->c, v_apart, x[t], row, g->c);
		for (int64_t i = 0, k = 4 * row; i < 4; i++, k++)
			j->loops->gemm(j->m + k * m_apart, j->v + i * v_apart, j->u + k * apart(g->c * g->out),
					rows, g->c, g->out);
	}
	for (int64_t t = 0; t < count; t++) {
		int64_t at[4];
		float *pixel[4];
		find_output(g, first + t, at);
		for (int i = 0; i < 4; i++)
			pixel[i] = at[i] == CHOIR_NONE ? j->outside : j->y + at[i];
		j->loops->output(pixel, j->m + t * g->out, m_apart, j->bias, j->relu, g->out);
	}
}

static void run_job(const job *j, const float *filter)
{
	const geometry *g = &j->g;
	j->loops->filter(j->u, apart(g->c * g->out), filter, g->c * g->out);
	for (int64_t first = 0; first < g->tiles; first += g->block)
		run_block(j, first, g->tiles - first < g->block ? g->tiles - first : g->block);
}

static choir_status run_conv2d(const choir_kernel_call *call)
{
	const choir_conv2d_attributes *a = call->attributes;
	job j = { .g = geometry_of_output(call, &call->in[0].shape, &call->out->shape),
		.loops = best(),
		.x = call->in[0].data,
		.bias = call->n > 2 ? call->in[2].data : NULL,
		.y = call->out->data,
		.relu = a->activation == CHOIR_RELU };
	lay_out(&j, call->scratch);
	run_job(&j, call->in[1].data);
	return CHOIR_OK;
}

// By 180 degrees, [3, 3, c, out] to [3, 3, out, c].
static void turn(float *to, const float *filter, int64_t c, int64_t out)
{
	for (int64_t place = 0; place < 9; place++, filter += c * out)
		for (int64_t o = 0; o < out; o++)
			for (int64_t i = 0; i < c; i++)
				to[((8 - place) * out + o) * c + i] = filter[i * out + o];
}

static choir_status run_gradient_input(const choir_kernel_call *call)
{
	job j = {
		.g = geometry_of_input(call), .loops = best(), .x = call->in[1].data, .y = call->out->data
	};
	lay_out(&j, call->scratch);
	turn(j.turned, call->in[0].data, j.g.out, j.g.c);
	run_job(&j, j.turned);
	return CHOIR_OK;
}

typedef struct {
	geometry g;
	const chi_winograd_loops *loops;
	const float *x, *dy;
	float *u;
	float *v, *w;
	float *zeros;
} gradient;

static void add_block(const gradient *d, int64_t first, int64_t count)
{
	const geometry *g = &d->g;
	const int64_t v_apart = apart(g->block * g->c), w_apart = apart(g->block * g->out);
	const float *x[MAX_TILES][16], *dy[MAX_TILES][4];
	for (int64_t t = 0; t < count; t++) {
		int64_t at[4];
		find_input(g, d->x, first + t, d->zeros, x[t]);
		find_output(g, first + t, at);
		for (int i = 0; i < 4; i++)
			dy[t][i] = at[i] == CHOIR_NONE ? d->zeros : d->dy + at[i];
	}
	for (int row = 0; row < 4; row++) {
		for (int64_t t = 0; t < count; t++) {
			d->loops->input(d->v + t * g->c, v_apart, x[t], row, g->c);
			d->loops->gradient(d->w + t * g->out, w_apart, dy[t], row, g->out);
		}
		for (int64_t i = 0, k = 4 * row; i < 4; i++, k++)
			d->loops->add_gemm(d->u + k * apart(g->c * g->out), d->v + i * v_apart,
					d->w + i * w_apart, count, g->c, g->out);
	}
}

static choir_status run_gradient_filter(const choir_kernel_call *call)
{
	gradient d = { .g = geometry_of_output(call, &call->in[0].shape, &call->in[1].shape),
		.loops = best(),
		.x = call->in[0].data,
		.dy = call->in[1].data,
		.u = call->scratch };
	const geometry *g = &d.g;
	const int64_t n = g->c * g->out;
	d.v = d.u + padded(n);
	d.w = d.v + padded_rows(g->block * g->c);
	d.zeros = d.w + padded_rows(g->block * g->out);
	memset(d.u, 0, (size_t) padded(n) * sizeof *d.u);
	memset(d.zeros, 0, (size_t) larger(g->c, g->out) * sizeof *d.zeros);
	for (int64_t first = 0; first < g->tiles; first += g->block)
		add_block(&d, first, g->tiles - first < g->block ? g->tiles - first : g->block);
	d.loops->filter_gradient(call->out->data, d.u, apart(n), n);
	return CHOIR_OK;
}

static int score_conv2d(const choir_kernel_call *call)
{
	const choir_conv2d_attributes *a = call->attributes;
	const geometry g = geometry_of_output(call, &call->in[0].shape, &call->out->shape);
	return a->activation > CHOIR_RELU ? 0 : score_of(call, &call->in[1].shape, &g);
}

static size_t scratch_conv2d(const choir_kernel_call *call)
{
	const geometry g = geometry_of_output(call, &call->in[0].shape, &call->out->shape);
	return scratch_of(&g);
}

static int score_gradient_input(const choir_kernel_call *call)
{
	const geometry g = geometry_of_input(call);
	return score_of(call, &call->in[0].shape, &g);
}

static size_t scratch_gradient_input(const choir_kernel_call *call)
{
	const geometry g = geometry_of_input(call);
	return scratch_of(&g);
}

static int score_gradient_filter(const choir_kernel_call *call)
{
	const geometry g = geometry_of_output(call, &call->in[0].shape, &call->in[1].shape);
	return score_of(call, &call->out->shape, &g);
}

static size_t scratch_gradient_filter(const choir_kernel_call *call)
{
	const geometry g = geometry_of_output(call, &call->in[0].shape, &call->in[1].shape);
	const int64_t all = padded(g.c * g.out) + padded_rows(g.block * g.c) +
			padded_rows(g.block * g.out) + larger(g.c, g.out);
	return (size_t) all * sizeof(float);
}

static const chi_kernel_spec specs[] = {
	{ "conv2d", CHI_F32, sizeof(choir_conv2d_attributes), run_conv2d, scratch_conv2d, score_conv2d,
			NULL },
	{ "conv2d_gradient_input", CHI_F32, sizeof(choir_conv2d_attributes), run_gradient_input,
			scratch_gradient_input, score_gradient_input, NULL },
	{ "conv2d_gradient_filter", CHI_F32, sizeof(choir_conv2d_attributes), run_gradient_filter,
			scratch_gradient_filter, score_gradient_filter, NULL },
};

chi_kernel_list chi_winograd_list(size_t index)
{
	const chi_kernel_list list = { specs, sizeof specs / sizeof specs[0] };
	return index == 0 ? list : (chi_kernel_list){ NULL, 0 };
}
#else
chi_kernel_list chi_winograd_list(size_t index)
{
	(void) index;
	return (chi_kernel_list){ NULL, 0 };
}
#endif
