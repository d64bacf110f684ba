// Random calls of the kernels of layers.
#include "layer_sample.h"

#include <string.h>

static choir_shape with(const choir_shape *leading, int64_t rows, int64_t columns)
{
	choir_shape s = *leading;
	s.dim[s.rank++] = rows;
	s.dim[s.rank++] = columns;
	return s;
}

// A large dimension of a product exceeds the blocks of most implementations.
static int64_t product_size(chi_sample *s)
{
	static const int64_t sizes[] = { 144, 145, 300, 512 };
	return s->large ? sizes[chi_sample_integer(s, 0, 3)] / chi_sample_integer(s, 1, 3)
					: chi_sample_integer(s, 1, 40);
}

void chi_sample_matmul(chi_sample *s)
{
	const int64_t m = product_size(s), n = product_size(s), k = product_size(s);
	const choir_matmul_attributes a = { (choir_transposed) chi_sample_integer(s, 0, 2) };
	const bool at = a.transposed == CHOIR_TRANSPOSED_A, bt = a.transposed == CHOIR_TRANSPOSED_B;
	const bool same = chi_sample_integer(s, 0, 1) != 0;
	choir_shape leading = { .rank = (int) chi_sample_integer(s, 0, s->large ? 0 : 2) };
	for (int i = 0; i < leading.rank; i++)
		leading.dim[i] = chi_sample_integer(s, 1, 3);
	(void) chi_sample_add(s, s->dtype, with(&leading, at ? k : m, at ? m : k));
	(void) chi_sample_add(
			s, s->dtype, with(same ? &leading : &(choir_shape){ 0 }, bt ? n : k, bt ? k : n));
	chi_sample_set(s, &a, sizeof a);
	chi_sample_give(s, s->dtype, with(&leading, m, n));
}

void chi_sample_dense(chi_sample *s)
{
	const int64_t m = product_size(s), n = product_size(s), k = product_size(s);
	const choir_dense_attributes a = { (choir_activation) chi_sample_integer(
			s, CHOIR_LINEAR, CHOIR_SIGMOID) };
	(void) chi_sample_add(s, s->dtype, CHOIR_SHAPE(m, k));
	(void) chi_sample_add(s, s->dtype, CHOIR_SHAPE(k, n));
	if (chi_sample_integer(s, 0, 1) != 0)
		(void) chi_sample_add(s, s->dtype, CHOIR_SHAPE(n));
	chi_sample_set(s, &a, sizeof a);
	chi_sample_give(s, s->dtype, CHOIR_SHAPE(m, n));
}

typedef struct {
	choir_conv2d_attributes a;
	int64_t n, h, w, channels, kh, kw, out, oh, ow;
} convolution;

static int upto(chi_sample *s, int64_t high)
{
	return (int) chi_sample_integer(s, 0, high);
}

// A filter of 3 x 3 and multiples of 16 channels, for which special kernels exist.
static void common_sizes(chi_sample *s, convolution *c)
{
	c->kh = c->kw = 3;
	c->n = 2;
	c->channels = 16 * chi_sample_integer(s, 1, 3);
	c->out = c->channels == 16 ? 64 : 16 * chi_sample_integer(s, 2, 3);
	c->a.stride = c->a.dilation = 1;
	c->a.groups = 1;
	c->h = chi_sample_integer(s, 14, 17);
	c->w = chi_sample_integer(s, 14, 17);
}

static void any_sizes(chi_sample *s, convolution *c)
{
	c->kh = chi_sample_integer(s, 1, 5);
	c->kw = chi_sample_integer(s, 1, 5);
	c->a.groups = chi_sample_integer(s, 0, 2) != 0 ? 1 : chi_sample_integer(s, 2, 3);
	c->a.stride = (int) chi_sample_integer(s, 1, 3);
	c->a.dilation = chi_sample_integer(s, 0, 2) != 0 ? 1 : (int) chi_sample_integer(s, 2, 3);
	c->channels = c->a.groups * chi_sample_integer(s, 1, s->large ? 20 : 5);
	c->out = c->a.groups * chi_sample_integer(s, 1, s->large ? 20 : 9);
	c->n = chi_sample_integer(s, 1, 3);
	c->h = (c->kh - 1) * c->a.dilation + 1 + chi_sample_integer(s, 0, 9);
	c->w = (c->kw - 1) * c->a.dilation + 1 + chi_sample_integer(s, 0, 9);
}

