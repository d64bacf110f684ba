// The operations that run in chunks, and the axis of each.
#include "op/kernel/parallel.h"

#include "base/team.h"
#include "base/thresholds.h"
#include "op/vector.h"

#include <string.h>

typedef enum {
	ROWS,
	FIRST,
	SUMS, // as FIRST; out is a sum, added in the order of chunks
	FLAT
} way;

typedef struct {
	const char *operation;
	way way;
	unsigned mask;
	size_t n; // 0: any number
	int64_t chunk; // rows, examples or elements; 0: examples with ELEMENTS elements
	bool has_blocks;
} rule;

enum { GEMM_ROWS = 256, NORM_ROWS = 512, IMAGES = 16, ELEMENTS = 64 << 10 };

static const rule rules[] = {
	{ "dense", ROWS, 1, 0, GEMM_ROWS, false },
	{ "matmul", ROWS, 1, 2, GEMM_ROWS, false },
	{ "attention", FIRST, 1, 1, 1, false },
	{ "attention", FIRST, 7, 3, 1, false },
	{ "attention_gradient", FIRST, 3, 2, 1, false }, // three are not by examples
	{ "conv2d", FIRST, 1, 0, IMAGES, false },
	{ "conv2d_gradient_input", FIRST, 2, 2, IMAGES, false },
	{ "conv2d_gradient_filter", SUMS, 3, 2, IMAGES, false },
	{ "max_pool2d", FIRST, 1, 1, IMAGES, true },
	{ "max_pool2d_gradient", FIRST, 7, 3, IMAGES, true },
	{ "average_pool2d", FIRST, 1, 1, IMAGES, true },
	{ "average_pool2d_gradient", FIRST, 1, 1, IMAGES, true },
	{ "softmax", FIRST, 1, 1, 0, true },
	{ "softmax_gradient", FIRST, 3, 2, 0, true },
	{ "log_softmax", FIRST, 1, 1, 0, true },
	{ "log_softmax_gradient", FIRST, 3, 2, 0, true },
	{ "softmax_cross_entropy_gradient", FIRST, 7, 3, 0, true }, // labels are checked before
	{ "channel_sums", SUMS, 1, 1, 0, false },
	{ "channel_norm", FIRST, 1, 4, 0, true },
	{ "channel_norm_sums", SUMS, 1 | 4, 3, 0, false },
	{ "channel_norm_gradient", FIRST, 1 | 8, 5, 0, true },
	{ "row_moments", ROWS, 1, 1, NORM_ROWS, true },
	{ "row_norm", ROWS, 1 | 4, 3, NORM_ROWS, true },
	{ "row_norm", ROWS, 1 | 8, 4, NORM_ROWS, true },
	{ "row_norm_gradient", ROWS, 1 | 4 | 8, 4, NORM_ROWS, true },
	{ "cast", FLAT, 0, 0, ELEMENTS, true },
	{ "add", FLAT, 0, 0, ELEMENTS, true },
	{ "subtract", FLAT, 0, 0, ELEMENTS, true },
	{ "multiply", FLAT, 0, 0, ELEMENTS, true },
	{ "divide", FLAT, 0, 0, ELEMENTS, true },
	{ "maximum", FLAT, 0, 0, ELEMENTS, true },
	{ "scale", FLAT, 0, 0, ELEMENTS, true },
	{ "square", FLAT, 0, 0, ELEMENTS, true },
	{ "sqrt", FLAT, 0, 0, ELEMENTS, true },
	{ "exp", FLAT, 0, 0, ELEMENTS, true },
	{ "log", FLAT, 0, 0, ELEMENTS, true },
	{ "relu", FLAT, 0, 0, ELEMENTS, true },
	{ "tanh", FLAT, 0, 0, ELEMENTS, true },
	{ "sigmoid", FLAT, 0, 0, ELEMENTS, true },
	{ "gelu_tanh", FLAT, 0, 0, ELEMENTS, true },
	{ "gelu", FLAT, 0, 0, ELEMENTS, true },
	{ "silu", FLAT, 0, 0, ELEMENTS, true },
	{ "relu_gradient", FLAT, 0, 0, ELEMENTS, true },
	{ "tanh_gradient", FLAT, 0, 0, ELEMENTS, true },
	{ "sigmoid_gradient", FLAT, 0, 0, ELEMENTS, true },
	{ "gelu_tanh_gradient", FLAT, 0, 0, ELEMENTS, true },
	{ "gelu_gradient", FLAT, 0, 0, ELEMENTS, true },
	{ "silu_gradient", FLAT, 0, 0, ELEMENTS, true },
};

