// Only a block's scores are stored, so memory grows linearly with the length; the backward pass
// recomputes them. Score rows are padded to multiples of CHI_ROUND: a remainder loop would double
// short rows' time.
#include "op/plain/attention_kernel.h"

#include <string.h>

enum { BLOCK = 64 };

typedef struct {
	const chi_gemm_kernel *kernel;
	const chi_real_loops *real;
	const chi_number_loops *number;
	choir_dtype dtype;
	size_t size;
	int64_t queries, keys, width;
	int64_t q_row, kv_row, y_row;
	bool causal;
	double scale;
	const char *q, *k, *v;
	void *gemm;
	char *scaled, *scores, *back; // [BLOCK, width], [BLOCK, keys] twice
} head;

static int64_t rounded(int64_t n)
{
	return (n + CHI_ROUND - 1) / CHI_ROUND * CHI_ROUND;
}

static bool is_packed(size_t inputs)
{
	return inputs == 1;
}

static head head_of(const choir_kernel_call *call, size_t n)
{
	const choir_attention_attributes *a = call->attributes;
	const choir_buffer *q = &call->in[0], *k = is_packed(n) ? q : &call->in[1];
	const int64_t width = is_packed(n) ? q->shape.dim[2] / 3 : q->shape.dim[2];
	head h = {
		.kernel = call->user,
		.real = chi_loops_best()->real[q->dtype],
		.number = chi_loops_best()->number[q->dtype],
		.dtype = q->dtype,
		.size = chi_dtype_size(q->dtype),
		.queries = q->shape.dim[1],
		.keys = k->shape.dim[1],
		.width = width / a->heads,
		.q_row = q->shape.dim[2],
		.kv_row = k->shape.dim[2],
		.y_row = width,
		.causal = a->causal,
		.scale = a->scale,
		.gemm = call->scratch,
	};
	h.scaled = (char *) call->scratch + chi_gemm_scratch(h.dtype);
	h.scores = h.scaled + (size_t) (BLOCK * h.width) * h.size;
	h.back = h.scores + (size_t) (BLOCK * rounded(h.keys)) * h.size;
	return h;
}

size_t chi_attention_scratch(const choir_kernel_call *call)
{
	const choir_attention_attributes *a = call->attributes;
	const choir_buffer *q = &call->in[0], *k = call->n < 3 ? q : &call->in[1];
	const int64_t rows = q->shape.dim[2] / a->heads + 2 * rounded(k->shape.dim[1]);
	return chi_gemm_scratch(q->dtype) + (size_t) (BLOCK * rows) * chi_dtype_size(q->dtype);
}

static void point(head *h, const choir_buffer in[], size_t n, int64_t i, int64_t index)
{
	const int64_t column = index * h->width;
	h->q = chi_element(&in[0], i * h->queries * h->q_row + column);
	if (is_packed(n)) {
		h->k = h->q + (size_t) h->y_row * h->size;
		h->v = h->k + (size_t) h->y_row * h->size;
	} else {
		h->k = chi_element(&in[1], i * h->keys * h->kv_row + column);
		h->v = chi_element(&in[2], i * h->keys * h->kv_row + column);
	}
}

// Fewer queries than keys are the last positions.
static int64_t seen(const head *h, int64_t i)
{
	return h->causal ? i + 1 + h->keys - h->queries : h->keys;
}

static int64_t rows_from(const head *h, int64_t first)
{
	return h->queries - first < BLOCK ? h->queries - first : BLOCK;
}

static choir_status multiply(const head *h, chi_gemm *p)
{
	p->dtype = h->dtype;
	p->scratch = h->gemm;
	return h->kernel->gemm(p);
}

// scaled = q scale; scores [rows, all, rounded up] = exp(scaled k^T - maximum); by[i] is 1 / the
// sum of row i.
static choir_status score(const head *h, int64_t first, int64_t rows, double by[BLOCK])
{
	const int64_t all = seen(h, first + rows - 1);
	for (int64_t i = 0; i < rows; i++)
		h->real->scale(h->scaled + (size_t) (i * h->width) * h->size,
				h->q + (size_t) ((first + i) * h->q_row) * h->size, h->scale, h->width);
	chi_gemm p = {
		.m = rows,
		.n = all,
		.k = h->width,
		.a = { h->scaled, h->width, 1 },
		.b = { h->k, 1, h->kv_row },
		.c = h->scores,
		.c_row = rounded(all),
	};
	CHOIR_TRY(multiply(h, &p));
	for (int64_t i = 0; i < rows; i++)
		by[i] = 1 /
				h->real->exp_row(
						h->scores + (size_t) (i * p.c_row) * h->size, seen(h, first + i), p.c_row);
	return CHOIR_OK;
}

static choir_status forward(const head *h, char *y)
{
	double by[BLOCK];
	for (int64_t first = 0; first < h->queries; first += BLOCK) {
		const int64_t rows = rows_from(h, first), all = seen(h, first + rows - 1);
		char *to = y + (size_t) (first * h->y_row) * h->size;
		CHOIR_TRY(score(h, first, rows, by));
		chi_gemm p = {
			.m = rows,
			.n = h->width,
			.k = all,
			.a = { h->scores, rounded(all), 1 },
			.b = { h->v, h->kv_row, 1 },
			.c = to,
			.c_row = h->y_row,
		};
		CHOIR_TRY(multiply(h, &p));
		for (int64_t i = 0; i < rows; i++, to += (size_t) h->y_row * h->size)
			h->real->scale(to, to, by[i], h->width);
	}
	return CHOIR_OK;
}

