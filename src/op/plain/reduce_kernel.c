// Sums and extremes over any axes, their positions, and cumulative sums. Neighbouring axes that
// are all summed or all kept are one group; the last is the innermost loop.
#include "base/team.h"
#include "base/thresholds.h"
#include "op/plain/broadcast_iterator.h"
#include "op/plain/plain.h"

#include <math.h>
#include <string.h>

typedef struct {
	chi_broadcast_iterator kept, summed; // operand 0 is x; the last run is 1 long
	int64_t run;
	int64_t rows, row; // if kept: size and stride of the last summed group
	bool run_is_summed;
} reduction;

static void put(chi_broadcast_iterator *it, int64_t dim, int64_t stride)
{
	it->dim[it->rank] = dim;
	it->stride[0][it->rank] = stride;
	it->rank++;
	it->done |= dim == 0;
}

static int split(const choir_shape *shape, uint32_t axes, int64_t size[], bool summed[])
{
	int n = 0;
	for (int i = shape->rank - 1; i >= 0; i--) {
		const bool sum = axes >> i & 1;
		if (shape->dim[i] == 1)
			continue;
		if (n > 0 && summed[n - 1] == sum) {
			size[n - 1] *= shape->dim[i];
			continue;
		}
		size[n] = shape->dim[i];
		summed[n++] = sum;
	}
	return n;
}

static reduction reduction_of(const choir_shape *shape, uint32_t axes)
{
	int64_t size[CHOIR_MAX_RANK] = { 0 }, stride[CHOIR_MAX_RANK] = { 1 };
	bool summed[CHOIR_MAX_RANK] = { false };
	reduction r = { .run = 1, .rows = 1 };
	const int n = split(shape, axes, size, summed);
	for (int i = 1; i < n; i++)
		stride[i] = stride[i - 1] * size[i - 1];
	int first = 0;
	if (n > 0) {
		r.run = size[first];
		r.run_is_summed = summed[first];
		first++;
	}
	if (!r.run_is_summed && n > 1) {
		r.rows = size[first];
		r.row = stride[first];
		first++;
	}
	for (int i = n - 1; i >= first; i--)
		put(summed[i] ? &r.summed : &r.kept, size[i], stride[i]);
	put(&r.kept, 1, 0);
	put(&r.summed, 1, 0);
	return r;
}

static void store(choir_buffer *out, int64_t at, const chi_total *total, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		void *to = chi_element(out, at + i);
		if (out->dtype == CHOIR_F32)
			*(float *) to = (float) total[i].real;
		else if (out->dtype == CHOIR_F64)
			*(double *) to = total[i].real;
		else if (out->dtype == CHOIR_I64)
			*(int64_t *) to = (int64_t) total[i].integer;
		else if (out->dtype == CHOIR_I32)
			*(int32_t *) to = (int32_t) (uint32_t) total[i].integer;
		else if (chi_dtype_is_half(out->dtype))
			chi_dtype_store(out->dtype, to, 0, total[i].real);
		else
			*(uint8_t *) to = (uint8_t) total[i].integer;
	}
}

// f16 and bf16 are widened in blocks of SUM_BLOCK_f32 (arithmetic_loops.inc): the same bits.
static void collect_half_run(
		const reduction *r, const choir_buffer *x, int64_t at, chi_total *total)
{
	enum { RUN = 1024 };
	float block[RUN];
	for (int64_t first = 0; first < r->run; first += RUN) {
		const int64_t n = r->run - first < RUN ? r->run - first : RUN;
		chi_half_loops_best(x->dtype)->widen(block, chi_element(x, at + first), n);
		chi_loops_best()->number[CHOIR_F32]->sum(total, block, n);
	}
}

static void collect_half(
		const reduction *r, const choir_buffer *x, int64_t at, int64_t count, chi_total *total)
{
	chi_broadcast_iterator it = r->summed;
	for (; !it.done; chi_broadcast_iterator_next(&it))
		if (r->run_is_summed)
			collect_half_run(r, x, at + it.at[0], total);
		else
			chi_half_loops_best(x->dtype)->sum_rows(
					total, chi_element(x, at + it.at[0]), r->rows, r->row, count);
}

