// oneDNN's kernels for f32, and for bf16 if the processor multiplies it. Unsupported problems
// score 0.
#include "op/onednn/onednn.h"

#ifdef CHI_HAS_ONEDNN
#include "base/atomic.h"
#include "base/status.h"
#include "base/team.h"
#include "base/thresholds.h"
#include "op/kernel/parallel.h"
#include "op/onednn/onednn_cache.h"
#include "op/onednn/onednn_recurrent.h"
#include "op/plain/attention_kernel.h"
#include "op/plain/gemm.h"
#include "op/plain/recurrent_kernel.h"

#include <string.h>

enum { SCORE = 10, NATIVE_SCORE = 30 };

// A foreign mixture is not supported.
static uint8_t dtypes_of(const choir_kernel_call *call)
{
	if (call->in[0].dtype == CHOIR_F32)
		return CHI_DNN_F32;
	return call->out->dtype == CHOIR_F32 ? CHI_DNN_BF16_TO_F32 : CHI_DNN_BF16;
}

static chi_dnn_problem matmul_problem(const choir_kernel_call *call)
{
	const choir_matmul_attributes *attributes = call->attributes;
	const choir_shape *a = &call->in[0].shape, *b = &call->in[1].shape;
	const int64_t *ad = a->dim + a->rank - 2, *bd = b->dim + b->rank - 2;
	const bool at = attributes->transposed == CHOIR_TRANSPOSED_A;
	const bool bt = attributes->transposed == CHOIR_TRANSPOSED_B;
	chi_dnn_problem p = { .kind = CHI_DNN_MATMUL, .dtypes = dtypes_of(call) };
	p.a_transposed = at;
	p.b_transposed = bt;
	p.m = at ? ad[1] : ad[0];
	p.k = at ? ad[0] : ad[1];
	p.n = bt ? bd[0] : bd[1];
	int64_t batch = 1;
	for (int i = 0; i < a->rank - 2; i++)
		batch *= a->dim[i];
	if (b->rank == 2 && !at)
		p.m *= batch;
	else if (batch != 1 || b->rank > 2)
		p.batch = batch;
	p.b_batch = b->rank > 2 ? p.batch : p.batch > 0;
	return p;
}

static chi_dnn_problem dense_problem(const choir_kernel_call *call)
{
	const choir_buffer *in = call->in;
	chi_dnn_problem p = { .kind = CHI_DNN_MATMUL, .dtypes = dtypes_of(call) };
	p.k = in[1].shape.dim[0];
	p.m = chi_elements(&in[0]) / p.k;
	p.n = in[1].shape.dim[1];
	p.bias = call->n > 2;
	return p;
}

static chi_dnn_problem convolution_problem(chi_dnn_kind kind, const choir_conv2d_attributes *a,
		const choir_shape *x, const choir_shape *filter, const choir_shape *y)
{
	return (chi_dnn_problem){
		.kind = (int32_t) kind,
		.images = x->dim[0],
		.h = x->dim[1],
		.w = x->dim[2],
		.c = x->dim[3],
		.kh = filter->dim[0],
		.kw = filter->dim[1],
		.out = filter->dim[3],
		.oh = y->dim[1],
		.ow = y->dim[2],
		.stride = a->stride,
		.top = a->top,
		.left = a->left,
		.bottom = a->bottom,
		.right = a->right,
		.dilation = a->dilation,
		.groups = a->groups,
	};
}

static chi_dnn_problem conv2d_problem(const choir_kernel_call *call)
{
	const choir_conv2d_attributes *attributes = call->attributes;
	chi_dnn_problem p = convolution_problem(CHI_DNN_CONVOLUTION, attributes, &call->in[0].shape,
			&call->in[1].shape, &call->out->shape);
	p.dtypes = dtypes_of(call);
	p.bias = call->n > 2;
	return p;
}

static chi_dnn_problem gradient_input_problem(const choir_kernel_call *call)
{
	chi_dnn_problem p = convolution_problem(CHI_DNN_CONVOLUTION_INPUT, call->attributes,
			&call->out->shape, &call->in[0].shape, &call->in[1].shape);
	p.dtypes = dtypes_of(call);
	return p;
}

static chi_dnn_problem gradient_filter_problem(const choir_kernel_call *call)
{
	chi_dnn_problem p = convolution_problem(CHI_DNN_CONVOLUTION_FILTER, call->attributes,
			&call->in[0].shape, &call->out->shape, &call->in[1].shape);
	p.dtypes = dtypes_of(call);
	return p;
}