choir_status chi_attention(const choir_kernel_call *call)
{
	const choir_attention_attributes *a = call->attributes;
	head h = head_of(call, call->n);
	for (int64_t i = 0; i < call->in[0].shape.dim[0]; i++)
		for (int64_t index = 0; index < a->heads; index++) {
			point(&h, call->in, call->n, i, index);
			CHOIR_TRY(forward(
					&h, chi_element(call->out, i * h.queries * h.y_row + index * h.width)));
		}
	return CHOIR_OK;
}

typedef struct {
	char *q, *k, *v;
	const char *y;
} gradients;

// With P the normalised scores and dP = dy v^T: back = P (dP - sum(P dP)), scores = P.
static choir_status score_back(const head *h, const gradients *g, int64_t first, int64_t rows)
{
	const int64_t all = seen(h, first + rows - 1);
	double by[BLOCK];
	CHOIR_TRY(score(h, first, rows, by));
	chi_gemm p = {
		.m = rows,
		.n = all,
		.k = h->width,
		.a = { g->y + (size_t) (first * h->y_row) * h->size, h->y_row, 1 },
		.b = { h->v, 1, h->kv_row },
		.c = h->back,
		.c_row = rounded(all),
	};
	const size_t unseen = (size_t) (p.c_row - all) * h->size;
	for (int64_t i = 0; i < rows && unseen > 0; i++)
		memset(h->back + (size_t) (i * p.c_row + all) * h->size, 0, unseen);
	CHOIR_TRY(multiply(h, &p));
	for (int64_t i = 0; i < rows; i++) {
		const int64_t n = rounded(seen(h, first + i));
		char *row = h->scores + (size_t) (i * p.c_row) * h->size;
		char *back = h->back + (size_t) (i * p.c_row) * h->size;
		h->real->scale(row, row, by[i], n);
		h->real->softmax_gradient(back, row, back, n);
		memset(back + (size_t) n * h->size, 0, (size_t) (p.c_row - n) * h->size);
	}
	return CHOIR_OK;
}

// From the last block, which sees all keys: it initialises their gradients.
static choir_status backward(const head *h, const gradients *g)
{
	const int64_t last = (h->queries - 1) / BLOCK * BLOCK;
	for (int64_t first = last; first >= 0; first -= BLOCK) {
		const int64_t rows = rows_from(h, first), all = seen(h, first + rows - 1);
		char *to = g->q + (size_t) (first * h->q_row) * h->size;
		CHOIR_TRY(score_back(h, g, first, rows));
		chi_gemm v = {
			.m = all,
			.n = h->width,
			.k = rows,
			.a = { h->scores, 1, rounded(all) },
			.b = { g->y + (size_t) (first * h->y_row) * h->size, h->y_row, 1 },
			.c = g->v,
			.c_row = h->kv_row,
			.accumulate = first != last,
		};
		CHOIR_TRY(multiply(h, &v));
		chi_gemm k = {
			.m = all,
			.n = h->width,
			.k = rows,
			.a = { h->back, 1, rounded(all) },
			.b = { h->scaled, h->width, 1 },
			.c = g->k,
			.c_row = h->kv_row,
			.accumulate = first != last,
		};
		CHOIR_TRY(multiply(h, &k));
		chi_gemm q = {
			.m = rows,
			.n = h->width,
			.k = all,
			.a = { h->back, rounded(all), 1 },
			.b = { h->k, h->kv_row, 1 },
			.c = to,
			.c_row = h->q_row,
		};
		CHOIR_TRY(multiply(h, &q));
		for (int64_t i = 0; i < rows; i++, to += (size_t) h->q_row * h->size)
			h->real->scale(to, to, h->scale, h->width);
	}
	return CHOIR_OK;
}

// out is packed as the input, or has dq, dk and dv in turn.
choir_status chi_attention_gradient(const choir_kernel_call *call)
{
	const choir_attention_attributes *a = call->attributes;
	const size_t n = call->n - 1;
	const choir_buffer *dy = &call->in[n];
	head h = head_of(call, n);
	char *out = call->out->data;
	const size_t k = is_packed(n) ? (size_t) h.y_row : (size_t) chi_elements(&call->in[0]);
	const size_t v = k + (is_packed(n) ? (size_t) h.y_row : (size_t) chi_elements(&call->in[1]));
	for (int64_t i = 0; i < dy->shape.dim[0]; i++)
		for (int64_t index = 0; index < a->heads; index++) {
			const size_t q_at = (size_t) (i * h.queries * h.q_row + index * h.width);
			const size_t kv_at = (size_t) (i * h.keys * h.kv_row + index * h.width);
			const gradients g = {
				.q = out + q_at * h.size,
				.k = out + (k + kv_at) * h.size,
				.v = out + (v + kv_at) * h.size,
				.y = chi_element(dy, i * h.queries * h.y_row + index * h.width),
			};
			point(&h, call->in, n, i, index);
			CHOIR_TRY(backward(&h, &g));
		}
	return CHOIR_OK;
}

static const chi_kernel_spec specs[] = {
	{ "attention", CHI_REAL, sizeof(choir_attention_attributes), chi_attention,
			chi_attention_scratch, NULL, &chi_plain_gemm },
	{ "attention_gradient", CHI_REAL, sizeof(choir_attention_attributes), chi_attention_gradient,
			chi_attention_scratch, NULL, &chi_plain_gemm },
};
const chi_kernel_list chi_plain_attention = { specs, sizeof specs / sizeof specs[0] };
