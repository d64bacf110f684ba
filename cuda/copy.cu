// Copies between the host and a device, within a device, and between devices. CUDA copies at once
// only from and to pinned memory, and stops the host for other memory. So other memory goes by way
// of a staging buffer.
#include "plugin.h"

#include <cstring>
#include <new>

namespace choir_cuda
{

static choir_status copy_from_host(stream *s, void *to, const void *from, size_t bytes)
{
	staging g;
	CHOIR_TRY(take_staging(s->d, bytes, &g));
	memcpy(g.memory, from, bytes);
	keep_staging(s, g);
	return CALL(s->d, cudaMemcpyAsync, to, g.memory, bytes, cudaMemcpyHostToDevice, s->s);
}

// The end of a copy to the host, on a thread of CUDA.
struct landing {
	device *d;
	staging from;
	void *to;
	size_t bytes;
};

static void CUDART_CB land(void *user)
{
	landing *l = (landing *) user;
	memcpy(l->to, l->from.memory, l->bytes);
	give_staging(l->d, l->from);
	delete l;
}

static choir_status queue_landing(stream *s, landing *l, const void *from)
{
	CHOIR_TRY(CALL(
			s->d, cudaMemcpyAsync, l->from.memory, from, l->bytes, cudaMemcpyDeviceToHost, s->s));
	const choir_status status = CALL(s->d, cudaLaunchHostFunc, s->s, land, l);
	if (status != CHOIR_OK)
		(void) cudaStreamSynchronize(s->s); // the copy to the staging buffer is under way
	return status;
}

static choir_status copy_to_host(stream *s, void *to, const void *from, size_t bytes)
{
	landing *l = new (std::nothrow) landing;
	if (l == NULL)
		return CHOIR_NO_MEMORY;
	*l = { s->d, { NULL, 0 }, to, bytes };
	choir_status status = take_staging(s->d, bytes, &l->from);
	if (status != CHOIR_OK) {
		delete l;
		return status;
	}
	status = queue_landing(s, l, from);
	if (status != CHOIR_OK) {
		give_staging(s->d, l->from);
		delete l;
	}
	return status;
}

choir_status copy(void *state, void *to, const void *from, size_t bytes)
{
	stream *s = stream_of(state);
	if (bytes == 0)
		return CHOIR_OK;
	CHOIR_TRY(check_process());
	on_gpu on(s->d->gpu);
	const bool writes = is_device_memory(to), reads = is_device_memory(from);
	s->dirty = true;
	if ((writes && reads) || (writes != reads && is_pinned_memory(writes ? from : to)))
		return CALL(s->d, cudaMemcpyAsync, to, from, bytes, cudaMemcpyDefault, s->s);
	if (!writes && !reads)
		return with.fail(CHOIR_INVALID, "copy: neither side is memory of a GPU");
	return writes ? copy_from_host(s, to, from, bytes) : copy_to_host(s, to, from, bytes);
}

} // namespace choir_cuda