// A spec's user.
typedef struct {
	chi_dnn_problem (*problem)(const choir_kernel_call *call);
	int a, b; // indices of inputs
} kernel;

static const kernel matmul = { matmul_problem, 0, 1 };
static const kernel dense = { dense_problem, 0, 1 };
static const kernel conv2d = { conv2d_problem, 0, 1 };
static const kernel gradient_input = { gradient_input_problem, 1, 0 };
static const kernel gradient_filter = { gradient_filter_problem, 0, 1 };

static choir_status find(const choir_kernel_call *call, chi_dnn **out)
{
	const kernel *k = call->user;
	const chi_dnn_problem problem = k->problem(call);
	return chi_dnn_find(&problem, out);
}

static bool is_empty(const choir_kernel_call *call)
{
	bool empty = chi_elements(call->out) == 0;
	for (size_t i = 0; i < call->n; i++)
		empty = empty || chi_elements(&call->in[i]) == 0;
	return empty;
}

// Without memory the run fails: another kernel would change the bits.
static int score(const choir_kernel_call *call)
{
	chi_dnn *d;
	return is_empty(call) || find(call, &d) == CHOIR_UNSUPPORTED ? 0 : SCORE;
}

static size_t scratch(const choir_kernel_call *call)
{
	chi_dnn *d;
	return find(call, &d) == CHOIR_OK ? chi_dnn_scratch(d) : 0;
}

static choir_status run_primitive(const chi_dnn_problem *p, const chi_dnn_operands *o)
{
	chi_dnn *d;
	const choir_status status = chi_dnn_find(p, &d);
	if (status == CHOIR_UNSUPPORTED)
		return choir_fail(status, "onednn: has no kernel for these shapes");
	CHOIR_TRY(status);
	return chi_dnn_run(d, o);
}

static choir_status run(const choir_kernel_call *call)
{
	const kernel *k = call->user;
	const chi_dnn_problem problem = k->problem(call);
	const chi_dnn_operands operands = {
		.a = call->in[k->a].data,
		.b = call->in[k->b].data,
		.bias = call->n > 2 ? call->in[2].data : NULL,
		.out = call->out->data,
		.scratch = call->scratch,
	};
	return run_primitive(&problem, &operands);
}

// Above all kernels that go through f32.
static bool is_native(const choir_kernel_call *call)
{
	return chi_onednn_has_bf16() && call->in[1].dtype == CHOIR_BF16 &&
			(call->n < 3 || call->in[2].dtype == CHOIR_F32) &&
			(call->out->dtype == CHOIR_F32 || call->out->dtype == CHOIR_BF16);
}

static int score_bf16(const choir_kernel_call *call)
{
	return is_native(call) && score(call) > 0 ? NATIVE_SCORE : 0;
}

// a^T b: sgemm is up to a quarter faster if a's rows are shorter than a page.
static bool is_gemm(const chi_dnn_problem *p)
{
	enum { PAGE = 4096 };
	return p->dtypes == CHI_DNN_F32 && p->a_transposed && p->batch == 0 &&
			p->m * (int64_t) sizeof(float) < PAGE;
}

// By a's columns, so not in op/kernel/parallel.c.
enum { CHUNK = 256, TURNED_CHUNK = 512 };

// If only a's rows are longer than a page, b^T a is transposed, except for short sums.
static bool is_turned(const chi_dnn_problem *p)
{
	enum { PAGE = 4096 };
	return p->dtypes == CHI_DNN_F32 && p->a_transposed && p->batch == 0 &&
			p->m * p->n >= CHI_DIVIDED_ELEMENTS && p->k >= CHI_TURNED_GEMM_TERMS &&
			p->m * (int64_t) sizeof(float) >= PAGE && p->n * (int64_t) sizeof(float) < PAGE;
}

static bool is_divided(const chi_dnn_problem *p)
{
	return p->a_transposed && p->batch == 0 && p->m > CHUNK && p->m * p->n >= CHI_DIVIDED_ELEMENTS;
}

static int64_t chunk_size(const chi_dnn_problem *whole)
{
	return is_turned(whole) ? TURNED_CHUNK : CHUNK;
}

// In 16 bits, oneDNN's fast kernels need a without gaps between rows. For others it allocates
// memory.
static bool is_copied(const chi_dnn_problem *whole)
{
	return whole->dtypes != CHI_DNN_F32;
}

