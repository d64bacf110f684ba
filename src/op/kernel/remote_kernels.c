// Kernels of remote devices: commands. The same build, instruction set and kernel library give the
// same bits.
#include "op/kernel/remote_kernels.h"

#include "device/remote/remote_device.h"
#include "op/kernel/narrow_kernel.h"
#include "op/plain/plain.h"

#include <string.h>

static void pack_buffer(chi_pack *p, const choir_buffer *b)
{
	chi_pack_u64(p, (uint64_t) (uintptr_t) b->data);
	chi_pack_u32(p, (uint32_t) b->dtype);
	chi_pack_u32(p, (uint32_t) b->shape.rank);
	for (int i = 0; i < b->shape.rank; i++)
		chi_pack_u64(p, (uint64_t) b->shape.dim[i]);
}

choir_status chi_remote_unpack_buffer(chi_unpack *u, uint64_t *address, choir_buffer *b)
{
	*b = (choir_buffer){ 0 };
	*address = chi_unpack_u64(u);
	b->dtype = (choir_dtype) chi_unpack_u32(u);
	const uint32_t rank = chi_unpack_u32(u);
	u->failed |= rank > CHOIR_MAX_RANK;
	b->shape.rank = u->failed ? 0 : (int) rank;
	for (int i = 0; i < b->shape.rank; i++)
		b->shape.dim[i] = (int64_t) chi_unpack_u64(u);
	size_t bytes;
	if (!u->failed && chi_dtype_size(b->dtype) > 0 && chi_shape_bytes(&b->shape, b->dtype, &bytes))
		return CHOIR_OK;
	return choir_fail(CHOIR_CORRUPT, "a tensor of dtype %d and rank %u", (int) b->dtype, rank);
}

static choir_status check_library(chi_remote_server *r)
{
	char here[CHI_KERNEL_LIBRARY];
	if (r->library_checked)
		return CHOIR_OK;
	if (strcmp(chi_kernel_library(here), r->library) != 0)
		return choir_fail(CHOIR_STATE,
				"server %s differs: its kernel library is \"%s\", but that of this program is "
				"\"%s\"; results would have other bits",
				r->address, r->library, here);
	r->library_checked = true;
	return CHOIR_OK;
}

static choir_status queue(const choir_kernel_call *call)
{
	const chi_kernel_spec *spec = call->user;
	chi_remote_stream *s = call->stream;
	CHOIR_TRY(chi_remote_begin(s->server, s, CHI_COMMAND_KERNEL, 1024));
	if (check_library(s->server) != CHOIR_OK) {
		chi_remote_cancel(s->server);
		return CHOIR_STATE;
	}
	chi_pack *p = &s->server->outbox;
	chi_pack_text(p, spec->operation);
	chi_pack_bytes(p, call->attributes, call->attributes == NULL ? 0 : spec->attribute_bytes);
	chi_pack_u32(p, (uint32_t) call->n);
	for (size_t i = 0; i < call->n; i++)
		pack_buffer(p, &call->in[i]);
	pack_buffer(p, call->out);
	return chi_remote_end(s->server, s);
}

static choir_status add(const chi_kernel_spec *spec)
{
	const choir_kernel_table table = { .operation = spec->operation,
		.kind = "remote",
		.name = "remote",
		.user = spec,
		.run = queue };
	const uint32_t half = chi_kernel_is_narrowed(spec) ? CHI_HALF : 0;
	return chi_kernel_add_dtypes(table, spec->dtypes | half);
}

// Every operation has a plain kernel.
choir_status chi_remote_kernels_add(void)
{
	chi_kernel_list list;
	for (size_t index = 0; (list = chi_plain_list(index)).count > 0; index++)
		for (size_t i = 0; i < list.count; i++)
			CHOIR_TRY(add(&list.specs[i]));
	return CHOIR_OK;
}