typedef struct {
	const choir_kernel_call *call;
	chi_kernel_fn *run;
	int64_t rows, chunk;
	unsigned mask;
	way way;
	char *scratch;
	size_t bytes;
	char *sums;
	size_t sum_bytes;
	chi_atomic32 failed;
	chi_error error;
} subset;

static const rule *find_rule(const char *operation, const choir_kernel_call *call)
{
	for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
		if ((rules[i].n == 0 || rules[i].n == call->n) &&
				strcmp(rules[i].operation, operation) == 0)
			return &rules[i];
	return NULL;
}

static bool is_by_rows(const choir_kernel_call *call)
{
	const choir_matmul_attributes *a = call->attributes;
	return a->transposed != CHOIR_TRANSPOSED_A && call->in[1].shape.rank == 2;
}

static bool plan_flat(subset *c)
{
	const choir_kernel_call *call = c->call;
	c->rows = choir_shape_elements(&call->out->shape);
	for (size_t i = 0; i < call->n; i++) {
		if (chi_shape_equal(&call->in[i].shape, &call->out->shape))
			c->mask |= 1u << i;
		else if (choir_shape_elements(&call->in[i].shape) != 1)
			return false;
	}
	return true;
}

static int64_t examples_of(int64_t elements, int64_t rows)
{
	const int64_t width = rows > 0 ? elements / rows : 0;
	return width > 0 && width < ELEMENTS ? ELEMENTS / width : 1;
}

static bool plan(subset *c, const rule *r)
{
	const choir_kernel_call *call = c->call;
	const choir_shape *first = call->n == 0 ? NULL : &call->in[0].shape;
	c->mask = r->mask;
	c->way = r->way;
	c->chunk = r->chunk;
	if (first == NULL || first->rank == 0)
		return false;
	switch (r->way) {
	case FLAT:
		return plan_flat(c);
	case FIRST:
	case SUMS:
		for (size_t i = call->n; i-- > 0;)
			if ((r->mask >> i & 1) != 0)
				first = &call->in[i].shape;
		if (first->rank < 2) // its axis is classes or channels
			return false;
		c->rows = first->dim[0];
		if (r->chunk == 0)
			c->chunk = examples_of(choir_shape_elements(first), c->rows);
		return c->rows > 0;
	case ROWS:
		c->rows = choir_shape_elements(first) / first->dim[first->rank - 1];
		return strcmp(r->operation, "matmul") != 0 || is_by_rows(call);
	}
	return false;
}

static choir_buffer part(const subset *c, const choir_buffer *b, int64_t from, int64_t count)
{
	const int64_t width = choir_shape_elements(&b->shape) / c->rows;
	choir_buffer out = *b;
	out.data = (char *) b->data + (size_t) (from * width) * chi_dtype_size(b->dtype);
	if (c->way == FIRST || c->way == SUMS)
		out.shape.dim[0] = count;
	else if (c->way == FLAT)
		out.shape = (choir_shape){ 1, { count } };
	else
		out.shape = (choir_shape){ 2, { count, width } };
	return out;
}

static void take_chunk(const subset *c, int64_t chunk, choir_kernel_call *call, choir_buffer in[],
		choir_buffer *out)
{
	const int64_t from = chunk * c->chunk, left = c->rows - from;
	const int64_t count = left < c->chunk ? left : c->chunk;
	*call = *c->call;
	for (size_t i = 0; i < call->n; i++)
		in[i] = (c->mask >> i & 1) != 0 ? part(c, &c->call->in[i], from, count) : c->call->in[i];
	*out = c->way == SUMS ? *c->call->out : part(c, c->call->out, from, count);
	if (c->way == SUMS && chunk > 0 && c->sums != NULL)
		out->data = c->sums + (size_t) (chunk - 1) * c->sum_bytes;
	call->in = in;
	call->out = out;
}

static size_t sum_bytes(const choir_kernel_call *call)
{
	const choir_buffer *out = call->out;
	return chi_whole_lines(
			(size_t) choir_shape_elements(&out->shape) * chi_dtype_size(out->dtype));
}

void chi_parallel_plan_make(
		const char *operation, const choir_kernel_call *call, chi_parallel_plan *out)
{
	subset c = { .call = call };
	*out = (chi_parallel_plan){ .chunks = 1 };
	if (call->n == 0)
		return;
	const int64_t in = choir_shape_elements(&call->in[0].shape);
	const int64_t made = choir_shape_elements(&call->out->shape);
	if (in < CHI_DIVIDED_ELEMENTS && made < CHI_DIVIDED_ELEMENTS)
		return;
	const rule *r = find_rule(operation, call);
	if (r == NULL || (r->way == SUMS ? in : made) < CHI_DIVIDED_ELEMENTS || !plan(&c, r) ||
			c.rows <= c.chunk)
		return;
	out->chunks = (c.rows + c.chunk - 1) / c.chunk;
	out->sums = r->way == SUMS ? (size_t) (out->chunks - 1) * sum_bytes(call) : 0;
	take_chunk(&c, 0, &out->first, out->in, &out->out);
	take_chunk(&c, out->chunks - 1, &out->last, out->last_in, &out->last_out);
}

