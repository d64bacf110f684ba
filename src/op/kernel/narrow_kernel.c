// Tensors of 16 bits are widened in scratch memory for the f32 kernel; the result is rounded once,
// as IEEE 754 does. Elementwise operations and operations on rows run in blocks that fit in the
// first caches.
#include "op/kernel/narrow_kernel.h"

#include "op/kernel/kernel.h"
#include "op/kernel/parallel.h"
#include "op/plain/loops.h"
#include "op/plain/plain.h"

#include <string.h>

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

static size_t bytes_for(const choir_buffer *b)
{
	return chi_dtype_is_half(b->dtype) ? chi_whole_lines((size_t) chi_elements(b) * sizeof(float))
									   : 0;
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
	chi_parallel_plan plan;
	chi_parallel_blocks_make(spec_of(call)->operation, call, &plan);
	const choir_kernel_call *block = &plan.first;
	size_t bytes = inner_scratch(block) + bytes_for(block->out);
	for (size_t i = 0; i < block->n; i++)
		bytes += bytes_for(&block->in[i]);
	return bytes;
}

static char *take(char **at, size_t bytes)
{
	char *taken = *at;
	*at += bytes;
	return taken;
}

// Widens to *at, unless it is f32.
static void *operand(const choir_buffer *b, char **at)
{
	if (!chi_dtype_is_half(b->dtype))
		return b->data;
	void *to = take(at, bytes_for(b));
	chi_half_loops_best(b->dtype)->widen(to, b->data, chi_elements(b));
	return to;
}

static choir_status run_block(const choir_kernel_call *call)
{
	const choir_buffer *out = call->out;
	char *at = call->scratch;
	wide_call w;
	widen_call(&w, call);
	w.call.scratch = take(&at, inner_scratch(call));
	for (size_t i = 0; i < call->n; i++)
		w.in[i].data = operand(&call->in[i], &at);
	if (!chi_dtype_is_half(out->dtype))
		return spec_of(call)->run(&w.call);
	w.out.data = at;
	CHOIR_TRY(spec_of(call)->run(&w.call));
	chi_half_loops_best(out->dtype)->narrow(out->data, at, chi_elements(out));
	return CHOIR_OK;
}

static choir_status run(const choir_kernel_call *call)
{
	return chi_parallel_run_blocks(spec_of(call)->operation, run_block, call);
}

static bool writes_inputs(const char *operation)
{
	const size_t length = strlen(operation);
	return strncmp(operation, "scatter_", 8) == 0 ||
			(length > 7 && strcmp(operation + length - 7, "_update") == 0);
}

static choir_status register_spec(const chi_kernel_spec *spec, const char *name)
{
	const choir_kernel_table table = { .operation = spec->operation,
		.kind = "cpu",
		.name = name,
		.user = spec,
		.score = score,
		.scratch = scratch,
		.run = run };
	return chi_kernel_add_dtypes(table, CHI_HALF);
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