static chi_dnn_problem chunk_of(const chi_dnn_problem *whole, int64_t chunk)
{
	chi_dnn_problem p = *whole;
	const int64_t size = chunk_size(whole), left = whole->m - chunk * size;
	p.m = left < size ? left : size;
	p.a_row = is_copied(whole) ? 0 : whole->m;
	return p;
}

static size_t copy_bytes(const chi_dnn_problem *whole)
{
	return is_copied(whole) ? chi_whole_lines((size_t) (whole->k * CHUNK) * sizeof(uint16_t)) : 0;
}

static size_t scratch_of(const chi_dnn_problem *p)
{
	chi_dnn *d;
	return chi_dnn_find(p, &d) == CHOIR_OK ? chi_whole_lines(chi_dnn_scratch(d)) : 0;
}

// The last chunk may need more than the first, though it is smaller.
static size_t chunk_scratch(const chi_dnn_problem *whole)
{
	const int64_t size = chunk_size(whole);
	const chi_dnn_problem p = chunk_of(whole, 0), last = chunk_of(whole, (whole->m - 1) / size);
	if (is_turned(whole))
		return (size_t) (TURNED_CHUNK * p.n) * sizeof(float);
	const size_t first = scratch_of(&p), other = scratch_of(&last);
	return copy_bytes(whole) + (first > other ? first : other);
}

static int score_matmul(const choir_kernel_call *call)
{
	const chi_dnn_problem p = matmul_problem(call);
	return !is_empty(call) && (is_gemm(&p) || is_turned(&p)) ? SCORE : score(call);
}

static size_t scratch_matmul(const choir_kernel_call *call)
{
	const chi_dnn_problem p = matmul_problem(call);
	if (is_gemm(&p))
		return 0;
	return is_divided(&p) ? chunk_scratch(&p) * (size_t) chi_team_own_members() : scratch(call);
}

static choir_status run_gemm(const chi_dnn_problem *p, const chi_dnn_operands *o)
{
	const chi_dnn_gemm gemm = {
		.m = p->m,
		.n = p->n,
		.k = p->k,
		.a = { o->a, p->a_row > 0 ? p->a_row : p->m, true },
		.b = { o->b, p->n, false },
		.c = o->out,
		.c_row = p->n,
	};
	return chi_dnn_multiply(&gemm);
}

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

static void turn_four(float *to, int64_t to_row, const float *from, int64_t from_row)
{
	four a[4], b[4];
	for (int i = 0; i < 4; i++)
		a[i] = *(const four *) (from + i * from_row);
	for (int i = 0; i < 2; i++) {
		b[2 * i] = __builtin_shufflevector(a[i], a[i + 2], 0, 4, 1, 5);
		b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + 2], 2, 6, 3, 7);
	}
	for (int i = 0; i < 2; i++) {
		*(four *) (to + 2 * i * to_row) = __builtin_shufflevector(b[i], b[i + 2], 0, 4, 1, 5);
		*(four *) (to + (2 * i + 1) * to_row) =
				__builtin_shufflevector(b[i], b[i + 2], 2, 6, 3, 7);
	}
}

// to [m, n] = from [n, m]^T, a cache line of n at a time.
static void turn(float *to, const float *from, int64_t m, int64_t n)
{
	enum { LINE = 16 };
	const int64_t whole = m / 4 * 4;
	for (int64_t first = 0; first < n; first += LINE) {
		const int64_t end = n - first < LINE ? n : first + LINE, fours = end - (end - first) % 4;
		for (int64_t i = 0; i < whole; i += 4)
			for (int64_t j = first; j < fours; j += 4)
				turn_four(to + i * n + j, n, from + j * m + i, m);
		for (int64_t j = first; j < end; j++)
			for (int64_t i = j < fours ? whole : 0; i < m; i++)
				to[i * n + j] = from[j * m + i];
	}
}

static choir_status run_turned(const chi_dnn_problem *p, const chi_dnn_operands *o)
{
	const chi_dnn_gemm gemm = {
		.m = p->n,
		.n = p->m,
		.k = p->k,
		.a = { o->b, p->n, true },
		.b = { o->a, p->a_row, false },
		.c = o->scratch,
		.c_row = p->m,
	};
	CHOIR_TRY(chi_dnn_multiply(&gemm));
	turn(o->out, o->scratch, p->m, p->n);
	return CHOIR_OK;
}