void chi_sample_conv2d(chi_sample *s)
{
	convolution c = { 0 };
	const int detail = s->row->detail;
	if (s->large && chi_sample_integer(s, 0, 2) != 0)
		common_sizes(s, &c);
	else
		any_sizes(s, &c);
	c.a.top = upto(s, c.kh - 1);
	c.a.bottom = upto(s, c.kh - 1);
	c.a.left = upto(s, c.kw - 1);
	c.a.right = upto(s, c.kw - 1);
	c.a.activation = detail == CHI_FORWARD ? (choir_activation) upto(s, CHOIR_SIGMOID) : 0;
	c.oh = (c.h + c.a.top + c.a.bottom - (c.kh - 1) * c.a.dilation - 1) / c.a.stride + 1;
	c.ow = (c.w + c.a.left + c.a.right - (c.kw - 1) * c.a.dilation - 1) / c.a.stride + 1;
	const choir_shape x = CHOIR_SHAPE(c.n, c.h, c.w, c.channels);
	const choir_shape filter = CHOIR_SHAPE(c.kh, c.kw, c.channels / c.a.groups, c.out);
	const choir_shape y = CHOIR_SHAPE(c.n, c.oh, c.ow, c.out);
	(void) chi_sample_add(s, s->dtype, detail == CHI_GRADIENT_INPUT ? filter : x);
	(void) chi_sample_add(s, s->dtype, detail == CHI_FORWARD ? filter : y);
	if (detail == CHI_FORWARD && upto(s, 1) != 0)
		(void) chi_sample_add(s, s->dtype, CHOIR_SHAPE(c.out));
	chi_sample_set(s, &c.a, sizeof c.a);
	chi_sample_give(s, s->dtype,
			detail == CHI_FORWARD				   ? y
					: detail == CHI_GRADIENT_INPUT ? x
												   : filter);
}

// The gradients of the largest element need the results of the forward kernel.
static void add_largest(chi_sample *s, const choir_shape *shape)
{
	choir_buffer *y = chi_sample_add(s, s->dtype, *shape);
	const choir_kernel_call call = {
		.size = sizeof call, .n = 1, .in = s->in, .out = y, .attributes = s->attributes
	};
	if (s->status == CHOIR_OK)
		s->status = choir_kernel_run(s->cpu, "max_pool2d", "plain", &call);
}

void chi_sample_pool2d(chi_sample *s)
{
	const int window = (int) chi_sample_integer(s, 1, 4), detail = s->row->detail;
	const int64_t h = window + upto(s, 9), w = window + upto(s, 9);
	const int64_t channels = chi_sample_integer(s, 1, s->large ? 70 : 9);
	const int64_t n = chi_sample_integer(s, 1, 3);
	const choir_pool2d_attributes a = { .window = window,
		.stride = upto(s, 1) != 0 ? window : (int) chi_sample_integer(s, 1, window + 1),
		.top = upto(s, window - 1),
		.left = upto(s, window - 1),
		.bottom = upto(s, window - 1),
		.right = upto(s, window - 1) };
	const choir_shape x = CHOIR_SHAPE(n, h, w, channels);
	const choir_shape y = CHOIR_SHAPE(n, (h + a.top + a.bottom - window) / a.stride + 1,
			(w + a.left + a.right - window) / a.stride + 1, channels);
	chi_sample_set(s, &a, sizeof a);
	(void) chi_sample_add(s, s->dtype, detail == CHI_GRADIENT_INPUT ? y : x);
	if (detail == CHI_MAX_GRADIENT || detail == CHI_MAX_TAKE) {
		add_largest(s, &y);
		(void) chi_sample_add(s, s->dtype, detail == CHI_MAX_TAKE ? x : y);
	}
	chi_sample_give(s, s->dtype, detail == CHI_FORWARD || detail == CHI_MAX_TAKE ? y : x);
}

