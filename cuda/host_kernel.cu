// Kernels of the CPU for operations that have no kernel here: a copy of the inputs to pinned
// memory, the kernel as a function that the stream calls on the host, and a copy of what it writes
// to the device. All of it is queued, so the host does not wait.
#include "launch.h"

#include <cstring>
#include <new>

namespace choir_cuda
{

enum { MAX_INPUTS = 8, MAX_ATTRIBUTES = 256, LINE = 64 };

// Memory of the device, and its place in the staging buffer. Buffers of a call may share memory.
struct part {
	void *data;
	size_t bytes, at;
	bool read, written;
};

struct host_call {
	choir_kernel_call call;
	choir_buffer in[MAX_INPUTS], out;
	alignas(16) char attributes[MAX_ATTRIBUTES];
	choir_cuda_host_kernel kernel;
	part parts[MAX_INPUTS + 1];
	size_t n; // parts
	std::shared_ptr<host_failure> failure;
};

static void add_part(host_call *h, const choir_buffer *b, bool read, bool written)
{
	const size_t bytes = (size_t) elements(*b) * size_of(b->dtype);
	size_t i = 0;
	while (i < h->n && h->parts[i].data != b->data)
		i++;
	if (i == h->n)
		h->parts[h->n++] = { b->data, 0, 0, false, false };
	part *p = &h->parts[i];
	p->bytes = bytes > p->bytes ? bytes : p->bytes;
	p->read |= read;
	p->written |= written;
}

static size_t lay_out(host_call *h)
{
	size_t at = 0;
	for (size_t i = 0; i < h->n; i++) {
		h->parts[i].at = at;
		at += (h->parts[i].bytes + LINE - 1) / LINE * LINE;
	}
	return at;
}

static void *in_staging(const host_call *h, const staging &g, const void *data)
{
	size_t i = 0;
	while (h->parts[i].data != data)
		i++;
	return g.memory + h->parts[i].at;
}

static void take_call(
		host_call *h, const choir_kernel_call *call, const choir_cuda_host_kernel *kernel)
{
	h->call = *call;
	h->kernel = *kernel;
	h->n = 0;
	for (size_t i = 0; i < call->n; i++) {
		h->in[i] = call->in[i];
		add_part(h, &call->in[i], true, i < kernel->written);
	}
	h->out = *call->out;
	add_part(h, call->out, false, true);
	if (kernel->attribute_bytes > 0)
		memcpy(h->attributes, call->attributes, kernel->attribute_bytes);
	h->call.attributes = kernel->attribute_bytes > 0 ? h->attributes : NULL;
	h->call.in = h->in;
	h->call.out = &h->out;
	h->call.user = kernel->user;
}

// On a thread of CUDA. After a failure later functions of the stream still run: CUDA drops
// nothing.
static void CUDART_CB run_host_call(void *user)
{
	host_call *h = (host_call *) user;
	const choir_status status = h->kernel.run(&h->call);
	if (status != CHOIR_OK)
		set_host_failure(h->failure.get(), status, with.error());
	delete h;
}

static choir_status copy_parts(stream *s, const host_call *h, const staging &g, bool to_host)
{
	for (size_t i = 0; i < h->n; i++) {
		const part *p = &h->parts[i];
		char *at = g.memory + p->at;
		if (to_host && p->read)
			CHOIR_TRY(CALL(
					s->d, cudaMemcpyAsync, at, p->data, p->bytes, cudaMemcpyDeviceToHost, s->s));
		if (!to_host && p->written)
			CHOIR_TRY(CALL(
					s->d, cudaMemcpyAsync, p->data, at, p->bytes, cudaMemcpyHostToDevice, s->s));
	}
	return CHOIR_OK;
}

static choir_status queue_call(stream *s, std::unique_ptr<host_call> h)
{
	staging g;
	CHOIR_TRY(take_staging(s->d, lay_out(h.get()), &g));
	keep_staging(s, g);
	s->dirty = true;
	CHOIR_TRY(copy_parts(s, h.get(), g, true));
	const host_call back = *h;
	for (size_t i = 0; i < h->call.n; i++)
		h->in[i].data = in_staging(h.get(), g, h->in[i].data);
	h->out.data = in_staging(h.get(), g, h->out.data);
	CHOIR_TRY(CALL(s->d, cudaLaunchHostFunc, s->s, run_host_call, h.get()));
	(void) h.release(); // the function frees it
	return copy_parts(s, &back, g, false);
}

choir_status queue_host_kernel(const choir_kernel_call *call, const choir_cuda_host_kernel *kernel)
{
	CHOIR_TRY(check_process());
	stream *s = stream_of(call->stream);
	on_gpu on(s->d->gpu);
	if (call->n > MAX_INPUTS || kernel->attribute_bytes > MAX_ATTRIBUTES)
		return with.fail(CHOIR_INTERNAL,
				"%zu inputs and %zu bytes of attributes; a kernel on the host takes %d and %d",
				call->n, kernel->attribute_bytes, (int) MAX_INPUTS, (int) MAX_ATTRIBUTES);
	std::unique_ptr<host_call> h(new (std::nothrow) host_call);
	if (h == NULL)
		return CHOIR_NO_MEMORY;
	take_call(h.get(), call, kernel);
	h->failure = s->failure;
	note_operation(s, "a kernel on the host");
	return queue_call(s, std::move(h));
}

} // namespace choir_cuda