typedef struct {
	const choir_kernel_call *call;
	chi_dnn_problem whole;
	size_t bytes; // of each thread
	chi_atomic32 failed;
	chi_error error;
} subset;

static choir_status run_copied(
		const chi_dnn_problem *whole, const chi_dnn_problem *p, chi_dnn_operands o)
{
	uint16_t *to = o.scratch;
	const uint16_t *from = o.a;
	for (int64_t i = 0; i < p->k; i++)
		memcpy(to + i * p->m, from + i * whole->m, (size_t) p->m * sizeof *to);
	o.a = to;
	o.scratch = (char *) o.scratch + copy_bytes(whole);
	return run_primitive(p, &o);
}

static choir_status run_one(const subset *c, int member, int64_t chunk)
{
	const chi_dnn_problem p = chunk_of(&c->whole, chunk);
	const choir_kernel_call *call = c->call;
	const int64_t first = chunk * chunk_size(&c->whole);
	const chi_dnn_operands operands = {
		.a = chi_element(&call->in[0], first),
		.b = call->in[1].data,
		.out = chi_element(call->out, first * p.n),
		.scratch = c->bytes == 0 ? NULL : (char *) call->scratch + (size_t) member * c->bytes,
	};
	if (is_gemm(&c->whole))
		return run_gemm(&p, &operands);
	if (is_turned(&c->whole))
		return run_turned(&p, &operands);
	if (is_copied(&c->whole))
		return run_copied(&c->whole, &p, operands);
	return run_primitive(&p, &operands);
}

static void run_chunk(void *arg, int member, int64_t chunk)
{
	subset *c = arg;
	if (chi_atomic32_load(&c->failed) == 0 && run_one(c, member, chunk) != CHOIR_OK &&
			chi_atomic32_change(&c->failed, 0, 1))
		chi_error_save(&c->error);
}

static choir_status run_divided(const choir_kernel_call *call, const chi_dnn_problem *whole)
{
	subset c = {
		.call = call, .whole = *whole, .bytes = is_gemm(whole) ? 0 : chunk_scratch(whole)
	};
	const int64_t size = chunk_size(whole);
	CHOIR_TRY(chi_team_share((whole->m + size - 1) / size, run_chunk, &c));
	if (chi_atomic32_load(&c.failed) == 0)
		return CHOIR_OK;
	return chi_error_restore(&c.error);
}

static choir_status run_matmul(const choir_kernel_call *call)
{
	const chi_dnn_problem p = matmul_problem(call);
	const chi_dnn_operands operands = {
		.a = call->in[0].data, .b = call->in[1].data, .out = call->out->data
	};
	if (is_divided(&p))
		return run_divided(call, &p);
	return is_gemm(&p) ? run_gemm(&p, &operands) : run(call);
}

// oneDNN's fused ReLU turns a NAN into 0.
static choir_status run_activated(const choir_kernel_call *call, choir_activation activation)
{
	CHOIR_TRY(run(call));
	if (activation != CHOIR_LINEAR && chi_dtype_is_half(call->out->dtype))
		chi_activate_half(call->out->dtype, call->out->data, chi_elements(call->out), activation);
	else if (activation != CHOIR_LINEAR)
		chi_finish(
				call->out->dtype, call->out->data, 1, chi_elements(call->out), NULL, activation);
	return CHOIR_OK;
}

static choir_status run_dense(const choir_kernel_call *call)
{
	const choir_dense_attributes *attributes = call->attributes;
	return run_activated(call, attributes->activation);
}

static choir_status run_conv2d(const choir_kernel_call *call)
{
	const choir_conv2d_attributes *attributes = call->attributes;
	return run_activated(call, attributes->activation);
}

static chi_dnn_matrix matrix_of(const chi_matrix *x, int64_t rows, int64_t columns)
{
	const bool transposed = x->column != 1;
	const int64_t row = transposed ? x->column : x->row, min = transposed ? rows : columns;
	return (chi_dnn_matrix){ x->data, row < min ? min : row, transposed };
}

static choir_status multiply(const chi_gemm *p)
{
	const chi_dnn_gemm gemm = {
		.accumulate = p->accumulate,
		.m = p->m,
		.n = p->n,
		.k = p->k,
		.a = matrix_of(&p->a, p->m, p->k),
		.b = matrix_of(&p->b, p->k, p->n),
		.c = p->c,
		.c_row = p->c_row,
	};
	return chi_dnn_multiply(&gemm);
}