void chi_sample_rows(chi_sample *s)
{
	const choir_shape shape = chi_sample_shape(s, 1);
	for (int i = 0; i < s->row->detail; i++)
		(void) chi_sample_add(s, s->dtype, shape);
	chi_sample_give(s, s->dtype, shape);
}

void chi_sample_cross_entropy(chi_sample *s)
{
	static const choir_dtype dtypes[] = { CHOIR_I32, CHOIR_I64, CHOIR_U8 };
	const choir_shape x = chi_sample_shape(s, 1);
	const bool forward = s->row->detail == CHI_FORWARD;
	choir_shape rows = x;
	rows.rank--;
	const choir_cross_entropy_attributes a = { .smoothing = upto(s, 1) * 0.2 };
	(void) chi_sample_add(s, s->dtype, x);
	(void) chi_sample_add_range(s, dtypes[upto(s, 2)], rows, 0, (double) x.dim[x.rank - 1] - 1);
	if (!forward)
		(void) chi_sample_add(s, s->dtype, rows);
	chi_sample_set(s, &a, sizeof a);
	chi_sample_give(s, s->dtype, forward ? rows : x);
}

void chi_sample_attention(chi_sample *s)
{
	const bool packed = upto(s, 1) != 0, forward = s->row->detail == CHI_FORWARD;
	const choir_attention_attributes a = { .heads = chi_sample_integer(s, 1, 3),
		.causal = upto(s, 1) != 0,
		.scale = upto(s, 3) != 0 ? 0.3 : -0.5 };
	const int64_t n = chi_sample_integer(s, 1, 2), queries = chi_sample_integer(s, 1, 70);
	const int64_t width = a.heads * (upto(s, 2) != 0 ? chi_sample_integer(s, 1, 40) : 16);
	const int64_t keys =
			packed ? queries : chi_sample_integer(s, a.causal ? queries : 1, queries + 40);
	const choir_shape q = CHOIR_SHAPE(n, queries, width), k = CHOIR_SHAPE(n, keys, width);
	const choir_shape all = CHOIR_SHAPE(n, queries, 3 * width);
	(void) chi_sample_add(s, s->dtype, packed ? all : q);
	for (int i = 0; i < 2 && !packed; i++)
		(void) chi_sample_add(s, s->dtype, k);
	if (!forward)
		(void) chi_sample_add(s, s->dtype, q);
	chi_sample_set(s, &a, sizeof a);
	chi_sample_give(s, s->dtype,
			forward			 ? q
					: packed ? all
							 : CHOIR_SHAPE(n * width * (queries + 2 * keys)));
}

typedef struct {
	int64_t n, t, h;
} recurrence;

static recurrence recurrence_of(chi_sample *s)
{
	const int64_t n = chi_sample_integer(s, 1, 4), t = chi_sample_integer(s, 1, 6);
	return (recurrence){ n, t, chi_sample_size(s) };
}

void chi_sample_recurrent(chi_sample *s)
{
	const recurrence r = recurrence_of(s);
	const int64_t gates = s->row->detail * r.h;
	(void) chi_sample_add(s, s->dtype, CHOIR_SHAPE(r.n, r.t, gates));
	(void) chi_sample_add(s, s->dtype, CHOIR_SHAPE(r.h, gates));
	if (s->row->detail == 3)
		(void) chi_sample_add(s, s->dtype, CHOIR_SHAPE(gates));
	for (int i = 0; i < s->row->detail - 2; i++)
		(void) chi_sample_add(s, s->dtype, CHOIR_SHAPE(r.n, r.h));
	chi_sample_give(s, s->dtype, CHOIR_SHAPE(r.n, r.t, (s->row->detail + 2) * r.h));
}

void chi_sample_recurrent_gradient(chi_sample *s)
{
	const recurrence r = recurrence_of(s);
	const int64_t gates = s->row->detail * r.h, all = r.n * r.t * gates, state = r.n * r.h;
	(void) chi_sample_add(s, s->dtype, CHOIR_SHAPE(r.n, r.t, gates + 2 * r.h));
	(void) chi_sample_add(s, s->dtype, CHOIR_SHAPE(r.h, gates));
	(void) chi_sample_add(s, s->dtype, CHOIR_SHAPE(r.n, r.h));
	const int64_t width = s->row->detail == 4 ? (1 + upto(s, 1)) * r.h : r.h;
	(void) chi_sample_add(s, s->dtype, CHOIR_SHAPE(r.n, r.t, width));
	chi_sample_give(
			s, s->dtype, CHOIR_SHAPE(s->row->detail == 4 ? all + 2 * state : 2 * all + state));
}