// count <= CHI_COLUMNS sums of a kept run, or one of a summed run.
static void collect(
		const reduction *r, const choir_buffer *x, int64_t at, int64_t count, chi_total *total)
{
	if (chi_dtype_is_half(x->dtype)) {
		collect_half(r, x, at, count, total);
		return;
	}
	const chi_number_loops *loops = chi_loops_best()->number[x->dtype];
	chi_broadcast_iterator it = r->summed;
	for (; !it.done; chi_broadcast_iterator_next(&it)) {
		const void *from = chi_element(x, at + it.at[0]);
		if (r->run_is_summed)
			loops->sum(total, from, r->run);
		else
			loops->sum_rows(total, from, r->rows, r->row, count);
	}
}

typedef struct {
	const choir_kernel_call *call;
	const reduction *r;
	int64_t at, out;
	int64_t columns, chunk;
} run_of_sums;

static void sum_chunk(void *arg, int member, int64_t chunk)
{
	const run_of_sums *s = arg;
	const int64_t first = chunk * s->chunk, left = s->columns - first;
	const int64_t count = left < s->chunk ? left : s->chunk;
	(void) member;
	chi_total total[CHI_COLUMNS];
	memset(total, 0, sizeof total);
	collect(s->r, &s->call->in[0], s->at + first, count, total);
	store(s->call->out, s->out + first, total, count);
}

static choir_status run_sum(const choir_kernel_call *call)
{
	const choir_sum_attributes *attributes = call->attributes;
	const choir_buffer *x = &call->in[0];
	const reduction r = reduction_of(&x->shape, attributes->axes);
	run_of_sums s = { .call = call, .r = &r, .columns = r.run_is_summed ? 1 : r.run };
	const bool shares = chi_team_own_members() > 1 && chi_elements(x) >= CHI_DIVIDED_SUM_ELEMENTS;
	s.chunk = shares ? CHI_ROUND : CHI_COLUMNS;
	const int64_t chunks = (s.columns + s.chunk - 1) / s.chunk;
	for (chi_broadcast_iterator it = r.kept; !it.done;
			chi_broadcast_iterator_next(&it), s.out += s.columns) {
		s.at = it.at[0];
		if (shares)
			CHOIR_TRY(chi_team_share(chunks, sum_chunk, &s));
		for (int64_t i = 0; i < chunks && !shares; i++)
			sum_chunk(&s, 0, i);
	}
	return CHOIR_OK;
}

// From the first summed row, which is used twice.
static void extreme_of(const reduction *r, chi_binary op, const choir_buffer *x, int64_t at,
		choir_buffer *out, int64_t to)
{
	const chi_number_loops *loops = chi_loops_best()->number[x->dtype];
	const size_t size = chi_dtype_size(x->dtype);
	void *total = chi_element(out, to);
	memcpy(total, chi_element(x, at), size * (size_t) (r->run_is_summed ? 1 : r->run));
	for (chi_broadcast_iterator it = r->summed; !it.done; chi_broadcast_iterator_next(&it)) {
		const int64_t from = at + it.at[0];
		if (r->run_is_summed) {
			loops->extreme(op, total, chi_element(x, from), r->run);
			continue;
		}
		for (int64_t row = 0; row < r->rows; row++)
			loops->binary(
					op, total, total, chi_element(x, from + row * r->row), r->run, false, false);
	}
}

static choir_status run_extreme(const choir_kernel_call *call)
{
	static const chi_binary ops[] = { CHI_MAXIMUM, CHI_MINIMUM };
	const choir_sum_attributes *attributes = call->attributes;
	const choir_buffer *x = &call->in[0];
	const reduction r = reduction_of(&x->shape, attributes->axes);
	int64_t to = 0;
	for (chi_broadcast_iterator it = r.kept; !it.done; chi_broadcast_iterator_next(&it)) {
		extreme_of(&r, ops[call->user != NULL], x, it.at[0], call->out, to);
		to += r.run_is_summed ? 1 : r.run;
	}
	return CHOIR_OK;
}

#define IS_NAN(x) isnan(x)
#define T float
#define NAME argmax_f32
#include "op/plain/argmax_loop.inc"
#define T double
#define NAME argmax_f64
#include "op/plain/argmax_loop.inc"
#undef IS_NAN
#define IS_NAN(x) false
#define T int32_t
#define NAME argmax_i32
#include "op/plain/argmax_loop.inc"
#define T int64_t
#define NAME argmax_i64
#include "op/plain/argmax_loop.inc"
#define T uint8_t
#define NAME argmax_u8
#include "op/plain/argmax_loop.inc"

