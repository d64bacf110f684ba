// Finds a kernel, gives it scratch memory, and calls it whole or in chunks. choir_kernel_run is
// for tests.
#include "base/team.h"
#include "op/kernel/parallel.h"
#include "op/op.h"
#include "tensor/buffer_pool.h"

#include <string.h>

// A sum of nothing is zero. True: done, with *status.
static bool is_trivial(chi_stream *stream, size_t n, const choir_buffer in[], choir_buffer *out,
		choir_status *status)
{
	bool empty = false;
	size_t bytes = 0;

	*status = CHOIR_OK;
	if (choir_shape_elements(&out->shape) == 0)
		return true;
	for (size_t i = 0; i < n; i++)
		empty = empty || choir_shape_elements(&in[i].shape) == 0;
	if (!empty)
		return false;
	if (chi_shape_bytes(&out->shape, out->dtype, &bytes))
		*status = chi_stream_fill(stream, out->data, 0, bytes);
	return true;
}

// A foreign failure without a message gets one.
static choir_status run_judged(const choir_kernel_table *kernel, const char *operation,
		const choir_kernel_call *call, const chi_parallel_plan *plan, size_t bytes)
{
	const chi_suspended_error before = chi_error_suspend();
	const choir_status status = plan->chunks > 1
			? chi_parallel_run(plan, operation, kernel->run, call, bytes)
			: kernel->run(call);
	if (status != CHOIR_OK)
		return chi_error_reason(
				status, "kernel %s", kernel->name ? kernel->name : "without a name");
	chi_error_resume(before);
	return CHOIR_OK;
}

static choir_status run_found(choir_frame *frame, chi_stream *stream, const char *operation,
		const choir_kernel_table *kernel, choir_kernel_call *call, const chi_parallel_plan *plan)
{
	const size_t members = plan->chunks > 1 ? (size_t) chi_team_own_members() : 1;
	const size_t bytes = chi_parallel_scratch(plan, kernel, call);
	const size_t all = plan->sums + bytes * members;
	chi_buffer *scratch = NULL;
	if (all > 0) {
		scratch = frame ? chi_frame_buffer(frame, all) : chi_buffer_new(stream->device, all);
		if (!scratch)
			return CHOIR_NO_MEMORY;
		call->scratch = scratch->memory;
	}
	const choir_status status = run_judged(kernel, operation, call, plan, bytes);
	if (!scratch)
		return status;
	if (frame) {
		chi_frame_give_back(frame, scratch);
		return status;
	}
	const choir_status waited = chi_stream_wait(stream);
	chi_buffer_release(scratch);
	return status == CHOIR_OK ? waited : status;
}

choir_status chi_kernel_run_named(
		chi_stream *stream, const char *operation, const char *name, choir_kernel_call *call)
{
	const chi_parallel_plan whole = { .chunks = 1 };
	const choir_dtype dtype = call->n ? call->in[0].dtype : call->out->dtype;
	const choir_kernel_table *kernel =
			chi_kernel_find_named(stream->device, call, operation, name, dtype);
	if (!kernel)
		return choir_error_status();
	call->user = kernel->user;
	return run_found(NULL, stream, operation, kernel, call, &whole);
}

static const choir_kernel_table *find(const choir_frame *frame, choir_device *d,
		const choir_kernel_call *call, const char *operation, choir_dtype dtype)
{
	const choir_kernel_table *kernel = NULL;
	if (frame != NULL && frame->tf32)
		kernel = chi_kernel_find_tf32(d, call, operation, dtype);
	return kernel != NULL ? kernel : chi_kernel_find(d, call, operation, dtype);
}

// Only built-in kernels on the host run in chunks.
choir_status chi_kernel_launch(
		choir_frame *frame, chi_stream *stream, const char *operation, choir_kernel_call *call)
{
	choir_status status;
	chi_parallel_plan plan = { .chunks = 1 };

	if (is_trivial(stream, call->n, call->in, call->out, &status))
		return status;
	const choir_dtype dtype = call->n ? call->in[0].dtype : call->out->dtype;
	const choir_kernel_table *kernel = NULL;
	if (stream->device->host_memory)
		chi_parallel_plan_make(operation, call, &plan);
	if (plan.chunks > 1 && !(kernel = find(frame, stream->device, &plan.first, operation, dtype)))
		return choir_error_status();
	if (kernel == NULL || !chi_kernel_is_builtin(kernel)) {
		plan = (chi_parallel_plan){ .chunks = 1 };
		kernel = find(frame, stream->device, call, operation, dtype);
	}
	if (!kernel)
		return choir_error_status();
	call->user = kernel->user;
	return run_found(frame, stream, operation, kernel, call, &plan);
}

choir_status chi_kernel_run(chi_stream *stream, const char *operation, size_t n,
		const choir_buffer in[], choir_buffer *out, const void *attributes)
{
	choir_kernel_call call = { .size = sizeof(call),
		.stream = stream->state,
		.device = stream->device->self,
		.n = n,
		.in = in,
		.out = out,
		.attributes = attributes };
	return chi_kernel_launch(NULL, stream, operation, &call);
}

