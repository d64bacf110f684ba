// choir_kernel_run, for tests.
#include "op/op.h"
#include "tensor/buffer.h"

#include <string.h>

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
	if (memory == NULL)
		return CHOIR_NO_MEMORY;
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
	if (s == NULL)
		return choir_error_status();
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