void chi_sample_recurrent_weights(chi_sample *s)
{
	const recurrence r = recurrence_of(s);
	const choir_recurrent_attributes a = { .offset = upto(s, 9) };
	const int64_t k = chi_sample_size(s);
	(void) chi_sample_add(s, s->dtype, CHOIR_SHAPE(r.n, r.t, a.offset + r.h + upto(s, 5)));
	(void) chi_sample_add(s, s->dtype, CHOIR_SHAPE(r.n, r.h));
	(void) chi_sample_add(s, s->dtype, CHOIR_SHAPE(r.n, r.t, k));
	chi_sample_set(s, &a, sizeof a);
	chi_sample_give(s, s->dtype, CHOIR_SHAPE(r.h, k));
}

static void set_norm(chi_sample *s)
{
	const choir_norm_attributes a = { .epsilon = 1e-2, .centered = upto(s, 1) != 0 };
	if (choir_kernel_attribute_bytes(s->row->operation) > 0)
		chi_sample_set(s, &a, sizeof a);
}

void chi_sample_row_norm(chi_sample *s)
{
	const choir_shape x = chi_sample_shape(s, 2);
	const choir_shape c = CHOIR_SHAPE(x.dim[x.rank - 1]);
	const int detail = s->row->detail;
	choir_shape moments = x;
	moments.dim[x.rank - 1] = 2;
	set_norm(s);
	(void) chi_sample_add(s, s->dtype, x);
	if (detail == CHI_FORWARD || detail == CHI_GRADIENT_INPUT)
		(void) chi_sample_add(s, s->dtype, c);
	if (detail == CHI_FORWARD && upto(s, 1) != 0)
		(void) chi_sample_add(s, s->dtype, c);
	if (detail != CHI_MOMENTS)
		(void) chi_sample_add(s, s->dtype, moments);
	if (detail == CHI_GRADIENT_INPUT || detail == CHI_SUMS)
		(void) chi_sample_add(s, s->dtype, x);
	chi_sample_give(s, s->dtype,
			detail == CHI_MOMENTS		 ? moments
					: detail == CHI_SUMS ? CHOIR_SHAPE(2 * c.dim[0])
										 : x);
}

void chi_sample_channel_norm(chi_sample *s)
{
	const choir_shape x = chi_sample_shape(s, 2);
	const int64_t c = x.dim[x.rank - 1];
	const int detail = s->row->detail;
	set_norm(s);
	(void) chi_sample_add(s, s->dtype, x);
	if (detail == CHI_FORWARD || detail == CHI_GRADIENT_INPUT)
		(void) chi_sample_add(s, s->dtype, CHOIR_SHAPE(c));
	if (detail == CHI_FORWARD)
		(void) chi_sample_add(s, s->dtype, CHOIR_SHAPE(c));
	if (detail != CHI_MOMENTS) // means, variances and the number of rows
		(void) chi_sample_add_range(s, CHOIR_F64, CHOIR_SHAPE(2 * c + 1), 0.5, 2);
	if (detail == CHI_GRADIENT_INPUT || detail == CHI_SUMS)
		(void) chi_sample_add(s, s->dtype, x);
	if (detail == CHI_GRADIENT_INPUT)
		(void) chi_sample_add_range(s, CHOIR_F64, CHOIR_SHAPE(2 * c), -2, 2);
	if (detail == CHI_MOMENTS || detail == CHI_SUMS)
		chi_sample_give(s, CHOIR_F64, CHOIR_SHAPE(detail == CHI_SUMS ? 2 * c : 2 * c + 1));
	else
		chi_sample_give(s, s->dtype, x);
}

void chi_sample_channel_moments(chi_sample *s)
{
	const choir_shape shape = CHOIR_SHAPE(2 * chi_sample_size(s) + 1);
	(void) chi_sample_add_range(s, s->dtype, shape, 2, 4);
	chi_sample_give(s, s->dtype, shape);
}