choir_status chi_kernel_run_all(
		chi_stream *stream, const char *operation, size_t n, choir_kernel_call call[])
{
	const choir_kernel_table *kernel = NULL;
	for (size_t i = 0; i < n; i++) {
		call[i].size = sizeof call[i];
		call[i].stream = stream->state;
		call[i].device = stream->device->self;
		if (i == 0)
			kernel = chi_kernel_find(stream->device, call, operation, call->in[0].dtype);
		if (kernel == NULL)
			return choir_error_status();
		call[i].user = kernel->user;
		if (kernel->run_all == NULL)
			CHOIR_TRY(chi_kernel_launch(NULL, stream, operation, &call[i]));
	}
	return kernel->run_all != NULL ? kernel->run_all(call, n) : CHOIR_OK;
}

static size_t bytes_of(const choir_buffer *b)
{
	size_t bytes = 0;
	(void) chi_shape_bytes(&b->shape, b->dtype, &bytes);
	return bytes;
}

static choir_status check_tensor(const char *operation, const char *what, const choir_buffer *b)
{
	if (b->data != NULL && chi_dtype_size(b->dtype) > 0 && bytes_of(b) > 0)
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID,
			"%s: %s of dtype %d, rank %d and %zu bytes, %s data; a known dtype, a valid shape, "
			"elements and data are needed",
			operation, what, (int) b->dtype, b->shape.rank, bytes_of(b),
			b->data != NULL ? "with" : "without");
}

static choir_status check(choir_device *d, const char *operation, const choir_kernel_call *call)
{
	if (d == NULL || operation == NULL)
		return choir_fail(CHOIR_INVALID, "kernel: no %s; a device and an operation are needed",
				d == NULL ? "device" : "operation");
	if (call == NULL || call->size != sizeof *call || call->out == NULL ||
			call->n > CHI_MAX_INPUTS || (call->n > 0 && call->in == NULL))
		return choir_fail(CHOIR_INVALID,
				"%s: a call of %zu bytes with %zu inputs, %s out; %zu bytes, at most %d inputs "
				"and out are needed",
				operation, call == NULL ? 0 : call->size, call == NULL ? 0 : call->n,
				call == NULL || call->out == NULL ? "without" : "with", sizeof *call,
				CHI_MAX_INPUTS);
	for (size_t i = 0; i < call->n; i++)
		CHOIR_TRY(check_tensor(operation, "an input", &call->in[i]));
	return check_tensor(operation, "out", call->out);
}

// The last is out, unless it is an input.
typedef struct {
	size_t n;
	const choir_buffer *host[CHI_MAX_INPUTS + 1];
	chi_buffer *memory[CHI_MAX_INPUTS + 1];
	choir_buffer in[CHI_MAX_INPUTS], out;
} tensors;

static choir_status send(chi_stream *s, tensors *t, const choir_buffer *host, choir_buffer *there)
{
	const size_t bytes = bytes_of(host);
	chi_buffer *memory = chi_buffer_new(s->device, bytes);
	CHOIR_TRY(chi_made(memory));
	t->host[t->n] = host;
	t->memory[t->n++] = memory;
	*there = *host;
	there->data = memory->memory;
	return chi_stream_post(s, there->data, host->data, bytes);
}

static choir_status send_all(chi_stream *s, tensors *t, const choir_kernel_call *call)
{
	t->out.data = NULL;
	for (size_t i = 0; i < call->n; i++) {
		CHOIR_TRY(send(s, t, &call->in[i], &t->in[i]));
		if (call->in[i].data == call->out->data)
			t->out = t->in[i];
	}
	return t->out.data != NULL ? CHOIR_OK : send(s, t, call->out, &t->out);
}

static choir_status run(
		chi_stream *s, const char *operation, const char *name, choir_kernel_call *call)
{
	if (name != NULL)
		return chi_kernel_run_named(s, operation, name, call);
	return chi_kernel_run(s, operation, call->n, call->in, call->out, call->attributes);
}

static choir_status run_there(
		chi_stream *s, const char *operation, const char *name, choir_kernel_call *call)
{
	tensors t = { .n = 0 };
	choir_status status = send_all(s, &t, call);
	call->in = t.in;
	call->out = &t.out;
	if (status == CHOIR_OK)
		status = run(s, operation, name, call);
	for (size_t i = 0; i < t.n && status == CHOIR_OK; i++)
		status = chi_stream_fetch(s, t.host[i]->data, t.memory[i]->memory, bytes_of(t.host[i]));
	const choir_status waited = chi_stream_wait(s);
	for (size_t i = 0; i < t.n; i++)
		chi_buffer_release(t.memory[i]);
	return status == CHOIR_OK ? waited : status;
}

choir_status choir_kernel_run(
		choir_device *d, const char *operation, const char *name, const choir_kernel_call *call)
{
	CHOIR_TRY(check(d, operation, call));
	chi_stream *s = chi_stream_new(d);
	CHOIR_TRY(chi_made(s));
	choir_kernel_call made = { .size = sizeof made,
		.stream = s->state,
		.device = d->self,
		.n = call->n,
		.in = call->in,
		.out = call->out,
		.attributes = call->attributes };
	choir_status status;
	if (!d->host_memory) {
		status = run_there(s, operation, name, &made);
	} else {
		status = run(s, operation, name, &made);
		const choir_status waited = chi_stream_wait(s);
		if (status == CHOIR_OK)
			status = waited;
	}
	chi_stream_free(s);
	return status;
}