size_t chi_parallel_scratch(const chi_parallel_plan *plan, const choir_kernel_table *kernel,
		const choir_kernel_call *call)
{
	choir_kernel_call first = plan->first, last = plan->last;
	if (kernel->scratch == NULL)
		return 0;
	if (plan->chunks <= 1)
		return chi_whole_lines(kernel->scratch(call));
	first.user = last.user = kernel->user;
	const size_t a = kernel->scratch(&first), b = kernel->scratch(&last);
	return chi_whole_lines(a > b ? a : b);
}

static void run_chunk(void *arg, int member, int64_t chunk)
{
	subset *c = arg;
	choir_kernel_call call;
	choir_buffer in[CHI_MAX_INPUTS], out;
	if (chi_atomic32_load(&c->failed) != 0)
		return;
	take_chunk(c, chunk, &call, in, &out);
	call.scratch = c->scratch == NULL ? NULL : c->scratch + (size_t) member * c->bytes;
	const chi_suspended_error before = chi_error_suspend();
	const choir_status status = c->run(&call);
	if (status == CHOIR_OK) {
		chi_error_resume(before);
	} else if (chi_atomic32_change(&c->failed, 0, 1)) {
		chi_error_reason(status, "a chunk of it");
		chi_error_save(&c->error);
	}
}

static void add_sums(const subset *c, int64_t chunks)
{
	const choir_buffer *out = c->call->out;
	const int64_t n = choir_shape_elements(&out->shape);
	for (int64_t i = 1; i < chunks; i++)
		chi_vector_add(
				out->dtype, out->data, out->data, c->sums + (size_t) (i - 1) * c->sum_bytes, n);
}

choir_status chi_parallel_run(const chi_parallel_plan *whole, const char *operation,
		chi_kernel_fn *run, const choir_kernel_call *call, size_t bytes)
{
	subset c = { .call = call, .run = run, .bytes = bytes };
	(void) plan(&c, find_rule(operation, call));
	if (call->scratch != NULL) {
		c.sums = call->scratch;
		c.sum_bytes = sum_bytes(call);
		c.scratch = c.sums + whole->sums;
	}
	CHOIR_TRY(chi_team_share(whole->chunks, run_chunk, &c));
	if (chi_atomic32_load(&c.failed) == 0) {
		if (c.way == SUMS)
			add_sums(&c, whole->chunks);
		return CHOIR_OK;
	}
	return chi_error_restore(&c.error);
}

// False: one block. Blocks of examples are larger: norms compute channels' factors in each.
static bool plan_blocks(subset *c, const char *operation)
{
	enum { BLOCK = 2048, ROW_BLOCK = 16 << 10 };
	const rule *r = c->call->n == 0 ? NULL : find_rule(operation, c->call);
	if (r == NULL || !r->has_blocks || !plan(c, r))
		return false;
	const int64_t width = choir_shape_elements(&c->call->in[0].shape) / c->rows;
	const int64_t max = r->way == FIRST ? ROW_BLOCK : BLOCK;
	c->chunk = r->way == FLAT ? BLOCK : width < max ? max / width : 1;
	return c->rows > c->chunk;
}

void chi_parallel_blocks_make(
		const char *operation, const choir_kernel_call *call, chi_parallel_plan *out)
{
	subset c = { .call = call };
	*out = (chi_parallel_plan){ .chunks = 1, .first = *call };
	if (!plan_blocks(&c, operation))
		return;
	out->chunks = (c.rows + c.chunk - 1) / c.chunk;
	take_chunk(&c, 0, &out->first, out->in, &out->out);
}

choir_status chi_parallel_run_blocks(
		const char *operation, chi_kernel_fn *run, const choir_kernel_call *call)
{
	subset c = { .call = call };
	choir_kernel_call block;
	choir_buffer in[CHI_MAX_INPUTS], out;
	if (!plan_blocks(&c, operation))
		return run(call);
	for (int64_t i = 0; i * c.chunk < c.rows; i++) {
		take_chunk(&c, i, &block, in, &out);
		CHOIR_TRY(run(&block));
	}
	return CHOIR_OK;
}