static choir_status run_argmax(const choir_kernel_call *call)
{
	static int64_t (*const loops[])(const void *, int64_t, int64_t, bool) = { argmax_f32,
		argmax_f64, argmax_i32, argmax_i64, argmax_u8 };
	const choir_argmax_attributes *attributes = call->attributes;
	const choir_buffer *x = &call->in[0];
	const int64_t n = x->shape.dim[attributes->axis];
	int64_t inner = 1;
	for (int i = attributes->axis + 1; i < x->shape.rank; i++)
		inner *= x->shape.dim[i];
	int64_t *out = call->out->data;
	const int64_t count = chi_elements(call->out);
	for (int64_t i = 0; i < count; i++)
		out[i] = loops[x->dtype](
				chi_element(x, i / inner * n * inner + i % inner), n, inner, call->user != NULL);
	return CHOIR_OK;
}

static choir_status run_cumsum(const choir_kernel_call *call)
{
	const choir_cumsum_attributes *a = call->attributes;
	const choir_buffer *x = &call->in[0];
	const int64_t n = x->shape.dim[a->axis], all = chi_elements(x);
	int64_t inner = 1;
	for (int i = a->axis + 1; i < x->shape.rank; i++)
		inner *= x->shape.dim[i];
	const int64_t first = a->reverse ? (n - 1) * inner : 0, step = a->reverse ? -inner : inner;
	for (int64_t outer = 0; outer < all; outer += n * inner)
		for (int64_t i = outer + first; i < outer + first + inner; i++)
			chi_loops_best()->number[x->dtype]->cumsum(
					chi_element(call->out, i), chi_element(x, i), n, step, a->exclusive);
	return CHOIR_OK;
}

static choir_status run_top_k(const choir_kernel_call *call)
{
	const choir_top_k_attributes *a = call->attributes;
	const choir_buffer *x = &call->in[0];
	const int64_t n = x->shape.dim[x->shape.rank - 1], rows = chi_elements(x) / n;
	int64_t *out = call->out->data;
	for (int64_t row = 0; row < rows; row++, out += a->k)
		chi_loops_best()->number[x->dtype]->top_k(out, chi_element(x, row * n), n, a->k);
	return CHOIR_OK;
}

static choir_status run_chunk_squares(const choir_kernel_call *call)
{
	const choir_chunk_squares_attributes *attributes = call->attributes;
	const choir_buffer *x = &call->in[0];
	const chi_real_loops *loops = chi_loops_best()->real[x->dtype];
	const int64_t n = chi_elements(x), chunk = attributes->chunk;
	double *out = call->out->data;
	for (int64_t i = 0; i < n; i += chunk) {
		const void *from = chi_element(x, i);
		*out++ = loops->dot(from, from, n - i < chunk ? n - i : chunk);
	}
	return CHOIR_OK;
}

static const bool smallest = true;

static const chi_kernel_spec specs[] = {
	{ "sum", CHI_ARITHMETIC | CHI_HALF, sizeof(choir_sum_attributes), run_sum, NULL, NULL, NULL },
	{ "argmax", CHI_ARITHMETIC, sizeof(choir_argmax_attributes), run_argmax, NULL, NULL, NULL },
	{ "argmin", CHI_ARITHMETIC, sizeof(choir_argmax_attributes), run_argmax, NULL, NULL,
			&smallest },
	{ "max", CHI_ARITHMETIC, sizeof(choir_sum_attributes), run_extreme, NULL, NULL, NULL },
	{ "min", CHI_ARITHMETIC, sizeof(choir_sum_attributes), run_extreme, NULL, NULL, &smallest },
	{ "cumsum", CHI_ARITHMETIC, sizeof(choir_cumsum_attributes), run_cumsum, NULL, NULL, NULL },
	{ "top_k", CHI_ARITHMETIC, sizeof(choir_top_k_attributes), run_top_k, NULL, NULL, NULL },
	{ "chunk_squares", CHI_REAL, sizeof(choir_chunk_squares_attributes), run_chunk_squares, NULL,
			NULL, NULL },
};
const chi_kernel_list chi_plain_reduce = { specs, sizeof specs / sizeof specs[0] };
