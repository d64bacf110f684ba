// Attention as products of all heads of an image, with a softmax by rows between them. The scores
// of as many heads as fit are kept, and the backward pass makes them again. Where tensors have 16
// bits the scores have 32, and the weights of the softmax are rounded to 16.
#include "block_reduce.h"
#include "device_math.h"
#include "matmul.h"

namespace choir_cuda
{

static const size_t MAX_SCORES = (size_t) 256 << 20; // bytes, but for one head

struct attention {
	choir_dtype dtype, wide; // of tensors and of scores
	bool packed, causal;
	int64_t images, queries, keys, heads, width; // width: of one head
	int64_t q_row, kv_row, y_row;
	int64_t together; // heads at a time
	double scale;
	const char *q, *k, *v;
	char *scores, *weights, *workspace; // [together, queries, keys]
};

static size_t whole(size_t bytes)
{
	return (bytes + 255) / 256 * 256;
}

static attention attention_of(const choir_kernel_call *c, size_t inputs)
{
	const auto *a = attributes<choir_attention_attributes>(c);
	const choir_shape *q = &c->in[0].shape, *k = &c->in[inputs < 3 ? 0 : 1].shape;
	attention t = {};
	t.dtype = c->in[0].dtype;
	t.wide = t.dtype == CHOIR_F64 ? CHOIR_F64 : CHOIR_F32;
	t.packed = inputs < 3;
	t.causal = a->causal;
	t.scale = a->scale;
	t.images = q->dim[0];
	t.queries = q->dim[1];
	t.keys = k->dim[1];
	t.heads = a->heads;
	t.q_row = q->dim[2];
	t.kv_row = k->dim[2];
	t.y_row = t.packed ? t.q_row / 3 : t.q_row;
	t.width = t.y_row / t.heads;
	const size_t head = (size_t) (t.queries * t.keys) * (size_of(t.wide) + size_of(t.dtype));
	const int64_t most = (int64_t) (MAX_SCORES / head);
	t.together = most < 1 ? 1 : most < t.heads ? most : t.heads;
	return t;
}

static size_t scores_bytes(const attention *t, choir_dtype dtype)
{
	return whole((size_t) (t->together * t->queries * t->keys) * size_of(dtype));
}

static size_t scratch_of(const choir_kernel_call *c, size_t inputs)
{
	const attention t = attention_of(c, inputs);
	return scores_bytes(&t, t.wide) + scores_bytes(&t, t.dtype) + product_workspace();
}

// Sets the memory of image i.
static void point(attention *t, const choir_kernel_call *c, int64_t i)
{
	const size_t size = size_of(t->dtype);
	t->q = (const char *) c->in[0].data + (size_t) (i * t->queries * t->q_row) * size;
	t->k = t->q + (size_t) t->y_row * size;
	t->v = t->k + (size_t) t->y_row * size;
	if (!t->packed) {
		const size_t at = (size_t) (i * t->keys * t->kv_row) * size;
		t->k = (const char *) c->in[1].data + at;
		t->v = (const char *) c->in[2].data + at;
	}
	t->scores = (char *) c->scratch;
	t->weights = t->scores + scores_bytes(t, t->wide);
	t->workspace = t->weights + scores_bytes(t, t->dtype);
}

// A block for each query of a head: weights = softmax of the keys that it sees, else 0.
template <class T>
__global__ void weigh_kernel(
		const real<T> *scores, T *weights, int64_t queries, int64_t keys, bool causal)
{
	const int64_t first = (int64_t) blockIdx.x * keys;
	const int64_t seen = causal ? (int64_t) blockIdx.x % queries + 1 + keys - queries : keys;
	double own = -(double) INFINITY, part = 0;
	EACH_IN_ROW(j, seen)
	own = op_maximum::of<double>(own, (double) scores[first + j]);
	const real<T> most = (real<T>) block_max(own);
	EACH_IN_ROW(j, seen)
	part += (double) exponential(scores[first + j] - most);
	const real<T> by = (real<T>) (1 / block_sum(part));
	EACH_IN_ROW(j, keys)
	weights[first + j] = j < seen ? (T) (exponential(scores[first + j] - most) * by) : (T) 0;
}

// In place, from the weights and their gradients to scale times the gradients of the scores.
template <class T>
__global__ void weigh_gradient_kernel(const real<T> *back, T *weights, int64_t keys, real<T> scale)
{
	const int64_t first = (int64_t) blockIdx.x * keys;
	double part = 0;
	EACH_IN_ROW(j, keys)
	part += (double) weights[first + j] * (double) back[first + j];
	const real<T> level = (real<T>) block_sum(part);
	EACH_IN_ROW(j, keys)
	{
		const int64_t i = first + j;
		weights[i] = (T) (scale * (real<T>) weights[i] * (back[i] - level));
	}
}

struct weigh {
	template <class T>
	static choir_status run(
			const choir_kernel_call *c, const attention *t, int64_t heads, bool back)
	{
		const unsigned rows = (unsigned) (heads * t->queries), threads = threads_for(t->keys);
		stream *s = stream_of(c->stream);
		if (back)
			return launch(s, rows, threads, weigh_gradient_kernel<T>, (const real<T> *) t->scores,
					(T *) t->weights, t->keys, (real<T>) t->scale);
		return launch(s, rows, threads, weigh_kernel<T>, (const real<T> *) t->scores,
				(T *) t->weights, t->queries, t->keys, t->causal);
	}
};

static choir_status weigh_all(
		const choir_kernel_call *c, const attention *t, int64_t heads, bool back)
{
	return for_float<weigh>(t->dtype, c, t, heads, back);
}

// A tensor of a head, whose rows have width columns; the next head begins width columns later.
struct columns {
	const char *first;
	int64_t row;
};

// scores [queries, keys] = scale a [queries, width] b^T, for several heads.
static choir_status score(const choir_kernel_call *c, const attention *t, int64_t heads, columns a,
		columns b, double scale)
{
	product p = packed_product(t->dtype, t->queries, t->keys, t->width);
	p.out_dtype = t->wide;
	p.batch = heads;
	p.a_row = a.row;
	p.b_row = b.row;
	p.a_apart = p.b_apart = t->width;
	p.out_apart = t->queries * t->keys;
	p.b_transposed = true;
	p.alpha = scale;
	p.a = a.first;
	p.b = b.first;
	p.out = t->scores;
	return multiply(c, &p, t->workspace);
}

// out [queries or, transposed, keys; width] = weights b, for several heads.
static choir_status apply(const choir_kernel_call *c, const attention *t, int64_t heads,
		bool transposed, columns b, char *out, int64_t out_row)
{
	const int64_t m = transposed ? t->keys : t->queries, k = transposed ? t->queries : t->keys;
	product p = packed_product(t->dtype, m, t->width, k);
	p.out_dtype = c->out->dtype;
	p.batch = heads;
	p.a_transposed = transposed;
	p.a_row = t->keys;
	p.b_row = b.row;
	p.out_row = out_row;
	p.a_apart = t->queries * t->keys;
	p.b_apart = p.out_apart = t->width;
	p.a = t->weights;
	p.b = b.first;
	p.out = out;
	return multiply(c, &p, t->workspace);
}

static columns part_of(const attention *t, const char *first, int64_t row, int64_t head)
{
	return { first + (size_t) (head * t->width) * size_of(t->dtype), row };
}

static choir_status make_weights(
		const choir_kernel_call *c, const attention *t, int64_t head, int64_t heads)
{
	CHOIR_TRY(score(c, t, heads, part_of(t, t->q, t->q_row, head),
			part_of(t, t->k, t->kv_row, head), t->scale));
	return weigh_all(c, t, heads, false);
}

static size_t attention_scratch(const choir_kernel_call *c)
{
	return scratch_of(c, c->n);
}

static choir_status run_attention(const choir_kernel_call *c)
{
	attention t = attention_of(c, c->n);
	const size_t size = size_of(c->out->dtype);
	for (int64_t i = 0; i < t.images; i++) {
		point(&t, c, i);
		for (int64_t head = 0; head < t.heads; head += t.together) {
			const int64_t heads = t.heads - head < t.together ? t.heads - head : t.together;
			const int64_t at = i * t.queries * t.y_row + head * t.width;
			CHOIR_TRY(make_weights(c, &t, head, heads));
			CHOIR_TRY(apply(c, &t, heads, false, part_of(&t, t.v, t.kv_row, head),
					(char *) c->out->data + (size_t) at * size, t.y_row));
		}
	}
	return CHOIR_OK;
}

static size_t attention_gradient_scratch(const choir_kernel_call *c)
{
	return scratch_of(c, c->n - 1);
}

// The gradients of heads of an image, whose y begins at y.
static choir_status go_back(const choir_kernel_call *c, const attention *t, const char *y,
		char *const out[3], int64_t head, int64_t heads)
{
	const columns dy = part_of(t, y, t->y_row, head);
	const size_t at = (size_t) (head * t->width) * size_of(c->out->dtype);
	CHOIR_TRY(make_weights(c, t, head, heads));
	CHOIR_TRY(apply(c, t, heads, true, dy, out[2] + at, t->kv_row));
	CHOIR_TRY(score(c, t, heads, dy, part_of(t, t->v, t->kv_row, head), 1));
	CHOIR_TRY(weigh_all(c, t, heads, true));
	CHOIR_TRY(apply(c, t, heads, true, part_of(t, t->q, t->q_row, head), out[1] + at, t->kv_row));
	return apply(c, t, heads, false, part_of(t, t->k, t->kv_row, head), out[0] + at, t->q_row);
}

static choir_status run_attention_gradient(const choir_kernel_call *c)
{
	attention t = attention_of(c, c->n - 1);
	const size_t size = size_of(c->out->dtype), of_y = size_of(t.dtype);
	const int64_t k = t.packed ? t.y_row : elements(c->in[0]);
	const int64_t v = k + (t.packed ? t.y_row : elements(c->in[1]));
	for (int64_t i = 0; i < t.images; i++) {
		const int64_t q_at = i * t.queries * t.q_row, kv_at = i * t.keys * t.kv_row;
		char *to = (char *) c->out->data;
		char *const out[] = { to + (size_t) q_at * size, to + (size_t) (k + kv_at) * size,
			to + (size_t) (v + kv_at) * size };
		const char *y =
				(const char *) c->in[c->n - 1].data + (size_t) (i * t.queries * t.y_row) * of_y;
		point(&t, c, i);
		for (int64_t head = 0; head < t.heads; head += t.together)
			CHOIR_TRY(go_back(c, &t, y, out, head,
					t.heads - head < t.together ? t.heads - head : t.together));
	}
	return CHOIR_OK;
}

static int score_gradient(const choir_kernel_call *c)
{
	return c->in[c->n - 1].dtype == c->in[0].dtype ? 1 : 0;
}

static const kernel kernels[] = {
	{ "attention", FLOATS, run_attention, attention_scratch },
	{ "attention_gradient", FLOATS, run_attention_gradient, attention_gradient_scratch,
			score_gradient },
	{ "attention", F32, run_attention, attention_scratch, NULL, NULL, true },
	{ "attention_gradient", F32, run_attention_gradient, attention_gradient_scratch,
			score_gradient, NULL, true },
};
const kernel_list attention_kernels = list_of(kernels);

} // namespace choir_cuda
