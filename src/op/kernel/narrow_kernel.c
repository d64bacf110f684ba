// A kernel for f16 or bf16 around a kernel for f32. The call's tensors of 16 bits are widened in
// scratch memory, where the f32 kernel runs; the result is rounded once, as IEEE 754 does. So the
// result is that of f32 arithmetic on the same operands. Elementwise operations run in blocks that
// stay in the first cache.
#include "op/kernel/narrow_kernel.h"

#include "op/kernel/kernel.h"
#include "op/kernel/parallel.h"
#include "op/plain/loops.h"
#include "op/plain/plain.h"

#include <string.h>

enum { BLOCK = 2048 }; // elements

// A call in f32, without memory.
typedef struct {
	choir_kernel_call call;
	choir_buffer in[CHI_MAX_INPUTS], out;
} wide_call;

static const chi_kernel_spec *spec_of(const choir_kernel_call *call)
{
	return call->user;
}

static choir_buffer widened(const choir_buffer *b)
{
	choir_buffer w = *b;
	w.dtype = chi_dtype_wide(b->dtype);
	return w;
}

static void widen_call(wide_call *w, const choir_kernel_call *call)
{
	w->call = *call;
	for (size_t i = 0; i < call->n; i++)
		w->in[i] = widened(&call->in[i]);
	w->out = widened(call->out);
	w->call.in = w->in;
	w->call.out = &w->out;
	w->call.user = spec_of(call)->user;
}

static bool is_block_operand(const choir_kernel_call *call, size_t i)
{
	return chi_shape_equal(&call->in[i].shape, &call->out->shape);
}

// Whether every element of out depends on the same elements of the inputs.
static bool is_elementwise(const choir_kernel_call *call)
{
	if (chi_elements(call->out) <= BLOCK || call->n == 0)
		return false;
	for (size_t i = 0; i < call->n; i++)
		if (!is_block_operand(call, i) && chi_elements(&call->in[i]) != 1)
			return false;
	return chi_parallel_is_elementwise(spec_of(call)->operation);
}

static size_t bytes_for(const choir_buffer *b, int64_t elements)
{
	return chi_dtype_is_half(b->dtype) ? chi_whole_lines((size_t) elements * sizeof(float)) : 0;
}

static size_t inner_scratch(const choir_kernel_call *call)
{
	const chi_kernel_spec *spec = spec_of(call);
	wide_call w;
	if (spec->scratch == NULL)
		return 0;
	widen_call(&w, call);
	return chi_whole_lines(spec->scratch(&w.call));
}

static int score(const choir_kernel_call *call)
{
	const chi_kernel_spec *spec = spec_of(call);
	wide_call w;
	if (spec->score == NULL)
		return 1;
	widen_call(&w, call);
	return spec->score(&w.call);
}

static size_t scratch(const choir_kernel_call *call)
{
	const bool blocks = is_elementwise(call);
	size_t bytes = inner_scratch(call);
	for (size_t i = 0; i < call->n; i++)
		bytes += bytes_for(&call->in[i],
				blocks && is_block_operand(call, i) ? BLOCK : chi_elements(&call->in[i]));
	return bytes + bytes_for(call->out, blocks ? BLOCK : chi_elements(call->out));
}

static char *take(char **at, size_t bytes)
{
	char *taken = *at;
	*at += bytes;
	return taken;
}

// Widens an operand to memory at *at, or uses its own.
static void *operand(const choir_buffer *b, int64_t first, int64_t n, char **at)
{
	if (!chi_dtype_is_half(b->dtype))
		return chi_element(b, first);
	void *to = take(at, bytes_for(b, n));
	chi_half_loops_best(b->dtype)->widen(to, chi_element(b, first), n);
	return to;
}

static choir_status run_whole(const choir_kernel_call *call, wide_call *w, char *at)
{
	const choir_buffer *out = call->out;
	const int64_t n = chi_elements(out);
	for (size_t i = 0; i < call->n; i++)
		w->in[i].data = operand(&call->in[i], 0, chi_elements(&call->in[i]), &at);
	if (!chi_dtype_is_half(out->dtype))
		return spec_of(call)->run(&w->call);
	w->out.data = at;
	CHOIR_TRY(spec_of(call)->run(&w->call));
	chi_half_loops_best(out->dtype)->narrow(out->data, at, n);
	return CHOIR_OK;
}

static choir_status run_block(
		const choir_kernel_call *call, wide_call *w, int64_t first, int64_t n, char *at)
{
	const choir_buffer *out = call->out;
	const choir_shape shape = { 1, { n } };
	for (size_t i = 0; i < call->n; i++) {
		const bool part = is_block_operand(call, i);
		w->in[i].data = operand(&call->in[i], part ? first : 0, part ? n : 1, &at);
		if (part)
			w->in[i].shape = shape;
	}
	w->out.shape = shape;
	w->out.data = chi_dtype_is_half(out->dtype) ? at : chi_element(out, first);
	CHOIR_TRY(spec_of(call)->run(&w->call));
	if (chi_dtype_is_half(out->dtype))
		chi_half_loops_best(out->dtype)->narrow(chi_element(out, first), at, n);
	return CHOIR_OK;
}

static choir_status run(const choir_kernel_call *call)
{
	const int64_t n = chi_elements(call->out);
	char *at = call->scratch;
	wide_call w;
	widen_call(&w, call);
	w.call.scratch = take(&at, inner_scratch(call));
	if (!is_elementwise(call))
		return run_whole(call, &w, at);
	for (int64_t first = 0; first < n; first += BLOCK)
		CHOIR_TRY(run_block(call, &w, first, n - first < BLOCK ? n - first : BLOCK, at));
	return CHOIR_OK;
}

// Updates of optimizers and scatters write their inputs.
static bool writes_inputs(const char *operation)
{
	const size_t length = strlen(operation);
	return strncmp(operation, "scatter_", 8) == 0 ||
			(length > 7 && strcmp(operation + length - 7, "_update") == 0);
}

static choir_status register_spec(const chi_kernel_spec *spec, const char *name)
{
	for (int dtype = CHOIR_F16; dtype <= CHOIR_BF16; dtype++) {
		const choir_kernel_table table = {
			.size = sizeof table,
			.version = CHOIR_TABLE_VERSION,
			.operation = spec->operation,
			.kind = "cpu",
			.name = name,
			.dtype = (choir_dtype) dtype,
			.user = spec,
			.score = score,
			.scratch = scratch,
			.run = run,
		};
		CHOIR_TRY(chi_kernel_add_builtin(&table));
	}
	return CHOIR_OK;
}

bool chi_kernel_is_narrowed(const chi_kernel_spec *spec)
{
	return (spec->dtypes & CHI_F32) != 0 && (spec->dtypes & CHI_HALF) == 0 &&
			!writes_inputs(spec->operation);
}

choir_status chi_kernel_register_narrow(chi_kernel_lists *lists, const char *name)
{
	for (size_t index = 0; lists(index).count; index++)
		for (size_t i = 0; i < lists(index).count; i++)
			if (chi_kernel_is_narrowed(&lists(index).specs[i]))
				CHOIR_TRY(register_spec(&lists(index).specs[i], name));
	return CHOIR_OK;
}