static const chi_gemm_kernel way = { multiply };

static int always(const choir_kernel_call *call)
{
	(void) call;
	return SCORE;
}

static const chi_dnn_recurrence lstm = { 4, false }, lstm_gradient = { 4, true };
static const chi_dnn_recurrence gru = { 3, false }, gru_gradient = { 3, true };

static const chi_kernel_spec specs[] = {
	{ "matmul", CHI_F32, sizeof(choir_matmul_attributes), run_matmul, scratch_matmul, score_matmul,
			&matmul },
	{ "dense", CHI_F32, sizeof(choir_dense_attributes), run_dense, scratch, score, &dense },
	{ "conv2d", CHI_F32, sizeof(choir_conv2d_attributes), run_conv2d, scratch, score, &conv2d },
	{ "conv2d_gradient_input", CHI_F32, sizeof(choir_conv2d_attributes), run, scratch, score,
			&gradient_input },
	{ "conv2d_gradient_filter", CHI_F32, sizeof(choir_conv2d_attributes), run, scratch, score,
			&gradient_filter },
	{ "matmul", CHI_BF16, sizeof(choir_matmul_attributes), run_matmul, scratch_matmul, score_bf16,
			&matmul },
	{ "dense", CHI_BF16, sizeof(choir_dense_attributes), run_dense, scratch, score_bf16, &dense },
	{ "conv2d", CHI_BF16, sizeof(choir_conv2d_attributes), run_conv2d, scratch, score_bf16,
			&conv2d },
	{ "conv2d_gradient_input", CHI_BF16, sizeof(choir_conv2d_attributes), run, scratch, score_bf16,
			&gradient_input },
	{ "conv2d_gradient_filter", CHI_BF16, sizeof(choir_conv2d_attributes), run, scratch,
			score_bf16, &gradient_filter },
	{ "attention", CHI_F32, sizeof(choir_attention_attributes), chi_attention,
			chi_attention_scratch, always, &way },
	{ "attention_gradient", CHI_F32, sizeof(choir_attention_attributes), chi_attention_gradient,
			chi_attention_scratch, always, &way },
	{ "lstm", CHI_F32, 0, chi_lstm, chi_recurrent_scratch, always, &way },
	{ "lstm_gradient", CHI_F32, 0, chi_lstm_gradient, chi_recurrent_scratch, always, &way },
	{ "gru", CHI_F32, 0, chi_gru, chi_recurrent_scratch, always, &way },
	{ "gru_gradient", CHI_F32, 0, chi_gru_gradient, chi_recurrent_scratch, always, &way },
	{ "recurrent_gradient", CHI_F32, sizeof(choir_recurrent_attributes), chi_recurrent_gradient,
			chi_recurrent_scratch, always, &way },
	{ "lstm", CHI_HALF, 0, chi_dnn_lstm, chi_dnn_recurrence_scratch, chi_dnn_recurrence_score,
			&lstm },
	{ "lstm_gradient", CHI_HALF, 0, chi_dnn_lstm_gradient, chi_dnn_recurrence_scratch,
			chi_dnn_recurrence_score, &lstm_gradient },
	{ "gru", CHI_HALF, 0, chi_dnn_gru, chi_dnn_recurrence_scratch, chi_dnn_recurrence_score,
			&gru },
	{ "gru_gradient", CHI_HALF, 0, chi_dnn_gru_gradient, chi_dnn_recurrence_scratch,
			chi_dnn_recurrence_score, &gru_gradient },
	{ "recurrent_gradient", CHI_HALF, sizeof(choir_recurrent_attributes),
			chi_dnn_recurrent_gradient, chi_dnn_recurrent_gradient_scratch,
			chi_dnn_recurrent_gradient_score, NULL },
};

chi_kernel_list chi_onednn_list(size_t index)
{
	const chi_kernel_list list = { specs, sizeof specs / sizeof specs[0] };
	return index == 0 ? list : (chi_kernel_list){ NULL, 0 };
}
#else
chi_kernel_list chi_onednn_list(size_t index)
{
	(void) index;
	return (chi_kernel_list){ NULL, 0 };
}

bool chi_onednn_has_bf16(void)
{
	return false;
}

bool chi_onednn_has_amx(void)
{
	return false;
}
#endif
